"""The records of a damaged session in an SQLite store, one by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ...errors import CorruptRecord
from ...log.records import Record
from ...log.store import Problem
from ..damaged import StoredEntry, judged, number_of
from ..records import SessionRow, chain
from .packs import held
from .schema import record_id
from .segments import checksum_at, segments_of

_ONE = f"select coalesce({held()}, x''), coalesce(cast(checksum as blob), x'') from records where id = ?"


def mended(db: sqlite3.Connection, row: SessionRow, first: int, last: int) -> Iterator[Record | Problem]:
    """The records `first` to `last` of a session, with a Problem for each damaged one. Raises CorruptRecord if the
    session that they are shared with is lost."""
    segments = segments_of(db, row)
    for key, begin, end in segments:
        if begin > last or end < first:
            continue
        try:
            before = checksum_at(db, segments, begin - 1)
        except (CorruptRecord, sqlite3.DatabaseError):
            before = None
        entries = [_entry(db, key, n) for n in range(begin, end + 1)]
        records = judged(row.id or "", entries, before, row.head if end == row.records else None)
        yield from (record for record in records if first <= number_of(record) <= last)


def _entry(db: sqlite3.Connection, key: int, n: int) -> StoredEntry:
    try:
        row = db.execute(_ONE, (record_id(key, n),)).fetchone()
    except sqlite3.DatabaseError:  # a page of it
        row = None
    if row is None:
        return StoredEntry(n)
    raw, total = map(bytes, row)
    return StoredEntry(n, raw, total, lambda before: chain(before, raw))
