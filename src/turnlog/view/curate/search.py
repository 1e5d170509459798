"""Results of searches: grouped by file, each line once, the first matches of each file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from .lines import first_that_fits
from .marks import Marks, number

_MATCH = re.compile(r"((?:[A-Za-z]:)?[^\s:][^:\n]{0,400}?)([:-])(\d{1,9})\2(.*)")  # grep -n, ripgrep, with context
_UNNUMBERED = re.compile(r"([^\s:][^:\n]{0,400}):(.*)")  # grep without -n
_INNER = re.compile(r"\s*(?:L|Line )?(\d{1,9})[:|→-](.*)")  # below a line with the path
_SHORT = 240
"""Characters of a matched line that are shown."""

_ROOM = 8_000
"""Characters of a result that is not shortened further."""

_LIMITS = ((1_000_000, 1_000_000), (30, 100), (12, 80), (5, 60))
"""Matches shown of each file, and files: the first pair that leaves at most `_ROOM` characters, or else the last."""

_NAMES = 200
"""Files that are named with the number of their matches, behind those whose matches are shown."""


class _File(Struct):
    """The matches in one file: lines as they are shown, each once."""

    path: str
    lines: dict[str, None]
    matches: int = 0


def is_search(lines: Iterable[str]) -> bool:
    """Whether most lines name a file and a line number."""
    sample = [line for line in lines if line.strip() and line != "--"]
    return len(sample) > 2 and sum(_MATCH.match(line) is not None for line in sample) > 0.6 * len(sample)


def is_grouped(text: str) -> bool:
    """Whether most of a text is matches below or behind paths, without line numbers for some."""
    files, other = _read(text[:60_000].split("\n"))
    return len(other) <= 2 + 0.2 * sum(len(one.lines) + 1 for one in files)


def search(text: str, marks: Marks) -> str:
    """The result of a search, shortened."""

    def layouts(lines: Sequence[str]) -> Iterator[Iterator[str]]:
        files, other = _read(lines)
        return (_laid_out(files, other, matches, most, marks) for matches, most in _LIMITS)

    return first_that_fits(text, _ROOM, layouts, marks)


def _read(lines: Iterable[str]) -> tuple[list[_File], list[str]]:
    """The files in order, and the lines that belong to none."""
    files: dict[str, _File] = {}
    other: list[str] = []
    heading: _File | None = None
    for line in lines:
        found = _MATCH.match(line)
        if found is not None:
            heading = _add(files, found[1], f"{found[3]}{found[2]} {found[4].rstrip()[: 4 * _SHORT]}", found[2] == ":")
        elif heading is not None and (inner := _INNER.match(line)) is not None:
            _add(files, heading.path, f"{inner[1]}: {inner[2].rstrip()[: 4 * _SHORT]}", True)
        elif (bare := _UNNUMBERED.match(line)) is not None and _is_path(bare[1]):
            heading = _add(files, bare[1], bare[2].rstrip()[: 4 * _SHORT], True)
        elif _is_path(line.removeprefix("File: ").strip()):
            heading = files.setdefault(line.removeprefix("File: ").strip(), _File(line.strip(), {}))
        elif line.strip() and line not in ("--", "---"):
            other.append(line)
    return [one for one in files.values() if one.matches or not one.lines], other


def _add(files: dict[str, _File], path: str, line: str, is_match: bool) -> _File:
    found = files.setdefault(path, _File(path, {}))
    found.matches += is_match and line not in found.lines
    found.lines[line] = None
    return found


def _is_path(text: str) -> bool:
    return 0 < len(text) < 400 and " " not in text and ("/" in text or "." in text)


def _laid_out(files: list[_File], other: list[str], matches: int, most: int, marks: Marks) -> Iterator[str]:
    yield from (line[: 4 * _SHORT] for line in other[: most // 2])
    if len(other) > most // 2:
        yield marks.left_out(number(len(other) - most // 2, "line") + " without a path")
    for one in files[:most]:
        yield one.path
        for line in list(one.lines)[:matches]:
            yield f"  {line[:_SHORT]}" + (f" … (+{len(line) - _SHORT:,} characters)" if len(line) > _SHORT else "")
        if len(one.lines) > matches:
            yield "  " + marks.left_out(number(len(one.lines) - matches, "more line") + " of this file")
    rest = files[most:]
    for one in rest[:_NAMES]:
        yield f"{one.path} ({number(one.matches, 'match', 'matches')}, not shown)"
    if len(rest) > _NAMES:
        gone = rest[_NAMES:]
        found = number(sum(one.matches for one in gone), "more match", "more matches")
        yield marks.left_out(f"{found} in {number(len(gone), 'more file')}")
