"""Canonical content: what a conversation consists of, for every provider.

The values are frozen and have no identity: number, time and position belong to the record that contains them. A value
holds the content; how a provider spelled it is in its `Form`, which only that provider reads. No value can contain
itself, so they are not tracked by the garbage collector (`gc=False`), which would otherwise scan the tens of thousands
of them in a long window again and again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, Literal

from msgspec import Struct

ARGUMENTS_DEPTH = 100
"""The deepest nesting of arguments that are parsed; deeper ones stay text. A record allows 200 levels, including its
envelope and the marks of docs/format.md; text has no such limit."""

_HOLDERS = (dict, list, tuple, Mapping)
_LEAVES = frozenset({str, int, float, bool, type(None)})
_FEW, _MANY = 16, 100_000

Role = Literal["system", "user", "assistant"]

Outcome = Literal["ok", "failed", "timeout", "canceled", "aborted", "lost"]
"""How a tool call ended. `aborted`: interrupted, it may have run. `lost`: never answered."""


class Form(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """How one provider spelled a value, so that a rendering for the same provider is identical.

    Only `provider` reads it. `shape` is that provider's own word (`"string"`, `"list"`, `"null"`, ...). `delta` is the
    difference between the provider's default rendering and what was received, in the notation of
    `turnlog.providers.spelling`; it also contains unknown keys. A form never contains content (texts, arguments,
    media).
    """

    provider: str
    shape: str = ""
    delta: dict[str, Any] | None = None


CONTAINER = "container"
"""The word of a form, as `container=ID`, that names where the provider ran code for an answer. It is shown to that
provider until it refuses it (`unsigned` in decisions)."""


class Text(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="type", tag="text"):
    """Plain text. It may contain anything that a Python string can, including lone surrogates and NUL."""

    text: str
    form: Form | None = None


class Media(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="type", tag="media"):
    """An image, document, audio or video, given by the hash of its bytes, by a URL, or by a provider's file id.

    Exactly one of these is set: `sha256` (the hex digest of the bytes, which are a blob in the store), `url`, or
    `file_id` (valid only at `provider`). `size` is the number of bytes, 0 if unknown.
    """

    kind: Literal["image", "document", "audio", "video", "file"]
    mime: str = ""
    sha256: str = ""
    size: int = 0
    url: str = ""
    file_id: str = ""
    provider: str = ""
    name: str = ""
    form: Form | None = None


class Reasoning(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="type", tag="reasoning"
):
    """A model's reasoning: opaque, and usable only by the provider that made it.

    `text` is the thinking that the provider shows, `summary` the parts of its summary. `signature` and `encrypted` are
    the provider's proof and its encrypted content; they are never edited. `id` is the provider's item id.
    """

    provider: str
    text: str = ""
    summary: tuple[str, ...] = ()
    signature: str = ""
    encrypted: str = ""
    id: str = ""
    form: Form | None = None


class ToolCall(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="type", tag="tool_call"
):
    """A model's call of a tool.

    `id` connects it with its result; ids are not unique in real logs, so calls and results are paired by position.
    `arguments` is the parsed JSON; `raw` is the text that the model wrote, set only if it differs from the compact JSON
    of `arguments` (see `raw_arguments`). A `custom` call has free text in `raw` and no arguments; a `shell` call has
    its action object in `arguments`. Other kinds are a provider's own client-side calls (`apply_patch`, `computer`,
    `tool_search`, ...), with the action in `arguments`. `signature` was made by `provider`. `item_id` is the provider's
    item id.
    """

    id: str
    name: str
    arguments: Any = None
    raw: str | None = None
    kind: str = "function"
    signature: str = ""
    provider: str = ""
    item_id: str = ""
    form: Form | None = None

    @property
    def raw_arguments(self) -> str:
        """The arguments as text: as the model wrote them, else as compact JSON."""
        return compact_json(self.arguments) if self.raw is None else self.raw


USES_TOOL = "use_tool"
"""The name of the tool through which a model uses tools that were loaded on demand."""


def tool_called(call: ToolCall) -> str:
    """The name of the tool that a call is for: of `use_tool`, the one that it names."""
    named = call.arguments.get("name") if call.name == USES_TOOL and isinstance(call.arguments, dict) else None
    return named if isinstance(named, str) else call.name


class ToolResult(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="type", tag="tool_result"
):
    """The answer to a tool call: parts and outcome.

    `call_id` and `name` are those of the call (`name` is empty if the provider does not report it). `synthetic` marks a
    result that no tool produced. `call_record` is the number of the record with its call, if that call had left the
    conversation when the result was recorded; else 0.
    """

    call_id: str
    name: str = ""
    parts: tuple[Text | Media | Opaque | Unknown, ...] = ()
    outcome: Outcome = "ok"
    kind: str = "function"
    synthetic: bool = False
    form: Form | None = None
    call_record: int = 0


class Opaque(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="type", tag="opaque"
):
    """A provider's own item or block, kept whole and sent only to that provider."""

    provider: str
    kind: str
    data: Any = None
    form: Form | None = None


class Unknown(
    Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True, tag_field="type", tag="unknown"
):
    """A part of a kind that a newer turnlog wrote. It is kept and never sent."""

    kind: str
    data: Any = None


Part = Text | Media | Reasoning | ToolCall | ToolResult | Opaque | Unknown

COMPACTION = "compaction"
"""The kind of an `Opaque` part with which a provider compacted the conversation: for that provider it stands for
everything before it."""


def is_compaction(part: Part) -> bool:
    """Whether a provider compacted the conversation with this part."""
    return isinstance(part, Opaque) and part.kind == COMPACTION


class Message(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """A role and parts. Tool results are parts of user messages.

    `name` is the author's name, if the provider allows one. `by_program` says of a user message that a program wrote it
    in the user's name, as the transcript that it was imported from tells: it gives no orders. It is never sent.
    """

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""
    form: Form | None = None
    by_program: bool = False


class Tool(Struct, frozen=True, repr_omit_defaults=True, omit_defaults=True):
    """A tool that a model may call.

    `kind` is `function` (with `parameters`, a JSON schema), `custom` (free-text input), or `hosted` (run by `provider`,
    whose declaration is `data`). `output` says what its results are (`search`, `read`, `json`, ..., see
    `turnlog.curate`), if name, arguments and shape do not tell; it is sent to no provider. With `on_demand`, the model
    sees its name and one line until it loads the tool (see `Session.skills`).
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] | None = None
    kind: str = "function"
    provider: str = ""
    data: Any = None
    form: Form | None = None
    output: str = ""
    on_demand: bool = False


def extra_keys(form: Form | None) -> tuple[str, ...]:
    """The paths of the unknown keys in a form that have a value: other providers cannot take them."""
    return () if form is None else tuple(_extra(form.delta, ""))


def _extra(delta: Mapping[str, Any] | None, path: str) -> Iterator[str]:
    for key, value in (delta or {}).get("+", {}).items():
        if value not in (None, [], {}, ""):
            yield path + key
    for key, inner in (delta or {}).get("~", {}).items():
        yield from _extra(inner, f"{path}{key}.")


def free_text() -> dict[str, Any]:
    """The parameters of a custom tool that is declared as a function."""
    return {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def _refuse_constant(name: str) -> Any:
    raise ValueError(name)


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_compact_finite = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_read_finite = json.JSONDecoder(parse_constant=_refuse_constant).decode


def compact_json(value: Any) -> str:
    """`value` as JSON without spaces and without escapes for non-ASCII characters, as most providers send it."""
    return _compact(value)


def json_or_text(text: str) -> Any:
    """The JSON of a text; the text itself, if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def parse_arguments(raw: str) -> tuple[Any, str | None]:
    """The text `raw` of arguments as (`arguments`, `raw`) of a `ToolCall`.

    Text gives no arguments and is kept as it is if it is not JSON, contains NaN, Infinity or 1e999 (which JSON cannot
    represent), or is nested more than `ARGUMENTS_DEPTH` levels deep.
    """
    try:
        value = _read_finite(raw)
        spelled = _compact_finite(value)
    except (ValueError, RecursionError):
        return None, raw
    if raw.count("{") + raw.count("[") > ARGUMENTS_DEPTH and nested_deeper(value, ARGUMENTS_DEPTH) is not None:
        return None, raw
    return value, None if spelled == raw else raw


def nested_deeper(value: Any, levels: int) -> str | None:
    """The path of an object or array in `value` that lies more than `levels` deep; None if there is none.

    `value` itself is the first level. Works without recursion, so a deep value needs no more of Python's stack than a
    flat one.
    """
    if _is_flat(value, levels):
        return None
    level: list[tuple[Any, tuple[Any, ...]]] = [(value, ())] if isinstance(value, _HOLDERS) else []
    for _ in range(levels):
        next_level = {  # each once: a value that contains itself twice would double with every level
            id(inner): (inner, (keys, key))
            for holder, keys in level
            for key, inner in (holder.items() if isinstance(holder, Mapping) else enumerate(holder))
            if isinstance(inner, _HOLDERS)
        }
        level = list(next_level.values())
        if not level:
            return None
    return _path(level[0][1]) if level else None


def _is_flat(value: Any, levels: int) -> bool:
    """Whether a value has at most `levels` levels, for what can be told at once: of few levels, types of JSON only, and
    not so large that it may contain itself."""
    if type(value) not in (dict, list):
        return type(value) in _LEAVES
    level, seen = [value], 0
    for _ in range(min(levels, _FEW)):
        next_level: list[Any] = []
        for holder in level:
            seen += len(holder)
            if seen > _MANY:
                return False
            for inner in holder.values() if type(holder) is dict else holder:
                kind = type(inner)
                if kind is dict or kind is list:
                    next_level.append(inner)
                elif kind not in _LEAVES:
                    return False
        if not next_level:
            return True
        level = next_level
    return False


def not_json(value: Any) -> str | None:
    """The path and type of a value inside `value` that JSON does not have; None if there is none."""
    stack: list[tuple[Any, tuple[Any, ...]]] = [(value, ())]
    while stack:
        item, keys = stack.pop()
        if isinstance(item, Mapping):
            wrong = next((key for key in item if not isinstance(key, str)), None)
            if wrong is not None:
                return f"{_path(keys) or 'the body'} has a key of type {type(wrong).__name__}, {wrong!r}"
            stack.extend((inner, (keys, key)) for key, inner in item.items())
        elif isinstance(item, (list, tuple)):
            stack.extend((inner, (keys, i)) for i, inner in enumerate(item))
        elif item is not None and not isinstance(item, (str, int, float)):
            return f"{_path(keys) or 'the body'} is of type {type(item).__name__}"
    return None


def _path(keys: tuple[Any, ...]) -> str:
    steps: list[str] = []
    while keys:
        keys, key = keys
        steps.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(steps)).removeprefix(".")


def is_finite_json(value: Any) -> bool:
    """Whether JSON can represent `value`: no NaN or infinity (1e999 is parsed as infinity), only string keys."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, float):
            if not math.isfinite(item):
                return False
        elif isinstance(item, dict):
            if not all(isinstance(key, str) for key in item):
                return False
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
    return True


_BARE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
)


def bare(value: Any) -> Any:
    """A value of a subclass of `str`, `int` or `float`, such as `markupsafe.Markup` or `numpy.float64`, as a value of
    that type; any other value as it is."""
    for kind, convert in _BARE:
        if isinstance(value, kind):
            return value if type(value) in (kind, bool) else convert(value)
    return value


def sha256_hex(data: bytes) -> str:
    """The hex SHA-256 of `data`, which is the name of media bytes in a store."""
    return hashlib.sha256(data).hexdigest()


def text_of(message: Message) -> str:
    """The plain text of a message: only its `Text` parts, joined by newlines."""
    return "\n".join(part.text for part in message.parts if isinstance(part, Text))


def media_parts(message: Message) -> Iterator[Media]:
    """Every media part of a message, including those inside tool results, in order."""
    for part in message.parts:
        if isinstance(part, Media):
            yield part
        elif isinstance(part, ToolResult):
            for inner in part.parts:
                if isinstance(inner, Media):
                    yield inner


def shown_apart(result: ToolResult) -> tuple[str, str]:
    """Two texts for a result whose media are shown in a separate message after it: the text before the media, and the
    text that stands for the result if it has no text of its own. Both are empty if the result has no media."""
    kinds = " and ".join(sorted({part.kind for part in result.parts if isinstance(part, Media)}))
    if not kinds:
        return "", ""
    label = f"[{kinds} returned by {result.name or 'the tool'}, call {result.call_id}]"
    return label, f"[{kinds}: see the next user message]"


def media_kind(mime: str) -> Literal["image", "document", "audio", "video", "file"]:
    """The kind of media that a MIME type denotes."""
    match mime.split("/", 1)[0]:
        case "image" | "audio" | "video" as family:
            return family
        case family:
            return "document" if family == "text" or mime == "application/pdf" else "file"


def images_in(message: Message) -> int:
    """The number of images in a message, including those inside results. Written as loops, because it runs for every
    message of a view."""
    count = 0
    for part in message.parts:
        for inner in part.parts if isinstance(part, ToolResult) else (part,):
            if isinstance(inner, Media) and inner.kind == "image":
                count += 1
    return count


def unchanged(new: Sequence[Any], old: Sequence[Any]) -> bool:
    """Whether `new` consists of the same objects as `old`, in the same order."""
    return len(new) == len(old) and all(map(is_, new, old))
