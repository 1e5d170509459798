"""Replace old tool results by a short line that says what was there and where to read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._platform.units import counted
from ....log.messages import Message, Text, ToolCall, ToolResult
from ....log.records import Decision
from ...repair.pairing import At, pair
from ..situation import Block, CompactionInput, Item, shortening

_ARGUMENTS = 120
"""Characters of a call's arguments that the line quotes."""


def mask(situation: CompactionInput) -> Decision | None:
    """Mask the oldest results until the goal is met. The newest messages, up to the strategy's protected share of the
    limit, and all messages that must stay are left alone."""
    excess = situation.held - situation.marks.goal
    texts: list[list[Any]] = []
    for block in situation.unprotected:
        if excess <= 0:
            break
        calls = _calls_answered(block)
        for index, item in enumerate(block.items):
            saved, masked = _masked(situation, item, index, calls)
            excess -= saved
            texts += masked
    results = counted(len(texts), "old tool result")
    return shortening("mask", "texts", texts, f"{results} masked to fit the budget")


def _masked(
    situation: CompactionInput, item: Item, at: int, calls: Mapping[At, ToolCall]
) -> tuple[int, list[list[Any]]]:
    """The tokens that masking the item at an index of its block saves, and its new texts."""
    if item.shown.treatment == "masked":
        return 0, []
    saved = 0
    texts: list[list[Any]] = []
    for i, part in enumerate(item.shown.message.parts):
        if not isinstance(part, ToolResult) or part.synthetic:
            continue
        stub = _stub(part, item, i, calls.get((at, i)))
        gain = _tokens(situation, part) - situation.ports.count_text(stub)
        if gain > 0:
            saved += gain
            texts.append([item.n, [i], stub])
    return saved, texts


def _tokens(situation: CompactionInput, result: ToolResult) -> int:
    texts = sum(situation.ports.count_text(part.text) for part in result.parts if isinstance(part, Text))
    other = tuple(part for part in result.parts if not isinstance(part, Text))
    return texts + (situation.ports.count(Message("user", other)) if other else 0)


def _calls_answered(block: Block) -> dict[At, ToolCall]:
    """The calls that the results in a block answer, by the place of the result in the block."""
    view = [item.raw for item in block.items]
    calls = {result: view[i].message.parts[j] for (i, j), result in pair(view).answers.items()}
    return {result: call for result, call in calls.items() if isinstance(call, ToolCall)}


def _stub(result: ToolResult, item: Item, i: int, call: ToolCall | None) -> str:
    original = item.raw.message.parts[i] if i < len(item.raw.message.parts) else result
    parts = original.parts if isinstance(original, ToolResult) else result.parts
    size = sum(len(part.text) for part in parts if isinstance(part, Text))
    name = (call.name if call else result.name) or "tool"
    arguments = " ".join(call.raw_arguments.split()) if call else ""
    if len(arguments) > _ARGUMENTS:
        arguments = arguments[: _ARGUMENTS - 3] + "..."
    return f"[Result of {name}({arguments}): {size:,} characters left out, kept as record {item.n}]"
