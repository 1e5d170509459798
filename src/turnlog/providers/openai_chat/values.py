"""What the values of a request may be, as data: JSON types, bounds, keys that must be there.

Shapes as in `providers.shapes`, and besides them
    Value("string")     a JSON value of one type, within bounds
    Words({...})        one of a few words
    Record({...})       an object; some keys must be there, some may be null, others may do neither
    Each(shape)         an object with whatever keys, the values of one shape
    Either((...))       of several shapes the one that is for the value's JSON type
    Loose("type", {})   as Tagged, but an unknown tag is left alone
`check_types` refuses what is of a wrong type, for readers; `fit` leaves it out, for what is to be sent.
Both OpenAI APIs say theirs in these words.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from typing import Any, Literal

from ...content import parse_arguments
from ...errors import FormatError
from ...rules import NO_LIMIT
from ...view.shown import Edit
from ..shapes import ANY, Any_, Keys, Many, Shape, Tagged

__all__ = [
    "Each",
    "Either",
    "FLAG",
    "INTEGER",
    "Loose",
    "NUMBER",
    "OBJECT",
    "REFUSED",
    "Record",
    "STRING",
    "Value",
    "Words",
    "brief",
    "check_types",
    "fit",
    "fits",
    "maybe",
    "read_arguments",
    "record",
    "words",
]

REFUSED = object()
"""What `fit` returns for a value of which nothing can be sent."""

_DEEPEST = 200
"""Levels of nesting that arguments may have and still be taken apart: what a record can hold."""

_Kind = Literal["string", "integer", "number", "boolean", "object", "array", "null"]


class Value(Any_, frozen=True):
    """A JSON value of one type. Numbers, and the lengths of strings, lie between `low` and `high`."""

    kind: _Kind
    low: float = -math.inf
    high: float = math.inf


class Words(Any_, frozen=True):
    """One of a few words."""

    words: frozenset[str]


class Record(Keys, frozen=True):
    """An object with these keys and no others: all of `must` are there, only `nulls` may be null."""

    must: frozenset[str] = frozenset()
    nulls: frozenset[str] = frozenset()


class Each(Any_, frozen=True):
    """An object of at most `most` keys, each at most `longest` characters long."""

    of: Shape
    most: int = NO_LIMIT
    longest: int = NO_LIMIT


class Either(Any_, frozen=True):
    """Several shapes for different JSON types."""

    of: tuple[Shape, ...]


class Loose(Tagged, frozen=True):
    """As Tagged, for servers that know more tags than we do."""


STRING = Value("string")
INTEGER = Value("integer")
NUMBER = Value("number")
FLAG = Value("boolean")
OBJECT = Value("object")
_NAMED: dict[str, Shape] = {
    "any": ANY,
    "flag": FLAG,
    "id": Value("string", 1, 64),
    "int": INTEGER,
    "num": NUMBER,
    "object": OBJECT,
    "text": STRING,
    "texts": Many(STRING),
}
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
_KEY = re.compile(r"(\w+)(?::(\w+))?([!?]*)")


def record(keys: str = "", nested: Mapping[str, Shape] | None = None, *, needs: str = "") -> Record:
    """A record from words such as `name! limit:int? strict:flag`: key, type (a text if it is not said),
    `!` for a key that must be there, `?` for one that may be null. `nested` has shapes of its own, under
    keys marked in the same way. Of `needs`, one has a value."""
    marked: list[tuple[str, Shape, str]] = []
    for word in keys.split():
        found = _KEY.fullmatch(word)
        assert found, word
        marked.append((found[1], _NAMED[found[2] or "text"], found[3]))
    for key, shape in (nested or {}).items():
        name = key.rstrip("!?")
        marked.append((name, shape, key[len(name) :]))
    return Record(
        {name: shape for name, shape, _ in marked},
        frozenset(needs.split()),
        frozenset(name for name, _, marks in marked if "!" in marks),
        frozenset(name for name, _, marks in marked if "?" in marks),
    )


def words(some: str) -> Words:
    """One of the words in `some`."""
    return Words(frozenset(some.split()))


def maybe(shape: Shape) -> Either:
    """`shape`, or null."""
    return Either((shape, Value("null")))


# -- reading -------------------------------------------------------------------------------------


def check_types(value: Any, shape: Shape, path: str) -> None:
    """Raises FormatError, naming the path, where a key that `shape` knows has a value of a wrong JSON type.

    Null stands for nothing and passes; unknown keys, words out of place and missing keys do too: they
    can be mended.
    """
    if value is None or shape == ANY:
        return
    if not _is_for(value, shape):
        raise FormatError(f"expected {_expected(shape)}, got {_type_of(value)}", path=path)
    if isinstance(shape, Either):
        check_types(value, next(inner for inner in shape.of if _is_for(value, inner)), path)
    elif isinstance(shape, Many):
        for i, item in enumerate(value):
            if item is None and shape.of != ANY:
                raise FormatError(f"expected {_expected(shape.of)}, got null", path=f"{path}[{i}]")
            check_types(item, shape.of, f"{path}[{i}]")
    elif isinstance(shape, Tagged):
        tag = value.get(shape.tag)
        if not isinstance(tag, str | None):
            raise FormatError(f"expected a string, got {_type_of(tag)}", path=f"{path}.{shape.tag}")
        chosen = shape.shapes.get(shape.missing if tag is None else tag)
        if chosen is not None:
            check_types(value, chosen, path)
    elif isinstance(shape, Keys):
        for key, inner in shape.keys.items():
            check_types(value.get(key), inner, f"{path}.{key}" if path else key)


def _is_for(value: Any, shape: Shape) -> bool:
    """Whether a value has the JSON type that a shape is for."""
    match shape:
        case Either():
            return any(_is_for(value, inner) for inner in shape.of)
        case Value():
            kind = _type_name(value)
            return kind == shape.kind or (kind == "integer" and shape.kind == "number")
        case Words():
            return isinstance(value, str)
        case Many():
            return isinstance(value, (list, tuple))
        case Keys() | Tagged() | Each():
            return isinstance(value, Mapping)
    return True


def _expected(shape: Shape) -> str:
    match shape:
        case Either():
            return " or ".join(dict.fromkeys(_expected(inner) for inner in shape.of))
        case Value():
            return _with_article(shape.kind)
        case Words():
            return "a string"
        case Many():
            return "an array"
        case Keys() | Tagged() | Each():
            return "an object"
    return "something"


def _type_of(value: Any) -> str:
    return _with_article(_type_name(value))


def _with_article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _type_name(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
    return type(value).__name__


def read_arguments(text: str) -> tuple[Any, str | None]:
    """As `content.parse_arguments`; arguments that are nested more deeply than a record can hold stay text."""
    try:
        value, raw = parse_arguments(text)
    except RecursionError:
        return None, text
    level = [value]
    for _ in range(_DEEPEST // 2):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return value, raw
    return None, text


# -- sending -------------------------------------------------------------------------------------


def fits(value: Any, shape: Shape) -> bool:
    """Whether `value` could be sent, with a change at most."""
    return fit(value, shape, "", []) is not REFUSED


def fit(value: Any, shape: Shape, path: str, edits: list[Edit]) -> Any:
    """`value` without what `shape` does not take, each thing left out an edit that names its path;
    REFUSED if the value cannot be sent at all. Returns `value` itself where nothing had to change."""
    if not _is_for(value, shape):
        return REFUSED
    match shape:
        case Either():
            return fit(value, next(inner for inner in shape.of if _is_for(value, inner)), path, edits)
        case Value():
            return _bounded(value, shape, path, edits)
        case Words():
            return value if value in shape.words else REFUSED
        case Many():
            fitted = [(fit(item, shape.of, f"{path}[{i}]", edits), item) for i, item in enumerate(value)]
            edits += [_dropped(f"{path}[{i}]", item) for i, (new, item) in enumerate(fitted) if new is REFUSED]
            kept = [new for new, _ in fitted if new is not REFUSED]
            same = len(kept) == len(fitted) and all(new is item for new, item in fitted)
            return value if same else kept
        case Each():
            return _fit_each(value, shape, path, edits)
        case Tagged():
            tag = value.get(shape.tag)
            chosen = shape.shapes.get(shape.missing if tag is None else tag) if isinstance(tag, str | None) else None
            if chosen is None:
                return value if isinstance(shape, Loose) else REFUSED
            return fit(value, chosen, path, edits)
        case Keys():
            return _fit_keys(value, shape, path, edits)
    return value


def _bounded(value: Any, shape: Value, path: str, edits: list[Edit]) -> Any:
    if isinstance(value, str):
        return value if shape.low <= len(value) <= shape.high else REFUSED
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return REFUSED
    if shape.low <= value <= shape.high:
        return value
    bound = shape.low if value < shape.low else shape.high
    edits.append(
        Edit(
            "setting",
            f"{path} {brief(value)} sent as {bound}",
            rule=f"Invalid '{path}': expected a value from {shape.low} to {shape.high}.",
        )
    )
    return bound


def _fit_each(value: Mapping[str, Any], shape: Each, path: str, edits: list[Edit]) -> Any:
    kept: dict[str, Any] = {}
    for key, item in value.items():
        full = len(kept) >= shape.most or len(key) > shape.longest
        new = REFUSED if full else fit(item, shape.of, f"{path}.{key}", edits)
        if new is REFUSED:
            edits.append(_dropped(f"{path}.{brief(key)}", item))
        else:
            kept[key] = new
    return value if _same_items(kept, value) else kept


def _fit_keys(value: Mapping[str, Any], shape: Keys, path: str, edits: list[Edit]) -> Any:
    must = shape.must if isinstance(shape, Record) else frozenset()
    nulls = shape.nulls if isinstance(shape, Record) else frozenset(shape.keys)
    changes: list[Edit] = []
    kept: dict[str, Any] = {}
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        inner = shape.keys.get(key)
        if inner is None:
            changes.append(Edit("unknown_key", f"{where} dropped", rule=f"Unknown parameter: '{where}'."))
            continue
        new = item if item is None and key in nulls else fit(item, inner, where, changes)
        if new is REFUSED:
            changes.append(_dropped(where, item))
        else:
            kept[key] = new
    if not must <= kept.keys() or (shape.needs and not any(kept.get(key) for key in shape.needs)):
        return REFUSED
    edits += changes
    return value if _same_items(kept, value) else kept


def _same_items(kept: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return len(kept) == len(value) and all(kept[key] is value[key] for key in kept)


def _dropped(where: str, value: Any) -> Edit:
    return Edit("unknown_value", f"{where} dropped: {brief(value)}", rule=f"Invalid value for '{where}'.")


def brief(value: Any) -> str:
    """A value, as far as it can be shown in a sentence."""
    try:
        shown = _SHORT.repr(value)
    except ValueError:  # an integer of thousands of digits
        return _type_of(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
