"""Tools on demand: not declared, and loaded by the output of a tool search that the client runs. Source:
https://developers.openai.com/api/docs/guides/tools-tool-search.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...log.messages import Opaque, Tool
from ...skills.ready import FIND_TOOLS
from ..protocol import OnDemand
from .form import NAME
from .tools import write_tool

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
    """Nothing: a function with `defer_loading` would show its whole description."""


def _found(tools: Sequence[Tool]) -> tuple[Opaque, ...]:
    """The definitions of tools, which the API puts at the end of the context."""
    return (Opaque(NAME, "tools", [write_tool(tool) for tool in tools]),)


ON_DEMAND = OnDemand(declared=_declared, search=_SEARCH, found=_found, searches_itself=True)
