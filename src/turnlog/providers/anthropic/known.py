"""The blocks and tool declarations that belong to the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Opaque
from ..schema import fits
from .schema import BLOCK, IN_RESULT
from .schema_tools import TOOL

_READ = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "tool_result"})
"""Types of blocks that the parser reads into parts. A block of these types that it kept whole could not be read, and
cannot be sent."""


def is_block(data: Any) -> bool:
    """Whether the API knows blocks of that type ("Input tag 'x' does not match any of the expected tags")."""
    kind = data.get("type") if isinstance(data, dict) else None
    return isinstance(kind, str) and (kind in BLOCK.shapes or kind in IN_RESULT.shapes or BLOCK.leaves(kind))


def knows(part: Opaque) -> bool:
    """Whether an opaque block has a type that messages may contain, and all the keys that the type requires."""
    data = part.data
    if not is_block(data) or data["type"] in _READ:
        return False
    if BLOCK.leaves(data["type"]) and data["type"] not in BLOCK.shapes:
        return isinstance(data.get("id") or data.get("tool_use_id"), str)
    return fits(data, BLOCK)


def unread_media(part: Opaque) -> str:
    """The kind of media that a block is, by its type; "" for other blocks."""
    return part.kind if part.kind in ("image", "document") else ""


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this is a tool declaration of the Messages API."""
    kind = tool.get("type")
    if "input_schema" in tool:
        return True
    return isinstance(kind, str) and kind != "custom" and (kind in TOOL.shapes or TOOL.leaves(kind))
