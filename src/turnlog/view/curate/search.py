"""Shorten results of searches: each path once, above its lines, and of many lines the first of each file.

Lines keep their order. Each is shown, without the path above it, or counted by a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from .lines import first_that_fits
from .marks import WORTH, Marks, number

_HIT = lazy_pattern(r"((?:[A-Za-z]:)?[^\s:][^:\n]{0,400}?):(\d{1,9}):(.*)")  # grep -n, ripgrep
_CONTEXT = lazy_pattern(r"-(\d{1,9})-")  # in a line beside a hit, between its path and its text
_BARE = lazy_pattern(r"([^\s:][^:\n]{0,400}):(?!:)(.*)")  # grep without -n
_NUMBERED = lazy_pattern(r"\s*(?:L|Line )?(\d{1,9})([:|→-])(.*)")  # below a line with the path
_SEPARATORS = ("--", "---", "")
_SHORT = 240
"""The number of characters to show of a line."""

_ROOM = 8_000
"""Characters of a result that is not shortened further."""

_LIMITS = ((1_000_000, 1_000_000), (30, 100), (12, 80), (5, 60))
"""Lines to show of each file, and files to show: the first pair that leaves at most `_ROOM` characters, or else the
last."""

_NAMES = 200
"""The number of further files to name, with the number of their lines."""

_LEAST_SHARE = 0.9
"""The least share of lines that must have the form of search results."""

_FEW_OTHER = 2
"""The number of lines of another form, such as `Found 6 matches`, that a search tool may write beside its grouped
hits."""


class _Group(Struct):
    """Consecutive lines that belong to one path, without the path; "" for lines that belong to none. `above`: the path
    is on a line of its own."""

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
    other = sum(line.strip() not in _SEPARATORS for group in groups if not group.path for line in group.lines)
    fit = sum(len(group.lines) + 1 for group in groups if group.path)
    return fit > 2 and other <= _FEW_OTHER + (1 - _LEAST_SHARE) * (fit + other)


def search(text: str, marks: Marks) -> str:
    """The result of a search, shortened."""

    def layouts(lines: Sequence[str]) -> Iterator[Iterator[str]]:
        groups = _read(lines)
        return (_laid_out(groups, matches, most, marks) for matches, most in _LIMITS)

    return first_that_fits(text, _ROOM, layouts, marks)


def _hit(line: str) -> re.Match[str] | None:
    match = _HIT.match(line)
    return match if match is not None and _is_path(match[1]) else None


def _hit_paths(lines: Iterable[str]) -> frozenset[str]:
    return frozenset(hit[1] for line in lines if (hit := _hit(line)) is not None)


def _context(line: str, hits: frozenset[str]) -> tuple[str, str] | None:
    """The path of a line beside a hit in the same file, and the rest of the line; None for other lines."""
    for match in _CONTEXT.finditer(line, 0, 500):
        if line[: match.start()] in hits:
            return line[: match.start()], f"{match[1]}- {line[match.end() :]}"
    return None


def _read(lines: Sequence[str]) -> list[_Group]:
    """The lines in order, grouped by the path that they name or follow."""
    hits = _hit_paths(lines)
    groups: list[_Group] = []
    headings = _headings(lines)
    for i, line in enumerate(lines):
        path, content = groups[-1].path if groups else "", line
        if i in headings:
            groups.append(_Group(line.removeprefix("File: ").strip(), [], above=True))
            continue
        if (hit := _hit(line)) is not None:
            path, content = hit[1], f"{hit[2]}: {hit[3]}"
        elif (beside := _context(line, hits)) is not None:
            path, content = beside
        elif path and (inner := _NUMBERED.fullmatch(line)) is not None:
            content = f"{inner[1]}{':' if inner[2] != '-' else '-'} {inner[3]}"
        elif (bare := _BARE.match(line)) is not None and _is_plain_path(bare[1]):
            path, content = bare[1], bare[2]
        elif line.strip() not in _SEPARATORS:
            path = ""
        if not groups or groups[-1].path != path:
            groups.append(_Group(path, []))
        groups[-1].lines.append(content)
    return groups


def _headings(lines: Sequence[str]) -> frozenset[int]:
    """The indices of lines that are a path above numbered lines."""
    indices = set()
    for i, (line, after) in enumerate(pairwise(lines)):
        if (
            _hit(line) is None
            and _hit(after) is None
            and _NUMBERED.fullmatch(after)
            and _is_plain_path(line.removeprefix("File: ").strip())
        ):
            indices.add(i)
    return frozenset(indices)


def _is_path(text: str) -> bool:
    """Whether a text before a line number may be the path of a file, not a time, date or number."""
    if not any(map(str.isalpha, text)):
        return False
    return "/" in text or "\\" in text or (" " not in text and ("." in text or not text[0].isdigit()))


def _is_plain_path(text: str) -> bool:
    """Whether a text without a line number is the path of a file."""
    return 0 < len(text) < 400 and " " not in text and ("/" in text or "." in text) and _is_path(text)


def _laid_out(groups: Sequence[_Group], matches: int, most: int, marks: Marks) -> Iterator[str]:
    for group in groups[:most]:
        if group.path:
            yield group.path
        indent = "  " if group.path else ""
        end = matches if len(group.lines) > matches + WORTH else len(group.lines)
        yield from (indent + _short(line, marks) for line in group.lines[:end])
        if len(group.lines) > end:
            which = " of this file" if group.path else ""
            yield indent + marks.left_out(number(len(group.lines) - end, "more line") + which)
    rest = groups[most:]
    for group in rest[:_NAMES]:
        mark = marks.left_out(number(len(group.lines), "line"))
        yield f"{group.path} {mark}" if group.path else mark
    if gone := rest[_NAMES:]:
        lines = number(sum(len(group.lines) + group.above for group in gone), "more line")
        files = number(len({group.path for group in gone}), "more file")
        yield marks.left_out(f"{lines} in {files}")


def _short(line: str, marks: Marks) -> str:
    if len(line) <= _SHORT:
        return line
    return f"{line[:_SHORT]} {marks.left_out(number(len(line) - _SHORT, 'character'))}"
