"""Verifies a PostgreSQL store: derives again everything that can be derived, and compares it."""

from __future__ import annotations

from collections.abc import Iterator

from ...log.records import Body
from ...log.store import Problem
from ..blobs import BlobCheck
from ..records import COLUMNS, Segment, SessionRow, row_kind
from ..row_reading import CheckedRow, RowCheck, row_damage
from .rows import checksum_at, count_messages, find, row_of, segments_of
from .schema import Db, to_column

_STRAYS = "select n from turnlog_records where log = %s and (n <= %s or n > %s) order by n"
_OWNERLESS = """select distinct log from turnlog_records
    where not exists (select 1 from turnlog_sessions where no = log) order by log"""
_BATCH_ROWS = 500
_ROWS = """select n, kind, checksum, record from turnlog_records where log = %s and n between %s and %s
    order by n limit %s"""


def verify(db: Db, session_id: str | None) -> list[Problem]:
    """The damage in the whole store; or in one session and the blobs it needs. Raises SessionNotFound."""
    check = _Check(db)
    if session_id is not None:
        find(db, session_id)
    where, values = ("", ()) if session_id is None else ("where id = %s", (session_id,))
    rows = db.execute(f"select {COLUMNS}, seal from turnlog_sessions {where} order by no", values, binary=True)
    problems: list[Problem] = []
    for sealed_row in rows.fetchall():
        row = row_of(sealed_row[:-1])
        problems += row_damage(row, sealed_row[-1])
        problems += check.session(row, whole=session_id is not None)
    if session_id is None:
        for (no,) in db.execute(_OWNERLESS):
            problems.append(Problem("", 0, f"there are records of session number {no}, but no such session"))
    return problems if session_id is not None else [*problems, *check.blobs.rest()]


class _Check(RowCheck):
    """One verification of a store."""

    def __init__(self, db: Db) -> None:
        self._db = db
        self.blobs = BlobCheck((name for (name,) in db.execute("select name from turnlog_blobs")), self._blob)

    def segments(self, row: SessionRow) -> list[Segment]:
        """See `RowCheck`."""
        return segments_of(self._db, row)

    def checksum_at(self, segments: list[Segment], n: int) -> bytes:
        """See `RowCheck`."""
        return checksum_at(self._db, segments, n)

    def messages(self, segments: list[Segment]) -> int:
        """See `RowCheck`."""
        return count_messages(self._db, segments)

    def rows(self, segment: Segment) -> Iterator[CheckedRow]:
        """See `RowCheck`."""
        first = segment.first
        while rows := self._db.execute(_ROWS, (segment.key, first, segment.last, _BATCH_ROWS), binary=True).fetchall():
            for n, kind, stored, raw in rows:
                yield n, kind, stored, raw, True
            first = rows[-1][0] + 1

    def strays(self, row: SessionRow) -> Iterator[int]:
        """See `RowCheck`."""
        for (n,) in self._db.execute(_STRAYS, (row.no, row.parent_records, row.records)):
            yield n

    def kind(self, body: Body) -> str:
        """See `RowCheck`."""
        return to_column(row_kind(body))

    def _blob(self, name: str) -> bytes | None:
        row = self._db.execute("select data from turnlog_blobs where name = %s", (name,), binary=True).fetchone()
        return None if row is None else bytes(row[0])
