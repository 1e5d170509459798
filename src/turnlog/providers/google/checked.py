"""What no reader of a body could make sense of, wherever it stands."""

from __future__ import annotations

from typing import Any

from ...errors import FormatError
from .keys import FREE, camel

__all__ = ["check_json", "typed"]

_DEEPEST = 200
"""Levels of nesting that a body may have: what a record can hold (docs/format.md)."""


def check_json(value: Any, path: str = "") -> None:
    """Raises FormatError for a key that stands there in both spellings, so that nobody knows which one
    counts, and for nesting so deep that nobody means it."""
    level: list[tuple[str, Any, bool]] = [(path, value, False)]
    for _ in range(_DEEPEST):
        level = [inner for where, holder, free in level for inner in _inner(where, holder, free)]
        if not level:
            return
    raise FormatError(f"nested more than {_DEEPEST} levels deep", path=level[0][0][:80])


def _inner(path: str, holder: Any, free: bool) -> list[tuple[str, Any, bool]]:
    if isinstance(holder, list):
        return [(f"{path}[{i}]", item, free) for i, item in enumerate(holder) if isinstance(item, (dict, list))]
    if not isinstance(holder, dict):
        return []
    if not free and len({camel(key) for key in holder}) < len(holder):
        _refuse_twins(path, holder)
    return [
        (f"{path}.{key}" if path else key, item, free or camel(key) in FREE)
        for key, item in holder.items()
        if isinstance(item, (dict, list))
    ]


def _refuse_twins(path: str, holder: dict[str, Any]) -> None:
    seen: dict[str, str] = {}
    for key in holder:
        twin = seen.setdefault(camel(key), key)
        if twin != key:
            where = f"{path}.{key}" if path else key
            raise FormatError(f"the same key as {twin}: use one of the two spellings", path=where)


def typed(holder: dict[str, Any], key: str, kind: type, path: str) -> Any:
    """The value at `key`, None if there is none. Raises FormatError if it is no `kind`."""
    value = holder.get(key)
    if value is None or (isinstance(value, kind) and not (kind is int and isinstance(value, bool))):
        return value
    raise FormatError(f"expected {_NAMES[kind]}, found {type(value).__name__}", path=f"{path}.{key}")


_NAMES: dict[type, str] = {str: "a string", dict: "an object", list: "a list", bool: "true or false"}
