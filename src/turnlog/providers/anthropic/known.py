"""Which of its own blocks the Messages API takes in a request."""

from __future__ import annotations

from typing import Any

from ...log.messages import Opaque
from ..values import misfit
from .shapes import BLOCK, IN_RESULT
from .values import INSIDE, OWN

_TRUSTED = ("_tool_use", "_tool_result")


def is_block(data: Any) -> bool:
    """Whether the API knows blocks of that type ("Input tag 'x' does not match any of the expected tags").
    Calls and results of server tools that came later than our tables are taken on trust."""
    kind = data.get("type") if isinstance(data, dict) else None
    return isinstance(kind, str) and (kind in BLOCK.shapes or kind in IN_RESULT.shapes or kind.endswith(_TRUSTED))


def knows(part: Opaque) -> bool:
    """Whether a block that was kept whole is one that a message may hold, with all that it needs."""
    data = part.data
    if not is_block(data):
        return False
    if data["type"] in OWN:
        return not misfit(data, OWN[data["type"]])
    trusted = data["type"].endswith(_TRUSTED) and data["type"] not in BLOCK.shapes
    return trusted and isinstance(data.get("id") or data.get("tool_use_id"), str)


def misfit_inside(block: Any) -> str:
    """What is wrong with a block inside a tool result, empty if nothing is."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return ""
    return misfit(block, INSIDE[kind]) if isinstance(kind, str) and kind in INSIDE else f"no block is of type {kind!r}"
