"""Tools and tool choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ...log.messages import Tool, extra_keys
from ..spelling import formed, spell
from .wire import NAME, own_delta


def read_tools(tools: list[Any]) -> tuple[Tool, ...]:
    """The tools of a request, objects of which `READABLE_TOOL` holds."""
    return tuple(map(_read_tool, tools))


def write_tool(tool: Tool) -> dict[str, Any] | None:
    """A tool's declaration, or None for one that another provider runs."""
    if tool.kind == "hosted":
        return dict(tool.data) if tool.provider == NAME and isinstance(tool.data, dict) else None
    return spell(_default(tool), own_delta(tool.form))


def tool_extras(tool: Tool) -> tuple[str, ...]:
    """The keys that another provider's declaration had and this one has no place for."""
    return extra_keys(tool.form) if tool.form is not None and tool.form.provider != NAME else ()


def choice_in_common_words(settings: Mapping[str, Any]) -> str | None:
    """The tool choice of a request's settings; see `Provider.tool_choice`."""
    choice = settings.get("tool_choice")
    if isinstance(choice, str):
        return choice if choice in ("auto", "none", "required") else None
    if not isinstance(choice, dict):
        return None
    if choice.get("type") in ("function", "custom") and isinstance(choice.get("name"), str) and choice["name"]:
        return f"tool:{choice['name']}"
    if choice.get("type") == "allowed_tools" and choice.get("mode") in ("auto", "required"):
        return str(choice["mode"])
    return None


def choice_on_the_wire(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice; one that they hold in other words already is left as it is."""
    if choice_in_common_words(settings) == choice:
        return settings
    if choice.startswith("tool:"):
        return {**settings, "tool_choice": {"type": "function", "name": choice.removeprefix("tool:")}}
    return {**settings, "tool_choice": choice}


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
    return replace(tool, form=formed(NAME, _default(tool), seen))


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
