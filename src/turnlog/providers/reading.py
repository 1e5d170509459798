"""Reading values from JSON objects, for parsers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def string(holder: Mapping[str, Any], key: str) -> str:
    """The string at `key`; "" if there is no string."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def inner(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object at `key`; an empty object if there is no object."""
    value = holder.get(key)
    return value if isinstance(value, Mapping) else {}


def without(holder: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """`holder` without these keys."""
    return {key: value for key, value in holder.items() if key not in keys}
