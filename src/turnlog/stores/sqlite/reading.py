"""Reads the records of an SQLite store in batches.

Records of some kinds are found by the column `kind`; rare kinds have an index.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from contextlib import closing
from typing import Any

from ..records import Segment, SessionRow
from ..row_reading import Row, RowReader
from .database import Database
from .packs import held
from .rows import find
from .schema import FREQUENT, INDEXED, KINDS_VERSION, RARE, SYSTEM_VERSION, record_id, version_of
from .segments import checksum_at, segments_of

_BATCH_BYTES = 1 << 20


_COLUMNS = f"""select r.id & 0xffffffff, coalesce(cast(r.checksum as blob), x''), coalesce({held("r.record")}, x''),
    cast(before.checksum as blob) from"""


_ROWS = f"""{_COLUMNS} (select id from ({{}}) order by id {{}} limit ?) as wanted
    cross join records as r on r.id = wanted.id left join records as before on before.id = r.id - 1
    order by wanted.id {{}}"""


_ALL = f"""{_COLUMNS} records as r left join records as before on before.id = r.id - 1
    where r.id between ? and ? order by r.id {{}} limit ?"""


class Reader(RowReader):
    """The records of an SQLite store. Between two batches, neither the lock nor a snapshot of the database is held."""

    first_rows, first_of_kinds, most_rows, growth = 32, 4, 128, 2
    whole_batches = False

    def __init__(self, database: Database) -> None:
        self._database = database

    def batch(
        self, key: int, low: int, high: int, *, reverse: bool, kinds: Collection[str] | None, size: int
    ) -> Sequence[Row]:
        """See `RowReader`."""
        first, last = record_id(key, low), record_id(key, high)
        with self._database.reading() as db:
            order = "desc" if reverse else ""
            if kinds is None:
                return _some(db.execute(_ALL.format(order), [first, last, size]))
            wanted, values = _of_kinds(db, kinds, first, last, reverse, size)
            return _some(db.execute(_ROWS.format(wanted, order, order), [*values, size]))

    def checksum_before(self, segments: list[Segment], n: int) -> bytes:
        """See `RowReader`."""
        with self._database.reading() as db:
            return checksum_at(db, segments, n - 1)

    def is_there(self, row: SessionRow) -> bool:
        """See `RowReader`."""
        with self._database.reading() as db:
            rows = db.execute("select 1 from sessions where no = ? and id = ?", (row.no, row.id))
            return rows.fetchone() is not None

    def now(self, session_id: str) -> tuple[SessionRow, list[Segment]]:
        """See `RowReader`."""
        with self._database.reading() as db:
            row = find(db, session_id)
            return row, segments_of(db, row)


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
        for row in rows:
            batch.append(row)
            size += len(row[2])
            if size > _BATCH_BYTES:
                break
    return batch
