"""Curate old tool outputs: those that were recorded while outputs were not curated on their way into the view."""

from __future__ import annotations

from ...._platform.units import counted
from ....log.messages import ToolResult
from ....log.records import Decision
from ...curate.conversation import STEP
from ..blocks import Item
from ..situation import Situation


def curate(situation: Situation) -> Decision | None:
    """Curate all outputs that are not curated yet and would become shorter, in one batch: so the prefix moves once.
    Pinned outputs stay as they are, and so do those that another decision shortened."""
    items = [item for block in situation.blocks for item in block.items]
    old = frozenset(item.n for item in items if _is_whole(item))
    if not old:
        return None
    curated = situation.means.curated(items, situation.outputs | old, situation.whole_reads)
    shorter = [item.n for item in curated if item.n in old and item.curator]
    if not shorter:
        return None
    why = f"{counted(len(shorter), 'old tool output')} shortened by what the tool is"
    return Decision(STEP, min(shorter), max(shorter), why, {"outputs": shorter})


def _is_whole(item: Item) -> bool:
    """Whether an item has outputs as they were recorded."""
    if item.curator or item.is_summary or item.decided.treatment != "verbatim":
        return False
    return any(isinstance(part, ToolResult) and not part.synthetic for part in item.decided.message.parts)
