"""The tool choice, in common words and in this API's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words, None if there is no tool choice."""
    choice = settings.get("tool_choice")
    if isinstance(choice, str):
        return choice if choice in ("auto", "none", "required") else None
    if not isinstance(choice, dict):
        return None
    if choice.get("type") in ("function", "custom") and isinstance(choice.get("name"), str) and choice["name"]:
        return f"tool:{choice['name']}"
    if choice.get("type") == "allowed_tools" and choice.get("mode") in ("auto", "required"):
        return str(choice["mode"])
    return None


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words; unchanged if they already have that choice."""
    if tool_choice(settings) == choice:
        return settings
    name = choice.partition(":")[2]
    return {**settings, "tool_choice": {"type": "function", "name": name} if name else choice}
