"""Write a view as a request body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from ..._platform.units import an
from ...log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
)
from ...log.records import Configuration
from ...models.target import Target
from ...view.types import Edit, Shown
from ..edits import Losses
from ..gemini import unsendable
from ..protocol import BlobReader, Rendered
from ..spelling import spell
from .form import FORMS, NAME, spelled
from .keys import camel, camel_deep
from .parts import call_part, media_part, reasoning_part, result_part, text_part
from .tools import write_tools


class _Call(Struct):
    """A rendered call: its canonical id, its id on the wire (may be empty), its name."""

    id: str
    sent_id: str
    name: str


def render(
    view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader, *, joins: bool = True
) -> Rendered:
    """The request body for a view. With `joins`, results of one step share a content. Raises only BlobMissing."""
    writer = _Writer(blob, nested_media=target.abilities.signed_calls, may_join=joins)
    leading = 0
    while leading < len(view) and _is_instruction(view[leading].message):
        leading += 1
    system = writer.system(view[:leading])
    for shown in view[leading:]:
        writer.add(shown)
    request = _body(writer, system, configuration, target)
    return Rendered(body=request, losses=tuple(writer.losses.made), edits=tuple(writer.edits))


def _is_instruction(message: Message) -> bool:
    """Whether system text belongs to the instruction, which it does unless it was read among the contents."""
    return message.role == "system" and not FORMS.says(message.form, "content")


def _body(writer: _Writer, system: Any, configuration: Configuration, target: Target) -> dict[str, Any]:
    words = FORMS.words(configuration.form)
    single = "content-object" in words and len(writer.contents) == 1
    default: dict[str, Any] = {"contents": writer.contents[0] if single else writer.contents}
    if system is not None:
        default["systemInstruction"] = system
    tools = write_tools(configuration.tools, writer.losses)
    if tools:
        default["tools"] = tools[0] if "tools-object" in words and len(tools) == 1 else tools
    # A target's settings come last, perhaps in the other spelling: a key in both spellings would be ambiguous.
    default.update(camel_deep({camel(key): value for key, value in configuration.settings.items()}))
    if "model" in words or "models/" in words:
        default["model"] = ("models/" if "models/" in words else "") + target.model
    delta = FORMS.delta(configuration.form) or {}
    # A key that was null or empty when the body was read may have a value now.
    added = {key: value for key, value in delta.get("+", {}).items() if camel(key) not in default}
    return spell(default, {**delta, "+": added})


class _Writer:
    """Collects contents, losses and edits."""

    def __init__(self, blob: BlobReader, *, nested_media: bool, may_join: bool) -> None:
        self.contents: list[dict[str, Any]] = []
        self.losses = Losses(NAME)
        self.edits: list[Edit] = []
        self.blob = blob
        self.nested_media = nested_media
        self.may_join = may_join
        self.joins = False
        self.step_over = True
        self.calls: list[_Call] = []
        self.waiting: list[_Call] = []

    def begin(self, shown: Shown) -> None:
        """Start a message and record its losses as a whole."""
        self.losses.begin(shown)
        self.losses.author(shown.message.name)

    def system(self, messages: Sequence[Shown]) -> Any:
        """The system instruction: all leading system text, in order; None if there is none."""
        texts: list[Text] = []
        for shown in messages:
            self.begin(shown)
            for part in shown.message.parts:
                if isinstance(part, Text):
                    texts.append(part)
                else:  # "only text parts are supported in system_instruction"
                    kind = "media" if isinstance(part, Media) else "opaque"
                    self.losses.add(kind, f"{type(part).__name__} in system text left out")
        form = next(filter(None, (FORMS.own(shown.message.form) for shown in messages)), None)
        shape = FORMS.shape(form)
        if shape == "string" and len(texts) == 1:
            return texts[0].text
        if shape == "strings" and texts:
            return [part.text for part in texts]
        parts = [entry for part in texts for entry in self.part(part)]
        if not parts and _NO_PARTS.isdisjoint(shape.split()):
            return None
        return {**spelled({"role": "user"}, form), **_part_list(parts, shape)}

    def add(self, shown: Shown) -> None:
        """Add a message as a content. Results of one step in several messages are joined."""
        message = shown.message
        self._follow(message)
        self.begin(shown)
        parts = [entry for part in message.parts for entry in self.part(part)]
        results = bool(message.parts) and all(isinstance(part, ToolResult) for part in message.parts)
        words = FORMS.words(message.form)
        joins, self.joins = self.joins and results and FORMS.own(message.form) is None, results and self.may_join
        if joins and parts:
            last = self.contents[-1]
            self.contents[-1] = {**last, "parts": [*_as_list(last.get("parts")), *parts]}
            return
        if not parts and message.parts:
            self.joins = False
            return
        if not parts and _NO_PARTS.isdisjoint(words):
            parts = [{"text": ""}]
        role = "model" if message.role == "assistant" else "user"
        if message.role == "system" and "content" not in words:
            self.losses.add("place", "system text in mid-conversation shown as a user message")
        content = spelled({"role": role}, message.form)
        self.contents.append({**content, **_part_list(parts, " ".join(words))})

    def _follow(self, message: Message) -> None:
        """Keep track of the current step, whose calls results may answer."""
        if message.role != "assistant":
            self.step_over = True
        elif self.step_over:
            self.waiting = []
            self.step_over = False

    def part(self, part: Part) -> list[dict[str, Any]]:
        """The wire parts of a canonical part; empty if it cannot be sent."""
        match part:
            case Opaque() if part.provider == NAME:
                return [part.data]
            case Opaque() | Unknown():
                self.losses.add(
                    "opaque", f"{part.kind} of {getattr(part, 'provider', '') or 'a newer turnlog'} left out"
                )
                return []
            case Reasoning() if part.provider != NAME:
                self.losses.add("reasoning", f"reasoning of {part.provider} left out")
                return []
            case ToolResult():
                return self._result(part)
            case Media():
                entry = self._media(part)
                return [{"text": f"[{part.kind} left out]"}] if entry is None else [entry]
            case _:
                pass
        self.losses.extras(part.form, f"a {type(part).__name__.lower()}")
        if isinstance(part, Text):
            return [spelled(text_part(part), part.form)]
        if isinstance(part, Reasoning):
            return [spelled(reasoning_part(part), part.form)]
        return [self._call(part)]

    def _call(self, call: ToolCall) -> dict[str, Any]:
        entry = spelled(call_part(call), call.form)
        if call.signature and "thoughtSignature" not in call_part(call):
            self.losses.add(
                "reasoning", f"signature of {call.provider or 'another provider'} on {call.name!r} left out"
            )
        inner = entry.get("functionCall", entry.get("function_call"))
        sent = inner.get("id") if isinstance(inner, dict) else None
        written_call = _Call(call.id, sent if isinstance(sent, str) else "", call.name)
        self.calls.append(written_call)
        self.waiting.append(written_call)
        return entry

    def _result(self, result: ToolResult) -> list[dict[str, Any]]:
        """A result with the name of its call. Media that cannot be inside the result follow it."""
        self.losses.extras(result.form, f"the result of {result.call_id!r}")
        call = self._answered(result)
        name = result.name or (call.name if call else "") or "unknown_tool"
        if not result.name and FORMS.own(result.form) is not None:
            rule = "function_response.name: Name cannot be empty."
            self.edits.append(
                Edit("name", f"tool result had no name; sent with the name {name!r}", self.losses.records, rule)
            )
        call_id = call.sent_id if call else result.call_id
        inside = self.nested_media or FORMS.own(result.form) is not None
        nested: list[Any] = []
        beside: list[dict[str, Any]] = []
        for inner in result.parts:
            if isinstance(inner, Text):
                self.losses.extras(inner.form, "a text of a result")
            elif isinstance(inner, Media):
                entry = self._media(inner)
                if entry is not None:
                    (nested if inside else beside).append(entry)
            else:
                nested += self.part(inner)
        if beside:
            self.losses.add("place", f"media of the result of {name!r} shown behind it")
        default = result_part(result, call_id, name, nested)
        return [spelled(default, result.form), *beside]

    def _answered(self, result: ToolResult) -> _Call | None:
        call = next((call for call in self.waiting if call.id == result.call_id), None)
        if call is not None:
            self.waiting.remove(call)
            return call
        return next((call for call in reversed(self.calls) if call.id == result.call_id), None)

    def _media(self, media: Media) -> dict[str, Any] | None:
        self.losses.extras(media.form, an(media.kind))
        if media.name:
            self.losses.add("extra", f"the name {media.name!r} of {an(media.kind)} left out")
        refusal = unsendable(media)
        if refusal:
            self.losses.add("media", refusal)
            return None
        match = _DATA_URL.match(media.url)
        if match:
            entry = {"inlineData": {"mimeType": media.mime or match[1], "data": media.url[match.end() :]}}
            return spelled(entry, media.form)
        return spelled(media_part(media, self.blob), media.form)


def _as_list(parts: Any) -> list[Any]:
    return parts if isinstance(parts, list) else [parts]


def _part_list(parts: list[Any], shape: str) -> dict[str, Any]:
    """The `parts` of a content, spelled as they were read if that spelling still fits."""
    words = shape.split()
    if len(parts) == 1 and "object" in words:
        return {"parts": parts[0]}
    if not parts and "absent" in words:
        return {}
    return {"parts": None if not parts and "null" in words else parts}


# Form words of a content without parts.
_NO_PARTS = frozenset({"absent", "empty", "null"})
_DATA_URL = lazy_pattern(r"data:([\w.+-]+/[\w.+-]+);base64,")
