"""Which records of a session are of some kinds, told by the kinds that stand beside them in the table."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator

from ...log.records import Record
from ..records import kind_of
from ..segments import Segment
from .schema import LANDMARKS, record_id

_KINDS = "select id from records where id between ? and ? and kind in ({}) order by id"
_LANDMARKS = f"select id from records where id between ? and ? and {LANDMARKS} order by id"


def runs_of_landmarks(db: sqlite3.Connection, segments: list[Segment], known: Collection[int]) -> list[tuple[int, int]]:
    """The first and last number of each run of landmarks, but those `known`, in order. Asks their index alone."""
    return _runs(db, segments, 1, _LANDMARKS, (), known)


def runs_of_kinds(
    db: sqlite3.Connection, segments: list[Segment], kinds: Collection[str], begin: int
) -> list[tuple[int, int]]:
    """The first and last number of each run of records of these kinds from number `begin` on, in order.

    A run of messages may hold system text, which goes by a kind of its own in the table.
    """
    words = {*kinds, "system"} if "message" in kinds else {*kinds}
    return _runs(db, segments, begin, _KINDS.format(", ".join("?" * len(words))), words)


def of_kinds(kinds: Collection[str], runs: Iterable[Iterator[Record]]) -> Iterator[Record]:
    """The records of these kinds in runs of records."""
    return (record for run in runs for record in run if kind_of(record.body) in kinds)


def _runs(
    db: sqlite3.Connection,
    segments: list[Segment],
    begin: int,
    query: str,
    words: Collection[str],
    known: Collection[int] = (),
) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for segment in segments:
        bounds = record_id(segment.key, max(begin, segment.first)), record_id(segment.key, segment.last)
        for (key,) in db.execute(query, (*bounds, *words)):
            n = key & 0xFFFFFFFF
            if n in known:
                continue
            if runs and n == runs[-1][1] + 1:
                runs[-1] = runs[-1][0], n
            else:
                runs.append((n, n))
    return runs
