"""What may be appended: checked before it reaches a store, because a log is never rewritten.

A value that would not come back from the log as it went in is refused with the name of its field.
"""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from msgspec import Struct

from ..errors import CorruptRecord, InputError
from .codec import decode_record, encode_record
from .records import Body, Record
from .texts import GIVEN_JSON, texts_in


def admitted(body: Body) -> Body:
    """`body` as a log gives it back: its caller may go on to change what it was made of, as a tool does that takes its
    arguments apart. Raises InputError that names the field which no log can hold."""
    with suppress(KeyError):  # what is no part of a message: the next line says so
        for path, kind, value in texts_in(body, GIVEN_JSON):
            _check_json(value.arguments if kind == "call" else value, path, finite=kind != "json")
    return check_readable(body)


def check_readable(body: Body) -> Body:
    """`body` as its record is read again. Raises InputError if it cannot be."""
    try:
        read = decode_record(encode_record(Record(1, "", body))).body
        if read != body:  # most often a list where a tuple comes back
            _check_texts(body, "")
        return read
    except (CorruptRecord, AttributeError, TypeError) as error:
        reason = str(error).removeprefix("record 1 is damaged: ")
        raise InputError(f"this cannot be recorded as a {type(body).__name__}: {reason}") from error


_AS_TEXT = (bytes, bytearray, memoryview, date, time, timedelta, Decimal, UUID)
"""Types that JSON encoding writes as a text, so that a field for texts would take them without a word."""


def _check_texts(value: Any, path: str) -> None:
    """Raises InputError for what comes back as another text than the caller meant: bytes as base64, say."""
    if isinstance(value, _AS_TEXT):
        raise InputError(f"this cannot be recorded: {path} is {type(value).__name__}; give a str, with bytes decoded")
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            _check_texts(getattr(value, name), f"{path}.{name}".removeprefix("."))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_texts(item, f"{path}[{i}]")


def _check_json(value: Any, path: str, *, finite: bool) -> None:
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
