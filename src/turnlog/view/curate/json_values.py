"""Shorten JSON: values stay as they are, but long lists and tables become a sample with a description of the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .marks import WORK, Marks, number

_ROOM = 6_000
"""Characters of a value that is not shortened further."""

_LIMITS = ((1_000_000, 1_000_000), (30, 4_000), (12, 2_000), (5, 2_000), (3, 2_000), (2, 1_500))
"""Elements to show of a list, and the length of a text from which it is shortened: the first pair that leaves at most
`_ROOM` characters, or else the last."""

_WHOLE = 200_000
"""Characters. For a longer text, no form without omissions is tried."""

_KEYS = 40
"""The number of keys from which an object whose values are alike is treated like a list."""

_DEPTH = 80

_SAMPLE = 1_000
"""The number of omitted elements whose keys or types are named."""

_LINES = 1_000
"""The number of lines of JSON Lines that are read."""


class _Fraction(float):
    """A number that keeps its spelling."""

    text = ""


def _fraction(text: str) -> _Fraction:
    fraction = _Fraction(text)
    fraction.text = text
    return fraction


def _whole(text: str) -> int | _Fraction:
    return int(text) if text != "-0" else _fraction(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a key twice: one of its values would be left out in silence")
    return members


def _refuse(name: str) -> Any:
    raise ValueError(name)


_decode = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_fraction, parse_int=_whole, parse_constant=_refuse
).decode
_text = json.JSONEncoder(ensure_ascii=False).encode


def read_json(text: str) -> Any:
    """The value of JSON; None if the text cannot be read or an object has a key twice."""
    try:
        return _decode(text)
    except (ValueError, RecursionError):
        return None


def is_json(text: str) -> bool:
    """Whether a text may be an object or a list, or JSON Lines of these."""
    ends = text[:1] + text[-1:]
    if ends in ("{}", "[]"):
        return True
    first = text[:100_000].partition("\n")[0].rstrip()
    return first[:1] + first[-1:] == "{}" and text.count("\n", 0, 100_000) > 1


def json_value(text: str, marks: Marks) -> str:
    """JSON, shortened: still JSON. The text itself if it cannot be read."""
    try:
        value = _decode(text.strip())
    except (ValueError, RecursionError):
        return _lines(text.strip(), marks) or text
    shown = text
    for most, longest in _LIMITS[len(text) > _WHOLE :]:
        shown = spelled(_inner(value, most, longest, marks, 0))
        if len(shown) <= _ROOM:
            break
    return shown


def _lines(text: str, marks: Marks) -> str:
    """JSON Lines, shortened; "" if the first lines are not JSON."""
    if text[:1] != "{":
        return ""
    pieces = text[:WORK].split("\n", _LINES)
    is_whole = len(pieces) <= _LINES and len(text) <= WORK
    lines = [line for line in (pieces if is_whole else pieces[:-1]) if line.strip()]
    if len(lines) < 3:
        return ""
    try:
        values = [_decode(line) for line in lines]
        last = [] if is_whole else [_decode(text[text.rfind("\n") + 1 :])]
    except (ValueError, RecursionError):
        return ""
    count = len(values) if is_whole else sum(1 for line in text.split("\n") if line.strip())
    shown = ""
    for most, longest in _LIMITS:
        first_lines = [spelled(_inner(value, most, longest, marks, 0)) for value in values[:most]]
        gone = count - len(first_lines) - len(last)
        mark = [marks.left_out(number(gone, "more line") + _schema(values[most:]))] if gone else []
        shown = "\n".join([*first_lines, *mark, *(spelled(_inner(value, most, longest, marks, 0)) for value in last)])
        if len(shown) <= _ROOM:
            break
    return shown


def _inner(value: Any, most: int, longest: int, marks: Marks, depth: int) -> Any:
    """A value with samples in place of long lists."""
    if depth > _DEPTH:
        return value
    if isinstance(value, list):
        return [_inner(item, most, longest, marks, depth + 1) for item in _shortened(value, most, marks)]
    if isinstance(value, dict):
        shown = value
        if len(value) > max(_KEYS, most) and len({_kind(item) for item in value.values()}) == 1:
            keys = [*value]
            gone = keys[most:]
            shown = {key: value[key] for key in keys[:most]}
            dots = "..."
            while dots in shown:
                dots += "."
            shown[dots] = marks.left_out(number(len(gone), "more key"))
        return {key: _inner(item, most, longest, marks, depth + 1) for key, item in shown.items()}
    if isinstance(value, str) and len(value) > longest:
        return marks.left_out(f"a text of {number(len(value), 'character')}")
    return value


def _shortened(values: list[Any], most: int, marks: Marks) -> list[Any]:
    """The first elements of a list, a mark that describes the omitted ones, and the last elements."""
    if len(values) <= most + 1:
        return values
    gone = values[most - 1 : -1]
    return [*values[: most - 1], marks.left_out(number(len(gone), "more element") + _schema(gone)), values[-1]]


def _schema(values: list[Any]) -> str:
    """What the elements of a list have in common: their keys, or their type; "" if there are no elements."""
    if not values:
        return ""
    sample = values[:_SAMPLE]
    kinds = {_kind(value) for value in sample}
    if kinds == {"object"}:
        keys: dict[str, None] = {}
        for value in sample:
            keys.update(dict.fromkeys(value))
            if len(keys) > 30:
                break
        named = ", ".join(
            key if key.isprintable() else json.dumps(key)[1:-1] for key in [*keys][:30]
        )  # a mark is a line
        return f" with the keys {named[:400]}" if keys else ""
    return f" ({', '.join(sorted(kinds))})"


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "boolean"
    kinds = {dict: "object", list: "list", str: "text"}
    return next((name for kind, name in kinds.items() if isinstance(value, kind)), "number")


def spelled(value: Any) -> str:
    """JSON of a value that was read, without insignificant spaces."""
    pieces: list[str] = []
    _spell(value, pieces)
    return "".join(pieces)


def _spell(value: Any, pieces: list[str]) -> None:
    """JSON without insignificant spaces, with numbers spelled as before."""
    if isinstance(value, dict):
        _join("{}", ((f"{_text(key)}: ", item) for key, item in value.items()), pieces)
    elif isinstance(value, list):
        _join("[]", (("", item) for item in value), pieces)
    else:
        pieces.append(value.text if isinstance(value, _Fraction) else _text(value))


def _join(ends: str, items: Iterable[tuple[str, Any]], pieces: list[str]) -> None:
    pieces.append(ends[0])
    for i, (name, item) in enumerate(items):
        pieces.append(f", {name}" if i else name)
        _spell(item, pieces)
    pieces.append(ends[1])
