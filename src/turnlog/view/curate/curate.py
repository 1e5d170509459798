"""Shorten an output by what its tool is: a pure function of one output."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from ...errors import InputError
from ...log.messages import ToolCall
from .diff import diff
from .json_values import json_value, read_json, spelled
from .lines import Picked, picked, tidied
from .listing import listing
from .marks import NO_TEXT, Marks, is_marked
from .page import page
from .recognise import OUTPUTS, as_call, kind_of
from .search import search
from .table import table

# -- wrapping --------------------------------------------------------------------------------------
#
# Outputs inside JSON: programs that run commands put the text and the exit code into an object.

_ENTRIES = 8
"""The most entries of an object that wraps a text."""

_SHARE = 0.7
"""The least share of such an object that its text takes."""


def unwrapped(text: str) -> tuple[dict[str, Any], str] | None:
    """The object in a text, and the key of the one long text in it; None if the text is no such object."""
    if text[:1] != "{" or text.rstrip()[-1:] != "}":
        return None
    value = read_json(text)
    if not isinstance(value, dict) or len(value) > _ENTRIES:
        return None
    longest = max(value, key=lambda key: len(value[key]) if isinstance(value[key], str) else 0, default="")
    inner = value.get(longest)
    return (value, longest) if isinstance(inner, str) and len(inner) > _SHARE * len(text) else None


def wrapped(value: dict[str, Any], key: str, inner: str) -> str:
    """The object with another text in place of its long one, as JSON."""
    return spelled({**value, key: inner})


# -- command ---------------------------------------------------------------------------------------
#
# The output of programs: what they say by the way can go, how they ended and what went wrong cannot.

_INSPECTION = Picked(head=5_000, tail=4_000)
_BUILD = Picked(head=600, tail=7_000)
_TESTS = Picked(head=600, tail=7_000)
_PASSED = lazy_pattern(
    r"(?:^\s*(?:PASS\b|ok \d(?!.*#\s*(?:skip|todo))|ok\s+\S+\s+(?:\(cached\)|[\d.]+s)|--- PASS|[✓✔√] )"
    r"|::\S.* PASSED\b|\bPASSED \S+::|^test \S.* \.\.\. ok$|\.\.\. ok$|^\s*<testcase\b[^>]*/>\s*$)",
    re.IGNORECASE,
)
_BEGAN = lazy_pattern(r"\s*=== (?:RUN|PAUSE|CONT)\s+(\S+)")
_ENDED = lazy_pattern(r"\s*--- (?:PASS|FAIL|SKIP): (\S+)")


def command(text: str, marks: Marks) -> str:
    """Shorten the output of a program that looks at something to its beginning, its end, and every line about an error
    between them."""
    return picked(text, _INSPECTION, marks)


def build(text: str, marks: Marks) -> str:
    """Shorten the output of a build or an installation to its end and every line about an error or a warning."""
    return picked(text, _BUILD, marks)


def tests(text: str, marks: Marks) -> str:
    """Shorten a test report to its failures, its end, and Go tests that began and never ended. Lines about passed tests
    are counted."""
    return picked(text, _TESTS, marks, _PASSED, "passed tests", _unended)


def _unended(lines: Sequence[str]) -> list[int]:
    """The last line about each test that began but did not end."""
    ended = {match[1] for line in lines if (match := _ENDED.match(line)) is not None}
    last = {match[1]: i for i, line in enumerate(lines) if (match := _BEGAN.match(line)) is not None}
    return [i for name, i in last.items() if name not in ended]


LEAST = 2_000
"""Characters. A shorter output stays as it is."""

MOST_LEFT = 2 / 3
"""An output stays as it is if its shortened form would be more than this share of it."""

_CURATORS: dict[str, Callable[[str, Marks], str]] = {
    "build": build,
    "command": command,
    "diff": diff,
    "json": json_value,
    "listing": listing,
    "page": page,
    "search": search,
    "table": table,
    "tests": tests,
}


_PRINTED = frozenset({"build", "command", "listing", "search", "tests"})
"""Output of programs in a terminal, in which escapes, overwritten progress and equal lines say nothing."""


class Curated(Struct, frozen=True):
    """A tool's output, curated.

    `text`: the output as it is shown. `kind`: what the output is, one of `build`, `command`, `diff`, `json`, `listing`,
    `page`, `read`, `search`, `table`, `tests` and `text`. `before`: how many characters it had.
    """

    text: str
    kind: str
    before: int

    def __str__(self) -> str:
        return self.text

    @property
    def saved(self) -> int:
        """The characters that are left out."""
        return self.before - len(self.text)


def curate(tool: str, text: str, *, arguments: Any = None, output: str = "", record: int = 0) -> Curated:
    """The output of a tool, shortened by what the tool is: a search, a listing, a command, a diff, ...

    `tool` is the name of the tool, `arguments` those of the call: a dict, or JSON as text. `output` says what the
    output is, if you know more than name, arguments and shape tell: one of the kinds of `Curated`, or `text` to leave
    it as it is. Lines in square brackets say what is missing; with `record`, also the number of the record that has it
    all. The same arguments give the same text.

    An output stays as it is if it has less than 2,000 characters, if more than two thirds of it would be left, if it
    was curated before, or if it is the content of a file. Raises InputError for an unknown `output`.
    """
    if output not in ("", *OUTPUTS):
        raise InputError(f"output={output!r}: give one of {', '.join(OUTPUTS)}")
    if not isinstance(tool, str) or not isinstance(text, str):
        raise InputError(f"curate() takes the name of a tool and its output as text, not {tool!r:.60} and {text!r:.60}")
    return curated(as_call(tool, arguments), text, output, record)


def curated(call: ToolCall, text: str, output: str = "", record: int = 0, *, loses: bool = True) -> Curated:
    """The curated output of a call on record. Without `loses`, only what says nothing is left out: escapes, overwritten
    progress, and equal lines in a row, which are counted."""
    if len(text) < LEAST or is_marked(text):
        return Curated(text, output or "text", len(text))
    wrapping = unwrapped(text) if output != "json" else None
    if wrapping is not None:
        value, key = wrapping
        inner = curated(call, value[key], output, record, loses=loses)
        shown = wrapped(value, key, inner.text) if inner.saved else text
        return Curated(shown, inner.kind, len(text))
    kind = kind_of(call, text, output)
    curator = _CURATORS.get(kind) if loses else tidied if kind in _PRINTED else None
    shown = text if curator is None else curator(text, Marks(record))
    if len(shown) > MOST_LEFT * len(text):
        shown = text
    elif not shown.strip() and text.strip():
        shown = NO_TEXT
    return Curated(shown, kind, len(text))
