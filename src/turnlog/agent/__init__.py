"""The loop of an agent: ask the model, run the tools that it calls, ask again, until it has answered.

The loop records everything in the session's log, so a killed loop goes on where it stopped. The package imports
`runners`, `session` and what is below; only `cli` imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .context import ToolContext
    from .functions import FunctionTool, tool
    from .mcp_servers import McpServer, mcp_server
    from .running import arun, astream, run, stream
    from .subagents import as_tool
    from .values import LATER, AgentEvent, DoneEvent, LoopEvent, Postponed, Question, RunResult
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "context": "ToolContext",
            "functions": "FunctionTool tool",
            "mcp_servers": "McpServer mcp_server",
            "running": "arun astream run stream",
            "subagents": "as_tool",
            "values": "AgentEvent DoneEvent LATER LoopEvent Postponed Question RunResult",
        },
    )

__all__ = [
    "AgentEvent",
    "DoneEvent",
    "FunctionTool",
    "LATER",
    "LoopEvent",
    "McpServer",
    "Postponed",
    "Question",
    "RunResult",
    "ToolContext",
    "arun",
    "as_tool",
    "astream",
    "mcp_server",
    "run",
    "stream",
    "tool",
]
