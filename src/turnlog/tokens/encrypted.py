"""What a model reads of a provider's own items and blocks: results of tools that the provider runs, documents made of
pieces, compacted conversations. How they are spelled to the model is not documented; their texts are most of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_ENCODED = re.compile(r"[A-Za-z0-9+/_=-]{256,}")
"""Bytes as base64, here: no word is as long."""

_SPEECHLESS = ("type", "id", "status", "signature", "cache_control", "media_type", "mimeType", "effort")
"""Keys of what is no text to a model. So are those that end in `_id` or begin with `encrypted`."""


def texts_in(data: Any, key: str = "") -> Iterator[str]:
    """The texts in the data of an item, in order."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from texts_in(value, str(name))
    elif isinstance(data, list):
        for value in data:
            yield from texts_in(value, key)
    elif isinstance(data, str) and not (key in _SPEECHLESS or key.endswith("_id") or key.startswith("encrypted")):
        yield _ENCODED.sub("", data)


def encrypted_in(data: Any) -> int:
    """How many characters of it are encrypted."""
    if not isinstance(data, dict):
        return 0
    held = data.get("encrypted_content")
    return len(held) if isinstance(held, str) else 0
