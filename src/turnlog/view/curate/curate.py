"""The outputs of tools, curated: made shorter by what the tool is. A pure function of one output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ...errors import InputError
from ...log.messages import ToolCall
from .command import build, command, tests
from .diff import diff
from .json_values import json_value
from .lines import tidied
from .listing import listing
from .marks import NO_TEXT, Marks, is_marked
from .page import page
from .recognise import OUTPUTS, as_call, kind_of
from .search import search
from .table import table
from .wrapping import unwrapped, wrapped

LEAST = 2_000
"""Characters. A shorter output stays as it is."""

MOST_LEFT = 2 / 3
"""An output of which more than this share would be left stays as it is."""

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
"""What programs print in a terminal: escapes in it, progress that was overwritten and equal lines say nothing."""


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
    """The output of a tool, made shorter by what the tool is: a search, a listing, a command, a diff, ...

    `tool` is the name of the tool, `arguments` those of the call: a dict, or JSON as text. `output` says what the
    output is, if you know better than name, arguments and shape tell: one of the kinds of `Curated`, `text` for one
    that stays as it is. Lines in square brackets say what is missing; with `record`, also the number of the record that
    has it all. The same arguments give the same text.

    An output stays as it is if it has less than 2,000 characters, if more than two thirds of it would be left, if it
    was curated before, or if it is the content of a file. Raises InputError for an unknown `output`.
    """
    if output not in ("", *OUTPUTS):
        raise InputError(f"output={output!r}: give one of {', '.join(OUTPUTS)}")
    if not isinstance(tool, str) or not isinstance(text, str):
        raise InputError(f"curate() takes the name of a tool and its output as text, not {tool!r:.60} and {text!r:.60}")
    return curated(as_call(tool, arguments), text, output, record)


def curated(call: ToolCall, text: str, output: str = "", record: int = 0, *, loses: bool = True) -> Curated:
    """The same for a call on record. Without `loses`, only what says nothing goes: escapes, progress that overwrote
    itself, and equal lines in a row, which are counted."""
    if len(text) < LEAST or is_marked(text):
        return Curated(text, output or "text", len(text))
    found = unwrapped(text) if output != "json" else None
    if found is not None:
        value, key = found
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
