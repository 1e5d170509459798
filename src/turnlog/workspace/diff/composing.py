"""Combines several patches of one file into one, without knowing the file.

A patch contains some lines of the file and their positions. Each old line is represented by its number until a patch
contains its text. In the end, the remaining lines are compared with the original ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...errors import InputError
from .hunks import Hunk, hunks_between
from .matching import Run, shared_runs

_LINES = 1_000_000
"""The highest line number that a patch may reach; all lines before it are represented one by one."""

_UNKNOWN = b"\0"
"""The beginning of a placeholder for a line whose text is not known. Texts that have patches never contain it."""

_Line = int | bytes
"""An old line, as its number (from 0), or the text of a new line."""


def compose(patches: Iterable[tuple[Hunk, ...]]) -> tuple[Hunk, ...]:
    """The hunks that do the same as `patches` applied one after the other. Raises InputError if a patch does not fit
    the result of those before it."""
    known: dict[int, bytes] = {}
    lines: list[_Line] = []
    length = 0
    for number, hunks in enumerate(patches, 1):
        shift = end = 0
        for hunk in hunks:
            start = hunk.old_start - 1 + shift if hunk.old_count else hunk.old_start + shift
            missing = start + hunk.old_count - len(lines)
            if start < end or length + missing > _LINES:
                raise InputError(f"patch {number}: its hunks are out of order, or reach beyond line {_LINES:,}")
            end = start + hunk.new_count
            lines += range(length, length + missing)
            length += max(missing, 0)
            lines[start : start + hunk.old_count] = _replaced(lines, start, hunk, known, number)
            shift += hunk.new_count - hunk.old_count
    old = [_shown(line, known) for line in range(length)]
    new = [_shown(line, known) for line in lines]
    return tuple(part for hunk in hunks_between(old, new, _runs(lines, old, new)) for part in _known_parts(hunk))


def _runs(lines: list[_Line], old: list[bytes], new: list[bytes]) -> list[Run]:
    """The shared lines: old lines that are still there, and between them lines that were removed and added again.

    Computed in this way, each change keeps the unchanged lines around it that its patch contained: git expects a hunk
    without any after it at the end of the file.
    """
    runs: list[Run] = []
    low = new_low = 0
    for place, line in enumerate([*lines, len(old)]):
        if isinstance(line, int):
            between = shared_runs(old[low:line], new[new_low:place])
            runs += [Run(low + run.old, new_low + run.new, run.length) for run in between]
            runs.append(Run(line, place, 1))
            low, new_low = line + 1, place + 1
    return runs[:-1]


def _replaced(lines: list[_Line], start: int, hunk: Hunk, known: dict[int, bytes], number: int) -> list[_Line]:
    """The lines that replace a hunk's old lines. The texts of unknown lines in the hunk are added to `known`."""
    made: list[_Line] = []
    place = start
    for text in hunk.lines:
        if text[:1] == b"+":
            made.append(text[1:])
            continue
        line = lines[place]
        place += 1
        if text[1:2] == _UNKNOWN:
            raise InputError(f"patch {number} is not a text patch")
        if text[1:] != (known.setdefault(line, text[1:]) if isinstance(line, int) else line):
            raise InputError(f"patch {number} cannot be applied to the result of the patches before it")
        if text[:1] == b" ":
            made.append(line)
    return made


def _shown(line: _Line, known: dict[int, bytes]) -> bytes:
    if isinstance(line, bytes):
        return line
    return known.get(line, b"%b%d\n" % (_UNKNOWN, line))


def _known_parts(hunk: Hunk) -> Iterator[Hunk]:
    """The hunk without its unknown lines, split at each of them."""
    old, new = hunk.old_start - bool(hunk.old_count), hunk.new_start - bool(hunk.new_count)
    part: list[bytes] = []
    for text in [*hunk.lines, b" " + _UNKNOWN]:
        if text[1:2] != _UNKNOWN:
            part.append(text)
            continue
        old_count, new_count = (sum(line[:1] != sign for line in part) for sign in (b"+", b"-"))
        if any(line[:1] != b" " for line in part):
            yield Hunk(old + bool(old_count), old_count, new + bool(new_count), new_count, tuple(part))
        old, new = old + old_count + 1, new + new_count + 1
        part = []
