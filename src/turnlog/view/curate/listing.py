"""Shorten listings of files: by folder, with counts, and with one line for each folder that programs write.

Entries keep their order. Each is shown, without the folder above it, or counted by a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from .lines import first_that_fits
from .marks import WORTH, Marks, number

_IGNORED = lazy_pattern(
    r"(?:^|/)(node_modules|\.git|\.hg|\.svn|__pycache__|\.venv|venv|site-packages|\.tox|\.nox|\.mypy_cache|\.ruff_cache"
    r"|\.pytest_cache|\.cache|\.next|\.nuxt|\.gradle|\.idea|dist|build|target|vendor|coverage|htmlcov|\.eggs"
    r"|[^/\s]+\.egg-info|bower_components|DerivedData|Pods)(?=/)"
)
_FEW = 3
"""The number of entries of any folder, ignored or not, that are shown whatever the limit."""

_PATH = lazy_pattern(r"(?:[A-Za-z]:)?[\w.@~+$%#=,()\[\]{}/\\ -]{1,400}")
_LONG_FORM = lazy_pattern(r"[-dlbcps][-rwxsStT]{9}[.+@]?\s")  # of `ls -l`
_ROOM = 6_000
"""Characters of a listing that is not shortened further."""

_ALL = 1_000_000_000

_LIMITS = ((_ALL, False), (_ALL, True), (60, True), (25, True), (10, True), (4, True))
"""The entries to show of one folder, and whether they are below it without its path: the first pair that leaves at most
`_ROOM` characters, or else the last."""

_FOLDERS = 150
"""The number of folders to show at the last limit."""

_LEAST_SHARE = 0.9
"""The least share of lines that must be names of files."""


class _Folder(Struct):
    """Consecutive entries of one folder, as the listing has them.

    `path` is the common beginning of the entries, "" if unknown. `heading` is the line above them, if there is one.
    `ignored`: a program writes the folder.
    """

    path: str
    entries: list[str]
    heading: str = ""
    ignored: bool = False


def is_listing(lines: Iterable[str]) -> bool:
    """Whether nearly all lines are names of files."""
    sample = [line for line in lines if line.strip()]
    names = sum(_is_name(line) for line in sample)
    return len(sample) > 4 and names >= _LEAST_SHARE * len(sample)


def _is_name(line: str) -> bool:
    if _LONG_FORM.match(line) or _is_heading(line) or re.fullmatch(r"total \d{1,12}\S?", line):
        return True
    line = line.strip(" │├└─|`+-\t")
    return _PATH.fullmatch(line) is not None and line.count(" ") < 3


def _is_heading(line: str) -> bool:
    """Whether a line names the folder of the lines below it, as in `ls -R`."""
    return line.endswith(":") and ("/" in line or line == ".:") and " " not in line.strip()


def listing(text: str, marks: Marks) -> str:
    """A listing, shortened."""

    def layouts(lines: Sequence[str]) -> Iterator[Iterator[str]]:
        folders = _read(lines)
        return (_laid_out(folders, most, marks, below=below) for most, below in _LIMITS)

    return first_that_fits(text, _ROOM, layouts, marks)


def _read(lines: Iterable[str]) -> list[_Folder]:
    """The entries in their order, grouped by folder. Names without a path belong to the folder named before them."""
    folders: list[_Folder] = []
    for line in lines:
        if not line.strip():
            continue
        if _is_heading(line):
            ignored = _IGNORED.search(line[:-1] + "/") is not None
            folders.append(_Folder("", [], heading=line, ignored=ignored))
            continue
        below = _IGNORED.search(line) if not _LONG_FORM.match(line) else None
        if below is not None:
            path, ignored = line[: below.end() + 1], True
        else:
            name = _is_name(line) and not _LONG_FORM.match(line)
            path, ignored = (line[: line.rfind("/") + 1] if name else ""), False
        last = folders[-1] if folders else None
        if last is None or path != last.path or (path and ignored != last.ignored):
            last = _Folder(path, [], ignored=ignored)
            folders.append(last)
        last.entries.append(line)
    return folders


def _laid_out(folders: Sequence[_Folder], most: int, marks: Marks, *, below: bool) -> Iterator[str]:
    shown = folders[:_FOLDERS] if most == _LIMITS[-1][0] else folders
    for folder in shown:
        if folder.heading:
            yield folder.heading
        count = len(folder.entries)
        if folder.ignored and count > _FEW:
            mark = marks.left_out(number(count, "entry", "entries"))
            yield f"{folder.path} {mark}" if folder.path else f"  {mark}"
            continue
        start = 0
        if below and folder.path and count > _FEW:
            yield f"{folder.path} ({number(count, 'entry', 'entries')})"
            start = len(folder.path)
        end = most if count > most + WORTH else count
        yield from (f"  {entry[start:]}" if start else entry for entry in folder.entries[:end])
        if count > end:
            yield "  " + marks.left_out(number(count - end, "more entry", "more entries"))
    if gone := folders[len(shown) :]:
        lines = number(sum(len(folder.entries) + bool(folder.heading) for folder in gone), "more line")
        where = number(len({folder.heading or folder.path for folder in gone}), "more folder")
        yield marks.left_out(f"{lines} in {where}")
