"""Which records of a session are of some kinds, told by the kinds that stand beside them in the table."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

from ..records import Record
from .drafts import kind_of
from .schema import record_id
from .segments import Segment

__all__ = ["of_kinds", "runs_of_kinds"]

_KINDS = "select id from records where id between ? and ? and kind in ({}) order by id"


def runs_of_kinds(db: sqlite3.Connection, segments: list[Segment], kinds: Collection[str]) -> list[tuple[int, int]]:
    """The first and last number of each run of records of these kinds, in order.

    A run of messages may hold system text, which goes by a kind of its own in the table.
    """
    words = {*kinds, "system"} if "message" in kinds else {*kinds}
    query = _KINDS.format(", ".join("?" * len(words)))
    numbers: list[int] = []
    for segment in segments:
        bounds = record_id(segment.no, segment.first), record_id(segment.no, segment.last)
        numbers += [row[0] & 0xFFFFFFFF for row in db.execute(query, (*bounds, *words))]
    return list(_runs(numbers))


def of_kinds(kinds: Collection[str], runs: Iterable[Iterator[Record]]) -> Iterator[Record]:
    """The records of these kinds in runs of records."""
    return (record for run in runs for record in run if kind_of(record.body) in kinds)


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = 0
    for number in numbers:
        if last and number != last + 1:
            yield first, last
            first = number
        first, last = first or number, number
    if last:
        yield first, last
