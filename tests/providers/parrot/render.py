"""Write a view as a request to Parrot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnlog.log.messages import Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.providers.edits import Losses
from turnlog.providers.protocol import BlobReader, Rendered
from turnlog.view.types import Shown

from .schema import FORMS, NAME

_ROLES = {"user": "keeper", "assistant": "bird", "system": "house"}


def user_message(text: str) -> dict[str, Any]:
    """A text of the user as a turn."""
    return {"role": "keeper", "beak": [{"type": "words", "words": text}]}


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this declares a trick."""
    return "trick" in tool


def tool_wire(tool: Tool) -> dict[str, Any]:
    """The declaration of a tool."""
    about = {"about": tool.description} if tool.description else {}
    needs = {"needs": tool.parameters} if tool.parameters is not None else {}
    return FORMS.spelled({"trick": tool.name, **about, **needs}, tool.form)


def block_wire(part: Text | ToolCall | ToolResult) -> dict[str, Any]:
    """The block of a text, a call or a result."""
    match part:
        case Text(text=text):
            return FORMS.spelled({"type": "words", "words": text}, part.form)
        case ToolCall():
            args = part.arguments if isinstance(part.arguments, dict) else {"input": part.raw_arguments}
            return FORMS.spelled({"type": "ask", "id": part.id, "tool": part.name, "args": args}, part.form)
    said = [block_wire(one) for one in part.parts if isinstance(one, Text)]
    failed = {"failed": True} if part.outcome != "ok" else {}
    return FORMS.spelled({"type": "reply", "id": part.call_id, "beak": said, **failed}, part.form)


def render(view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader) -> Rendered:
    """The request body for a view, with its losses."""
    losses = Losses(NAME)
    turns = []
    for shown in view:
        losses.begin(shown)
        turns.append(_turn(shown.message, losses))
    losses.records = ()
    tools = []
    for tool in configuration.tools:
        if tool.kind == "hosted":
            losses.add("tool", f"tool {tool.name!r} runs at {tool.provider} only")
        else:
            losses.extras(tool.form, f"tool {tool.name!r}")
            tools.append(tool_wire(tool))
    body: dict[str, Any] = {"model": target.model, "squawks": turns, **({"tools": tools} if tools else {})}
    return Rendered(body={**body, **configuration.settings}, losses=tuple(losses.made))


def _turn(message: Message, losses: Losses) -> dict[str, Any]:
    blocks = [block for part in message.parts for block in _blocks(part, losses)]
    losses.author(message.name)
    return {**FORMS.spelled({"role": _ROLES[message.role]}, message.form), "beak": blocks}


def _blocks(part: Part, losses: Losses) -> list[dict[str, Any]]:
    match part:
        case Text() | ToolCall():
            losses.extras(part.form, "a block")
        case ToolResult():
            losses.extras(part.form, "a result")
            for one in part.parts:
                if not isinstance(one, Text):
                    losses.add("media", "what is no text in a result left out")
        case Opaque(provider=provider, data=data) if provider == NAME and isinstance(data, dict):
            return [data]
        case Reasoning():
            losses.add("reasoning", f"reasoning of {part.provider} left out")
            return []
        case _:
            losses.add("media", f"{type(part).__name__} left out")
            return []
    return [block_wire(part)]
