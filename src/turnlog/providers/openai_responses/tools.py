"""Tool declarations, read and written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...log.messages import Opaque, Tool
from ...skills.ready import FIND_TOOLS
from ..protocol import OnDemand, ToolNews
from ..schema.walk import fitted
from ..spelling import string
from .form import FORMS, NAME
from .schema_tools import TOOL

# -- tool choice -----------------------------------------------------------------------------------
#
# The tool choice, in common words and in this API's.


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words; None if there is none."""
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


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words; unchanged if they already have that choice."""
    if tool_choice(settings) == choice:
        return settings
    name = choice.partition(":")[2]
    return {**settings, "tool_choice": {"type": "function", "name": name} if name else choice}


# -- tool search -----------------------------------------------------------------------------------
#
# Tools that a search or an item adds to a conversation, and tools in namespaces. Source:
# https://developers.openai.com/api/docs/guides/tools-tool-search.

SEARCH_TOOL = Tool("tool_search", kind="hosted", provider=NAME, data={"type": "tool_search"})

_OUTPUTS = ("tool_search_output", "additional_tools")


def tool_news(part: Opaque) -> ToolNews:
    """The tools that an item adds, each with its definition."""
    listed = part.data if part.kind == "tools" else None
    if part.kind in _OUTPUTS and isinstance(part.data, Mapping):
        listed = part.data.get("tools")
    return ToolNews(added=tuple(_tools(listed)))


def client_tools(tool: Tool) -> tuple[Tool, ...]:
    """The tools of a namespace, which the client runs."""
    is_namespace = isinstance(tool.data, Mapping) and tool.data.get("type") == "namespace"
    return tuple(_tools(tool.data.get("tools"))) if is_namespace else ()


def _tools(listed: Any) -> Iterator[Tool]:
    for tool in read_tools(fitted(listed, TOOL)):
        if tool.kind == "hosted":
            yield from client_tools(tool)
        else:
            yield tool


# -- on demand -------------------------------------------------------------------------------------
#
# Tools on demand: not declared, and loaded by the output of a tool search that the client runs. Source:
# https://developers.openai.com/api/docs/guides/tools-tool-search.

_SEARCH = Tool(
    "tool_search",
    kind="hosted",
    provider=NAME,
    data={
        "type": "tool_search",
        "execution": "client",
        "description": FIND_TOOLS.description,
        "parameters": FIND_TOOLS.parameters,
    },
)


def _declared(tool: Tool) -> None:
    """No declaration: a function with `defer_loading` would show its whole description."""


def _found(tools: Sequence[Tool]) -> tuple[Opaque, ...]:
    """The definitions of tools, which the API puts at the end of the context."""
    return (Opaque(NAME, "tools", [write_tool(tool) for tool in tools]),)


ON_DEMAND = OnDemand(declared=_declared, search=_SEARCH, found=_found, searches_itself=True)


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
