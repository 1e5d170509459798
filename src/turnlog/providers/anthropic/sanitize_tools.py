"""Sanitize tool declarations for the Messages API.

Before the schema is applied, `mended` puts understood tools into the documented form; `from_calls` declares the called
functions if no tool remains.
"""

from __future__ import annotations

from typing import Any

from ...log.messages import unchanged
from ..edits import Edits, Object
from ..schema.shapes import ObjectShape, WordShape
from .schema_tools import TOOL


def mended(request: Object, edits: Edits) -> Object:
    """The request with each tool declared once, with a known type and the name and schema that the type requires."""
    given = request.get("tools")
    if not isinstance(given, list):
        return request
    tools: list[Any] = []
    names: list[str] = []
    for i, tool in enumerate(given):
        is_new = isinstance(tool, dict) and tool.get("name") not in names
        declared = _mended(tool, f"tools[{i}]", edits) if is_new else tool
        name = declared.get("name") if isinstance(declared, dict) else None
        if name in names:
            edits.add("setting", f"tools[{i}]", f"dropped: a second {name!r}", "Tool names must be unique.")
            continue
        if isinstance(name, str):
            names.append(name)
        tools.append(declared)
    return request if unchanged(tools, given) else {**request, "tools": tools}


def from_calls(request: Object, edits: Edits) -> Object:
    """The request with a declaration for each function that it calls: calls without tools are refused."""
    listed = request.get("messages")
    contents = [message.get("content") for message in listed] if isinstance(listed, list) else []
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    names = dict.fromkeys(block["name"] for block in blocks if block.get("type") == "tool_use")
    for name in names:
        edits.add("tool", "tools", f"{name!r} declared from its call", "Requests must define tools.")
    return {**request, "tools": [{"name": name, "input_schema": _NO_SCHEMA} for name in names]} if names else request


_NO_SCHEMA = {"type": "object", "properties": {}}


def _mended(tool: Object, path: str, edits: Edits) -> Object:
    kind = tool.get("type")
    if kind in (None, "custom"):
        return _with_schema(tool, path, edits)
    shape = TOOL.shapes.get(kind) if isinstance(kind, str) else None
    if shape is None:
        return _of_unknown_type(tool, path, edits)
    name = shape.keys.get("name") if isinstance(shape, ObjectShape) else None
    if not isinstance(name, WordShape) or name.takes(tool.get("name")):
        return tool
    (only,) = name.words
    return edits.put(tool, "name", only, f"Input should be {only!r}", path=path)


def _of_unknown_type(tool: Object, path: str, edits: Edits) -> Object:
    """A tool of an unknown type. It stays unchanged if the type may be newer than the table; else it becomes a function
    if it has a name."""
    kind, name = tool["type"], tool.get("name")
    if not isinstance(name, str) or (isinstance(kind, str) and TOOL.leaves(kind)):
        return tool
    rule = f"Input tag {kind!r} does not match any of the expected tags"
    tool = edits.drop(tool, "type", rule, path=path, reason=f"{name!r} is taken for a function")
    return _with_schema(tool, path, edits)


def _with_schema(tool: Object, path: str, edits: Edits) -> Object:
    """The function with an input schema of type `object`."""
    schema = tool.get("input_schema")
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            return tool
        typed = edits.put(schema, "type", "object", "Input should be 'object'", path=f"{path}.input_schema")
        return {**tool, "input_schema": {"type": "object", **typed}}
    detail = "set: it takes any object"
    return edits.put(tool, "input_schema", _NO_SCHEMA, "Field required", path=path, detail=detail)
