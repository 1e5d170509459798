"""Leave out what matters least first, wherever it is.

Tool output that nothing later refers to leaves first, then plain answers, then output that is still referred to, then
user messages; within each of these groups, old and large blocks leave before new and small ones. The task stays. (Many
designs go by age alone, and so leave out the task itself first, as the oldest user message.)
"""

from __future__ import annotations

from collections.abc import Iterable

from ...._platform.lazy import lazy_pattern
from ....log.messages import Text, ToolCall, ToolResult
from ....log.records import Decision
from ..situation import Block, CompactionInput
from .slide import leave

_NAME = lazy_pattern(r"[\w./:@-]*[\d_./:@-][\w./:@-]*")
"""A word that names something. It contains a digit or a sign, as paths, ids, versions and identifiers do."""

_SHORTEST = 5
_LOOKED_AT = 20_000
"""How many characters of a text are searched for names."""


def priority(situation: CompactionInput) -> Decision | None:
    """Leave out what matters least until the goal is met."""
    may_go = frozenset(situation.unprotected)
    recent = set[str]().union(*(_names(block) for block in situation.blocks if block not in may_go))
    old = [
        (age, block) for age, block in enumerate(reversed(situation.blocks)) if block in may_go and not block.is_note
    ]
    least = sorted(old, key=lambda one: (_rank(one[1], recent), -one[0] * one[1].tokens, -one[0]))
    return leave(situation, "priority", [block for _, block in least], "what matters least left out to fit the budget")


def _rank(block: Block, recent: set[str]) -> int:
    """How much a block matters (0: least); `recent` are the names in the blocks that stay."""
    if block.is_summary:
        return 4
    if block.opens_turn:
        return 3
    if not any(isinstance(part, (ToolCall, ToolResult)) for part in _parts(block)):
        return 1
    return 2 if len(recent.intersection(_names(block))) > 1 else 0


def _parts(block: Block) -> Iterable[object]:
    return (part for item in block.items for part in item.raw.message.parts)


def _names(block: Block) -> set[str]:
    names: set[str] = set()
    for part in _parts(block):
        texts = []
        if isinstance(part, Text):
            texts = [part.text]
        elif isinstance(part, ToolCall):
            texts = [part.raw_arguments]
        elif isinstance(part, ToolResult):
            texts = [inner.text for inner in part.parts if isinstance(inner, Text)]
        for text in texts:
            names.update(name for name in _NAME.findall(text[:_LOOKED_AT]) if len(name) >= _SHORTEST)
    return names
