"""The default rendering of texts, calls and tools, shared by parser and renderer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Opaque, Text, Tool, ToolCall, compact_json, free_text
from .form import FORMS, NAME, spelled
from .schema import MEDIA_TYPES, TEXT_TYPES

# -- known -----------------------------------------------------------------------------------------
#
# The parts and tool declarations that belong to Chat Completions.

_UNREADABLE = frozenset({*TEXT_TYPES, "refusal", "image_url", "input_audio", "tool_call", "response"})
"""Kinds of parts that are kept whole only if they cannot be read: texts and media without a value, calls without a
tool, and keys that only responses have."""

_MEDIA_KINDS = {"image_url": "image", "input_audio": "audio", "file": "file", "video_url": "video"}
"""The kinds of media by type of content part. `video_url` is a type of compatible servers."""


def knows(part: Opaque) -> bool:
    """Whether an opaque part can be sent. Parts that only compatible servers have (`video_url`, `thinking`) are
    accepted."""
    if part.kind in _UNREADABLE or not isinstance(part.data, (dict, list)):
        return False
    if part.kind == "audio":
        return isinstance(part.data, dict) and isinstance(part.data.get("id"), str)
    if part.kind in MEDIA_TYPES:
        box = part.data.get(part.kind) if isinstance(part.data, dict) else None
        return isinstance(box, dict) and bool(box.get("file_id"))
    return True


def unread_media(part: Opaque) -> str:
    """The kind of media that a content part is, by its type; "" for other parts."""
    return _MEDIA_KINDS.get(part.kind, "")


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this is a tool declaration of Chat Completions, whose content is under the name of its type."""
    return "function" in tool or (tool.get("type") == "custom" and "custom" in tool)


def envelope(role: str, **keys: str) -> dict[str, Any]:
    """A message without its content: the role, and those of `keys` that have a value."""
    return {"role": role, **{key: value for key, value in keys.items() if value}}


def text_wire(text: Text) -> dict[str, Any]:
    """The content part of a text."""
    kind = "refusal" if FORMS.says(text.form, "refusal") else "text"
    return spelled({"type": kind, kind: text.text}, text.form)


def function_wire(call: ToolCall) -> dict[str, Any]:
    """Name and arguments of a call. A custom call becomes a function with one argument, `input`; other kinds keep their
    arguments."""
    named = {"name": call.name} if call.name else {}
    words = FORMS.words(call.form)
    if call.kind == "custom":
        return {**named, "arguments": compact_json({"input": _free_text(call)})}
    if "object" in words and call.raw is None:
        return {**named, "arguments": call.arguments}
    if call.raw == "" and "absent" in words:
        return named
    return {**named, "arguments": None if call.raw == "" and "null" in words else call.raw_arguments}


def call_wire(call: ToolCall, *, custom: bool) -> dict[str, Any]:
    """A call as an entry of `tool_calls`; `custom`: the model accepts custom tools."""
    if call.kind == "custom" and custom:
        named = {"name": call.name} if call.name else {}
        entry: dict[str, Any] = {"type": "custom", "custom": {**named, "input": _free_text(call)}}
    else:
        entry = {"type": "function", "function": function_wire(call)}
    if call.id:
        entry = {"id": call.id, **entry}
    return spelled(entry, call.form)


def tool_wire(tool: Tool, *, custom: bool) -> dict[str, Any] | None:
    """A tool as an entry of `tools`, or None if another provider runs it."""
    if tool.kind == "hosted":
        return tool.data if tool.provider == NAME else None
    body: dict[str, Any] = {"name": tool.name} if tool.name else {}
    if tool.description:
        body["description"] = tool.description
    if tool.kind == "custom" and custom:
        return spelled({"type": "custom", "custom": body}, tool.form)
    parameters = free_text() if tool.kind == "custom" else tool.parameters
    if parameters is not None:
        body["parameters"] = parameters
    return spelled({"type": "function", "function": body}, tool.form)


def _free_text(call: ToolCall) -> str:
    if call.raw is not None:
        return call.raw
    return "" if call.arguments is None else compact_json(call.arguments)


# -- tool choice -----------------------------------------------------------------------------------
#
# The tool choice, in common words and in this API's.

_WORDS = ("auto", "none", "required")


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words; None if there is none. A choice among allowed tools counts as its mode."""
    value = settings.get("tool_choice", settings.get("function_call"))
    if isinstance(value, str):
        return value if value in _WORDS else None
    if not isinstance(value, Mapping):
        return None
    allowed = value.get("allowed_tools")
    if isinstance(allowed, Mapping):
        return {"auto": "auto", "required": "required"}.get(str(allowed.get("mode")))
    named = value.get("function") or value.get("custom") or value
    name = named.get("name") if isinstance(named, Mapping) else None
    return f"tool:{name}" if isinstance(name, str) and name else None


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words."""
    name = choice.partition(":")[2]
    return {**settings, "tool_choice": {"type": "function", "function": {"name": name}} if name else choice}
