"""The tool choice, in common words and in this API's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .keys import camel_deep


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words, None if there is no tool choice; the mode `VALIDATED` counts as `auto`."""
    config = _calling(camel_deep(dict(settings)))
    names = config.get("allowedFunctionNames")
    match config.get("mode"):
        case "AUTO" | "VALIDATED":
            return "auto"
        case "NONE":
            return "none"
        case "ANY":
            only = names[0] if isinstance(names, list) and len(names) == 1 else None
            return f"tool:{only}" if isinstance(only, str) and only else "required"
        case _:
            return None


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words."""
    plain = camel_deep(settings)
    config = {key: value for key, value in _calling(plain).items() if key != "allowedFunctionNames"}
    if choice.startswith("tool:"):
        config |= {"mode": "ANY", "allowedFunctionNames": [choice.removeprefix("tool:")]}
    else:
        config["mode"] = {"none": "NONE", "required": "ANY"}.get(choice, "AUTO")
    return {**plain, "toolConfig": {**_object(plain, "toolConfig"), "functionCallingConfig": config}}


def _calling(settings: Mapping[str, Any]) -> dict[str, Any]:
    return _object(_object(settings, "toolConfig"), "functionCallingConfig")


def _object(holder: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = holder.get(key)
    return value if isinstance(value, dict) else {}
