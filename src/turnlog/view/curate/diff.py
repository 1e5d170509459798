"""Diffs: what changed, without files that a program writes, and of very long ones the first hunks of each file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from .lines import WORK
from .marks import Marks, number

_BEGINS = re.compile(r"^(?:diff --git |diff -|Index: |--- [^\n]*\n\+\+\+ )", re.MULTILINE)
_HUNK = re.compile(r"^@@ ", re.MULTILINE)
_GENERATED = re.compile(
    r"(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|Cargo\.lock|Gemfile\.lock|composer\.lock"
    r"|go\.sum|\.min\.(?:js|css)|\.map|\.snap|\.svg|_pb2\.py|\.pb\.go)\"?$"
)
_ROOM = 10_000
"""Characters of a diff that is not shortened further."""

_LIMITS = (1_000_000, 6_000, 2_500, 1_000, 300)
"""Characters shown of each file: the first number that leaves at most `_ROOM` characters, or else the last."""

_FILES = 100
"""Files of which anything is shown, at the last limit."""


class _File(Struct):
    """One file of a diff: its lines up to the first hunk, and its hunks."""

    head: str
    hunks: list[str]

    @property
    def is_generated(self) -> bool:
        """Whether a program wrote the file, so that nobody reads its diff."""
        return any(_GENERATED.search(line) for line in self.head.split("\n", 6)[:6])


def is_diff(text: str) -> bool:
    """Whether a text has the beginning of a diff, and a hunk."""
    return _BEGINS.search(text, 0, 20_000) is not None and _HUNK.search(text, 0, 60_000) is not None


def diff(text: str, marks: Marks) -> str:
    """A diff, shortened: hunks stay whole or leave whole."""
    seen = text if len(text) <= WORK else text[: text.rfind("\n", 0, WORK) + 1 or WORK]
    starts = [found.start() for found in _BEGINS.finditer(seen)]
    starts = [
        at
        for i, at in enumerate(starts)
        if not i or not seen.startswith("--- ", at) or _is_new(seen, starts[i - 1], at)
    ]
    if not starts:
        return text
    before = seen[: starts[0]]
    files = [_file(seen[at:end]) for at, end in zip(starts, [*starts[1:], len(seen)], strict=True)]
    shown = seen
    for most in _LIMITS:
        shown = "\n".join(_laid_out(before, files, most, marks))
        if len(shown) <= _ROOM:
            break
    if len(seen) < len(text):
        unread = number(text.count("\n", len(seen)) + 1, "more line")
        shown = f"{shown}\n{marks.left_out(f'{unread} of the diff')}"
    return shown


def _is_new(text: str, before: int, at: int) -> bool:
    """Whether `---` at a place begins a file, and is not part of the head of the file that begins before it."""
    return _HUNK.search(text, before, at) is not None


def _file(text: str) -> _File:
    hunks = [found.start() for found in _HUNK.finditer(text)]
    if not hunks:
        return _File(text.rstrip("\n"), [])
    ends = [*hunks[1:], len(text)]
    return _File(
        text[: hunks[0]].rstrip("\n"), [text[at:end].rstrip("\n") for at, end in zip(hunks, ends, strict=True)]
    )


def _laid_out(before: str, files: Sequence[_File], most: int, marks: Marks) -> Iterator[str]:
    if before.strip():
        yield before.rstrip("\n")
    shown = files[:_FILES] if most == _LIMITS[-1] else files
    for one in shown:
        yield one.head
        room = 0 if one.is_generated and sum(map(len, one.hunks)) > 1_000 else most
        for i, hunk in enumerate(one.hunks):
            room -= len(hunk)
            if room < 0 and (i or len(hunk) > most or one.is_generated):
                yield marks.left_out(_sizes(one.hunks[i:]))
                break
            yield hunk
    if len(shown) < len(files):
        gone = files[len(shown) :]
        sizes = _sizes([hunk for one in gone for hunk in one.hunks])
        yield marks.left_out(f"{number(len(gone), 'more file')} with {sizes}")


def _sizes(hunks: Sequence[str]) -> str:
    """How many hunks, and lines in them: `3 hunks (+12 -4 lines)`."""
    added = sum(hunk.count("\n+") for hunk in hunks)
    removed = sum(hunk.count("\n-") for hunk in hunks)
    return f"{number(len(hunks), 'hunk')} (+{added:,} -{removed:,} lines)"
