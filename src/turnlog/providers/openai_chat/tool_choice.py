"""The tool choice, in common words and in this API's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InputError

_WORDS = ("auto", "none", "required")


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words, None if there is none. A choice among allowed tools counts as its mode."""
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
    """`settings` with `choice`. Raises InputError if it is none of the common words."""
    if choice in _WORDS:
        return {**settings, "tool_choice": choice}
    if not choice.startswith("tool:") or choice == "tool:":
        raise InputError(f"tool choice {choice!r}: use auto, none, required or tool:NAME")
    return {**settings, "tool_choice": {"type": "function", "function": {"name": choice.removeprefix("tool:")}}}
