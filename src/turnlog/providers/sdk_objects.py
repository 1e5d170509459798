"""SDK objects as plain JSON: a response, or objects inside a request body.

No SDK is imported: their objects are recognised by the methods that dump them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FormatError

_DUMPS = ("model_dump", "to_dict", "dict")
_SCALARS = frozenset({str, int, float, bool, type(None)})
_DEEPEST = 200
"""Levels that are searched; anything nested deeper is refused later."""

JSON_VALUES = "use only dicts, lists, strings, numbers, booleans, None, or objects of the provider's SDK"
"""What a request body may consist of."""


def plain(value: Any, path: str) -> dict[str, Any]:
    """An SDK's object or a mapping as a dict of JSON values. Raises FormatError for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    found = _dumped(value)
    if found is None:
        what = advice(value)
        told = f"expected an object of the SDK or a dict, got {type(value).__name__}"
        raise FormatError(f"{told}: {what}" if what else told, path=path)
    return found


def _dumped(value: Any, *, made_by_hand: bool = False) -> dict[str, Any] | None:
    """An object's own dump as a dict, or None. With `made_by_hand`, values that only the class sets are included: the
    role of Google's `ModelContent` is one."""
    if isinstance(value, type):  # a class has the methods of its instances
        return None
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:  # unset fields stay out; `by_alias` because the SDKs call the key `async` `async_`, and all of Google's
            said = _mapping(dump(mode="json", by_alias=True, exclude_unset=True, warnings=False))
            if said is None or not made_by_hand:
                return said
            by_class = dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
            return _mapping(_filled(said, by_class))
        except (TypeError, ValueError):  # not pydantic, or an old version
            pass
    for name in _DUMPS:
        method = getattr(value, name, None)
        if callable(method) and (found := _mapping(method())) is not None:
            return found
    return None


def _filled(said: Any, by_class: Any) -> Any:
    """The values that were set, and at every depth those that a class adds."""
    if isinstance(said, dict) and isinstance(by_class, dict):
        more = {key: value for key, value in by_class.items() if key not in said}
        return {**{key: _filled(value, by_class.get(key)) for key, value in said.items()}, **more}
    if isinstance(said, list) and isinstance(by_class, list) and len(said) == len(by_class):
        return [_filled(*pair) for pair in zip(said, by_class, strict=True)]
    return said


def _mapping(value: Any) -> dict[str, Any] | None:
    return dict(value) if isinstance(value, Mapping) else None


def advice(value: Any) -> str:
    """How to get the answer out of an object that leads to one, such as an awaitable; empty if it leads to none."""
    if inspect.isawaitable(value):
        return "await it, and hand over what that gives"
    if callable(getattr(value, "parse", None)) and hasattr(value, "headers"):
        return "it is a raw response, hand over what its `.parse()` gives"
    if callable(getattr(value, "json", None)) and hasattr(value, "status_code"):
        return "it is an HTTP response, hand over what its `.json()` gives"
    if hasattr(value, "__enter__") and not hasattr(value, "__iter__"):
        return "enter it with `with`, and hand over what that gives"
    if hasattr(value, "__aenter__") and not hasattr(value, "__aiter__"):
        return "enter it with `async with`, and hand over what that gives"
    return ""


def plain_body(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """A request body with its SDK objects as dicts; `body` itself if there are none. Raises FormatError with the path
    of a value that no body can hold."""
    return body if _is_plain(body) else _plain_keys(body, "", 0)


def _is_plain(body: Mapping[str, Any]) -> bool:
    """Whether a body holds only JSON types, as most do."""
    level: list[Any] = [body]
    for _ in range(_DEEPEST):
        deeper: list[Any] = []
        for holder in level:
            for item in holder.values() if type(holder) is dict else holder:
                kind = type(item)
                if kind is dict or kind is list:
                    deeper.append(item)
                elif kind not in _SCALARS:
                    return False
        if not deeper:
            return True
        level = deeper
    return True


def _plain_keys(holder: Mapping[str, Any], path: str, depth: int) -> Mapping[str, Any]:
    made = {key: _plain_value(item, f"{path}.{key}" if path else str(key), depth) for key, item in holder.items()}
    return holder if all(made[key] is item for key, item in holder.items()) else made


def _plain_value(value: Any, path: str, depth: int) -> Any:
    """A value of a body with its SDK objects as dicts; the value itself if there are none."""
    if type(value) in _SCALARS or depth > _DEEPEST or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return _plain_keys(value, path, depth + 1)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        made = [_plain_value(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
        return value if all(new is item for new, item in zip(made, value, strict=True)) else made
    dumped = _dumped(value, made_by_hand=True)
    if dumped is None:
        what = advice(value) or JSON_VALUES
        raise FormatError(f"{path} is of type {type(value).__name__}: {what}")
    return _plain_keys(_said(dumped), path, depth + 1)


def _said(wire: dict[str, Any]) -> dict[str, Any]:
    """An object of a response as a request holds it: without keys that have no value."""
    if wire.get("type") == "code_interpreter_call":  # requires its keys even if they are null
        return wire
    spoken = "role" in wire

    def says(key: str, value: Any) -> bool:
        if value is None:
            return spoken and key == "content"  # an answer of nothing but calls
        return not (spoken and key == "annotations" and value == [])

    return {key: value for key, value in wire.items() if says(key, value)}
