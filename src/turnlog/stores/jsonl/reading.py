"""Reads the logs of a JSONL store. The records of a session are in its own log and in those it was forked from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice, pairwise
from typing import NamedTuple

from ...errors import CorruptRecord
from ...log.records import Record
from ..records import segments_of_log
from .files import LogFolder, SessionFile
from .lines import StoredLine, checked, is_base64, lines_backwards, lines_forwards, read_line


class LogSegment(NamedTuple):
    """Records `first` to `last` of a session, which are in the log with the stem `key`. That log begins with record
    `first`; `start` is the sum before it."""

    key: str
    first: int
    last: int
    start: str


def segments_of(folder: LogFolder, stem: str, card: SessionFile, end: int) -> list[LogSegment]:
    """The segments with the records 1 to `end` of a session. Raises CorruptRecord."""
    cards = {stem: card}

    def find(base: str) -> tuple[int, str] | None:
        try:
            cards[base] = base_card = folder.card(base)
        except FileNotFoundError:
            return None
        return base_card.parent_records, base_card.base

    segments = segments_of_log(stem, card.parent_records, card.base, end, find)
    return [LogSegment(*segment, cards[segment.key].start) for segment in segments]


def read_records(
    folder: LogFolder,
    segments: list[LogSegment],
    first: int,
    last: int,
    *,
    reverse: bool = False,
    may_be: Callable[[bytes], bool] | None = None,
) -> Iterator[Record]:
    """The records `first` to `last`, or backwards. With `may_be`, only records whose bytes it accepts, and possibly
    some others; the rest is not checked."""
    for segment in segments[:: -1 if reverse else 1]:
        low, high = max(first, segment.first), min(last, segment.last)
        if low > high:
            continue
        # Each record is checked with the sum of the line before it; before the first record there is no line.
        n, edge = (high, (None,)) if reverse else (low, (None,) if low == segment.first else ())
        if reverse:
            lines = chain(_lines_back(folder, segment, high), edge)
        else:
            lines = chain(edge, _lines(folder, segment, skip=max(low - segment.first - 1, 0)))
        for pair in pairwise(lines):
            before, held = pair[::-1] if reverse else pair
            if held is None:
                break
            if may_be is None or may_be(held) or is_base64(held):
                yield checked(n, segment.start if n == segment.first else _sum(before, n), read_line(held))
            n += -1 if reverse else 1
            if not low <= n <= high:
                break
        if low <= n <= high:
            raise CorruptRecord(f"record {n} is missing", record=n)


def line_at(folder: LogFolder, segment: LogSegment, n: int) -> StoredLine:
    """The line of record `n`. Raises CorruptRecord."""
    held = next(_lines_back(folder, segment, n), None)
    line = None if held is None else read_line(held)
    if line is None:
        raise CorruptRecord(f"record {n} is damaged or missing", record=n)
    return line


def _sum(held: bytes | None, n: int) -> str:
    line = None if held is None else read_line(held)
    if line is None:
        raise CorruptRecord(f"record {n} cannot be checked: the line before it is damaged or missing", record=n)
    return line.sum


def _lines(folder: LogFolder, segment: LogSegment, *, skip: int) -> Iterator[bytes]:
    """The lines of a log without the first `skip` lines, which are counted from the nearer end."""
    with folder.reading(segment.key) as (file, tail):
        left = tail.present - segment.first + 1 - skip
        start = 0
        if 0 < left < skip:
            first_line = next(islice(lines_backwards(file, tail.size), left - 1, None), None)
            start, skip = (first_line[0], 0) if first_line else (0, skip)
        yield from lines_forwards(file, tail.size, skip=skip, start=start)


def _lines_back(folder: LogFolder, segment: LogSegment, n: int) -> Iterator[bytes]:
    """The lines of a log backwards, from the line of record `n` to the first."""
    with folder.reading(segment.key) as (file, tail):
        if tail.lost and n > tail.present:
            raise CorruptRecord(f"record {n} is missing", record=n)
        lines = (held for _, held in lines_backwards(file, tail.size))
        yield from islice(lines, max(tail.present - n, 0), None)
