"""Searching an SQLite store by its index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ..codec import decode_record
from ..log import Hit
from ..records import Record
from .scan import Search
from .schema import SessionRow, record_id
from .segments import segments_of
from .sqlite_index import word_for
from .words import ToolNames, entry_of

__all__ = ["find_hits"]

_FIND = """select search.rowid, cast(records.record as blob) from search join records on records.id = search.rowid
    where search match ? and search.rowid between ? and ? order by search.rowid desc"""
_LIVING_FORK = """with recursive forks (no, id) as (
        select no, id from sessions where base = ? and parent_records >= ?
        union all select sessions.no, sessions.id from sessions join forks on sessions.base = forks.no
    ) select id from forks where id is not null order by no limit 1"""
_EVERYTHING = (0, (1 << 63) - 1)


def find_hits(db: sqlite3.Connection, search: Search, row: SessionRow | None, limit: int | None) -> list[Hit]:
    """The hits in the session `row`, or in all, the newest first."""
    ranges = [_EVERYTHING]
    if row is not None:
        ranges = [(record_id(no, first), record_id(no, last)) for no, first, last in segments_of(db, row)[::-1]]
    owners = {} if row is None else {segment.no: row.id or "" for segment in segments_of(db, row)}
    hits: list[Hit] = []
    for key, record in _records(db, _expression(search), ranges):
        if limit is not None and len(hits) >= limit:
            break
        if search.fits_time(record.time):
            no = key >> 32
            if row is None and no not in owners:
                owners[no] = _owner(db, no) or ""
            session = owners[no] or _fork_with(db, no, record.n)
            hits.append(search.hit(session, record, entry_of(record, ToolNames())))
    return hits


def _records(db: sqlite3.Connection, expression: str, ranges: list[tuple[int, int]]) -> Iterator[tuple[int, Record]]:
    for low, high in ranges:
        found = db.execute(_FIND, (expression, low, high))
        try:
            for key, raw in found:
                yield key, decode_record(raw)
        finally:
            found.close()


def _expression(search: Search) -> str:
    """The query in the language of FTS5. Words are letters and digits only, so that quotes hold them."""
    words = " AND ".join(f'"{" ".join(term.words)}"{" *" if term.prefix else ""}' for term in search.terms)
    columns = [f"text : ({words})"]
    if search.role is not None:
        columns.append(f'role : "{word_for(search.role)}"')
    if search.tool is not None:
        columns.append(f'tools : "{word_for(search.tool)}"')
    return " AND ".join(columns)


def _owner(db: sqlite3.Connection, no: int) -> str | None:
    found = db.execute("select id from sessions where no = ?", (no,)).fetchone()
    return found[0] if found else None


def _fork_with(db: sqlite3.Connection, no: int, n: int) -> str:
    """The oldest living session that shares record `n` of the deleted session `no`."""
    found = db.execute(_LIVING_FORK, (no, n)).fetchone()
    return str(found[0]) if found else ""
