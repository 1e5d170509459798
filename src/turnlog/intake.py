"""What may be appended: checked before it reaches a store, because a log is never rewritten.

A value that would not come back from the log as it went in is refused with the name of its field.
"""

from __future__ import annotations

import math
from typing import Any

from .codec import decode_record, encode_record
from .content import Message, Opaque, ToolCall
from .errors import CorruptRecord, InputError
from .records import Body, Configuration, Decision, Note, PartialAnswer, Record, StreamCheckpoint

__all__ = ["admitted", "check_readable"]


def admitted(body: Body) -> Body:
    """`body` as a log gives it back, if one can hold it: whoever made it may go on to change what it was made of, as
    a tool does that takes its arguments apart. Raises InputError naming what it cannot hold."""
    for where, value, finite in _free_form(body):
        _check_json(value, where, finite)
    return check_readable(body)


def check_readable(body: Body) -> Body:
    """What the record that holds `body` is read as. Raises InputError if it could not be read again."""
    try:
        return decode_record(encode_record(Record(1, "", body))).body
    except (CorruptRecord, AttributeError, TypeError) as error:
        what = str(error).removeprefix("record 1 is damaged: ")
        raise InputError(f"this cannot be recorded as a {type(body).__name__}: {what}") from error


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
