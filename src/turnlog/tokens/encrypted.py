"""The texts that a model reads in opaque items and blocks: results of hosted tools, documents made of blocks,
compacted conversations. How they are shown to the model is not documented; texts are most of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._platform.lazy import lazy_pattern

_ENCODED = lazy_pattern(r"[A-Za-z0-9+/_=-]{256,}")
"""Base64 data: no word has so many characters."""

_NOT_TEXT = ("type", "id", "status", "signature", "cache_control", "media_type", "mimeType", "effort")
"""Keys whose values the model does not read as text; others end in `_id` or begin with `encrypted`."""


def texts_in(data: Any, key: str = "") -> Iterator[str]:
    """The texts in the data of an item, in order."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from texts_in(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from texts_in(value, key)
    elif isinstance(data, str) and not (key in _NOT_TEXT or key.endswith("_id") or key.startswith("encrypted")):
        yield _ENCODED.sub("", data)


def encrypted_in(data: Any) -> int:
    """The number of encrypted characters in the data of an item."""
    if not isinstance(data, dict):
        return 0
    encrypted = data.get("encrypted_content")
    return len(encrypted) if isinstance(encrypted, str) else 0
