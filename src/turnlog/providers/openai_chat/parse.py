"""Read a request body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ...errors import FormatError
from ...log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolCall,
    ToolResult,
    compact_json,
    parse_arguments,
)
from ...log.records import Configuration
from ..edits import brief
from ..protocol import Parsed
from ..schema.walk import check_types
from ..spelling import string, without
from .form import FORMS, NAME
from .media import read_media
from .parts import call_wire, envelope, function_wire, text_wire, tool_wire
from .schema import BODY, MEDIA_TYPES, MESSAGE, OPAQUE_FIELDS, REASONING_FIELDS, TEXT_TYPES

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def parse(body: Mapping[str, Any]) -> Parsed:
    """Read a request body. Raises FormatError with the path of the value that cannot be read."""
    wires = body.get("messages")
    if not isinstance(wires, Sequence) or isinstance(wires, (str, bytes)):
        raise FormatError(
            "expected a list of messages; is this the body of a Chat Completions request?", path="messages"
        )
    # An importer may pass messages one by one: the call of a single message may be elsewhere.
    reader = MessageReader(whole=len(wires) > 1)
    try:
        messages = tuple(reader.message(wire, f"messages[{i}]") for i, wire in enumerate(wires))
        return Parsed(messages=messages, configuration=_configuration(body), blobs=reader.blobs)
    except RecursionError as error:
        raise FormatError("the request body is nested too deeply to be read", path="body") from error


class MessageReader:
    """Reads wire messages in order, and remembers their calls to match results. `whole`: the messages are the whole
    conversation, so a `function` message that answers no call is a user's text."""

    def __init__(self, *, whole: bool = False) -> None:
        self.blobs: dict[str, bytes] = {}
        self._calls: dict[str, ToolCall] = {}
        self._whole = whole
        self._unanswered = 0

    def message(self, wire: Any, path: str) -> Message:
        """The canonical message of one wire message."""
        if not isinstance(wire, Mapping):
            raise FormatError("expected an object", path=path)
        role = wire.get("role")
        if role not in _ROLES:
            raise FormatError(f"expected one of {', '.join(_ROLES)}, found {brief(role)}", path=f"{path}.role")
        check_types(wire, MESSAGE, path)
        if role == "assistant":
            return self._assistant(wire)
        if role == "tool" or (role == "function" and self._answers()):
            return Message("user", (self._result(wire, legacy=role == "function"),))
        parts, shape = self._content(wire)
        name = string(wire, "name")
        spelling = role if role in ("developer", "function") else ""
        form = FORMS.made(envelope(role, name=name), without(wire, "content"), shape, spelling)
        return Message("user" if role in ("user", "function") else "system", tuple(parts), name, form)

    def _answers(self) -> bool:
        """Whether the current `function` message, which has no id, answers a call."""
        self._unanswered -= 1
        return self._unanswered >= 0 or not self._whole

    def _assistant(self, wire: Mapping[str, Any]) -> Message:
        taken = {"content"}
        parts: list[Part] = []
        for key in REASONING_FIELDS:
            if string(wire, key):
                taken.add(key)
                word = key if key != REASONING_FIELDS[0] else ""
                parts.append(Reasoning(NAME, text=wire[key], form=FORMS.shaped(word)))
        content, shape = self._content(wire)
        parts += content
        if string(wire, "refusal"):
            taken.add("refusal")
            parts.append(Text(wire["refusal"], FORMS.shaped("refusal-field")))
        for key in OPAQUE_FIELDS:
            if wire.get(key) is not None:
                taken.add(key)
                parts.append(Opaque(NAME, key, wire[key]))
        if isinstance(wire.get("function_call"), Mapping):
            taken.add("function_call")
            parts.append(_legacy_call(wire["function_call"]))
            self._unanswered = max(self._unanswered, 0) + 1
        if wire.get("tool_calls"):
            taken.add("tool_calls")
            parts += map(_tool_call, wire["tool_calls"])
        self._calls |= _by_id(parts)
        if shape == "null" and taken & {"tool_calls", "function_call", "refusal", "audio"}:
            shape = ""
        name = string(wire, "name")
        return Message(
            "assistant", tuple(parts), name, FORMS.made(envelope("assistant", name=name), without(wire, *taken), shape)
        )

    def _result(self, wire: Mapping[str, Any], *, legacy: bool) -> ToolResult:
        parts, shape = self._content(wire)
        call_id = "" if legacy else string(wire, "tool_call_id")
        name = string(wire, "name")
        call = self._calls.get(call_id)
        kind = "legacy" if legacy else "named" if name else ""
        default = envelope("function" if legacy else "tool", tool_call_id=call_id, name=name)
        return ToolResult(
            call_id,
            name or (call.name if call and not legacy else ""),
            tuple(part for part in parts if isinstance(part, (Text, Media, Opaque))),
            kind=call.kind if call else "function",
            form=FORMS.made(default, without(wire, "content"), shape, kind),
        )

    def _content(self, wire: Mapping[str, Any]) -> tuple[list[Part], str]:
        """The parts of a message's content, and its form word."""
        content = wire.get("content", ...)
        if content is ...:
            return [], "absent"
        if content is None:
            return [], "null"
        if isinstance(content, str):
            return [Text(content)], ""
        if isinstance(content, Mapping):  # of a result: what a tool returned, as JSON
            return [Text(compact_json(content))], "object"
        parts = [self._part(part) for part in content]
        if not parts:
            return [], "empty"
        plain = len(parts) == 1 and isinstance(parts[0], Text) and parts[0].form is None
        return parts, "list" if plain else ""

    def _part(self, wire: Mapping[str, Any]) -> Part:
        kind = wire.get("type") or "part"
        key = "text" if kind in TEXT_TYPES else kind
        if key in ("text", "refusal") and isinstance(wire.get(key), str):
            shape = "refusal" if key == "refusal" else ""
            return FORMS.formed(Text(wire[key]), text_wire, wire, shape)
        media = read_media(wire, self.blobs) if kind in MEDIA_TYPES else None
        return Opaque(NAME, kind, wire) if media is None else media


def read_call(entry: Mapping[str, Any]) -> ToolCall | None:
    """The call in an entry of `tool_calls`, or None if it is of an unknown kind."""
    # Compatible servers have their own types for functions (Moonshot's `builtin_function`).
    kind = "custom" if "custom" in entry and "function" not in entry else "function"
    body = entry.get(kind)
    if not isinstance(body, Mapping):
        return None
    call_id, name = string(entry, "id"), string(body, "name")
    if kind == "custom":
        if not isinstance(body.get("input"), str):
            return None
        call, shape = ToolCall(call_id, name, raw=body["input"], kind="custom"), ""
    else:
        arguments, raw, shape = _arguments(body)
        call = ToolCall(call_id, name, arguments, raw)
    return FORMS.formed(call, lambda call: call_wire(call, custom=True), entry, shape)


def _legacy_call(body: Mapping[str, Any]) -> ToolCall:
    """A call in `function_call`, the predecessor of `tool_calls`: it has no id."""
    arguments, raw, shape = _arguments(body)
    return FORMS.formed(ToolCall("", string(body, "name"), arguments, raw), function_wire, body, "legacy", shape)


def _tool_call(entry: Any) -> Part:
    call = read_call(entry)
    return Opaque(NAME, "tool_call", entry) if call is None else call


def _by_id(parts: Iterable[Part]) -> dict[str, ToolCall]:
    """The calls of a message by id. If several tools are called under one id, the call has no name: only the order of
    the results shows which belongs to which."""
    calls: dict[str, ToolCall] = {}
    for call in (part for part in parts if isinstance(part, ToolCall)):
        other = call.id in calls and calls[call.id].name != call.name
        calls[call.id] = msgspec.structs.replace(call, name="") if other else call
    return calls


def _arguments(body: Mapping[str, Any]) -> tuple[Any, str | None, str]:
    """The parsed arguments, their text if it is not compact JSON, and their form word."""
    value = body.get("arguments", ...)
    if isinstance(value, str):
        return *parse_arguments(value), ""
    if value is ... or value is None:
        return None, "", "null" if value is None else "absent"
    return value, None, "object"


def _configuration(body: Mapping[str, Any]) -> Configuration:
    check_types(body, BODY, "")
    model = string(body, "model")
    declared = body.get("tools") or ()
    seen = {key: body[key] for key in ("model", "tools") if key in body and not (key == "tools" and declared)}
    return Configuration(
        provider=NAME,
        model=model,
        settings={key: value for key, value in body.items() if key not in ("model", "messages", "tools")},
        tools=tuple(_tool(tool) for tool in declared),
        form=FORMS.made({"model": model}, seen),
    )


def _tool(wire: Mapping[str, Any]) -> Tool:
    kind = wire.get("type") or "function"
    body = wire.get(kind) if kind in ("function", "custom") else None
    if body is None:
        return Tool(name=kind, kind="hosted", provider=NAME, data=wire)
    parameters = body.get("parameters")
    tool = Tool(
        name=string(body, "name"),
        description=string(body, "description"),
        parameters=parameters if kind == "function" and isinstance(parameters, dict) else None,
        kind=kind,
    )
    return FORMS.formed(tool, lambda tool: tool_wire(tool, custom=True), wire)
