"""SDK objects as plain JSON: a response, or objects inside a request body.

No SDK is imported: their objects are recognised by the methods that dump them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._platform.stdlib import inspect
from ..errors import FormatError
from ..log.messages import bare, nested_deeper

_DUMPS = ("model_dump", "to_dict", "dict")
_SCALARS = frozenset({str, int, float, bool, type(None)})
_DEEPEST = 200
"""The number of levels that are searched. A deeper value is refused later."""

JSON_VALUES = "use only dicts, lists, strings, numbers, booleans, None, or objects of the provider's SDK"
"""The values that a request body may contain."""


def plain(value: Any, path: str) -> dict[str, Any]:
    """An SDK's object or a mapping as a dict of JSON values. Raises FormatError for anything else."""
    if isinstance(value, Mapping):
        return dict(value)
    dumped = _dumped(value)
    if dumped is None:
        what = advice(value)
        expected = f"expected an object of the SDK or a dict, got {type(value).__name__}"
        raise FormatError(f"{expected}: {what}" if what else expected, path=path)
    return dumped


def _dumped(value: Any, *, made_by_hand: bool = False) -> dict[str, Any] | None:
    """An object's own dump as a dict, or None. With `made_by_hand`, the dump includes values that the class sets, such
    as the role of Google's `ModelContent`."""
    if isinstance(value, type):  # a class has the methods of its instances
        return None
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        try:  # `by_alias` because SDKs name the key `async` `async_`; Google's has aliases for all keys
            set_values = _mapping(dump(mode="json", by_alias=True, exclude_unset=True, warnings=False))
            if set_values is None or not made_by_hand:
                return set_values
            by_class = dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
            return _mapping(_filled(set_values, by_class))
        except (TypeError, ValueError):  # not pydantic, or an old version
            pass
    for name in _DUMPS:
        method = getattr(value, name, None)
        if not callable(method):
            continue
        try:
            dumped = _mapping(method())
        except (ValueError, AttributeError):  # an object of the SDK that holds what its type does not allow
            continue
        if dumped is not None:
            return dumped
    return None


def _filled(set_values: Any, by_class: Any) -> Any:
    """The values that were set, and, at every depth, the values that the class adds."""
    if isinstance(set_values, dict) and isinstance(by_class, dict):
        added = {key: value for key, value in by_class.items() if key not in set_values}
        return {**{key: _filled(value, by_class.get(key)) for key, value in set_values.items()}, **added}
    if isinstance(set_values, list) and isinstance(by_class, list) and len(set_values) == len(by_class):
        return [_filled(*pair) for pair in zip(set_values, by_class, strict=True)]
    return set_values


def _mapping(value: Any) -> dict[str, Any] | None:
    return dict(value) if isinstance(value, Mapping) else None


def advice(value: Any) -> str:
    """How to get an answer from an object that leads to one, such as an awaitable; "" for any other object."""
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
    """A request body with its SDK objects as dicts; `body` itself if it has none. Raises FormatError with the path of a
    value that a body cannot contain."""
    if _is_plain(body):
        return body
    path = nested_deeper(body, _DEEPEST)
    if path is not None:
        raise FormatError(f"nested more than {_DEEPEST} levels deep, or it contains itself", path=path[:80])
    return _plain_keys(body, "", 0)


def _is_plain(body: Mapping[str, Any]) -> bool:
    """Whether a body contains only JSON types, as most do."""
    level: Iterable[Any] = [body]
    for _ in range(_DEEPEST):
        deeper: dict[int, Any] = {}  # each once: a value that contains itself twice would double with every level
        for holder in level:
            for item in holder.values() if type(holder) is dict else holder:
                kind = type(item)
                if kind is dict or kind is list:
                    deeper[id(item)] = item
                elif kind not in _SCALARS:
                    return False
        if not deeper:
            return True
        level = deeper.values()
    return True


def _plain_keys(holder: Mapping[str, Any], path: str, depth: int) -> Mapping[str, Any]:
    plain_items = {
        key: _plain_value(item, f"{path}.{key}" if path else str(key), depth) for key, item in holder.items()
    }
    return holder if all(plain_items[key] is item for key, item in holder.items()) else plain_items


def _plain_value(value: Any, path: str, depth: int) -> Any:
    """A value of a body with its SDK objects as dicts; the value itself if it has none."""
    if type(value) in _SCALARS or depth > _DEEPEST:
        return value
    if isinstance(value, (str, int, float)):
        return bare(value)
    if isinstance(value, Mapping):
        return _plain_keys(value, path, depth + 1)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        plain_items = [_plain_value(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value)]
        return value if all(new is item for new, item in zip(plain_items, value, strict=True)) else plain_items
    dumped = _dumped(value, made_by_hand=True)
    if dumped is None:
        what = advice(value) or JSON_VALUES
        raise FormatError(f"{path} is of type {type(value).__name__}: {what}")
    return _plain_keys(_as_request(dumped), path, depth + 1)


def _as_request(wire: dict[str, Any]) -> dict[str, Any]:
    """An object of a response in the shape of requests: without keys that have no value."""
    if wire.get("type") == "code_interpreter_call":  # requires its keys even if they are null
        return wire
    is_message = "role" in wire

    def is_sent(key: str, value: Any) -> bool:
        if value is None:
            return is_message and key == "content"  # an answer with calls only
        return not (is_message and key == "annotations" and value == [])

    return {key: value for key, value in wire.items() if is_sent(key, value)}
