"""Tool declarations as the Messages API takes them."""

from __future__ import annotations

import re
from typing import Any

from ...log.messages import unchanged
from ...models.target import Target
from ...view.types import Edit
from ..values import misfit, prune
from .cache_marks import with_sound_mark
from .shapes import TOOL
from .values import TOOL_KEYS, TOOLS

_Tool = dict[str, Any]
_Edits = list[Edit]

_DATE = re.compile(r"_\d{8}$")


def sanitize_tools(request: dict[str, Any], target: Target, edits: _Edits) -> dict[str, Any]:
    """`request` with each tool declared once, under a type and with values that the API knows."""
    given = request.get("tools")
    if not isinstance(given, list):
        return request
    kept: list[Any] = []
    names: list[Any] = []
    for i, tool in enumerate(given):
        if not isinstance(tool, dict):
            _edit(edits, f"tools[{i}]", "dropped: it is no declaration", "Input should be a valid dictionary")
            continue
        declared: _Tool | None = tool
        if tool.get("name") is None or tool["name"] not in names:
            declared = _declared(tool, f"tools[{i}]", edits)
        name = declared.get("name") if declared is not None else None
        if name is not None and name in names:
            _edit(edits, f"tools[{i}]", f"dropped: a second {name!r}", "Tool names must be unique.")
        elif declared is not None:
            names.append(name)
            kept.append(declared)
    if given and not kept:
        kept = _from_calls(request.get("messages"), edits)
    same = unchanged(kept, given)
    return request if same else {**request, "tools": kept}


def _from_calls(messages: Any, edits: _Edits) -> list[_Tool]:
    """A declaration for each function called, where none was left: calls are refused without."""
    listed = messages if isinstance(messages, list) else []
    contents = [message.get("content") for message in listed if isinstance(message, dict)]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    calls = [block for block in blocks if isinstance(block, dict) and block.get("type") == "tool_use"]
    names = dict.fromkeys(call["name"] for call in calls if isinstance(call.get("name"), str))
    rule = "Requests ... must define tools."
    edits += [Edit("tool", f"{name!r} declared from its call", rule=rule, path="tools") for name in names]
    return [{"name": name, "input_schema": {"type": "object", "properties": {}}} for name in names]


def _edit(edits: _Edits, path: str, detail: str, rule: str) -> None:
    edits.append(Edit("setting", detail, rule=rule, path=path))


def _declared(tool: _Tool, path: str, edits: _Edits) -> _Tool | None:
    """A declaration without values that it cannot have; None for one that is none."""
    tool = with_sound_mark(tool, path, edits)
    for key in [key for key in tool if key in TOOL_KEYS]:
        why = misfit(tool[key], TOOL_KEYS[key])
        if why:
            _edit(edits, f"{path}.{key}", f"dropped: {why}", "Input should be valid")
            tool = {name: value for name, value in tool.items() if name != key}
    kind = tool.get("type")
    if kind in (None, "custom"):
        return _function(prune(tool, TOOL, path, edits), path, edits)
    found = TOOLS.get(kind) or TOOLS.get(_DATE.sub("", kind))
    if found is None:
        return _of_no_type(tool, path, edits)
    name, needs = found
    why = misfit(tool, needs)
    if why:
        _edit(edits, path, f"dropped: {why}", "Field required")
        return None
    if name and tool.get("name") != name:
        detail = f"set to {name!r}: that is the name of {kind!r}"
        _edit(edits, f"{path}.name", detail, f"Input should be {name!r}")
        return {**tool, "name": name}
    return tool


def _of_no_type(tool: _Tool, path: str, edits: _Edits) -> _Tool | None:
    """A tool of a type that is not in the table: left alone if it is dated, so perhaps newer; else a function."""
    kind, name = tool["type"], tool.get("name")
    if _DATE.search(kind):
        return tool
    rule = f"Input tag '{kind}' does not match any of the expected tags"
    if not isinstance(name, str):
        _edit(edits, path, f"dropped: no tool is of type {kind!r}", rule)
        return None
    _edit(edits, f"{path}.type", f"dropped, {name!r} is a function: no tool is of type {kind!r}", rule)
    untyped = {key: value for key, value in tool.items() if key != "type"}
    return _function(prune(untyped, TOOL, path, edits), path, edits)


def _function(tool: _Tool, path: str, edits: _Edits) -> _Tool:
    """The schema of a function is an object's."""
    schema = tool.get("input_schema")
    if not isinstance(schema, dict):
        _edit(edits, f"{path}.input_schema", "set: it takes any object", "Field required")
        return {**tool, "input_schema": {"type": "object", "properties": {}}}
    if schema.get("type") == "object":
        return tool
    _edit(edits, f"{path}.input_schema.type", "set to 'object'", "Input should be 'object'")
    return {**tool, "input_schema": {"type": "object", **schema, **({"type": "object"} if "type" in schema else {})}}
