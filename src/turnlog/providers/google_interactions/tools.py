"""Tool declarations, read and written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...log.messages import Opaque, Tool, free_text
from ..edits import Losses
from ..gemini import choice_of
from ..protocol import ToolNews
from ..schema.walk import fitted
from ..spelling import inner, string
from .form import FORMS, NAME
from .schema import TOOL

# -- tool search -----------------------------------------------------------------------------------
#
# Tools that a search adds to a conversation: `ToolSearchResultStep` of google-genai 3.4.0.

SEARCH_TOOL = Tool("tool_search", kind="hosted", provider=NAME, data={"type": "tool_search"})


def tool_news(part: Opaque) -> ToolNews:
    """The functions in the result of a search."""
    listed = part.data.get("result") if part.kind == "tool_search_result" and isinstance(part.data, Mapping) else None
    return ToolNews(added=tuple(tool for tool in read_tools(fitted(listed, TOOL)) if tool.kind == "function"))


# -- tool choice -----------------------------------------------------------------------------------
#
# The tool choice, in common words and in this API's words.

_WORDS = {"auto": "auto", "validated": "auto", "none": "none", "any": "required"}


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words; None if there is none. The mode `validated` counts as `auto`."""
    choice = inner(settings, "generation_config").get("tool_choice")
    names: Any = None
    if isinstance(choice, dict):
        allowed = inner(choice, "allowed_tools")
        choice, names = allowed.get("mode"), allowed.get("tools")
    return choice_of(choice, names, _WORDS)


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words; unchanged if they have that choice already."""
    if tool_choice(settings) == choice:
        return settings
    name = choice.partition(":")[2]
    wire_choice: Any = {"allowed_tools": {"mode": "any", "tools": [name]}}
    if not name:
        wire_choice = {"none": "none", "required": "any"}.get(choice, "auto")
    return {**settings, "generation_config": {**inner(settings, "generation_config"), "tool_choice": wire_choice}}


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
