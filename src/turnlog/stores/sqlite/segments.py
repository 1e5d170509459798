"""Finds the segments of a session in an SQLite store, and the checksums and counts of messages in them."""

from __future__ import annotations

import sqlite3

from ...errors import CorruptRecord
from ..records import CHAIN_START, MESSAGES_IN_SQL, Segment, SessionRow, segments_of_log
from .schema import record_id


def segments_of(db: sqlite3.Connection, row: SessionRow, *, last: int | None = None) -> list[Segment]:
    """The segments with the records 1 to `last` (None: all) of a session. Raises CorruptRecord."""

    def find(no: int) -> tuple[int, int | None] | None:
        base_log: tuple[int, int | None] | None = db.execute(
            "select parent_records, base from sessions where no = ?", (no,)
        ).fetchone()
        return base_log

    return segments_of_log(row.no, row.parent_records, row.base, row.records if last is None else last, find)


def checksum_at(db: sqlite3.Connection, segments: list[Segment], n: int) -> bytes:
    """The checksum of record `n`; for 0, the start of every chain."""
    if n == 0:
        return CHAIN_START
    for key, first, last in segments:
        if first <= n <= last:
            row = db.execute("select checksum from records where id = ?", (record_id(key, n),)).fetchone()
            if row is not None:
                return bytes(row[0])
    raise CorruptRecord(f"record {n} is missing", record=n)


def count_messages(db: sqlite3.Connection, segments: list[Segment]) -> int:
    """The number of messages among the records of `segments`."""
    return sum(
        db.execute(
            f"select count(*) from records where id between ? and ? and kind in ({MESSAGES_IN_SQL})",
            (record_id(key, first), record_id(key, last)),
        ).fetchone()[0]
        for key, first, last in segments
    )
