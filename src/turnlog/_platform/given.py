"""Checks of what a caller gave: each returns the value, or raises an InputError that names the argument."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from ..errors import InputError
from .stdlib import inspect

_T = TypeVar("_T")


def text_given(name: str, value: Any) -> str:
    """`value`, if it is text, as a plain `str`; else InputError, which names the argument."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, not {type(value).__name__}")
    return str.__str__(value)


def flag_given(name: str, value: Any) -> bool:
    """`value`, if it is True or False; else InputError, which names the argument: `"no"` would count as true."""
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, not {value!r:.100}")
    return value


def number_given(name: str, value: Any, *, above: float = -1) -> Any:
    """`value`, if it is a finite number greater than `above`; else InputError, which names the argument."""
    wrong = isinstance(value, bool) or not isinstance(value, (int, float, Decimal))
    if wrong or not math.isfinite(value) or value <= above:
        least = "0 or more" if above < 0 else f"more than {above:g}"
        raise InputError(f"{name} must be a number, {least}, not {value!r:.100}")
    return value


def kind_given(name: str, value: _T, kind: type | tuple[type, ...], what: str) -> _T:
    """`value`, if it is of this `kind`; else InputError, which names the argument and says `what` it must be."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {what}, not {value!r:.100}")
    return value


def list_given(name: str, value: Any, what: str) -> list[Any]:
    """The values of a list, or of anything else to iterate over; else InputError. A text, a dict and bytes are none."""
    if isinstance(value, (str, bytes, bytearray, Mapping)) or not isinstance(value, Iterable):
        raise InputError(f"{name} must be a list of {what}, not {value!r:.100}")
    return list(value)


def is_async(call: Any) -> bool:
    """Whether a function, or an object that can be called, returns an awaitable."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004
