"""Reads the records of a PostgreSQL store in batches.

Records of some kinds are found by an index.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from ...errors import CorruptRecord
from ...log.records import Record
from ...log.store import Problem
from ..damaged import StoredEntry, judged, number_of
from ..records import Segment, SessionRow, chain, storable
from ..row_reading import Row, RowReader
from .database import Database
from .rows import checksum_at, find, segments_of
from .schema import Db, to_column

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


class Reader(RowReader):
    """The records of a PostgreSQL store. Between two batches, the connection is free for others."""

    first_rows, first_of_kinds, most_rows, growth = 64, 16, 1024, 4
    whole_batches = True

    def __init__(self, database: Database) -> None:
        self._database = database

    def batch(
        self, key: int, low: int, high: int, *, reverse: bool, kinds: Collection[str] | None, size: int
    ) -> Sequence[Row]:
        """See `RowReader`."""
        query, values = _batch(key, low, high, reverse, kinds, size)
        return self._database.read(partial(_fetched, query=query, values=values))

    def checksum_before(self, segments: list[Segment], n: int) -> bytes:
        """See `RowReader`."""
        return self._database.read(partial(checksum_at, segments=segments, n=n - 1))

    def is_there(self, row: SessionRow) -> bool:
        """See `RowReader`."""

        def found(db: Db) -> bool:
            rows = db.execute("select 1 from turnlog_sessions where no = %s and id = %s", (row.no, row.id))
            return rows.fetchone() is not None

        return self._database.read(found)

    def now(self, session_id: str) -> tuple[SessionRow, list[Segment]]:
        """See `RowReader`."""
        return self._database.read(partial(_now, session_id=session_id))


def _now(db: Db, session_id: str) -> tuple[SessionRow, list[Segment]]:
    row = find(db, session_id)
    return row, segments_of(db, row)


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
    rows: list[Any] = db.execute(query, values, binary=True).fetchall()
    return rows


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
        entries = [_entry(n, *rows[n]) if n in rows else StoredEntry(n) for n in range(begin, end + 1)]
        records = judged(session_id, entries, before, row.head if end == row.records else None)
        told += (record for record in records if first <= number_of(record) <= last)
    return told


def _entry(n: int, raw: bytes, total: bytes) -> StoredEntry:
    return StoredEntry(n, raw, total, lambda before: chain(before, raw))
