"""The parts and tool declarations that belong to Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Opaque
from .schema import MEDIA_TYPES, TEXT_TYPES

_UNREADABLE = frozenset({*TEXT_TYPES, "refusal", "image_url", "input_audio", "tool_call", "response"})
"""Kinds of parts that are kept whole only if they cannot be read: texts and media without a value, calls without a
tool, and keys that only responses have."""

_MEDIA_KINDS = {"image_url": "image", "input_audio": "audio", "file": "file", "video_url": "video"}
"""The kinds of media by type of content part. `video_url` is a type of compatible servers."""


def knows(part: Opaque) -> bool:
    """Whether an opaque part can be sent. Parts that only compatible servers have (`video_url`, `thinking`) are
    accepted."""
    if part.kind in _UNREADABLE or not isinstance(part.data, (dict, list)):
        return False
    if part.kind == "audio":
        return isinstance(part.data, dict) and isinstance(part.data.get("id"), str)
    if part.kind in MEDIA_TYPES:
        box = part.data.get(part.kind) if isinstance(part.data, dict) else None
        return isinstance(box, dict) and bool(box.get("file_id"))
    return True


def unread_media(part: Opaque) -> str:
    """The kind of media that a content part is, by its type; "" for other parts."""
    return _MEDIA_KINDS.get(part.kind, "")


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this is a tool declaration of Chat Completions, whose content is under the name of its type."""
    return "function" in tool or (tool.get("type") == "custom" and "custom" in tool)
