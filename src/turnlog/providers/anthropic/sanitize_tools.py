"""Tool declarations as the Messages API takes them.

`mended` gives what is understood the form that the API wants, before the schema is applied; `from_calls` declares
what is called where it left no tool.
"""

from __future__ import annotations

from typing import Any

from ...log.messages import unchanged
from ...view.types import Edit
from ..schema import Record, Words
from .schema_tools import TOOL

_Tool = dict[str, Any]
_Edits = list[Edit]


def mended(request: dict[str, Any], edits: _Edits) -> dict[str, Any]:
    """The request with each tool declared once, of a type that there is, under the name and with the schema that it
    must have."""
    given = request.get("tools")
    if not isinstance(given, list):
        return request
    kept: list[Any] = []
    names: list[str] = []
    for i, tool in enumerate(given):
        is_new = isinstance(tool, dict) and tool.get("name") not in names
        declared = _mended(tool, f"tools[{i}]", edits) if is_new else tool
        name = declared.get("name") if isinstance(declared, dict) else None
        if name in names:
            rule = "Tool names must be unique."
            edits.append(Edit("setting", f"dropped: a second {name!r}", rule=rule, path=f"tools[{i}]"))
            continue
        if isinstance(name, str):
            names.append(name)
        kept.append(declared)
    return request if unchanged(kept, given) else {**request, "tools": kept}


def from_calls(request: dict[str, Any], edits: _Edits) -> dict[str, Any]:
    """The request with a declaration for each function that it calls, as calls are refused without."""
    listed = request.get("messages")
    contents = [message.get("content") for message in listed] if isinstance(listed, list) else []
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    names = dict.fromkeys(block["name"] for block in blocks if block.get("type") == "tool_use")
    for name in names:
        edits.append(Edit("tool", f"{name!r} declared from its call", rule="Requests must define tools.", path="tools"))
    return {**request, "tools": [{"name": name, **_NO_SCHEMA} for name in names]} if names else request


_NO_SCHEMA = {"input_schema": {"type": "object", "properties": {}}}


def _mended(tool: _Tool, path: str, edits: _Edits) -> _Tool:
    kind = tool.get("type")
    if kind in (None, "custom"):
        return _with_schema(tool, path, edits)
    shape = TOOL.shapes.get(kind) if isinstance(kind, str) else None
    if shape is None:
        return _of_no_type(tool, path, edits)
    name = shape.keys.get("name") if isinstance(shape, Record) else None
    if not isinstance(name, Words) or name.takes(tool.get("name")):
        return tool
    (only,) = name.words
    edits.append(
        Edit(
            "setting",
            f"set to {only!r}: that is the name of {kind!r}",
            rule=f"Input should be {only!r}",
            path=f"{path}.name",
        )
    )
    return {**tool, "name": only}


def _of_no_type(tool: _Tool, path: str, edits: _Edits) -> _Tool:
    """A tool of a type that is not in the table: left alone if it may be newer, else a function if it has a name."""
    kind, name = tool["type"], tool.get("name")
    if not isinstance(name, str) or (isinstance(kind, str) and TOOL.leaves(kind)):
        return tool
    rule = f"Input tag {kind!r} does not match any of the expected tags"
    detail = f"dropped, {name!r} is a function: no tool is of type {kind!r}"
    edits.append(Edit("setting", detail, rule=rule, path=f"{path}.type"))
    return _with_schema({key: value for key, value in tool.items() if key != "type"}, path, edits)


def _with_schema(tool: _Tool, path: str, edits: _Edits) -> _Tool:
    """The schema of a function is an object's."""
    schema = tool.get("input_schema")
    if isinstance(schema, dict) and schema.get("type") == "object":
        return tool
    where = f"{path}.input_schema"
    if not isinstance(schema, dict):
        edits.append(Edit("setting", "set: it takes any object", rule="Field required", path=where))
        return {**tool, **_NO_SCHEMA}
    edits.append(Edit("setting", "says type 'object'", rule="Input should be 'object'", path=f"{where}.type"))
    return {**tool, "input_schema": {"type": "object", **schema, **({"type": "object"} if "type" in schema else {})}}
