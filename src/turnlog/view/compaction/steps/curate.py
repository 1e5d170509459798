"""Shorten old tool outputs by what the tool is."""

from __future__ import annotations

from ...._platform.units import counted
from ....log.messages import ToolResult
from ....log.records import Decision
from ...curate.conversation import STEP
from ..situation import CompactionInput, Item

_NEWEST = 3
"""The number of newest blocks to leave alone: an agent uses what it has just read."""


def curate(situation: CompactionInput) -> Decision | None:
    """Curate all older outputs that would become shorter, in one batch, so that the prefix changes once. Pinned outputs
    and those that another decision shortened stay unchanged."""
    items = [item for block in situation.blocks for item in block.items]
    old = frozenset(item.n for block in situation.blocks[:-_NEWEST] for item in block.items if _is_uncut(item))
    old -= situation.outputs
    if not old:
        return None
    curated = situation.ports.curated(items, situation.outputs | old, situation.whole_reads)
    current_tokens = {item.n: item.tokens for item in items}
    shorter = [item.n for item in curated if item.n in old and item.curator and item.tokens < current_tokens[item.n]]
    if not shorter:
        return None
    why = f"{counted(len(shorter), 'old tool output')} shortened by what the tool is"
    return Decision(STEP, min(shorter), max(shorter), why, {"outputs": shorter})


def _is_uncut(item: Item) -> bool:
    """Whether an item has outputs that decisions have left complete."""
    if item.is_summary or item.decided.treatment != "verbatim":
        return False
    return any(isinstance(part, ToolResult) and not part.synthetic for part in item.decided.message.parts)
