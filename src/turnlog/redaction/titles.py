"""Titles: the beginning of a text, cut off if it is too long, possibly in the middle of a secret.

Half a key cannot be recognised as a secret. But the whole text can: where the title was cut, the text has a mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .redactor import Counts, Redactor, marks_in
from .truncated import Attentive

_LONGEST = 80
_CUT = "…"
_ENOUGH = 20
"""A title was cut off at a mark if at least so many characters before the mark are the same in both."""


def cut_title(line: str) -> str:
    """A line as a title: at most 80 characters."""
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + _CUT


def is_cut(title: str) -> bool:
    """Whether a title is only the beginning of a line."""
    return title.endswith(_CUT)


def redacted_title(title: str, said: Iterable[str], redactor: Redactor) -> tuple[str, Counts]:
    """A title with marks instead of secrets, and the number of replaced secrets by kind. `said`: the redacted texts of
    the session; if the title is the cut beginning of one of their lines, the mark is taken from there. An Attentive
    redactor also finds cut-off secrets from other places."""
    clean, counts = redactor.text(title)
    if is_cut(clean):
        beginning = clean.removesuffix(_CUT)
        for line in (line.strip().lstrip("#").strip() for text in said for line in text.splitlines()):
            if beginning in line:
                break
            if (cut := _cut_in(beginning, line)) is not None:
                kind, whole = cut
                return cut_title(whole), counts + Counter((kind,))
        if isinstance(redactor, Attentive):
            clean, more = redactor.pieces.text(clean)
            counts.update(more)
    return clean, counts


def _cut_in(beginning: str, line: str) -> tuple[str, str] | None:
    """The kind of the secret in which `beginning` was cut off, and `beginning` completed from `line`, in which that
    secret is a mark by now; None if it does not come from this line. The line may have other words first, if enough
    text before the mark is the same."""
    last = beginning.split()[-1:]
    for kind, at in marks_in(line) if last else ():
        for size in range(len(beginning) - len(last[0]), len(beginning)):
            if beginning[size] != "[" and (size == at or size >= _ENOUGH) and line.endswith(beginning[:size], 0, at):
                return kind, beginning[:size] + line[at:]
    return None
