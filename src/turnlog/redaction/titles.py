"""Titles: beginnings of what was said, cut off where they would be too long, and be it in the midst of a secret.

Of half a key nobody can tell that it is one. What was said can: where the title was cut, a mark stands there.
"""

from __future__ import annotations

from collections.abc import Iterable

from .redactor import Counts, Redactor, marks_in

__all__ = ["cut_title", "is_cut", "redacted_title"]

_LONGEST = 80
_CUT = "…"


def cut_title(line: str) -> str:
    """A line as a title: at most 80 characters."""
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + _CUT


def is_cut(title: str) -> bool:
    """Whether a title is no more than the beginning of a line."""
    return title.endswith(_CUT)


def redacted_title(title: str, said: Iterable[str], redactor: Redactor) -> tuple[str, Counts]:
    """A title with marks in place of secrets, and what was replaced. `said` are the texts, with marks by now, of which
    one may begin so."""
    clean, counts = redactor.text(title)
    if is_cut(clean):
        beginning = clean.removesuffix(_CUT)
        for line in (line.strip().lstrip("#").strip() for text in said for line in text.splitlines()):
            if line.startswith(beginning):
                break
            if (kind := _cut_in(beginning, line)) is not None:
                return cut_title(line), {**counts, kind: counts.get(kind, 0) + 1}
    return clean, counts


def _cut_in(beginning: str, line: str) -> str | None:
    """The kind of the secret that `beginning` was cut off in, where `line`, which it is of, has a mark by now."""
    for kind, at in marks_in(line):
        half = beginning[at:]
        if half and beginning.startswith(line[:at]) and not half.startswith("[") and not half.split()[1:]:
            return kind
    return None
