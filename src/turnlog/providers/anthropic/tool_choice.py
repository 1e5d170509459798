"""The tool choice, in common words and in this API's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_TYPES = {word: kind for kind, word in _CHOICES.items()}


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words, None if there is none."""
    choice = settings.get("tool_choice")
    if not isinstance(choice, Mapping):
        return None
    kind, name = choice.get("type"), choice.get("name", "")
    if kind == "tool":
        return f"tool:{name}" if isinstance(name, str) and name else None
    return _CHOICES.get(kind) if isinstance(kind, str) else None


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words."""
    name = choice.partition(":")[2]
    return {**settings, "tool_choice": {"type": "tool", "name": name} if name else {"type": _TYPES[choice]}}
