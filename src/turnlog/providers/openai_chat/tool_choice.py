"""The tool choice, in common words and in this API's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WORDS = ("auto", "none", "required")


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words, None if there is no tool choice. A choice among allowed tools counts as its
    mode."""
    value = settings.get("tool_choice", settings.get("function_call"))
    if isinstance(value, str):
        return value if value in _WORDS else None
    if not isinstance(value, Mapping):
        return None
    allowed = value.get("allowed_tools")
    if isinstance(allowed, Mapping):
        return {"auto": "auto", "required": "required"}.get(str(allowed.get("mode")))
    named = value.get("function") or value.get("custom") or value
    name = named.get("name") if isinstance(named, Mapping) else None
    return f"tool:{name}" if isinstance(name, str) and name else None


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words."""
    name = choice.partition(":")[2]
    return {**settings, "tool_choice": {"type": "function", "function": {"name": name}} if name else choice}
