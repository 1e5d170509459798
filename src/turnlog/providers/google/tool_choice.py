"""The tool choice, in common words and in this API's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..gemini import choice_of
from ..reading import inner
from .enums import MODES, enum_name
from .keys import camel_deep

_WORDS = {"AUTO": "auto", "VALIDATED": "auto", "NONE": "none", "ANY": "required"}


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words, None if there is no tool choice; the mode `VALIDATED` counts as `auto`."""
    config = _calling(camel_deep(dict(settings)))
    return choice_of(enum_name(config.get("mode"), MODES), config.get("allowedFunctionNames"), _WORDS)


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words."""
    plain = camel_deep(settings)
    config = {key: value for key, value in _calling(plain).items() if key != "allowedFunctionNames"}
    if choice.startswith("tool:"):
        config |= {"mode": "ANY", "allowedFunctionNames": [choice.removeprefix("tool:")]}
    else:
        config["mode"] = {"none": "NONE", "required": "ANY"}.get(choice, "AUTO")
    return {**plain, "toolConfig": {**inner(plain, "toolConfig"), "functionCallingConfig": config}}


def _calling(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return inner(inner(settings, "toolConfig"), "functionCallingConfig")
