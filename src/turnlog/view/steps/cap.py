"""Giant tool outputs are shown as their beginning and end."""

from __future__ import annotations

from typing import Any

from ...content import Message, Text, ToolResult
from ...records import Decision
from ..blocks import Block, Item
from ..effects import cut_text
from ..situation import Situation

__all__ = ["cap", "capped_floor"]

_LEAST = 60
"""Tokens below which no output is called a giant, however small the budget."""


def cap(situation: Situation) -> Decision | None:
    """Cut every output that takes more than the strategy's share of the limit, the open turn's too; what is
    pinned stays whole."""
    cuts = [
        cut for block in situation.blocks if block.stays in ("", "the open turn") for cut in _cuts(situation, block)
    ]
    if not cuts:
        return None
    records = [cut[0] for cut in cuts]
    why = f"{len(cuts):,} giant tool outputs cut to their beginning and end"
    return Decision("cap", min(records), max(records), why, {"cuts": cuts})


def capped_floor(situation: Situation) -> dict[str, int]:
    """What cannot be left out once giants are cut, in tokens."""
    if "cap" not in situation.strategy.steps:
        return situation.floor
    most = _most(situation)
    floor = dict(situation.floor)
    for block in situation.blocks:
        if block.stays == "the open turn":
            for item in block.items:
                for size in _giants(situation, item).values():
                    floor["the open turn"] -= size - most
    return floor


def _most(situation: Situation) -> int:
    return max(_LEAST, int(situation.strategy.cap * (situation.marks.limit - situation.system)))


def _giants(situation: Situation, item: Item) -> dict[tuple[int, int], int]:
    """The outputs of a message that are too large, by their place in it, and their sizes; what was shortened once is
    none."""
    most = _most(situation)
    if item.tokens <= most:
        return {}
    return {
        (i, j): size
        for i, (part, raw) in enumerate(zip(item.shown.message.parts, item.raw.message.parts, strict=False))
        if isinstance(part, ToolResult) and isinstance(raw, ToolResult)
        for j, (inner, said) in enumerate(zip(part.parts, raw.parts, strict=False))
        if isinstance(inner, Text) and inner == said and (size := _tokens(situation, inner.text)) > most
    }


def _tokens(situation: Situation, text: str) -> int:
    """What a text takes as a tool's output, without what frames that: some counters count it apart from speech."""
    whole, bare = (Message("user", (ToolResult("call", parts=(Text(one),)),)) for one in (text, ""))
    return situation.means.count(whole) - situation.means.count(bare)


def _cuts(situation: Situation, block: Block) -> list[list[Any]]:
    cuts: list[list[Any]] = []
    most = _most(situation)
    for item in block.items:
        for (i, j), size in _giants(situation, item).items():
            result = item.shown.message.parts[i]
            inner = result.parts[j] if isinstance(result, ToolResult) else None
            if isinstance(inner, Text):
                head, tail = _lengths(situation, inner.text, size, most, item.n)
                cuts.append([item.n, [i, j], head, tail])
    return cuts


def _lengths(situation: Situation, text: str, size: int, most: int, n: int) -> tuple[int, int]:
    """Characters of head and tail with which the text, marker included, is within `most` tokens."""
    length = int(len(text) * most / size)
    while length > 0:
        head, tail = length - length // 3, length // 3
        tokens = _tokens(situation, cut_text(text, head, tail, n))
        if tokens <= most:
            return head, tail
        length = min(length - 1, int(length * most / tokens * 0.98))
    return 0, 0
