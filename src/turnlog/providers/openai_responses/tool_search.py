"""Tools that a search or an item adds to a conversation, and tools in namespaces. Source:
https://developers.openai.com/api/docs/guides/tools-tool-search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...log.messages import Opaque, Tool
from ..protocol import ToolNews
from ..schema import fitted
from .form import NAME
from .schema_tools import TOOL
from .tools import read_tools

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
