"""Secrets that stand near a word or pattern of the user's own: `badge: 4711`, `"caseNumber": "A-77"`.

A word (`badge`, `case number`) is a name: the value behind it is the secret. What a regular expression matches may be a
name or the secret itself: it is a name if a value follows and it has no digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..errors import InputError
from .json_text import MARK
from .named import is_placeholder

Nearby = Callable[[str], Iterator[tuple[int, int]]]
"""Finds the secrets in a text: the start and end of each."""

_WORD = re.compile(r"\w+(?:[ _-]\w+)*")

_VALUE = re.compile(
    r"(?:\\{0,3}[\"'`])?\]?"
    r"(?:[ \t]{0,12}(?:=>|:=|={1,3}|:)[ \t]{0,12}|(?P<loose>[ \t]{1,12}(?:(?:is|was|of|number|no\.?)[ \t:]{1,3})?#?))"
    r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>(?:(?!(?P=quote))[^\r\n]){1,256}+)(?P=quote)"
    rf"|(?P<plain>{re.escape(MARK)}[^\]\s]{{1,60}}\]|[^\s\"'`<>,;&\\|(){{}}\[\]]{{1,256}}+))"
)
"""What may stand behind a name: a sign and a value, or words and a value with a digit."""


def nearby(pattern: str) -> Nearby:
    """The function that finds what stands near a word or a pattern. Raises InputError for a pattern that is no regular
    expression, or that matches an empty text."""
    is_word = _WORD.fullmatch(pattern) is not None
    spelled = r"[ _-]?".join(map(re.escape, re.split(r"[ _-]", pattern)))
    try:
        name = re.compile(rf"(?i)(?<![^\W_]){spelled}(?![^\W_])" if is_word else pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(f"redact: the sensitive pattern {pattern!r} is not a regular expression: {error}") from error
    if name.match(""):
        raise InputError(
            f"redact: the sensitive pattern {pattern!r} matches an empty text, which stands near everything"
        )

    def find(text: str) -> Iterator[tuple[int, int]]:
        for match in name.finditer(text):
            value = _value_at(text, match.end())
            if value is not None:
                yield value
            if not is_word and (value is None or any(map(str.isdigit, match.group()))):
                yield match.span()

    return find


def _value_at(text: str, at: int) -> tuple[int, int] | None:
    """The start and end of the value behind a name that ends at this place."""
    found = _VALUE.match(text, at)
    if found is None:
        return None
    if found["quoted"] is not None:
        return None if is_placeholder(found["quoted"]) else found.span("quoted")
    value = found["plain"].rstrip(".:!?")
    if value.startswith(MARK):  # a mark is no secret, but what stands before it is a name
        return found.span("plain")
    if not value or is_placeholder(value) or (found["loose"] is not None and not any(map(str.isdigit, value))):
        return None
    return found.start("plain"), found.start("plain") + len(value)
