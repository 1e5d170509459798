"""Reads the records of an SQLite store in batches, and checks each against the chain of checksums.

Records of some kinds are found by the column `kind`; rare kinds have an index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

from ...errors import CorruptRecord, SessionNotFound
from ...log.records import Record
from ..records import damaged_session, numbered
from ..segments import Segment
from ..session_rows import SessionRow, chain, damaged_row
from .database import Database
from .packs import held
from .rows import find
from .schema import FREQUENT, INDEXED, KINDS_VERSION, RARE, SYSTEM_VERSION, record_id, version_of
from .segments import checksum_at, segments_of

_BATCH_ROWS = 128
_FIRST_BATCH_ROWS = 32  # often only the newest few are needed
_FIRST_BATCH_OF_KINDS = 4
_BATCH_BYTES = 1 << 20

# Each record with the previous checksum, which its own is checked with. The casts give bytes even if damage has changed
# the type of a value.
_COLUMNS = f"""select r.id & 0xffffffff, coalesce(cast(r.checksum as blob), x''), coalesce({held("r.record")}, x''),
    cast(before.checksum as blob) from"""
_ROWS = f"""{_COLUMNS} (select id from ({{}}) order by id {{}} limit ?) as wanted
    cross join records as r on r.id = wanted.id left join records as before on before.id = r.id - 1
    order by wanted.id {{}}"""
# In the order of the table: nothing is sorted, so a long record is not copied for that.
_ALL = f"""{_COLUMNS} records as r left join records as before on before.id = r.id - 1
    where r.id between ? and ? order by r.id {{}} limit ?"""


class Reader:
    """Reads while others write. Raises CorruptRecord, and SessionNotFound if the session is deleted meanwhile."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(
        self,
        row: SessionRow,
        segments: list[Segment],
        first: int,
        last: int,
        *,
        reverse: bool,
        kinds: Collection[str] | None = None,
    ) -> Iterator[Record]:
        """The records `first` to `last` of a session; with `kinds`, only those of these kinds."""
        while True:
            try:
                for record in self._once(row, segments, first, last, reverse, kinds):
                    if reverse:
                        last = record.n - 1
                    else:
                        first = record.n + 1
                    yield record
                return
            except CorruptRecord as error:
                row, segments = self._rewritten(row, error)

    def _once(
        self,
        row: SessionRow,
        segments: list[Segment],
        first: int,
        last: int,
        reverse: bool,
        kinds: Collection[str] | None,
    ) -> Iterator[Record]:
        size = _FIRST_BATCH_ROWS if kinds is None else _FIRST_BATCH_OF_KINDS
        for key, begin, end in segments[:: -1 if reverse else 1] if kinds is None or kinds else ():
            low, high = max(first, begin), min(last, end)
            while low <= high:
                # Between two batches, neither the lock nor a snapshot of the database is held.
                batch = self._batch(record_id(key, low), record_id(key, high), reverse, kinds, size)
                for n, stored, raw, before in batch:
                    if kinds is None and n != (high if reverse else low):
                        self._missing(row, high if reverse else low)
                    if n == begin:  # the checksum before it is in another log
                        with self._database.reading() as db:
                            before = checksum_at(db, segments, n - 1)
                    elif before is None:
                        self._missing(row, n - 1)
                    if n == row.records and stored != row.head:
                        raise damaged_row(row.id)
                    yield _checked(n, before or b"", stored, raw)
                    low, high = (low, n - 1) if reverse else (n + 1, high)
                if not batch:
                    if kinds is None:
                        self._missing(row, high if reverse else low)
                    break
                size = min(size * 2, _BATCH_ROWS)

    def _rewritten(self, row: SessionRow, error: CorruptRecord) -> tuple[SessionRow, list[Segment]]:
        """The session now, if its checksums have changed: then the record that looked damaged was rewritten while it
        was read. Otherwise raises `error`, with the session's id."""
        with self._database.reading() as db:
            now = find(db, row.id or "")
            if now.no != row.no or now == row:
                raise damaged_session(row.id or "", error) from error
            return now, segments_of(db, now)

    def _batch(
        self, low: int, high: int, reverse: bool, kinds: Collection[str] | None, size: int
    ) -> list[tuple[int, bytes, bytes, bytes | None]]:
        with self._database.reading() as db:
            order = "desc" if reverse else ""
            if kinds is None:
                return _some(db.execute(_ALL.format(order), [low, high, size]))
            wanted, values = _of_kinds(db, kinds, low, high, reverse, size)
            return _some(db.execute(_ROWS.format(wanted, order, order), [*values, size]))

    def _missing(self, row: SessionRow, n: int) -> None:
        with self._database.reading() as db:
            if db.execute("select 1 from sessions where no = ? and id = ?", (row.no, row.id)).fetchone() is None:
                raise SessionNotFound(f"session {row.id!r} was deleted while it was being read")
        raise CorruptRecord(f"record {n} of session {row.id!r} is missing", record=n)


def _of_kinds(
    db: sqlite3.Connection, kinds: Collection[str], low: int, high: int, reverse: bool, size: int
) -> tuple[str, list[Any]]:
    """A query for the ids of records of these kinds, at most `size` of each, and the query's values."""
    version = version_of(db)
    words = {*kinds, "system"} if "message" in kinds else {*kinds}
    if version < SYSTEM_VERSION and "system" in words:
        words.add("message")
    by_index = version >= KINDS_VERSION and FREQUENT.isdisjoint(words)
    each = [[word] for word in sorted(words)] if by_index else [sorted(words)]
    queries = [
        f"select id from (select id from records {INDEXED if by_index else ''} where kind in "
        f"({', '.join('?' * len(some))}) {RARE if by_index else ''} and id between ? and ? order by id "
        f"{'desc' if reverse else ''} limit ?)"
        for some in each
    ]
    return " union all ".join(queries), [value for some in each for value in (*some, low, high, size)]


def _some(rows: sqlite3.Cursor) -> list[Any]:
    """The first of these rows, up to a limit in bytes. The third column contains the bytes of a record."""
    batch, size = [], 0
    with closing(rows):
        for found in rows:
            batch.append(found)
            size += len(found[2])
            if size > _BATCH_BYTES:
                break
    return batch


def _checked(n: int, previous: bytes, stored: bytes, raw: bytes) -> Record:
    if chain(previous, raw) != stored:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    return numbered(n, raw)
