"""JSON and JSON lines out of bytes that may be damaged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from .._platform.encoding import plain_utf8
from .protocol import Damage


class Line(Struct, frozen=True):
    """A JSON value and the line that it stood on, from 1."""

    number: int
    value: Any


_DEEPEST = 200
"""No transcript comes near it; past it, what reads the value by recursion could fail."""

_decoder = json.JSONDecoder()


def json_document(data: bytes) -> Any:
    """The one JSON value that `data` is. Raises ValueError."""
    try:
        value = json.loads(plain_utf8(data).decode("utf-8"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _too_deep(value):
        raise ValueError(f"nested deeper than {_DEEPEST} levels")
    return value


def json_lines(data: bytes, file: str, warnings: list[Damage]) -> Iterable[Line]:
    """Every JSON value of a JSON-lines file, in order; what is damaged becomes a warning.

    Blank lines, CRLF, a byte order mark, and several values on one line (an append after a crash)
    are read. NUL bytes (left by file systems after a power cut) and bytes that are no UTF-8 are
    reported, and the rest of the line is read if it still is JSON.
    """
    for number, raw in enumerate(plain_utf8(data).split(b"\n"), 1):
        stripped = raw.strip()
        if not stripped:
            continue
        if b"\0" in stripped:
            stripped = stripped.replace(b"\0", b"").strip()
            warnings.append(Damage(file, number, "NUL bytes left out"))
            if not stripped:
                continue
        try:
            text = stripped.decode("utf-8")
        except UnicodeDecodeError:
            text = stripped.decode("utf-8", "replace")
            warnings.append(Damage(file, number, "bytes that are no UTF-8 read as U+FFFD"))
        yield from _values(text, number, file, warnings)


def _values(text: str, number: int, file: str, warnings: list[Damage]) -> Iterable[Line]:
    position = 0
    while position < len(text):
        try:
            value, end = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            start = text[position : position + 60]
            warnings.append(Damage(file, number, f"left out, no JSON ({reason}); it begins {start!r}"))
            return
        position = end
        if _too_deep(value):
            warnings.append(Damage(file, number, f"left out, nested deeper than {_DEEPEST} levels"))
        else:
            yield Line(number, value)
        while position < len(text) and text[position].isspace():
            position += 1


def _too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        deeper = [item for item in level if isinstance(item, (dict, list))]
        if not deeper:
            return False
        level = [inner for item in deeper for inner in (item.values() if isinstance(item, dict) else item)]
    return True
