"""How deeply a body or a response may be nested."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError

__all__ = ["check_depth"]

_DEEPEST = 200
"""Levels of nesting: what a record can hold (docs/format.md)."""


def check_depth(value: Any) -> None:
    """Raises FormatError for what is nested so deeply that nobody means it, and Python gives up."""
    level: list[tuple[str, Any]] = [("", value)]
    for _ in range(_DEEPEST):
        level = [
            (f"{path}.{key}" if path else str(key), inner)
            for path, holder in level
            for key, inner in (holder.items() if isinstance(holder, Mapping) else enumerate(holder))
            if isinstance(inner, (Mapping, list, tuple))
        ]
        if not level:
            return
    raise FormatError(f"nested more than {_DEEPEST} levels deep", path=".".join(level[0][0].split(".")[:4]))
