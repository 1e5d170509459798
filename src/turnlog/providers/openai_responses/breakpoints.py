"""Which content of the Responses API can have a prompt-cache breakpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..openai_breakpoints import Format, marker

_ROLES = frozenset({"system", "developer", "user"})


def _holds(item: Mapping[str, Any]) -> str:
    if item.get("type") == "function_call_output":
        return "output"
    return "content" if item.get("type", "message") == "message" and item.get("role") in _ROLES else ""


mark_cache = marker(Format("input", "input_text", frozenset({"input_text", "input_image", "input_file"}), _holds))
"""Adds the key of the cache and the breakpoints to a request. See `Provider.mark_cache`."""
