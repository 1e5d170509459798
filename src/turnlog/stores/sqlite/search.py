"""Searches an SQLite store with its index."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import starmap

from ..._platform.lazy import lazy_pattern
from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.records import Record
from ...log.store import Hit, Problem
from ..damaged import decoded
from ..records import COLUMNS, Segment, SessionRow, chain, unshared
from ..search import Search
from ..words import Term, role_and_text
from .damaged import mended
from .index import word_for
from .packs import held
from .rows import find
from .schema import record_id
from .segments import segments_of
from .times import newest_in_time

# Each record with the previous checksum, which its own is checked with. The casts give bytes even if damage has changed
# the type of a value.
# In the order of the table: nothing is sorted, so a long record is not copied for that.


_FIND = f"""select search.rowid, sessions.id, {held("records.record")}, cast(records.checksum as blob),
    cast(before.checksum as blob) from search cross join records on records.id = search.rowid
    left join records as before on before.id = search.rowid - 1
    left join sessions on sessions.no = search.rowid >> 32
    where search match ? and search.rowid between ? and ? {{}} order by search.rowid desc"""
_ASKED = "(select value from json_each(?))"
_DELETED = "select no from sessions where id is null"
_RESTING = f"select {COLUMNS} from sessions where id is not null and base in ({_DELETED}) order by no"
_OTHERS = f"select no from sessions where id is null or no not in {_ASKED}"
_RESTING_AMONG = f"select {COLUMNS} from sessions where no in {_ASKED} and base not in {_ASKED} order by no"
_MOST = (1 << 63) - 1
_PATIENCE = 16
"""How many consecutive records of other times to skip before looking up the next record with the right time."""

_TIME = lazy_pattern(rb'\{"v":\d+,"n":\d+,"t":"([0-9TZ:.-]*)"')
"""The beginning of a record as `codec` writes it. Records of other times need not be decoded."""

_NAME_LIKE = lazy_pattern("x[0-9a-f]*")
"""Words that could also occur in the columns of names (see `word_for`)."""


def find_hits(
    db: sqlite3.Connection, search: Search, row: SessionRow | None, numbers: Sequence[int] | None
) -> list[Hit]:
    """The hits in the session `row`, or in all sessions, the newest first. With `numbers`, only those in sessions with
    these numbers."""
    among = None if numbers is None else str([*numbers])
    if row is None:
        ranges = _everywhere(db, among)
    else:
        is_asked = numbers is None or row.no in numbers
        ranges = [(*_ids(each), row.id or "") for each in segments_of(db, row)[::-1] if is_asked]
    hits: list[Hit] = []
    for low, high, heir in ranges:
        find = partial(_rows, db, _expression(search), None if heir else among)
        timed = bool(search.since or search.until)
        with closing(_in_time(db, search, find, low, high) if timed else find(low, high)) as rows:
            for key, owner, raw, stored, before in rows:
                if search.limit is not None and len(hits) >= search.limit:
                    return hits
                if session := heir or owner:  # otherwise the session was deleted: found in the range of a fork
                    for record in _found(db, search, session, key & 0xFFFFFFFF, raw, (before, stored)):
                        if (hit := search.hit(session, record, *role_and_text(record))) is not None:
                            hits.append(hit)
    return hits


def _rows(db: sqlite3.Connection, query: str, among: str | None, low: int, high: int) -> sqlite3.Cursor:
    """The rows of the index in a range of ids that match a query, the highest id first. `among` are the numbers of the
    sessions that own them, as JSON; None: any."""
    if among is None:
        return db.execute(_FIND.format(""), (query, low, high))
    return db.execute(_FIND.format(f"and search.rowid >> 32 in {_ASKED}"), (query, low, high, among))


def _found(
    db: sqlite3.Connection, search: Search, session: str, n: int, raw: bytes, sums: tuple[bytes | None, bytes]
) -> list[Record]:
    """Record `n` in a list, which is empty if the record is damaged. `sums` are the checksum before it and its own."""
    if sums[0] is None or chain(sums[0], raw) == sums[1]:
        records = [decoded(session, n, raw)]
    else:
        records = list(mended(db, find(db, session), n, n))
    search.damaged += (record for record in records if isinstance(record, Problem))
    return [record for record in records if not isinstance(record, Problem)]


def _in_time(
    db: sqlite3.Connection, search: Search, find: Callable[[int, int], sqlite3.Cursor], low: int, high: int
) -> Generator[tuple[int, str | None, bytes, bytes, bytes | None]]:
    """The rows in a range of ids whose times match. After many consecutive rows that do not match, jumps to the next
    that may."""
    begin, patience = newest_in_time(db, low, high, search.since, search.until), _PATIENCE
    while begin is not None:
        passed = 0
        with closing(find(low, begin)) as rows:
            begin = None
            for key, owner, raw, stored, before in rows:
                if search.fits_time(_time_of(raw)):
                    yield key, owner, raw, stored, before
                    passed = 0
                    continue
                passed += 1
                if passed >= patience:
                    leap = newest_in_time(db, low, key - 1, search.since, search.until)
                    if leap is None or key - leap > patience:
                        begin = leap
                        break
                    patience *= 2


def _time_of(raw: bytes) -> str:
    """The time of a record; empty if it is damaged."""
    if begin := _TIME.match(raw):
        return begin[1].decode()
    with suppress(CorruptRecord):
        return decode_record(raw).time
    return ""


def _expression(search: Search) -> str:
    """The query in the language of FTS5. Words consist of letters and digits only, so quotes are safe.

    Restricting a word to a column adds half the time of the search itself, so this is done only for words that could
    occur in another column.
    """
    parts = list(map(_term_query, search.terms))
    if search.role is not None:
        parts.append(f'role : "{word_for(search.role)}"')
    if search.tool is not None:
        parts.append(f'tools : "{word_for(search.tool)}"')
    return " AND ".join(parts)


def _term_query(term: Term) -> str:
    words = f'"{" ".join(term.words)}"{" *" if term.prefix else ""}'
    return f"word : {words}" if all(map(_NAME_LIKE.fullmatch, term.words)) else words


def _everywhere(db: sqlite3.Connection, among: str | None) -> list[tuple[int, int, str]]:
    """The whole index as ranges of ids, the newest session first. Records that forks share of a deleted session, or of
    one not in `among`, come after the oldest of these forks, with the id of that fork."""
    rows = db.execute(_RESTING) if among is None else db.execute(_RESTING_AMONG, (among, among))
    forks = list(starmap(SessionRow, rows))
    if not forks:
        return [(0, _MOST, "")]
    hidden = {no for (no,) in (db.execute(_DELETED) if among is None else db.execute(_OTHERS, (among,)))}
    segments_by_fork: dict[str, list[Segment]] = {}
    for fork in forks:
        with suppress(CorruptRecord):  # reading the session reports it
            segments_by_fork[fork.id or ""] = segments_of(db, fork)
    begins = unshared(segments_by_fork.items())
    ranges, high = [], _MOST
    for fork in reversed(forks):
        name = fork.id or ""
        begin = begins.get(name, _MOST)
        shared = [
            each._replace(first=max(each.first, begin)) for each in segments_by_fork.get(name, ()) if each.key in hidden
        ]
        ranges.append((record_id(fork.no, 0), high, ""))
        ranges += [(*_ids(each), name) for each in reversed(shared) if each.first <= each.last]
        high = record_id(fork.no, 0) - 1
    return [*ranges, (0, high, "")]


def _ids(segment: Segment) -> tuple[int, int]:
    return record_id(segment.key, segment.first), record_id(segment.key, segment.last)
