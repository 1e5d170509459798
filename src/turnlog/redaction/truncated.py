"""Pieces of secrets: what remains of a secret where a text was cut off, as in the lines of summaries and placeholders.

Half a key cannot be recognised as a secret without knowing the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .redactor import Finding, Redactor, apart

_LEAST, _ENOUGH = 6, 12
"""Of a random secret, how many characters reveal something about it, and how many identify it."""
_OF_WORDS = 8
_CUT_BEHIND = re.compile(r"\s*(?:…|\.\.\.|\Z)")
_CUT_AHEAD = re.compile(r"(?:…|\.\.\.|\A)\s*\Z")
_CUT_LOOK = 8


class Attentive(Redactor):
    """Finds what another redactor finds, and remembers it; `pieces` is a redactor that recognises cut-off pieces of
    these secrets."""

    def __init__(self, redactor: Redactor) -> None:
        self.__dict__.update(redactor.__dict__)
        self._redactor = redactor
        self.pieces = Pieces()

    def find(self, text: str) -> list[Finding]:
        """See `Redactor.find`."""
        return self._redactor.find(text)

    def mark(self, finding: Finding, secret: str) -> str:
        """See `Redactor.mark`."""
        mark = self._redactor.mark(finding, secret)
        self.pieces.learn(finding, secret, mark)
        return mark


class Pieces(Redactor):
    """Replaces the beginnings and ends of secrets that it has learned with the marks of the whole secrets."""

    def __init__(self) -> None:
        super().__init__(known=False)
        self._marks: dict[str, tuple[Finding, str]] = {}

    def __bool__(self) -> bool:
        return bool(self._marks)

    def learn(self, finding: Finding, secret: str, mark: str) -> None:
        """Remember a secret. Each of its words is remembered separately, because it may occur alone."""
        for line in secret.split():
            if len(line) >= (_LEAST if finding.random else _OF_WORDS):
                self._marks[line] = finding, mark
                self._names.clear()

    def find(self, text: str) -> list[Finding]:
        """See `Redactor.find`."""
        known = tuple(self._marks.items())  # other threads may learn more
        found = [finding for secret, (whole, _) in known for finding in _met(secret, whole, text)]
        return apart(text, found) if found else []

    def mark(self, finding: Finding, secret: str) -> str:
        """See `Redactor.mark`."""
        known = tuple(self._marks.items())
        whole = (mark for line, (_, mark) in known if line.startswith(secret) or line.endswith(secret))
        return next(whole, f"[redacted:{finding.kind}]")

    def _could_hold(self, text: str) -> bool:
        return bool(self._marks)


def _met(secret: str, whole: Finding, text: str) -> Iterator[Finding]:
    """The places where a text has the beginning or the end of a secret. Of a secret that is not random, only the whole
    counts, or a part at a place where the text is cut, because the same words occur elsewhere, too."""
    if not whole.random:
        least = max(_OF_WORDS, len(secret) // 2)
    else:
        least = min(_ENOUGH, max(_LEAST, len(secret) // 2))
    at = text.find(secret[:least])
    while at >= 0:
        end = at + _same(secret, text[at : at + len(secret)])
        if whole.random or _CUT_BEHIND.match(text, end) or (end - at == len(secret) and _is_apart(text, at, end)):
            yield whole._replace(start=at, end=end)
        at = text.find(secret[:least], end)
    at = text.find(secret[-least:])
    while at >= 0:
        end = at + least
        start = end - _same(secret[::-1], text[max(0, end - len(secret)) : end][::-1])
        if whole.random or _CUT_AHEAD.search(text[max(0, start - _CUT_LOOK) : start]):
            yield whole._replace(start=start, end=end)
        at = text.find(secret[-least:], end)


def _is_apart(text: str, start: int, end: int) -> bool:
    """Whether a part of a text is not part of a longer word. (The text by which it was recognised as a secret may be
    cut off.)"""
    return not (text[:start][-1:].isalnum() or text[end : end + 1].isalnum())


def _same(one: str, other: str) -> int:
    """How many characters both texts begin with."""
    return next((n for n, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(other))
