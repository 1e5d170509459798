"""Checks what may be appended, before it reaches a store, because a log is never rewritten.

A value that could not be read back from the log unchanged is refused, and the error names its field. A message of which
no model can read anything may be appended, but whoever appends it is told (`unreadable`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from msgspec import Struct

from ..errors import CorruptRecord, InputError
from .codec import decode_record, encode_record
from .messages import Message, Opaque, Text, Unknown, nested_deeper
from .records import Body, Record
from .texts import GIVEN_JSON, texts_in
from .usage import Usage

S = TypeVar("S", bound=Body)


def admitted(body: S) -> S:
    """A copy of `body` as it would be read back from a log. The caller may therefore go on to change the objects it was
    made of, as tools do that take their arguments apart. Raises InputError, which names the field, if a log cannot
    contain it."""
    with suppress(KeyError):  # not a part of a message: check_readable raises InputError for it
        for path, kind, value in texts_in(body, GIVEN_JSON):
            _check_json(value.arguments if kind == "call" else value, path, finite=kind != "json")
    return check_readable(body)


def check_readable(body: S) -> S:
    """`body` as it is read back from its record. Raises InputError if that is impossible."""
    try:
        read: S = decode_record(encode_record(Record(1, "", body))).body  # type: ignore[assignment]  # of its kind
        if read != body:  # most often a list that is read back as a tuple
            _check_texts(body, "")
        return read
    except (CorruptRecord, AttributeError, TypeError) as error:
        reason = str(error).removeprefix("record 1 is damaged: ")
        raise InputError(f"this cannot be recorded as a {type(body).__name__}: {reason}") from error


def unreadable(message: Message, knows: Callable[[Opaque], bool] = lambda part: True) -> str:
    """Why no model can read anything of a message; "" if one can. `knows` says whether the provider that a part belongs
    to accepts it."""
    if not message.parts:
        return "it has no parts"
    kinds: set[str] = set()
    for part in message.parts:
        if isinstance(part, Unknown) or (isinstance(part, Opaque) and not knows(part)):
            kinds.add(part.kind)
        elif not isinstance(part, Text) or part.text.strip():
            return ""
    return f"it has only {', '.join(sorted(kinds))}, which cannot be sent" if kinds else "its text is blank"


_DEEPEST = 200
"""No record has more levels (docs/format.md)."""

_AS_TEXT = (bytes, bytearray, memoryview, date, time, timedelta, Decimal, UUID)
"""Types that JSON encoding writes as text, so that text fields would accept them silently."""


def _check_texts(value: Any, path: str) -> None:
    """Raises InputError for values that would be read back as a different text than the caller meant, such as bytes as
    base64."""
    if isinstance(value, _AS_TEXT):
        raise InputError(f"this cannot be recorded: {path} is {type(value).__name__}; give a str, with bytes decoded")
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            inner = getattr(value, name)
            if not (isinstance(value, Usage) and isinstance(inner, Decimal)):  # its costs are read back as they were
                _check_texts(inner, f"{path}.{name}".removeprefix("."))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_texts(item, f"{path}[{i}]")


def _check_json(value: Any, path: str, *, finite: bool) -> None:
    if nested_deeper(value, _DEEPEST) is not None:
        raise InputError(f"{path}: nested more than {_DEEPEST} levels deep, or it contains itself")
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            wrong = [key for key in item if not isinstance(key, str)]
            if wrong:
                raise InputError(f"{path}: keys must be strings, {wrong[0]!r} is {type(wrong[0]).__name__}")
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, float):
            if finite and not math.isfinite(item):
                raise InputError(f"{path}: {item} is not valid JSON; arguments of a call can be given as text in `raw`")
        elif item is not None and not isinstance(item, (str, int)):
            raise InputError(f"{path}: {type(item).__name__} is not a JSON value")
