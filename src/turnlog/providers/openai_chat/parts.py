"""Default renderings of single values: texts, calls, tools. Reader and writer share them."""

from __future__ import annotations

from typing import Any

from ...log.messages import Text, Tool, ToolCall, compact_json, free_text
from .form import FORMS, NAME, spelled


def envelope(role: str, **keys: str) -> dict[str, Any]:
    """A message without its content: the role and whichever of `keys` say something."""
    return {"role": role, **{key: value for key, value in keys.items() if value}}


def text_wire(text: Text) -> dict[str, Any]:
    """The content part of a text."""
    kind = "refusal" if FORMS.says(text.form, "refusal") else "text"
    return spelled({"type": kind, kind: text.text}, text.form)


def function_wire(call: ToolCall) -> dict[str, Any]:
    """Name and arguments of a call. Kinds that this API does not have become functions: free text
    as `input`, actions as they are."""
    named = {"name": call.name} if call.name else {}
    held = FORMS.words(call.form)
    if call.kind == "custom":
        return {**named, "arguments": compact_json({"input": _free_text(call)})}
    if "object" in held and call.raw is None:
        return {**named, "arguments": call.arguments}
    if call.raw == "" and "absent" in held:
        return named
    return {**named, "arguments": None if call.raw == "" and "null" in held else call.raw_arguments}


def call_wire(call: ToolCall, *, custom: bool) -> dict[str, Any]:
    """A call as an entry of `tool_calls`; `custom` says whether the model knows custom tools."""
    if call.kind == "custom" and custom:
        named = {"name": call.name} if call.name else {}
        entry: dict[str, Any] = {"type": "custom", "custom": {**named, "input": _free_text(call)}}
    else:
        entry = {"type": "function", "function": function_wire(call)}
    if call.id:
        entry = {"id": call.id, **entry}
    return spelled(entry, call.form)


def tool_wire(tool: Tool, *, custom: bool) -> dict[str, Any] | None:
    """A tool as an entry of `tools`, or None if it is another provider's own."""
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
