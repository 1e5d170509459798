"""Reading the records of an SQLite store, in batches, each checked against the chain of checksums.

Records of some kinds are found by the kind that stands beside each record, the rare ones by an index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

from ...errors import CorruptRecord, SessionNotFound
from ...log.records import Record
from ..records import numbered
from ..segments import Segment
from .database import Database
from .packs import held
from .rows import damaged_row, find
from .schema import (
    CHAIN_START,
    FREQUENT,
    INDEXED,
    KINDS_VERSION,
    RARE,
    SYSTEM_VERSION,
    SessionRow,
    chain,
    record_id,
    version_of,
)
from .segments import checksum_at, segments_of

_BATCH_ROWS = 128
_FIRST_BATCH_ROWS = 4  # of those of a kind, of which often only the newest is wanted
_BATCH_BYTES = 1 << 20

# The casts make bytes of what damage turned into something else.
_ROWS = f"""select id & 0xffffffff, coalesce(cast(checksum as blob), x''), coalesce({held()}, x'')
    from records where id between ? and ? order by id"""

# A record is checked against the checksum before its own.
_WANTED = f"""select r.id & 0xffffffff, coalesce(cast(r.checksum as blob), x''), coalesce({held("r.record")}, x''),
    cast(before.checksum as blob) from (select id from ({{}}) order by id {{}} limit ?) as wanted
    cross join records as r on r.id = wanted.id left join records as before on before.id = r.id - 1
    order by wanted.id {{}}"""


class Reader:
    """Reads while others write. Raises CorruptRecord, and SessionNotFound where a session is deleted meanwhile."""

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
        """The records `first` to `last` of a session, or those of them that are of some kinds."""
        while True:
            try:
                for record in self._once(row, segments, first, last, reverse, kinds):
                    if reverse:
                        last = record.n - 1
                    else:
                        first = record.n + 1
                    yield record
                return
            except CorruptRecord:
                row, segments = self._rewritten(row)

    def _once(
        self,
        row: SessionRow,
        segments: list[Segment],
        first: int,
        last: int,
        reverse: bool,
        kinds: Collection[str] | None,
    ) -> Iterator[Record]:
        if kinds is not None:
            return self._of_kinds(segments, first, last, reverse, kinds)
        return (self._backwards if reverse else self._forwards)(row, segments, first, last)

    def _rewritten(self, row: SessionRow) -> tuple[SessionRow, list[Segment]]:
        """The session as it is now, if its checksums are others than they were: then what looked damaged was
        rewritten while it was read. To be called while an error is handled, which is raised again if not."""
        with self._database.reading() as db:
            now = find(db, row.id or "")
            if now.no != row.no or now == row:
                raise
            return now, segments_of(db, now)

    def _of_kinds(
        self, segments: list[Segment], first: int, last: int, reverse: bool, kinds: Collection[str]
    ) -> Iterator[Record]:
        for key, begin, end in segments[:: -1 if reverse else 1] if kinds else ():
            low, high, size = max(first, begin), min(last, end), _FIRST_BATCH_ROWS
            while low <= high:
                batch = self._batch_of_kinds(record_id(key, low), record_id(key, high), reverse, kinds, size)
                for n, stored, raw, before in batch:
                    if before is None and n == begin:  # the checksum before it stands in another log
                        with self._database.reading() as db:
                            before = checksum_at(db, segments, n - 1)
                    yield _checked(n, before or b"", stored, raw)
                    low, high = (low, n - 1) if reverse else (n + 1, high)
                if not batch:
                    break
                size = min(size * 2, _BATCH_ROWS)

    def _batch_of_kinds(
        self, low: int, high: int, reverse: bool, kinds: Collection[str], size: int
    ) -> list[tuple[int, bytes, bytes, bytes | None]]:
        with self._database.reading() as db:
            version = version_of(db)
            words = {*kinds, "system"} if "message" in kinds else {*kinds}
            if version < SYSTEM_VERSION and "system" in words:
                words.add("message")
            by_index = version >= KINDS_VERSION and FREQUENT.isdisjoint(words)
            each = [[word] for word in sorted(words)] if by_index else [sorted(words)]
            wanted = " union all ".join(
                f"select id from (select id from records {INDEXED if by_index else ''} where kind in "
                f"({', '.join('?' * len(some))}) {RARE if by_index else ''} and id between ? and ? order by id "
                f"{'desc' if reverse else ''} limit ?)"
                for some in each
            )
            query = _WANTED.format(wanted, *("desc",) * 2 if reverse else ("",) * 2)
            found = db.execute(query, [value for some in each for value in (*some, low, high, size)] + [size])
            return _some(found)

    def _forwards(self, row: SessionRow, segments: list[Segment], first: int, last: int) -> Iterator[Record]:
        with self._database.reading() as db:
            checksum = checksum_at(db, segments, first - 1)
        for n, stored, raw in self._rows(row, segments, first, last):
            yield _checked(n, checksum, stored, raw)
            checksum = stored
        if last == row.records and checksum != row.head:
            raise damaged_row(row.id)

    def _backwards(self, row: SessionRow, segments: list[Segment], first: int, last: int) -> Iterator[Record]:
        # A record is checked against the checksum before its own, so each waits for the next row.
        waiting: tuple[int, bytes, bytes] | None = None
        for n, stored, raw in self._rows(row, segments, max(first - 1, 1), last, reverse=True):
            if n == row.records and stored != row.head:
                raise damaged_row(row.id)
            if waiting is not None:
                yield _checked(waiting[0], stored, *waiting[1:])
            waiting = (n, stored, raw)
        if first == 1 and waiting is not None:
            yield _checked(waiting[0], CHAIN_START, *waiting[1:])

    def _rows(
        self, row: SessionRow, segments: list[Segment], first: int, last: int, *, reverse: bool = False
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """Number, checksum and bytes of each record, fetched in batches: neither the lock nor a
        snapshot of the database is held between two of them."""
        for segment in reversed(segments) if reverse else segments:
            low, high = max(first, segment.first), min(last, segment.last)
            while low <= high:
                batch = self._batch(segment.key, low, high, reverse)
                for n, stored, raw in batch:
                    if n != (high if reverse else low):
                        break
                    yield n, stored, raw
                    if reverse:
                        high -= 1
                    else:
                        low += 1
                else:
                    if batch:
                        continue
                self._missing(row, high if reverse else low)

    def _batch(self, no: int, low: int, high: int, reverse: bool) -> list[tuple[int, bytes, bytes]]:
        with self._database.reading() as db:
            return _some(db.execute(_ROWS + " desc" if reverse else _ROWS, (record_id(no, low), record_id(no, high))))

    def _missing(self, row: SessionRow, n: int) -> None:
        with self._database.reading() as db:
            if db.execute("select 1 from sessions where no = ? and id = ?", (row.no, row.id)).fetchone() is None:
                raise SessionNotFound(f"session {row.id!r} was deleted while it was being read")
        raise CorruptRecord(f"record {n} of session {row.id!r} is missing", record=n)


def _some(rows: sqlite3.Cursor) -> list[Any]:
    """As many of these rows as are fetched at a time. The third column holds the bytes of a record."""
    batch, size = [], 0
    with closing(rows):
        for found in rows:
            batch.append(found)
            size += len(found[2])
            if len(batch) == _BATCH_ROWS or size > _BATCH_BYTES:
                break
    return batch


def _checked(n: int, previous: bytes, stored: bytes, raw: bytes) -> Record:
    if chain(previous, raw) != stored:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    return numbered(n, raw)
