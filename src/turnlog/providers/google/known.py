"""The parts and tool declarations that belong to Google."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...log.messages import Opaque, media_kind
from ..gemini import plain_mime
from ..reading import string
from .keys import DATA, camel, find
from .schema import TOOL

_WHOLE = ("audioTranscription", "codeExecutionResult", "executableCode", "toolCall", "toolResponse")
"""Data that has no canonical kind. A part with other data is kept whole only if it cannot be read."""


def knows(part: Opaque) -> bool:
    """Whether an opaque part has exactly one kind of data, which Google knows.

    A part without data is refused ("required oneof field 'data' must have one initialized field"), except for a single
    signature and single video metadata (recorded, 200).
    """
    if not isinstance(part.data, dict):
        return False
    given = {camel(key): value for key, value in part.data.items() if value is not None}
    data = [key for key in DATA if key in given]
    if not data:
        return bool(given.get("thoughtSignature")) or isinstance(given.get("videoMetadata"), dict)
    return len(data) == 1 and data[0] in _WHOLE and isinstance(given[data[0]], dict)


def unread_media(part: Opaque) -> str:
    """The kind of media that a part is, by its MIME type; "" for parts with other data."""
    if not isinstance(part.data, dict):
        return ""
    for key in ("inlineData", "fileData"):
        inner = part.data.get(find(part.data, key))
        if isinstance(inner, dict):
            return media_kind(plain_mime(string(inner, find(inner, "mimeType"))))
    return ""


def declares(tool: Mapping[str, Any]) -> bool:
    """Whether this is an object with function declarations or tools of Google."""
    return not TOOL.keys.keys().isdisjoint(tool)
