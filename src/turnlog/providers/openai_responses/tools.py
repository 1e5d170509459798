"""Tool declarations, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Tool
from ..reading import string
from .form import FORMS, NAME


def read_tools(tools: list[Any]) -> tuple[Tool, ...]:
    """The tools of a request, whose types the schema has checked."""
    return tuple(map(_read_tool, tools))


def write_tool(tool: Tool) -> dict[str, Any] | None:
    """A tool's declaration, or None for a tool that another provider runs."""
    if tool.kind == "hosted":
        return dict(tool.data) if tool.provider == NAME and isinstance(tool.data, dict) else None
    return FORMS.spelled(_default(tool), tool.form)


def _read_tool(seen: Mapping[str, Any]) -> Tool:
    kind, name = seen.get("type"), seen.get("name")
    if kind not in ("function", "custom") or name is None or (kind == "custom" and "parameters" in seen):
        label = string(seen, "name") or string(seen, "server_label") or string(seen, "type")
        return Tool(label, kind="hosted", provider=NAME, data=dict(seen))
    return FORMS.formed(Tool(name, string(seen, "description"), seen.get("parameters"), kind), _default, seen)


def _default(tool: Tool) -> dict[str, Any]:
    result: dict[str, Any] = {"type": tool.kind, "name": tool.name}
    if tool.description:
        result["description"] = tool.description
    if tool.kind == "function":
        if tool.parameters is not None:
            result["parameters"] = tool.parameters
        # If `strict` is absent the API assumes true, and schemas made for other providers are rarely strict.
        result["strict"] = False
    return result
