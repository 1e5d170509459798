"""Outputs inside JSON: programs that run commands put the text and the exit code into an object."""

from __future__ import annotations

from typing import Any

from .json_values import read_json, spelled

_ENTRIES = 8
"""The most entries of such an object."""

_SHARE = 0.7
"""The least share of the whole that the text has."""


def unwrapped(text: str) -> tuple[dict[str, Any], str] | None:
    """The object in a text, and the key of the one long text in it; None if it is no such object."""
    if text[:1] != "{" or text.rstrip()[-1:] != "}":
        return None
    value = read_json(text)
    if not isinstance(value, dict) or len(value) > _ENTRIES:
        return None
    longest = max(value, key=lambda key: len(value[key]) if isinstance(value[key], str) else 0, default="")
    inner = value.get(longest)
    return (value, longest) if isinstance(inner, str) and len(inner) > _SHARE * len(text) else None


def wrapped(value: dict[str, Any], key: str, inner: str) -> str:
    """The object with another text in it, as JSON."""
    return spelled({**value, key: inner})
