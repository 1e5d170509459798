"""Searching an SQLite store by its index."""

from __future__ import annotations

import re
import sqlite3

from ..codec import decode_record
from ..log import Hit
from .scan import Search
from .schema import SPAN_VERSION, SessionRow, record_id, version_of
from .segments import segments_of
from .sqlite_index import word_for
from .sqlite_packs import held
from .words import Term, role_and_text

__all__ = ["find_hits"]

# `cross join` keeps the order: what is of another time is left before its record is looked up.
_FIND = f"""select search.rowid, sessions.id, {held("records.record")}
    from search {{}} cross join records on records.id = search.rowid
    left join sessions on sessions.no = search.rowid >> 32
    where search match ? and search.rowid between ? and ? order by search.rowid desc"""
_IN_SPAN = """cross join searched on searched.no = search.rowid >> 32
    and searched.newest >= ? and substr(searched.oldest, 1, ?) <= ?"""
_LIVING_FORK = """with recursive forks (no, id) as (
        select no, id from sessions where base = ? and parent_records >= ?
        union all select sessions.no, sessions.id from sessions join forks on sessions.base = forks.no
    ) select id from forks where id is not null order by no limit 1"""
_EVERYTHING = (0, (1 << 63) - 1)

_TIME = re.compile(rb'\{"v":\d+,"n":\d+,"t":"([0-9TZ:.-]*)"')
"""How `codec` begins a record: what is of another time need not be decoded."""

_NAME_LIKE = re.compile("x[0-9a-f]*")
"""What may stand in the columns of names as well (see `word_for`)."""


def find_hits(db: sqlite3.Connection, search: Search, row: SessionRow | None, limit: int | None) -> list[Hit]:
    """The hits in the session `row`, or in all, the newest first."""
    ranges = [_EVERYTHING]
    if row is not None:
        ranges = [(record_id(no, first), record_id(no, last)) for no, first, last in segments_of(db, row)[::-1]]
    asked: list[str | int]
    find, asked = _FIND.format(""), [_expression(search)]
    timed = bool(search.since or search.until)
    if timed and version_of(db) >= SPAN_VERSION:
        find, asked = _FIND.format(_IN_SPAN), [search.since, len(search.until), search.until, *asked]
    hits: list[Hit] = []
    for low, high in ranges:
        found = db.execute(find, (*asked, low, high))
        try:
            for key, owner, raw in found:
                if limit is not None and len(hits) >= limit:
                    return hits
                if timed and (begin := _TIME.match(raw)) and not search.fits_time(begin[1].decode()):
                    continue
                record = decode_record(raw)
                if not timed or search.fits_time(record.time):
                    session = (owner or _fork_with(db, key >> 32, record.n)) if row is None else row.id or ""
                    hits.append(search.hit(session, record, *role_and_text(record)))
        finally:
            found.close()
    return hits


def _expression(search: Search) -> str:
    """The query in the language of FTS5. Words are letters and digits only, so that quotes hold them.

    To ask for a column costs half as much again as the search itself, so only those words do that
    could stand in another one.
    """
    asked = list(map(_asked, search.terms))
    if search.role is not None:
        asked.append(f'role : "{word_for(search.role)}"')
    if search.tool is not None:
        asked.append(f'tools : "{word_for(search.tool)}"')
    return " AND ".join(asked)


def _asked(term: Term) -> str:
    words = f'"{" ".join(term.words)}"{" *" if term.prefix else ""}'
    return f"terms : {words}" if all(map(_NAME_LIKE.fullmatch, term.words)) else words


def _fork_with(db: sqlite3.Connection, no: int, n: int) -> str:
    """The oldest living session that shares record `n` of the deleted session `no`."""
    found = db.execute(_LIVING_FORK, (no, n)).fetchone()
    return str(found[0]) if found else ""
