"""Tools that a search or a change adds to a conversation. Source:
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...log.messages import Opaque, Tool
from ..protocol import ToolNews
from ..schema import fitted
from .form import NAME
from .parse import read_tool
from .schema_tools import TOOL
from .tool_changes import ADDITION, REMOVAL

SEARCH_TOOL = Tool(
    "tool_search_tool_bm25",
    kind="hosted",
    provider=NAME,
    data={"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
)


def tool_news(part: Opaque) -> ToolNews:
    """The tools that a block adds or removes."""
    tool = part.data.get("tool") if isinstance(part.data, Mapping) else None
    if part.kind not in (ADDITION, REMOVAL) or not isinstance(tool, Mapping):
        return ToolNews(added=tuple(_referred(part.data)))
    defined, name = fitted([tool.get("definition")], TOOL), tool.get("name")
    if part.kind == ADDITION and defined:
        return ToolNews(added=tuple(map(read_tool, defined)))
    named = (name,) if tool.get("type") == "tool_reference" and isinstance(name, str) else ()
    return ToolNews(added=named) if part.kind == ADDITION else ToolNews(removed=named)


def _referred(data: Any) -> Iterator[str]:
    """The names in all references to tools in a block."""
    if isinstance(data, Mapping):
        if data.get("type") == "tool_reference" and isinstance(name := data.get("tool_name"), str):
            yield name
        for key in ("content", "tool_references"):
            yield from _referred(data.get(key))
    elif isinstance(data, list):
        for item in data:
            yield from _referred(item)
