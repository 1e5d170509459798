"""Where the records of a session stand: its own, and those it shares with what it was forked from."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from ..errors import CorruptRecord
from .sqlite.schema import CHAIN_START, SessionRow, record_id


class Segment(NamedTuple):
    """Records `first` to `last`, kept with session number `no`."""

    no: int
    first: int
    last: int


def segments_of(db: sqlite3.Connection, row: SessionRow, *, last: int | None = None) -> list[Segment]:
    """The segments that hold the records 1 to `last` (None: all) of a session, none of them empty."""
    end = row.records if last is None else last
    no, start, base = row.no, row.parent_records, row.base
    segments = []
    while True:
        if start < end:
            segments.append(Segment(no, start + 1, end))
        if base is None:
            break
        end = min(end, start)
        found = db.execute("select parent_records, base from sessions where no = ?", (base,)).fetchone()
        # Each session begins after the one it rests on; anything else would go round in circles.
        if found is None or found[0] >= start:
            raise CorruptRecord(f"session {row.id!r} rests on session number {base}, which cannot hold its records")
        no, (start, base) = base, found
    return segments[::-1]


def checksum_at(db: sqlite3.Connection, segments: list[Segment], n: int) -> bytes:
    """The checksum of record `n`; that before record 1 is where chains start."""
    if n == 0:
        return CHAIN_START
    for segment in segments:
        if segment.first <= n <= segment.last:
            found = db.execute("select checksum from records where id = ?", (record_id(segment.no, n),)).fetchone()
            if found is not None:
                return bytes(found[0])
    raise CorruptRecord(f"record {n} is missing", record=n)


def count_messages(db: sqlite3.Connection, segments: list[Segment]) -> int:
    """How many of the records of `segments` are messages."""
    return sum(
        db.execute(
            "select count(*) from records where id between ? and ? and kind in ('message', 'partial', 'system')",
            (record_id(segment.no, segment.first), record_id(segment.no, segment.last)),
        ).fetchone()[0]
        for segment in segments
    )
