"""Replace old tool results by a short line that says what was there and where to read it."""

from __future__ import annotations

from typing import Any

from ...._platform.units import counted
from ....log.messages import Message, Text, ToolCall, ToolResult
from ....log.records import Decision
from ..blocks import Block, Item
from ..situation import Situation, shortening

_ARGUMENTS = 120
"""Characters of a call's arguments that the line quotes."""


def mask(situation: Situation) -> Decision | None:
    """Mask the oldest results until the goal is met. The newest messages, up to the strategy's protected share of the
    limit, and all messages that must stay are left alone."""
    excess = situation.held - situation.marks.goal
    texts: list[list[Any]] = []
    for block in situation.unprotected:
        if excess <= 0:
            break
        for item in block.items:
            saved, masked = _masked(situation, item, block)
            excess -= saved
            texts += masked
    results = counted(len(texts), "old tool result")
    return shortening("mask", "texts", texts, f"{results} masked to fit the budget")


def _masked(situation: Situation, item: Item, block: Block) -> tuple[int, list[list[Any]]]:
    """The tokens that masking an item saves, and its new texts."""
    if item.shown.treatment == "masked":
        return 0, []
    saved = 0
    texts: list[list[Any]] = []
    for i, part in enumerate(item.shown.message.parts):
        if not isinstance(part, ToolResult) or part.synthetic:
            continue
        stub = _stub(part, item, block)
        gain = _tokens(situation, part) - situation.means.count_text(stub)
        if gain > 0:
            saved += gain
            texts.append([item.n, [i], stub])
    return saved, texts


def _tokens(situation: Situation, result: ToolResult) -> int:
    texts = sum(situation.means.count_text(part.text) for part in result.parts if isinstance(part, Text))
    other = tuple(part for part in result.parts if not isinstance(part, Text))
    return texts + (situation.means.count(Message("user", other)) if other else 0)


def _stub(result: ToolResult, item: Item, block: Block) -> str:
    results = (part for part in item.raw.message.parts if isinstance(part, ToolResult))
    same = (part for part in results if (part.call_id, part.name) == (result.call_id, result.name))
    original = next(same, result)
    size = sum(len(part.text) for part in original.parts if isinstance(part, Text))
    calls = (part for other in block.items for part in other.raw.message.parts if isinstance(part, ToolCall))
    call = next((call for call in calls if call.id == result.call_id), None)
    name = (call.name if call else result.name) or "tool"
    arguments = " ".join(call.raw_arguments.split()) if call else ""
    if len(arguments) > _ARGUMENTS:
        arguments = arguments[: _ARGUMENTS - 3] + "..."
    return f"[Result of {name}({arguments}): {size:,} characters left out, kept as record {item.n}]"
