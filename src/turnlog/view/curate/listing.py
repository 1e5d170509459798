"""Listings of files: by folder, with counts; folders that nobody looks into on one line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from .lines import first_that_fits
from .marks import Marks, number

_IGNORED = re.compile(
    r"(?:^|/)(node_modules|\.git|\.hg|\.svn|__pycache__|\.venv|venv|site-packages|\.tox|\.nox|\.mypy_cache|\.ruff_cache"
    r"|\.pytest_cache|\.cache|\.next|\.nuxt|\.gradle|\.idea|dist|build|target|vendor|coverage|htmlcov|\.eggs"
    r"|[^/\s]+\.egg-info|bower_components|DerivedData|Pods)(?=/)"
)
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.@~+$%#=,()\[\]{}/\\ -]{1,400}")
_LONG_FORM = re.compile(r"[-dlbcps][-rwxsStT]{9}[.+@]?\s")  # of `ls -l`
_ROOM = 6_000
"""Characters of a listing that is not shortened further."""

_ALL = 1_000_000_000

_LIMITS = ((_ALL, False), (_ALL, True), (60, True), (25, True), (10, True), (4, True))
"""Entries of one folder that are shown, and whether they are shown below it, without its path: the first of these that
leaves at most `_ROOM` characters, or else the last."""


_FOLDERS = 150
"""Folders that are shown at the last limit."""


def is_listing(lines: Iterable[str]) -> bool:
    """Whether most lines are names of files."""
    sample = [line for line in lines if line.strip()]
    names = sum(_is_name(line) for line in sample)
    return len(sample) > 4 and names > 0.8 * len(sample)


def _is_name(line: str) -> bool:
    if _LONG_FORM.match(line):
        return True
    line = line.strip(" │├└─|`+-\t")
    return _PATH.fullmatch(line) is not None and line.count(" ") < 3


def listing(text: str, marks: Marks) -> str:
    """A listing, shortened."""

    def layouts(lines: Sequence[str]) -> Iterator[Iterator[str]]:
        folders, ignored = _read(lines)
        return (_laid_out(folders, ignored, most, marks, below=below) for most, below in _LIMITS)

    return first_that_fits(text, _ROOM, layouts, marks)


def _read(lines: Iterable[str]) -> tuple[dict[str, dict[str, None]], dict[str, int]]:
    """The lines of each folder, in order and each once, and how many entries the ignored folders have. Lines that are
    not paths belong to the folder named before them, as in `ls -R`."""
    folders: dict[str, dict[str, None]] = {}
    ignored: dict[str, int] = {}
    now = ""
    for line in lines:
        if not line.strip():
            continue
        found = _IGNORED.search(line)
        if found is not None:
            folder = line[: found.end()]
            ignored[folder] = ignored.get(folder, 0) + 1
            continue
        if line.endswith(":") and "/" in line and " " not in line.strip():
            now = line[:-1]
            folders.setdefault(now, {})
            continue
        folder, slash, _ = line.rpartition("/") if not _LONG_FORM.match(line) else ("", "", "")
        folders.setdefault(folder if slash and _is_name(line) else now, {})[line] = None
    return folders, ignored


def _laid_out(
    folders: dict[str, dict[str, None]], ignored: dict[str, int], most: int, marks: Marks, *, below: bool
) -> Iterator[str]:
    shown = _FOLDERS if most == _LIMITS[-1][0] else len(folders)
    for folder, lines in islice(folders.items(), shown):
        entries = [*lines]
        has_path = bool(folder and entries) and entries[0].startswith(f"{folder}/")
        if not below or len(entries) <= min(most, 3):
            yield from entries if has_path or not folder else (f"{folder}:", *entries)
            continue
        if folder:
            yield f"{folder}/ ({number(len(entries), 'entry', 'entries')})"
        start = len(folder) + 1 if has_path else 0
        yield from (f"  {entry[start:]}" if start else entry for entry in entries[:most])
        if len(entries) > most:
            yield "  " + marks.left_out(number(len(entries) - most, "more entry", "more entries"))
    if len(folders) > shown:
        rest = sum(len(lines) for lines in islice(folders.values(), shown, None))
        gone = number(rest, "more entry", "more entries")
        yield marks.left_out(f"{gone} in {number(len(folders) - shown, 'more folder')}")
    for folder, count in ignored.items():
        yield f"{folder}/ " + marks.left_out(number(count, "entry", "entries"))
