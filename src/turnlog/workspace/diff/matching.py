"""Finds the lines that two texts share, from which a diff is made.

difflib finds good matches, but its time grows at least with the square of the repeated lines. So it gets only small
pieces. First the common beginning and end are removed. Then lines that occur exactly once on each side are matched
("patience diff", Bram Cohen), and the parts between them are the pieces. A piece that would still take too long counts
as replaced as a whole; this makes a diff longer, but never wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..._platform.stdlib import difflib

_ROUNDS = 12
"""How often a piece is split at lines that occur once in it. Each round reads every line once."""

_PAIRS = 100_000
"""The most pairs of equal lines (each position on one side with each on the other) in a piece for difflib, because its
time grows with them."""

_ALL_PAIRS = 2_000_000
"""The most pairs in all pieces of one diff together."""

_LINES = 4_000
"""The most lines, of both sides together, in a piece for difflib."""


class EqualLines(Struct, frozen=True, order=True):
    """`length` equal lines, beginning at `old` and at `new` (counted from 0)."""

    old: int
    new: int
    length: int


class _Piece(Struct, frozen=True):
    """Lines `low` to `high` (exclusive) of the old side, and of the new side."""

    old_low: int
    old_high: int
    new_low: int
    new_high: int
    rounds: int


def shared_runs(old: Sequence[bytes], new: Sequence[bytes]) -> list[EqualLines]:
    """The lines that both texts have, in order, in runs as long as possible."""
    return list(_joined(sorted(_found(old, new))))


def _found(old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[EqualLines]:
    pieces = [_Piece(0, len(old), 0, len(new), _ROUNDS)]
    left = _ALL_PAIRS
    while pieces:
        piece = pieces.pop()
        head, tail = _ends(old, new, piece)
        if head:
            yield EqualLines(piece.old_low, piece.new_low, head)
        if tail:
            yield EqualLines(piece.old_high - tail, piece.new_high - tail, tail)
        inner = _Piece(
            piece.old_low + head, piece.old_high - tail, piece.new_low + head, piece.new_high - tail, piece.rounds - 1
        )
        if inner.old_low == inner.old_high or inner.new_low == inner.new_high:
            continue
        ties = _ties(old, new, inner) if inner.rounds else []
        if ties:
            pieces += _between(inner, ties)
            yield from (EqualLines(i, j, 1) for i, j in ties)
        elif (pairs := _pairs(old, new, inner)) <= min(_PAIRS, left):
            left -= pairs
            yield from _by_difflib(old, new, inner)


def _ends(old: Sequence[bytes], new: Sequence[bytes], piece: _Piece) -> tuple[int, int]:
    """The number of lines that both sides of a piece begin with, and the number of the remaining lines that they end
    with."""
    room = min(piece.old_high - piece.old_low, piece.new_high - piece.new_low)
    head = 0
    while head < room and old[piece.old_low + head] == new[piece.new_low + head]:
        head += 1
    tail = 0
    while tail < room - head and old[piece.old_high - 1 - tail] == new[piece.new_high - 1 - tail]:
        tail += 1
    return head, tail


def _ties(old: Sequence[bytes], new: Sequence[bytes], piece: _Piece) -> list[tuple[int, int]]:
    """The positions of lines that occur exactly once on each side of the piece: as many as can be matched in order."""
    once_old = _once(old, piece.old_low, piece.old_high)
    once_new = _once(new, piece.new_low, piece.new_high)
    pairs = sorted((place, once_new[line]) for line, place in once_old.items() if line in once_new)
    # The longest increasing sequence: `ends[k]` is the smallest last element of one with length k + 1.
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        k = bisect_left(ends, place)
        before.append(last[k - 1] if k else -1)
        ends[k : k + 1] = [place]
        last[k : k + 1] = [index]
    chosen = []
    index = last[-1] if last else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]


def _once(lines: Sequence[bytes], low: int, high: int) -> dict[bytes, int]:
    counts = Counter(lines[low:high])
    return {lines[place]: place for place in range(low, high) if counts[lines[place]] == 1}


def _between(piece: _Piece, ties: list[tuple[int, int]]) -> Iterator[_Piece]:
    old_low, new_low = piece.old_low, piece.new_low
    for i, j in [*ties, (piece.old_high, piece.new_high)]:
        if i > old_low or j > new_low:
            yield _Piece(old_low, i, new_low, j, piece.rounds)
        old_low, new_low = i + 1, j + 1


def _pairs(old: Sequence[bytes], new: Sequence[bytes], piece: _Piece) -> int:
    """The number of pairs of equal lines in a piece; more than `_PAIRS` if it has too many lines for difflib."""
    if piece.old_high - piece.old_low + piece.new_high - piece.new_low > _LINES:
        return _PAIRS + 1
    counts = Counter(new[piece.new_low : piece.new_high])
    return sum(counts[line] for line in old[piece.old_low : piece.old_high])


def _by_difflib(old: Sequence[bytes], new: Sequence[bytes], piece: _Piece) -> Iterator[EqualLines]:
    left, right = old[piece.old_low : piece.old_high], new[piece.new_low : piece.new_high]
    for i, j, length in difflib.SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        if length:
            yield EqualLines(piece.old_low + i, piece.new_low + j, length)


def _joined(runs: list[EqualLines]) -> Iterator[EqualLines]:
    """The runs, with those that continue each other on both sides joined."""
    held: EqualLines | None = None
    for run in runs:
        if held is not None and (held.old + held.length, held.new + held.length) == (run.old, run.new):
            held = EqualLines(held.old, held.new, held.length + run.length)
            continue
        if held is not None:
            yield held
        held = run
    if held is not None:
        yield held
