"""Reading the logs of a files store: a session's records stand in its own log and in those it was forked from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from ...errors import CorruptRecord
from ...log.records import Record
from ...log.store import is_landmark
from ..drafts import holds_any
from .files import Card, LogFolder
from .lines import Line, checked, is_base64, lines_backwards, lines_forwards, read_line

# In quotes they stand in every line that holds a landmark, however its JSON is spaced; base64 hides them.
_LANDMARK_WORDS = (b'"configuration"', b'"decision"', b'"summary"', b'"system"', b'"base64"')


class Piece(NamedTuple):
    """Records `first` to `last`, in the log `stem`, whose first record is `first` and follows the sum `start`."""

    stem: str
    first: int
    last: int
    start: str


def pieces_of(folder: LogFolder, stem: str, card: Card, end: int) -> list[Piece]:
    """The pieces that hold the records 1 to `end` of a session, none of them empty."""
    pieces = []
    while True:
        if card.parent_records < end:
            pieces.append(Piece(stem, card.parent_records + 1, end, card.start))
        if not card.base:
            return pieces[::-1]
        stem, shared, end = card.base, card.parent_records, min(end, card.parent_records)
        try:
            card = folder.card(stem)
        except FileNotFoundError:
            raise CorruptRecord(f"record {shared} stood in {folder.file(stem)}, which is gone", record=shared) from None
        # Each log begins after the one it rests on; anything else would go round in circles.
        if card.parent_records >= shared:
            raise CorruptRecord(f"{folder.file(stem)} cannot hold record {shared}", record=shared)


def read_forwards(folder: LogFolder, pieces: list[Piece], first: int, last: int) -> Iterator[Record]:
    """The records `first` to `last`."""
    for piece in pieces:
        n, end = max(first, piece.first), min(last, piece.last)
        if n > end:
            continue
        # Each record is checked against the sum before its own.
        lines = _lines(folder, piece, skip=max(n - piece.first - 1, 0))
        previous = piece.start if n == piece.first else _sum(next(lines, None), n - 1)
        for held in lines:
            line = read_line(held)
            yield checked(n, previous, line)
            previous = line.sum if line else ""
            n += 1
            if n > end:
                break
        if n <= end:
            raise CorruptRecord(f"record {n} is missing", record=n)


def read_some(folder: LogFolder, pieces: list[Piece], only: Callable[[bytes], bool]) -> Iterator[Record]:
    """The records of which `only` takes the bytes, and perhaps others. What is not taken is not looked at."""
    for piece in pieces:
        n, before = piece.first, None
        for held in _lines(folder, piece, skip=0):
            if only(held) or is_base64(held):
                yield checked(n, piece.start if before is None else _sum(before, n), read_line(held))
            before, n = held, n + 1
            if n > piece.last:
                break
        if n <= piece.last:
            raise CorruptRecord(f"record {n} is missing", record=n)


def read_backwards(folder: LogFolder, pieces: list[Piece], first: int, last: int) -> Iterator[Record]:
    """The records `last` to `first`."""
    for piece in reversed(pieces):
        low, n = max(first, piece.first), min(last, piece.last)
        if n < low:
            continue
        lines = _lines_back(folder, piece, n)
        held = next(lines, None)
        while n >= low:
            if held is None:
                raise CorruptRecord(f"record {n} is missing", record=n)
            before = next(lines, None) if n > piece.first else None
            line = read_line(held)
            yield checked(n, piece.start if n == piece.first else _sum(before, n), line)
            held = before
            n -= 1


def read_landmarks(folder: LogFolder, pieces: list[Piece]) -> Iterator[Record]:
    """The landmarks among the records of `pieces`: only lines that could hold one are read closely."""
    return filter(is_landmark, read_some(folder, pieces, holds_any(_LANDMARK_WORDS)))


def line_at(folder: LogFolder, piece: Piece, n: int) -> Line:
    """The line of record `n`. Raises CorruptRecord."""
    held = next(_lines_back(folder, piece, n), None)
    line = None if held is None else read_line(held)
    if line is None:
        raise CorruptRecord(f"record {n} is damaged or missing", record=n)
    return line


def _sum(held: bytes | None, n: int) -> str:
    line = None if held is None else read_line(held)
    if line is None:
        raise CorruptRecord(f"record {n} cannot be checked: the line before it is damaged or missing", record=n)
    return line.sum


def _lines(folder: LogFolder, piece: Piece, *, skip: int) -> Iterator[bytes]:
    """The lines of a log after `skip` of them, which are counted from the nearer end."""
    with folder.reading(piece.stem) as (file, tail):
        left = tail.records - piece.first + 1 - skip
        start = 0
        if 0 < left < skip:
            found = next(islice(lines_backwards(file, tail.size), left - 1, None), None)
            start, skip = (found[0], 0) if found else (0, skip)
        yield from lines_forwards(file, tail.size, skip=skip, start=start)


def _lines_back(folder: LogFolder, piece: Piece, n: int) -> Iterator[bytes]:
    """The lines of a log from that of record `n` to the first."""
    with folder.reading(piece.stem) as (file, tail):
        lines = (held for _, held in lines_backwards(file, tail.size))
        yield from islice(lines, max(tail.records - n, 0), None)
