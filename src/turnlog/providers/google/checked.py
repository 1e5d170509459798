"""What no reader of a body could make sense of, wherever it stands."""

from __future__ import annotations

from typing import Any

from ...errors import FormatError
from ..values import check_depth
from .keys import FREE, camel


def check_json(value: Any, path: str = "") -> None:
    """Raises FormatError for a key that stands there in both spellings, so that nobody knows which one
    counts, and for nesting so deep that nobody means it."""
    check_depth(value)
    _check_twins(value, path)


def _check_twins(value: Any, path: str) -> None:
    if isinstance(value, list):
        for i, item in enumerate(value):
            _check_twins(item, f"{path}[{i}]")
    elif isinstance(value, dict):
        if len({camel(key) for key in value}) < len(value):
            _refuse_twins(path, value)
        for key, item in value.items():
            if isinstance(item, (dict, list)) and camel(key) not in FREE:
                _check_twins(item, f"{path}.{key}" if path else key)


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
