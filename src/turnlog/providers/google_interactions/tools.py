"""Tool declarations, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...log.messages import Tool, free_text
from ..losses import Losses
from ..reading import string
from .form import FORMS, NAME


def read_tools(tools: Sequence[Mapping[str, Any]]) -> tuple[Tool, ...]:
    """The tools of a body. The schema has checked their types."""
    return tuple(map(_read_tool, tools))


def _read_tool(seen: Mapping[str, Any]) -> Tool:
    name, parameters = seen.get("name"), seen.get("parameters")
    if seen.get("type") != "function" or name is None or not isinstance(parameters, (dict, type(None))):
        return Tool(string(seen, "name") or string(seen, "type"), kind="hosted", provider=NAME, data=dict(seen))
    return FORMS.formed(Tool(name, string(seen, "description"), parameters), _default, seen)


def write_tools(tools: Sequence[Tool], losses: Losses) -> list[dict[str, Any]]:
    """The `tools` of a body. A tool that another provider runs is a loss."""
    losses.records = ()
    written: list[dict[str, Any]] = []
    for tool in tools:
        if tool.kind == "hosted":
            if tool.provider == NAME and isinstance(tool.data, dict):
                written.append(dict(tool.data))
            else:
                losses.add("tool", f"{tool.name!r} is run by {tool.provider or 'an unknown provider'}: not declared")
            continue
        losses.extras(tool.form, f"tool {tool.name!r}")
        if tool.kind == "function":
            written.append(FORMS.spelled(_default(tool), tool.form))
            continue
        losses.add("tool", f"{tool.kind} tool {tool.name!r} declared as a function with one text, `input`")
        written.append(_default(Tool(tool.name, tool.description, free_text())))
    return written


def _default(tool: Tool) -> dict[str, Any]:
    """The default declaration of a function."""
    wire: dict[str, Any] = {"type": "function", "name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if tool.parameters is not None:
        wire["parameters"] = tool.parameters
    return wire
