"""Results of searches: each path once above its lines, and of many lines the first of each file.

Lines keep their order. Each one is shown, without the path that stands above it, or is counted by a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from .lines import first_that_fits
from .marks import WORTH, Marks, number

_HIT = re.compile(r"((?:[A-Za-z]:)?[^\s:][^:\n]{0,400}?):(\d{1,9}):(.*)")  # grep -n, ripgrep
_CONTEXT = re.compile(r"-(\d{1,9})-")  # in a line beside a hit, between its path and its text
_BARE = re.compile(r"([^\s:][^:\n]{0,400}):(?!:)(.*)")  # grep without -n
_NUMBERED = re.compile(r"\s*(?:L|Line )?(\d{1,9})([:|→-])(.*)")  # below a line with the path
_SEPARATORS = ("--", "---", "")
_SHORT = 240
"""Characters of a line that are shown."""

_ROOM = 8_000
"""Characters of a result that is not shortened further."""

_LIMITS = ((1_000_000, 1_000_000), (30, 100), (12, 80), (5, 60))
"""Lines shown of each file, and files: the first pair that leaves at most `_ROOM` characters, or else the last."""

_NAMES = 200
"""Files that are named with the number of their lines, behind those whose lines are shown."""

_LEAST_SHARE = 0.9
"""The least share of lines that must have the form of a search's."""

_FEW_OTHER = 2
"""Lines of another form, such as `Found 6 matches`, that a search tool may write beside its grouped hits."""


class _Group(Struct):
    """Lines in a row that belong to one path, without it; "" for lines that belong to none. `above`: the path stands on
    a line of its own."""

    path: str
    lines: list[str]
    above: bool = False


def is_search(lines: Iterable[str]) -> bool:
    """Whether nearly all lines are hits, with a path and a line number, or context of a hit in the same file."""
    sample = [line for line in lines if line.strip() not in _SEPARATORS]
    hits = _hit_paths(sample)
    fit = sum(_hit(line) is not None or _context(line, hits) is not None for line in sample)
    return len(sample) > 2 and bool(hits) and fit >= _LEAST_SHARE * len(sample)


def is_grouped(text: str) -> bool:
    """Whether nearly all lines are hits below or behind paths, without line numbers for some."""
    groups = _read(text[:60_000].split("\n"))
    other = sum(line.strip() not in _SEPARATORS for one in groups if not one.path for line in one.lines)
    fit = sum(len(one.lines) + 1 for one in groups if one.path)
    return fit > 2 and other <= _FEW_OTHER + (1 - _LEAST_SHARE) * (fit + other)


def search(text: str, marks: Marks) -> str:
    """The result of a search, shortened."""

    def layouts(lines: Sequence[str]) -> Iterator[Iterator[str]]:
        groups = _read(lines)
        return (_laid_out(groups, matches, most, marks) for matches, most in _LIMITS)

    return first_that_fits(text, _ROOM, layouts, marks)


def _hit(line: str) -> re.Match[str] | None:
    found = _HIT.match(line)
    return found if found is not None and _is_path(found[1]) else None


def _hit_paths(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(found[1] for line in lines if (found := _hit(line)) is not None)


def _context(line: str, hits: frozenset[str]) -> tuple[str, str] | None:
    """The path of a line beside a hit in the same file, and the rest of it; None if it is none."""
    for found in _CONTEXT.finditer(line, 0, 500):
        if line[: found.start()] in hits:
            return line[: found.start()], f"{found[1]}- {line[found.end() :]}"
    return None


def _read(lines: Sequence[str]) -> list[_Group]:
    """The lines in order, grouped by the path that they name or stand below."""
    hits = _hit_paths(lines)
    groups: list[_Group] = []
    headings = _headings(lines)
    for i, line in enumerate(lines):
        path, now = groups[-1].path if groups else "", line
        if i in headings:
            groups.append(_Group(line.removeprefix("File: ").strip(), [], above=True))
            continue
        if (found := _hit(line)) is not None:
            path, now = found[1], f"{found[2]}: {found[3]}"
        elif (beside := _context(line, hits)) is not None:
            path, now = beside
        elif path and (inner := _NUMBERED.fullmatch(line)) is not None:
            now = f"{inner[1]}{':' if inner[2] != '-' else '-'} {inner[3]}"
        elif (bare := _BARE.match(line)) is not None and _is_plain_path(bare[1]):
            path, now = bare[1], bare[2]
        elif line.strip() not in _SEPARATORS:
            path = ""
        if not groups or groups[-1].path != path:
            groups.append(_Group(path, []))
        groups[-1].lines.append(now)
    return groups


def _headings(lines: Sequence[str]) -> frozenset[int]:
    """The indices of the lines that are a path above numbered lines."""
    found = set()
    for i, (line, after) in enumerate(pairwise(lines)):
        if (
            _hit(line) is None
            and _hit(after) is None
            and _NUMBERED.fullmatch(after)
            and _is_plain_path(line.removeprefix("File: ").strip())
        ):
            found.add(i)
    return frozenset(found)


def _is_path(text: str) -> bool:
    """Whether a text before a line number may be the path of a file, and is no time, date or number."""
    if not any(map(str.isalpha, text)):
        return False
    return "/" in text or "\\" in text or (" " not in text and ("." in text or not text[0].isdigit()))


def _is_plain_path(text: str) -> bool:
    """Whether a text without a line number is the path of a file."""
    return 0 < len(text) < 400 and " " not in text and ("/" in text or "." in text) and _is_path(text)


def _laid_out(groups: Sequence[_Group], matches: int, most: int, marks: Marks) -> Iterator[str]:
    for one in groups[:most]:
        if one.path:
            yield one.path
        indent = "  " if one.path else ""
        end = matches if len(one.lines) > matches + WORTH else len(one.lines)
        yield from (indent + _short(line, marks) for line in one.lines[:end])
        if len(one.lines) > end:
            which = " of this file" if one.path else ""
            yield indent + marks.left_out(number(len(one.lines) - end, "more line") + which)
    rest = groups[most:]
    for one in rest[:_NAMES]:
        mark = marks.left_out(number(len(one.lines), "line"))
        yield f"{one.path} {mark}" if one.path else mark
    if gone := rest[_NAMES:]:
        lines = number(sum(len(one.lines) + one.above for one in gone), "more line")
        files = number(len({one.path for one in gone}), "more file")
        yield marks.left_out(f"{lines} in {files}")


def _short(line: str, marks: Marks) -> str:
    if len(line) <= _SHORT:
        return line
    return f"{line[:_SHORT]} {marks.left_out(number(len(line) - _SHORT, 'character'))}"
