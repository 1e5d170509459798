"""The one reader of a record's texts: lists them with their paths, and makes copies of a record with other texts.

Redaction, search, validation, read-back and summaries all use it. A new kind of record or part needs a new row in
`FIELDS`; tests/log/test_texts.py fails without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .budget import Strategy
from .messages import (
    Form,
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
    unchanged,
)
from .prompt import PromptRecord, PromptSection, When
from .records import (
    Approval,
    Binding,
    Configuration,
    Decision,
    Environment,
    FileChange,
    MessageRecord,
    Note,
    PartialAnswer,
    SealedRecord,
    SessionOpened,
    StreamCheckpoint,
    SummaryRecord,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    TurnResumed,
    UnknownRecord,
    UsageRecord,
)
from .usage import CacheRead, Count

S = TypeVar("S", bound=Struct)

LeafPart = Text | Media | Reasoning | ToolCall | Opaque | Unknown
"""A part that contains no other parts."""

Kind = Literal["none", "name", "text", "url", "json", "setting", "wire", "call", "within"]


class Field(NamedTuple):
    """What a field contains, and whether searches look there.

    `text` is plain text. `url` is an address; a `data:` URL, which contains its own bytes, does not count as text.
    `name` is a word by which something is called: a tool, a model, a media type, a provider's word.
    `json` is any JSON; `setting` is JSON that requests contain unchanged, so all its numbers must be finite; `wire` is
    JSON that a provider or a newer turnlog wrote. `call` is the arguments of a tool call, both parsed and raw. `within`
    is another struct, or several. `none` is not text: a number, a word that the type lists, or what `UNSEARCHED` names.
    """

    kind: Kind
    searched: bool = False


NOT_TEXT = Field("none")
NAME = Field("name")
TEXT = Field("text")
SEARCHED = Field("text", searched=True)
SETTING = Field("setting")
WIRE = Field("wire")
WITHIN = Field("within")
CONVERSATION = Field("within", searched=True)

FIELDS: dict[type, dict[str, Field]] = {
    MessageRecord: {
        "message": CONVERSATION,
        "count": WITHIN,
        "model": NAME,
        "stop": NAME,
        "response_id": NOT_TEXT,
        "source": TEXT,
        "binding": WITHIN,
        "section": NAME,
    },
    PartialAnswer: {
        "message": CONVERSATION,
        "reason": TEXT,
        "fragments": CONVERSATION,
        "count": WITHIN,
        "model": NAME,
        "binding": WITHIN,
    },
    StreamCheckpoint: {"message": WITHIN, "fragments": WITHIN, "model": NAME, "binding": WITHIN},
    ToolStarted: {"call_id": NOT_TEXT, "name": NAME},
    ToolFinished: {"call_id": NOT_TEXT, "outcome": NOT_TEXT, "reason": SEARCHED},
    UsageRecord: {
        "provider": NAME,
        "model": NAME,
        "response_id": NOT_TEXT,
        "seller": NAME,
        "usage": NOT_TEXT,
        "raw": WIRE,
        "counted": WITHIN,
        "cache": WITHIN,
    },
    Decision: {"action": NAME, "why": SEARCHED, "detail": Field("json")},
    SessionOpened: {"source": NAME, "session": NAME},
    TurnOpened: {"turn_id": NOT_TEXT, "watch": TEXT},
    TurnClosed: {"turn_id": NOT_TEXT, "status": NAME, "reason": TEXT},
    TurnResumed: {"turn_id": NOT_TEXT},
    Configuration: {
        "provider": NAME,
        "model": NAME,
        "settings": SETTING,
        "tools": WITHIN,
        "form": WITHIN,
        "why": TEXT,
        "budget": NOT_TEXT,
        "strategy": WITHIN,
        "environment": WITHIN,
        "base_url": TEXT,
        "server": NAME,
        "answer_schema": SETTING,
    },
    PromptRecord: {"sections": WITHIN, "labels": NAME},
    PromptSection: {"name": NAME, "text": TEXT, "place": NOT_TEXT, "when": WITHIN},
    When: {"tool": NAME, "used": NAME, "provider": NAME, "label": NAME},
    FileChange: {
        "path": SEARCHED,
        "action": NOT_TEXT,
        "before": NOT_TEXT,
        "after": NOT_TEXT,
        "old_path": SEARCHED,
        "patch": NOT_TEXT,
        "root": TEXT,
        "old_mode": NAME,
        "mode": NAME,
    },
    Approval: {"call_id": NOT_TEXT, "state": NOT_TEXT, "by": TEXT, "reason": TEXT},
    Note: {"topic": SEARCHED, "text": SEARCHED, "data": Field("json")},
    SummaryRecord: {"key": NOT_TEXT, "state": NOT_TEXT, "text": TEXT, "reason": TEXT, "summarizer": NAME},
    SealedRecord: {"of": NOT_TEXT, "data": NOT_TEXT, "blobs": NOT_TEXT},
    UnknownRecord: {"name": NOT_TEXT},
    Message: {"role": NOT_TEXT, "parts": CONVERSATION, "name": TEXT, "form": WITHIN},
    Text: {"text": SEARCHED, "form": WITHIN},
    Media: {
        "kind": NOT_TEXT,
        "mime": NAME,
        "sha256": NOT_TEXT,
        "url": Field("url", searched=True),
        "file_id": NOT_TEXT,
        "provider": NAME,
        "name": SEARCHED,
        "form": WITHIN,
    },
    Reasoning: {
        "provider": NAME,
        "text": SEARCHED,
        "summary": SEARCHED,
        "signature": NOT_TEXT,
        "encrypted": NOT_TEXT,
        "id": NOT_TEXT,
        "form": WITHIN,
    },
    ToolCall: {
        "id": NOT_TEXT,
        "name": NAME,
        "arguments": Field("call", searched=True),
        "raw": NOT_TEXT,  # read with `arguments`
        "kind": NAME,
        "signature": NOT_TEXT,
        "provider": NAME,
        "item_id": NOT_TEXT,
        "form": WITHIN,
    },
    ToolResult: {
        "call_id": NOT_TEXT,
        "name": NAME,
        "parts": CONVERSATION,
        "outcome": NOT_TEXT,
        "kind": NAME,
        "form": WITHIN,
    },
    Opaque: {"provider": NAME, "kind": NAME, "data": Field("json", searched=True), "form": WITHIN},
    Unknown: {"kind": NAME, "data": WIRE},
    Tool: {
        "name": NAME,
        "description": TEXT,
        "parameters": SETTING,
        "kind": NAME,
        "provider": NAME,
        "data": SETTING,
        "output": NAME,
        "form": WITHIN,
    },
    Form: {"provider": NAME, "shape": NAME, "delta": WIRE},
    Strategy: {"name": NAME, "steps": NAME, "heading": TEXT, "cache_ttl": NOT_TEXT},
    Environment: {"turnlog": NAME},
    Binding: {"prefix": NOT_TEXT, "model": NAME},
    Count: {"counter": NAME, "certainty": NOT_TEXT},
    CacheRead: {"changed": NAME, "why": TEXT, "reason": TEXT},
}
"""Every field that could contain a text, for every struct that a record can contain."""

UNSEARCHED = {
    "call_id id item_id response_id file_id": "ids that a provider made, and is sent letter by letter",
    "turn_id": "ids that turnlog made",
    "signature encrypted": "a provider's proof and its cipher, which a change would break",
    "sha256 before after patch prefix key blobs": "hashes",
    "data of": "a record that is encrypted, and its kind",
    "UnknownRecord.name": "the kind of a record of a newer version, read from its bytes, which are searched",
}
"""Why secrets are not looked for in the fields that are `none` and may hold any words."""

Selection = dict[type, list[tuple[str, Kind]]]
"""The fields of each struct that are read."""


def _selected(wanted: Callable[[Field], bool]) -> Selection:
    return {
        holder: [(name, field.kind) for name, field in fields.items() if wanted(field)]
        for holder, fields in FIELDS.items()
    }


EVERY = _selected(lambda field: field != NOT_TEXT)
SEARCHABLE = _selected(lambda field: field.searched)
GIVEN_JSON = _selected(lambda field: field.kind in ("json", "setting", "call", "within"))
"""The JSON that callers give, which may contain values that JSON cannot represent."""


class FoundText(NamedTuple):
    """A text of a record: its path (`message.parts[0].text`), its kind, and its value: a string, JSON, or the
    `ToolCall` whose arguments it is."""

    path: str
    kind: Kind
    value: Any


def texts_in(holder: Struct, fields: Selection = EVERY, path: str = "") -> Iterator[FoundText]:
    """Every text in the selected fields of `holder` (a body or a value inside one), in order. Empty ones are left out.
    `path` is the path of `holder` itself."""
    for name, kind in fields[type(holder)]:
        value: Any = holder if kind == "call" else getattr(holder, name)
        if not value or (kind == "url" and value.startswith("data:")):
            continue
        place = f"{path}.{name}" if path else name
        if type(value) is tuple:
            for i, inner in enumerate(value):
                if kind != "within":
                    yield FoundText(f"{place}[{i}]", kind, inner)
                elif fields[type(inner)]:
                    yield from texts_in(inner, fields, f"{place}[{i}]")
        elif kind == "within":
            yield from texts_in(value, fields, place)
        else:
            yield FoundText(place, kind, value)


def with_texts(holder: S, change: Callable[[Kind, Any], Any]) -> S:
    """`holder` with each text replaced by what `change` returns for its kind and value; `holder` itself if every result
    is the same object as before."""
    changes: dict[str, Any] = {}
    for name, kind in EVERY[type(holder)]:
        if kind == "call":
            holder = change(kind, holder)
            continue
        value: Any = getattr(holder, name)
        if not value:
            continue
        apply = partial(with_texts, change=change) if kind == "within" else partial(change, kind)
        new: Any = tuple(map(apply, value)) if type(value) is tuple else apply(value)
        if not (unchanged(new, value) if type(value) is tuple else new is value):
            changes[name] = new
    return replace(holder, **changes) if changes else holder


def leaf_parts(parts: Iterable[Part]) -> Iterator[LeafPart]:
    """The parts of a message; each tool result is replaced by the parts inside it."""
    for part in parts:
        if isinstance(part, ToolResult):
            yield from part.parts
        else:
            yield part


def strings_in(value: Any) -> Iterator[str]:
    """Every string inside a JSON value, in order, without keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_in(item)
