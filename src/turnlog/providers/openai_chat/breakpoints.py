"""Which content of Chat Completions can have a prompt-cache breakpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..openai_breakpoints import Format, marker

_ROLES = frozenset({"system", "developer", "user", "tool"})


def _holds(message: Mapping[str, Any]) -> str:
    return "content" if message.get("role") in _ROLES else ""


mark_cache = marker(Format("messages", "text", frozenset({"text", "image_url", "input_audio", "file"}), _holds))
"""Adds the key of the cache and the breakpoints to a request. See `Provider.mark_cache`."""
