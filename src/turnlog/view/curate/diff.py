"""Shorten diffs: leave out files that a program wrote, and of very long diffs all but the first hunks of each file.

Hunks and the lines between them keep their order. Each is shown whole or counted by a mark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from .marks import WORK, Marks, lines_of, number

_BEGINS = lazy_pattern(r"^(?:diff --git |diff -|Index: |--- [^\n]*\n\+\+\+ )", re.MULTILINE)
_HUNK = lazy_pattern(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")
_HEAD = lazy_pattern(
    r"(?:diff |index |--- |\+\+\+ |old mode |new mode |new file |deleted file |similarity |dissimilarity |rename |copy "
    r"|Index: |={20,}|Binary files? |GIT binary patch|Only in )"
)
_AROUND = lazy_pattern(
    r"(?:commit [0-9a-f]{7,40}\b|(?:Author|AuthorDate|Commit|CommitDate|Date|Merge): |    |-- ?$|\s*$)"
)
_GENERATED = lazy_pattern(
    r"(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|Cargo\.lock|Gemfile\.lock|composer\.lock"
    r"|go\.sum|\.min\.(?:js|css)|\.map|\.snap|\.svg|_pb2\.py|\.pb\.go)\"?$"
)
_ROOM = 10_000
"""Characters of a diff that is not shortened further."""

_LIMITS = (1_000_000, 6_000, 2_500, 1_000, 300)
"""Characters to show of each file: the first number that leaves at most `_ROOM` characters, or else the last."""

_FILES = 100
"""The number of files to show at the last limit."""

_LEAST_SHARE = 0.9
"""The least share of lines that must belong to a diff, or to the text that `git log` puts around one."""


class _File(Struct):
    """One file of a diff: the lines above its first hunk, its hunks, and the lines after them, which do not belong to
    it."""

    head: list[str]
    hunks: list[str]
    behind: list[str]

    @property
    def is_generated(self) -> bool:
        """Whether a program wrote the file, so that nobody reads its diff."""
        return any(_GENERATED.search(line) for line in self.head[:6])


def is_diff(text: str) -> bool:
    """Whether nearly all lines of a text belong to a diff, and one of them begins a hunk."""
    if _BEGINS.search(text, 0, 20_000) is None:
        return False
    lines = text[:60_000].split("\n")[:-1] if len(text) > 60_000 else text.split("\n")
    fit, hunks, left = 0, 0, (0, 0)
    for line in lines:
        left, inside, begins = _step(line, left)
        hunks += begins
        fit += inside or begins or _HEAD.match(line) is not None or _AROUND.match(line) is not None
    return hunks > 0 and fit >= _LEAST_SHARE * len(lines)


def _step(line: str, left: tuple[int, int]) -> tuple[tuple[int, int], bool, bool]:
    """Take the next line of a diff. Returns how many old and new lines its hunk still has (`left`: before this line),
    whether the line is in a hunk, and whether it begins one."""
    old, new = left
    if line[:1] == "\\" or ((old > 0 or new > 0) and line[:1] in (" ", "+", "-", "")):
        if line[:1] != "\\":
            old, new = old - (line[:1] != "+"), new - (line[:1] != "-")
        return (old, new), True, False
    if (hunk := _HUNK.match(line)) is not None:
        return (int(hunk[1] or 1), int(hunk[2] or 1)), False, True
    return (0, 0), False, False


def diff(text: str, marks: Marks) -> str:
    """A diff, shortened: hunks stay whole or leave whole."""
    seen = text if len(text) <= WORK else text[: text.rfind("\n", 0, WORK) + 1]
    if not seen:
        return text
    files = _read(seen.removesuffix("\n").split("\n"))
    shown = seen
    for most in _LIMITS:
        shown = "\n".join(_laid_out(files, most, marks))
        if len(shown) <= _ROOM:
            break
    if len(seen) < len(text):
        shown = f"{shown}\n{marks.left_out(number(lines_of(text[len(seen) :]), 'more line') + ' of the diff')}"
    return shown


def _read(lines: Sequence[str]) -> list[_File]:
    """The files of a diff, in order. The lines above the first file become a file without hunks."""
    files = [_File([], [], [])]
    hunk: list[str] = []
    left = (0, 0)

    def close() -> None:
        if hunk:
            files[-1].hunks.append("\n".join(hunk))
            hunk.clear()

    for line in lines:
        left, inside, begins = _step(line, left)
        if begins or (inside and hunk):
            if begins:
                close()
                if files[-1].behind:
                    files.append(_File([], [], []))
            hunk.append(line)
            continue
        close()
        if _HEAD.match(line) is not None and (files[-1].hunks or files[-1].behind or _is_first(line)):
            files.append(_File([], [], []))
        if files[-1].hunks:
            files[-1].behind.append(line)
        else:
            files[-1].head.append(line)
    close()
    return [file for file in files if file.head or file.hunks]


def _is_first(line: str) -> bool:
    """Whether a line is the first of a file, whatever is above it."""
    return line.startswith(("diff ", "Index: "))


def _laid_out(files: Sequence[_File], most: int, marks: Marks) -> Iterator[str]:
    shown = files[:_FILES] if most == _LIMITS[-1] else files
    for file in shown:
        yield from file.head
        room = 0 if file.is_generated and sum(map(len, file.hunks)) > 1_000 else most
        for i, hunk in enumerate(file.hunks):
            room -= len(hunk)
            if room < 0 and (i or len(hunk) > most or file.is_generated):
                yield marks.left_out(_sizes(file.hunks[i:]))
                break
            yield hunk
        yield from file.behind
    if gone := files[len(shown) :]:
        sizes = _sizes([hunk for file in gone for hunk in file.hunks])
        lines = sum(len(file.head) + len(file.behind) for file in gone)
        beside = f" and {number(lines, 'line')} around them" if lines else ""
        yield marks.left_out(f"{number(len(gone), 'more file')} with {sizes}{beside}")


def _sizes(hunks: Sequence[str]) -> str:
    """The number of hunks and of lines in them: `3 hunks (+12 -4 lines)`."""
    added = sum(hunk.count("\n+") for hunk in hunks)
    removed = sum(hunk.count("\n-") for hunk in hunks)
    return f"{number(len(hunks), 'hunk')} (+{added:,} -{removed:,} lines)"
