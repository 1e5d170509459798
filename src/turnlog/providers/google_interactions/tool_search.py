"""Tools that a search adds to a conversation: `ToolSearchResultStep` of google-genai 3.4.0."""

from __future__ import annotations

from collections.abc import Mapping

from ...log.messages import Opaque, Tool
from ..protocol import ToolNews
from ..schema import fitted
from .form import NAME
from .schema import TOOL
from .tools import read_tools

SEARCH_TOOL = Tool("tool_search", kind="hosted", provider=NAME, data={"type": "tool_search"})


def tool_news(part: Opaque) -> ToolNews:
    """The functions in the result of a search."""
    listed = part.data.get("result") if part.kind == "tool_search_result" and isinstance(part.data, Mapping) else None
    return ToolNews(added=tuple(tool for tool in read_tools(fitted(listed, TOOL)) if tool.kind == "function"))
