"""The ready tools with which a model asks for skills and tools, and what a session declares of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .._platform.lazy import lazy_pattern
from ..log.messages import USES_TOOL, Tool

LOAD_SKILL = Tool(
    "load_skill",
    "Load a skill of the list of skills: its instructions follow as text. Load one before you do what it is for.",
    {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Name of the skill."}},
        "required": ["name"],
    },
)
"""The tool with which a model loads a skill. A session declares it once it has skills."""

FIND_TOOLS = Tool(
    "find_tools",
    "Load tools of the list of tools on demand, by name or by what they are to do. Their descriptions and parameters "
    "follow. Load a tool before you use it.",
    {
        "type": "object",
        "properties": {
            "names": {"type": "array", "items": {"type": "string"}, "description": "Names of tools."},
            "query": {"type": "string", "description": "What a tool is to do, in a few words."},
        },
    },
)
"""The tool with which a model loads tools. A session declares it if tools are on demand."""

USE_TOOL = Tool(
    USES_TOOL,
    "Use a tool that was loaded on demand.",
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of the tool."},
            "arguments": {"type": "object", "description": "Its arguments, by its own parameters."},
        },
        "required": ["name", "arguments"],
    },
)
"""The tool with which a model uses loaded tools, for APIs in which a new declaration would move the cached prefix."""

READY = (LOAD_SKILL, FIND_TOOLS, USE_TOOL)

_FOUND = 5
"""The most tools that a query finds."""

_WORD = lazy_pattern(r"[a-z]+|[0-9]+")


def is_ready(tool: Tool) -> bool:
    """Whether a tool is one of these."""
    return tool in READY


def with_ready_tools(tools: Iterable[Tool], *, skills: bool) -> tuple[Tool, ...]:
    """The tools with the ready ones that they call for; `skills`: there are skills."""
    own_tools = tuple(tool for tool in tools if not is_ready(tool))
    on_demand = any(tool.on_demand for tool in own_tools)
    return (*own_tools, *((LOAD_SKILL,) if skills else ()), *((FIND_TOOLS, USE_TOOL) if on_demand else ()))


def found_by(query: str, tools: Sequence[Tool]) -> list[Tool]:
    """The tools that a query is best answered by, the best first: those with most of its words in name or
    description."""
    wanted = {*_words(query)}
    scored = []
    for tool in tools:
        named, described = {*_words(tool.name)}, {*_words(tool.description)}
        score = 2 * len(wanted & named) + len(wanted & (described - named))
        if score:
            scored.append((-score, tool.name, tool))
    return [tool for _, _, tool in sorted(scored, key=lambda entry: entry[:2])[:_FOUND]]


def _words(text: str) -> list[str]:
    """The words of a text, without their endings of number and case."""
    return [word.removesuffix("s") for word in _WORD.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text).lower())]
