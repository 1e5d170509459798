"""A chat without a terminal: one prompt, and its answer on standard output."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import msgspec

from ..agent import AgentEvent
from ..log.messages import ToolCall
from .conversation import Chat

GIST = 100
"""Characters of a call or a result on its line."""


async def answer_once(
    talk: Chat,
    text: str | None,
    *,
    tell: Callable[[str], object],
    say: Callable[[str], object],
    tell_json: Callable[[Any], object] | None,
) -> str:
    """Send one text and report the answer as it arrives: its text to `tell` and its tool calls to `say`, or every event
    to `tell_json`. Returns how the answer ended, as `turnlog.agent.RunResult.stop`."""
    stop = "interrupted"
    async with aclosing(talk.say(text)) as events:
        async for event in events:
            if event.kind == "done":
                stop = event.result.stop
            if tell_json is not None:
                tell_json(row(event))
            elif event.kind == "text":
                tell(event.text)
            elif event.kind in ("tool_started", "ran_tool") and event.call is not None:
                say(gist(event.call))
    return stop


def row(event: AgentEvent) -> dict[str, Any]:
    """An event as JSON: its fields or, for the result, the text, how it ended, tokens and dollars."""
    if event.kind != "done":
        fields = msgspec.to_builtins(event)
        return {key: value for key, value in fields.items() if value not in (None, "")}
    result = event.result
    usage = msgspec.to_builtins(msgspec.structs.replace(result.usage, apart=()))
    cost = None if result.cost.total is None else float(result.cost.total)
    return {"kind": "done", "text": result.text, "stop": result.stop, "usage": usage, "cost": cost}


def gist(call: ToolCall) -> str:
    """A call in a few words."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {"": call.raw_arguments}
    told = ", ".join(f"{key}={value!r}" if key else str(value) for key, value in arguments.items())
    return f"{call.name} {' '.join(told.split())}"[:GIST]


def folded(text: str, most: int = 12) -> str:
    """A text of at most `most` lines; the lines in the middle of a longer one are left out and counted."""
    lines = text.splitlines()
    if len(lines) <= most:
        return text
    return "\n".join([*lines[: most - 2], f"[... {len(lines) - most + 1:,} more lines ...]", lines[-1]])
