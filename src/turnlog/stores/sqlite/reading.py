"""Reading the records of an SQLite store, in batches, each record checked against the chain of checksums."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import CorruptRecord, SessionNotFound
from ...log.codec import decode_record
from ...log.records import Record
from ..segments import Segment
from .database import Database
from .packs import held
from .rows import damaged_row, find
from .schema import CHAIN_START, SessionRow, chain, record_id
from .segments import checksum_at, segments_of

_BATCH_ROWS = 128
_BATCH_BYTES = 1 << 20

# The casts make bytes of what damage turned into something else.
_ROWS = f"""select id & 0xffffffff, coalesce(cast(checksum as blob), x''), coalesce({held()}, x'')
    from records where id between ? and ? order by id"""


class Reader:
    """Reads while others write. Raises CorruptRecord, and SessionNotFound where a session is deleted meanwhile."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def forwards(self, row: SessionRow, segments: list[Segment], first: int, last: int) -> Iterator[Record]:
        """The records `first` to `last` of a session."""
        while True:
            try:
                for record in self._forwards(row, segments, first, last):
                    first = record.n + 1
                    yield record
                return
            except CorruptRecord:
                row, segments = self._rewritten(row)

    def backwards(self, row: SessionRow, segments: list[Segment], first: int, last: int) -> Iterator[Record]:
        """The records `last` to `first`."""
        while True:
            try:
                for record in self._backwards(row, segments, first, last):
                    last = record.n - 1
                    yield record
                return
            except CorruptRecord:
                row, segments = self._rewritten(row)

    def _rewritten(self, row: SessionRow) -> tuple[SessionRow, list[Segment]]:
        """The session as it is now, if its checksums are others than they were: then what looked damaged was
        rewritten while it was read. To be called while an error is handled, which is raised again if not."""
        with self._database.reading() as db:
            now = find(db, row.id or "")
            if now.no != row.no or now == row:
                raise
            return now, segments_of(db, now)

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
        batch, size = [], 0
        with self._database.reading() as db:
            rows = db.execute(_ROWS + " desc" if reverse else _ROWS, (record_id(no, low), record_id(no, high)))
            for found in rows:
                batch.append(found)
                size += len(found[2])
                if len(batch) == _BATCH_ROWS or size > _BATCH_BYTES:
                    break
            rows.close()
        return batch

    def _missing(self, row: SessionRow, n: int) -> None:
        with self._database.reading() as db:
            if db.execute("select 1 from sessions where no = ? and id = ?", (row.no, row.id)).fetchone() is None:
                raise SessionNotFound(f"session {row.id!r} was deleted while it was being read")
        raise CorruptRecord(f"record {n} of session {row.id!r} is missing", record=n)


def _checked(n: int, previous: bytes, stored: bytes, raw: bytes) -> Record:
    if chain(previous, raw) != stored:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    try:
        record = decode_record(raw)
    except CorruptRecord as error:
        raise CorruptRecord(f"record {n} cannot be read: {error}", record=n) from error
    if record.n != n:
        raise CorruptRecord(f"record {n} says that it is number {record.n}", record=n)
    return record
