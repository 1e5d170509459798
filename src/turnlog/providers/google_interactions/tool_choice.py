"""The tool choice, in common words and in this API's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..gemini import choice_of
from ..reading import inner

_WORDS = {"auto": "auto", "validated": "auto", "none": "none", "any": "required"}


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words, None if there is no tool choice; the mode `validated` counts as `auto`."""
    choice = inner(settings, "generation_config").get("tool_choice")
    names: Any = None
    if isinstance(choice, dict):
        allowed = inner(choice, "allowed_tools")
        choice, names = allowed.get("mode"), allowed.get("tools")
    return choice_of(choice, names, _WORDS)


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words; unchanged if they have that choice already."""
    if tool_choice(settings) == choice:
        return settings
    name = choice.partition(":")[2]
    said: Any = {"allowed_tools": {"mode": "any", "tools": [name]}}
    if not name:
        said = {"none": "none", "required": "any"}.get(choice, "auto")
    return {**settings, "generation_config": {**inner(settings, "generation_config"), "tool_choice": said}}
