"""The loop of an agent: ask the model, run the tools that it calls, ask again, until it has answered.

The loop records everything in the session's log, so a killed loop goes on where it stopped. The package imports
`runners`, `session` and what is below; only `cli` imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .functions import FunctionTool, tool
    from .running import arun, astream, run, stream
    from .values import AgentEvent, Question, RunResult
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "functions": "FunctionTool tool",
            "running": "arun astream run stream",
            "values": "AgentEvent Question RunResult",
        },
    )

__all__ = [
    "AgentEvent",
    "FunctionTool",
    "Question",
    "RunResult",
    "arun",
    "astream",
    "run",
    "stream",
    "tool",
]
