"""Which of its own blocks the Messages API takes in a request."""

from __future__ import annotations

from typing import Any

from ...log.messages import Opaque
from ..schema import fits
from .schema import BLOCK, IN_RESULT

_READ = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result"})
"""Types of blocks that are always read; one that was kept whole all the same is of no use."""


def is_block(data: Any) -> bool:
    """Whether the API knows blocks of that type ("Input tag 'x' does not match any of the expected tags")."""
    kind = data.get("type") if isinstance(data, dict) else None
    return isinstance(kind, str) and (kind in BLOCK.shapes or kind in IN_RESULT.shapes or BLOCK.leaves(kind))


def knows(part: Opaque) -> bool:
    """Whether a block that was kept whole is one that a message may hold, with all that it needs."""
    data = part.data
    if not is_block(data) or data["type"] in _READ:
        return False
    if BLOCK.leaves(data["type"]) and data["type"] not in BLOCK.shapes:
        return isinstance(data.get("id") or data.get("tool_use_id"), str)
    return fits(data, BLOCK)
