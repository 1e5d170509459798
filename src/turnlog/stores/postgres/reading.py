"""Reads the records of a PostgreSQL store in batches, and checks each against the chain of checksums.

Records of some kinds are found by an index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from ...errors import CorruptRecord, SessionNotFound
from ...log.records import Record
from ...log.store import Problem
from ..damaged import Entry, judged, number_of
from ..records import damaged_session, numbered, storable
from ..segments import Segment
from ..session_rows import SessionRow, chain, damaged_row
from .database import Database
from .rows import checksum_at, find, segments_of
from .schema import Db, to_column

_BATCH_ROWS = 1024
_FIRST_BATCH_ROWS = 64  # often only the newest few are needed
_FIRST_BATCH_OF_KINDS = 16
_BATCH_BYTES = 1 << 20

# Each record with the previous checksum, which its own is checked with. A batch ends with the record that exceeds its
# size, which is known without reading long records.
_COLUMNS = "r.n, r.checksum, r.record, before.checksum"
_BEFORE = "left join turnlog_records as before on before.log = r.log and before.n = r.n - 1"
_ALL = f"""select {_COLUMNS} from (
        select *, sum(octet_length(record)) over (order by n {{0}}) - octet_length(record) as gone from (
            select * from turnlog_records where log = %s and n between %s and %s order by n {{0}} limit %s
        ) as batch
    ) as r {_BEFORE} where r.gone < {_BATCH_BYTES} order by r.n {{0}}"""
_OF_KINDS = f"""select {_COLUMNS} from (
        select one.n from unnest(%s::text[]) as wanted (kind) cross join lateral (
            select n from turnlog_records as each
            where each.log = %s and each.kind = wanted.kind and n between %s and %s order by n {{0}} limit %s
        ) as one order by n {{0}} limit %s
    ) as found join turnlog_records as r on r.log = %s and r.n = found.n {_BEFORE} order by r.n {{0}}"""

Row = tuple[int, bytes, bytes, bytes | None]


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
                row, segments = self._database.read(partial(_rewritten, row=row, error=error))

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
                # Between two batches, the connection is free for others.
                query, values = _batch(key, low, high, reverse, kinds, size)
                batch = self._database.read(partial(_fetched, query=query, values=values))
                for n, stored, raw, before in batch:
                    if kinds is None and n != (high if reverse else low):
                        self._missing(row, high if reverse else low)
                    if n == begin:  # the checksum before it is in another log
                        before = self._database.read(partial(checksum_at, segments=segments, n=n - 1))
                    elif before is None:
                        self._missing(row, n - 1)
                    if n == row.records and stored != row.head:
                        raise damaged_row(row.id)
                    yield _checked(n, before or b"", stored, raw)
                    low, high = (low, n - 1) if reverse else (n + 1, high)
                if not batch or (kinds is not None and len(batch) < size):
                    if kinds is None:
                        self._missing(row, high if reverse else low)
                    break
                size = min(size * 4, _BATCH_ROWS)

    def _missing(self, row: SessionRow, n: int) -> None:
        def is_there(db: Db) -> bool:
            found = db.execute("select 1 from turnlog_sessions where no = %s and id = %s", (row.no, row.id))
            return found.fetchone() is not None

        if not self._database.read(is_there):
            raise SessionNotFound(f"session {row.id!r} was deleted while it was being read")
        raise CorruptRecord(f"record {n} of session {row.id!r} is missing", record=n)


def _rewritten(db: Db, row: SessionRow, error: CorruptRecord) -> tuple[SessionRow, list[Segment]]:
    """The session now, if its checksums have changed: then the record that looked damaged was rewritten while it was
    read. Otherwise raises `error`, with the session's id."""
    now = find(db, row.id or "")
    if now.no != row.no or now.head == row.head:
        raise damaged_session(row.id or "", error) from error
    return now, segments_of(db, now)


def _batch(
    key: int, low: int, high: int, reverse: bool, kinds: Collection[str] | None, size: int
) -> tuple[str, list[Any]]:
    """The query for a batch of records, and its values."""
    order = "desc" if reverse else "asc"
    if kinds is None:
        return _ALL.format(order), [key, low, high, size]
    words = {*kinds, "system"} if "message" in kinds else {*kinds}
    columns = sorted({to_column(storable(word)) for word in words})
    return _OF_KINDS.format(order), [columns, key, low, high, size, size, key]


def _fetched(db: Db, query: str, values: Sequence[Any]) -> list[Row]:
    found: list[Any] = db.execute(query, values, binary=True).fetchall()
    return found


def _checked(n: int, previous: bytes, stored: bytes, raw: bytes) -> Record:
    if chain(previous, raw) != stored:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    return numbered(n, raw)


_SOME = "select n, record, checksum from turnlog_records where log = %s and n between %s and %s"


def mended(db: Db, session_id: str, first: int, last: int) -> list[Record | Problem]:
    """The records `first` to `last` of a damaged session, with a Problem for each damaged one. Raises CorruptRecord if
    the session that they are shared with is lost."""
    row = find(db, session_id)
    segments = segments_of(db, row)
    told: list[Record | Problem] = []
    for key, begin, end in segments:
        if begin > last or end < first:
            continue
        try:
            before = checksum_at(db, segments, begin - 1)
        except CorruptRecord:
            before = None
        rows = {n: (raw, total) for n, raw, total in db.execute(_SOME, (key, begin, end), binary=True)}
        entries = [_entry(n, *rows[n]) if n in rows else Entry(n) for n in range(begin, end + 1)]
        found = judged(session_id, entries, before, row.head if end == row.records else None)
        told += (one for one in found if first <= number_of(one) <= last)
    return told


def _entry(n: int, raw: bytes, total: bytes) -> Entry:
    return Entry(n, raw, total, lambda before: chain(before, raw))
