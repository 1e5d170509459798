"""Hunks of a unified diff: made from two contents, written, read, reversed, applied. Everything is bytes.

Only `\\n` ends a line; a `\\r` before it is part of the line. A last line without `\\n` is kept that way, and written
as git writes it: `\\ No newline at end of file`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from ...errors import InputError
from .matching import EqualLines, shared_runs

CONTEXT = 3
"""Unchanged lines shown on each side of a change, as in git."""

_NO_NEWLINE = b"\\ No newline at end of file\n"
_HEAD = lazy_pattern(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")


class Hunk(Struct, frozen=True):
    """Consecutive lines of a diff. `old_start` and `new_start` are the numbers of its first line on each side (from 1;
    if a side has no lines, the number of the line before).

    Each of `lines` begins with ` ` (on both sides), `-` (old) or `+` (new) and ends with its `\\n`, if it has one.
    """

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[bytes, ...]

    @property
    def additions(self) -> int:
        """The number of lines that only the new side has."""
        return sum(line[:1] == b"+" for line in self.lines)

    @property
    def deletions(self) -> int:
        """The number of lines that only the old side has."""
        return sum(line[:1] == b"-" for line in self.lines)


def split_lines(data: bytes) -> list[bytes]:
    """The lines of `data` with their `\\n`; the last one may have none. Nothing but `\\n` ends a line."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def make_hunks(before: bytes, after: bytes, *, context: int = CONTEXT) -> tuple[Hunk, ...]:
    """The hunks that change one content into the other, with `context` unchanged lines around each change."""
    old, new = split_lines(before), split_lines(after)
    return hunks_between(old, new, shared_runs(old, new), context=context)


def hunks_between(
    old: Sequence[bytes], new: Sequence[bytes], runs: list[EqualLines], *, context: int = CONTEXT
) -> tuple[Hunk, ...]:
    """The hunks that change `old` into `new`, given the shared `runs` of lines."""
    return tuple(_hunk(old, new, group) for group in _groups(runs, len(old), len(new), context))


_Change = tuple[int, int, int, int]
"""Lines `low` to `high` (exclusive, from 0) of the old side, and those of the new side that replace them."""


def _changes(runs: list[EqualLines], old_end: int, new_end: int) -> Iterator[_Change]:
    i = j = 0
    for run in [*runs, EqualLines(old_end, new_end, 0)]:
        if i < run.old or j < run.new:
            yield i, run.old, j, run.new
        i, j = run.old + run.length, run.new + run.length


def _groups(runs: list[EqualLines], old_end: int, new_end: int, context: int) -> Iterator[list[_Change]]:
    """Groups of changes whose contexts meet, each with the context added at both ends."""
    group: list[_Change] = []
    for change in _changes(runs, old_end, new_end):
        if group and change[0] - group[-1][1] > 2 * context:
            yield _with_context(group, old_end, context)
            group = []
        group.append(change)
    if group:
        yield _with_context(group, old_end, context)


def _with_context(group: list[_Change], old_end: int, context: int) -> list[_Change]:
    (low, _, new_low, _), (_, high, _, new_high) = group[0], group[-1]
    lead, trail = min(context, low), min(context, old_end - high)
    return [
        (low - lead, low - lead, new_low - lead, new_low - lead),
        *group,
        (high + trail, high + trail, new_high + trail, new_high + trail),
    ]


def _hunk(old: Sequence[bytes], new: Sequence[bytes], group: list[_Change]) -> Hunk:
    lines: list[bytes] = []
    place = group[0][0]
    for old_low, old_high, new_low, new_high in group:
        lines += [b" " + line for line in old[place:old_low]]
        lines += [b"-" + line for line in old[old_low:old_high]]
        lines += [b"+" + line for line in new[new_low:new_high]]
        place = old_high
    old_start, new_start = group[0][0], group[0][2]
    old_count, new_count = group[-1][1] - old_start, group[-1][3] - new_start
    return Hunk(old_start + bool(old_count), old_count, new_start + bool(new_count), new_count, tuple(lines))


def write_hunks(hunks: Iterable[Hunk]) -> Iterator[bytes]:
    """The lines of the hunks in a unified diff."""
    for hunk in hunks:
        old, new = _range(hunk.old_start, hunk.old_count), _range(hunk.new_start, hunk.new_count)
        yield b"@@ -%b +%b @@\n" % (old, new)
        for line in hunk.lines:
            yield line if line.endswith(b"\n") else line + b"\n" + _NO_NEWLINE


def _range(start: int, count: int) -> bytes:
    return b"%d" % start if count == 1 else b"%d,%d" % (start, count)


def read_hunks(text: bytes) -> tuple[Hunk, ...]:
    """The hunks of one file's unified diff. Raises InputError if the text is not a diff, or its hunks do not have the
    number of lines that their heads state."""
    lines = split_lines(text)
    hunks: list[Hunk] = []
    place = 0
    while place < len(lines):
        head = _HEAD.match(lines[place])
        place += 1
        if head is not None:
            old_count, new_count = (1 if head[k] is None else int(head[k]) for k in (2, 4))
            body, place = _body(lines, place, (old_count, new_count), len(hunks) + 1)
            hunks.append(Hunk(int(head[1]), old_count, int(head[3]), new_count, body))
        elif hunks and lines[place - 1].strip():
            raise InputError(f"hunk {len(hunks)} is followed by {lines[place - 1][:40]!r}, which is not a hunk")
    if not hunks:
        raise InputError("there is no hunk in this diff")
    return tuple(hunks)


def _body(lines: Sequence[bytes], place: int, counts: tuple[int, int], number: int) -> tuple[tuple[bytes, ...], int]:
    """The lines of a hunk from `place` on, as many as `counts` requires, and the position after them."""
    old_left, new_left = counts
    body: list[bytes] = []
    while place < len(lines):
        line = lines[place]
        sign = line[:1] if line != b"\n" else b" "  # some writers strip blanks at line ends
        if sign == b"\\" and body:
            body[-1] = body[-1].removesuffix(b"\n")
        elif sign in _OTHER_SIDE and (old_left > 0 or new_left > 0):
            old_left -= sign != b"+"
            new_left -= sign != b"-"
            text = line if line != b"\n" else b" \n"
            body.append(text if text.endswith(b"\n") else text + b"\n")
        else:
            break
        place += 1
    if old_left or new_left:
        raise InputError(f"hunk {number} does not have the number of lines that its head states")
    return tuple(body), place


_OTHER_SIDE = {b"-": b"+", b"+": b"-", b" ": b" "}


def reverse_hunks(hunks: Iterable[Hunk]) -> tuple[Hunk, ...]:
    """The hunks that undo these."""
    return tuple(
        Hunk(hunk.new_start, hunk.new_count, hunk.old_start, hunk.old_count, tuple(_reversed(hunk.lines)))
        for hunk in hunks
    )


def _reversed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines with their signs swapped, the removed lines before the added ones."""
    added: list[bytes] = []
    removed: list[bytes] = []
    for line in lines:
        sign = line[:1]
        if sign == b" ":
            yield from (*removed, *added, line)
            added, removed = [], []
        else:
            (removed if sign == b"+" else added).append(_OTHER_SIDE[sign] + line[1:])
    yield from (*removed, *added)


def apply_hunks(data: bytes, hunks: Iterable[Hunk]) -> bytes:
    """`data` with the hunks applied. Raises InputError unless each fits exactly at its position."""
    lines, new_lines, place = split_lines(data), list[bytes](), 0
    for number, hunk in enumerate(hunks, 1):
        start = hunk.old_start - 1 if hunk.old_count else hunk.old_start
        old = [line[1:] for line in hunk.lines if line[:1] != b"+"]
        if start < place or lines[start : start + len(old)] != old:
            raise InputError(f"hunk {number} does not fit the content at line {hunk.old_start}")
        new_lines += lines[place:start]
        new_lines += [line[1:] for line in hunk.lines if line[:1] != b"-"]
        place = start + len(old)
    new_lines += lines[place:]
    if any(not line.endswith(b"\n") for line in new_lines[:-1]):
        raise InputError("the hunks would put a line without a line end before other lines; the diff does not fit")
    return b"".join(new_lines)
