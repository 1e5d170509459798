"""What may be appended: checked before it reaches a store, because a log is never rewritten.

A value that would not come back from the log as it went in is refused with the name of its field.
"""

from __future__ import annotations

import math
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from msgspec import Struct

from ..errors import CorruptRecord, InputError
from .codec import decode_record, encode_record
from .messages import Message, Opaque, ToolCall
from .records import Body, Configuration, Decision, Note, PartialAnswer, Record, StreamCheckpoint


def admitted(body: Body) -> Body:
    """`body` as a log gives it back, if one can hold it: whoever made it may go on to change what it was made of, as
    a tool does that takes its arguments apart. Raises InputError naming what it cannot hold."""
    for where, value, finite in _free_form(body):
        _check_json(value, where, finite)
    return check_readable(body)


def check_readable(body: Body) -> Body:
    """What the record that holds `body` is read as. Raises InputError if it could not be read again."""
    try:
        read = decode_record(encode_record(Record(1, "", body))).body
        if read != body:  # most often a list where a tuple comes back
            _check_texts(body, "")
        return read
    except (CorruptRecord, AttributeError, TypeError) as error:
        what = str(error).removeprefix("record 1 is damaged: ")
        raise InputError(f"this cannot be recorded as a {type(body).__name__}: {what}") from error


_AS_TEXT = (bytes, bytearray, memoryview, date, time, timedelta, Decimal, UUID)
"""Types that are written as a text of some kind, and that a field for texts would so take in silence."""


def _check_texts(value: Any, where: str) -> None:
    """Raises InputError for what comes back as another text than anybody meant: bytes as base64, say."""
    if isinstance(value, _AS_TEXT):
        raise InputError(f"this cannot be recorded: {where} is {type(value).__name__}; give a text, bytes decoded")
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            _check_texts(getattr(value, name), f"{where}.{name}".removeprefix("."))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            _check_texts(item, f"{where}[{i}]")


def _free_form(body: Body) -> list[tuple[str, Any, bool]]:
    """The fields that may hold any JSON: name, value, and whether every number must be finite."""
    match body:
        case Configuration():
            tools = [(f"tools[{i}]", [t.parameters, t.data], True) for i, t in enumerate(body.tools)]
            return [("settings", body.settings, True), *tools]
        case Decision():
            return [("detail", body.detail, False)]
        case Note():
            return [("data", body.data, False)]
        case _:
            pass
    message = getattr(body, "message", None)
    fragments = body.fragments if isinstance(body, (PartialAnswer, StreamCheckpoint)) else ()
    if not isinstance(message, Message):
        return []
    found: list[tuple[str, Any, bool]] = []
    for part in (*message.parts, *fragments):
        if isinstance(part, ToolCall):
            found.append((f"arguments of {part.name!r}", part.arguments, True))
        elif isinstance(part, Opaque):
            found.append((f"data of {part.kind!r}", part.data, False))
    return found


def _check_json(value: Any, where: str, finite: bool) -> None:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            wrong = [key for key in item if not isinstance(key, str)]
            if wrong:
                raise InputError(f"{where}: keys must be strings, {wrong[0]!r} is {type(wrong[0]).__name__}")
            stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item)
        elif isinstance(item, float):
            if finite and not math.isfinite(item):
                raise InputError(f"{where}: {item} is no JSON; for a call, give the text in `raw` instead")
        elif item is not None and not isinstance(item, (str, int)):
            raise InputError(f"{where}: {type(item).__name__} is no JSON value")
