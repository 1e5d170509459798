"""Tool declarations, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Tool
from .form import FORMS, NAME


def read_tools(tools: list[Any]) -> tuple[Tool, ...]:
    """The tools of a request, objects of which `READABLE_TOOL` holds."""
    return tuple(map(_read_tool, tools))


def write_tool(tool: Tool) -> dict[str, Any] | None:
    """A tool's declaration, or None for one that another provider runs."""
    if tool.kind == "hosted":
        return dict(tool.data) if tool.provider == NAME and isinstance(tool.data, dict) else None
    return FORMS.spelled(_default(tool), tool.form)


def _read_tool(seen: Mapping[str, Any]) -> Tool:
    kind, name = seen.get("type"), seen.get("name")
    description, parameters = seen.get("description"), seen.get("parameters")
    readable = (
        kind in ("function", "custom")
        and isinstance(name, str)
        and (description is None or isinstance(description, str))
        and (parameters is None or isinstance(parameters, dict))
        and (kind == "function" or "parameters" not in seen)
    )
    if not readable:
        label = name if isinstance(name, str) else seen.get("server_label", kind)
        return Tool(label if isinstance(label, str) else "", kind="hosted", provider=NAME, data=dict(seen))
    assert isinstance(name, str) and isinstance(kind, str)
    tool = Tool(name, description or "", parameters, kind)
    return FORMS.formed(tool, _default, seen)


def _default(tool: Tool) -> dict[str, Any]:
    result: dict[str, Any] = {"type": tool.kind, "name": tool.name}
    if tool.description:
        result["description"] = tool.description
    if tool.kind == "function":
        if tool.parameters is not None:
            result["parameters"] = tool.parameters
        # Absent means true to this API, and a schema that other providers take is rarely a strict one.
        result["strict"] = False
    return result
