"""Apply a shape to a value.

`check_types` raises for a wrong type, for readers; `fit` removes what cannot be sent and records it; `prune` removes
unknown keys only. A value that passes the check of its shape is not walked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ...log.messages import nested_deeper, unchanged
from ...log.references import with_references
from ..edits import Edits, at, brief
from .shapes import ANY, Each, Either, Many, NamedShape, ObjectShape, Read, Schema, Shape, Tagged, Value, WordShape

REFUSED = object()
"""The return value of `fit` for a value that cannot be sent at all."""

_DEEPEST = 200
"""The maximum nesting of a body or a response: a record cannot contain more levels (docs/format.md)."""


# -- reading -------------------------------------------------------------------------------------


def check_depth(value: Any) -> None:
    """Raises FormatError for a value that is nested more deeply than a record allows."""
    path = nested_deeper(value, _DEEPEST)
    if path is not None:
        raise FormatError(f"nested more than {_DEEPEST} levels deep", path=path[:80])


def check_types(value: Any, shape: Shape, path: str) -> None:
    """Raises FormatError, with its path, for a value with a wrong JSON type on which a reader relies.

    Nulls, missing keys, unknown keys and unknown words are accepted: sanitizing handles them.
    """
    if value is None or shape == ANY or shape.reads(value):
        return
    shape = _readable(shape)
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
        word = shape.missing if tag is None else tag
        chosen = shape.shapes.get(word, shape.read.get(word))
        if chosen is not None:
            check_types(value, chosen, path)
    elif isinstance(shape, ObjectShape):
        for key, inner in shape.keys.items():
            if key in shape.read:
                check_types(value.get(key), inner, at(path, key))


def _readable(shape: Shape) -> Shape:
    """The shape that a reader accepts."""
    if isinstance(shape, NamedShape):
        return _readable(shape.get())
    if isinstance(shape, Schema):
        return _readable(shape.of)
    return Either((shape.sent, *shape.also)) if isinstance(shape, Read) else shape


def _is_for(value: Any, shape: Shape) -> bool:
    """Whether a value has the JSON type of a shape."""
    match shape:
        case ObjectShape() | Tagged() | Each():
            return isinstance(value, (dict, Mapping))
        case Many():
            return isinstance(value, (list, tuple))
        case Either():
            return any(_is_for(value, inner) for inner in shape.of)
        case NamedShape():
            return _is_for(value, shape.get())
        case Read():
            return _is_for(value, shape.sent)
        case Schema():
            return _is_for(value, shape.of)
        case Value():
            kind = _type_name(value)
            return kind == shape.kind or shape.number(value) is not None
        case WordShape():
            return isinstance(value, str)
    return True


def _expected(shape: Shape) -> str:
    match _readable(shape):
        case Either(of):
            return " or ".join(dict.fromkeys(map(_expected, of)))
        case Value(kind):
            return _with_article(kind)
        case WordShape():
            return "a string"
        case Many():
            return "an array"
        case ObjectShape() | Tagged() | Each():
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


# -- sending -------------------------------------------------------------------------------------


def fits(value: Any, shape: Shape) -> bool:
    """Whether `value` could be sent, with changes if necessary."""
    return fit(value, shape, "", Edits()) is not REFUSED


def fitted(values: Any, shape: Shape) -> list[Any]:
    """The values of a list that could be sent, each in the form to send; [] if `values` is not a list."""
    fitted_values = (fit(value, shape, "", Edits()) for value in values) if isinstance(values, list) else ()
    return [value for value in fitted_values if value is not REFUSED]


def fit(value: Any, shape: Shape, path: str, edits: Edits) -> Any:
    """`value` without what `shape` does not allow; each removal is an edit with its path. REFUSED if the value cannot
    be sent at all; `value` itself if nothing had to be changed."""
    return value if shape.takes(value) else _fit(value, shape, path, edits)


def _fit(value: Any, shape: Shape, path: str, edits: Edits) -> Any:
    """`fit` for a value that failed the check of its shape."""
    if not _is_for(value, shape):
        return REFUSED
    match shape:
        case ObjectShape():
            return _fit_record(value, shape, path, edits)
        case Many():
            return _fit_list(value, shape, path, edits)
        case Tagged():
            tag = value.get(shape.tag)
            word = shape.missing if tag is None else tag
            if not isinstance(word, str):
                return REFUSED
            if word in shape.shapes:
                return _fit(value, shape.shapes[word], path, edits)
            return value if shape.leaves(word) else REFUSED
        case Either():
            return fit(value, next(inner for inner in shape.of if _is_for(value, inner)), path, edits)
        case NamedShape():
            return _fit(value, shape.get(), path, edits)
        case Read():
            return _fit(value, shape.sent, path, edits)
        case Value():
            return _bounded(value, shape, path, edits)
        case WordShape():
            return value if value in shape.words else REFUSED
        case Each():
            return _fit_each(value, shape, path, edits)
        case Schema():
            return _fit_schema(value, shape, path, edits)
    return value


def _fit_list(value: Any, shape: Many, path: str, edits: Edits) -> Any:
    takes = shape.of.takes
    items: list[Any] = []
    dropped = Edits()
    for i, item in enumerate(value):
        new = item if takes(item) else _fit(item, shape.of, f"{path}[{i}]", edits)
        if new is REFUSED:
            _drop(item, f"{path}[{i}]", dropped)
        else:
            items.append(new)
    if shape.vanishes and value and not items:
        return REFUSED
    edits.made += dropped.made
    if len(items) > shape.most:
        edits.add("setting", path, f"cut to the first {shape.most}", "Array too long.")
        items = items[: shape.most]
    return value if unchanged(items, value) else items


def _bounded(value: Any, shape: Value, path: str, edits: Edits) -> Any:
    if shape.kind == "string":
        return value if shape.takes(str(value)) else REFUSED
    if shape.kind not in ("integer", "number"):
        return value
    number = shape.number(value)
    if number is None:
        return REFUSED
    if shape.low <= number <= shape.high:
        return value
    bound = shape.low if number < shape.low else shape.high
    edits.add("setting", path, f"{brief(value)} sent as {bound}", f"Expected a value from {shape.low} to {shape.high}.")
    return bound


def _fit_each(value: Mapping[str, Any], shape: Each, path: str, edits: Edits) -> Any:
    entries: dict[str, Any] = {}
    for key, item in value.items():
        full = len(entries) >= shape.most or len(key) > shape.longest
        new = REFUSED if full else fit(item, shape.of, at(path, key), edits)
        if new is REFUSED:
            _drop(item, at(path, brief(key)), edits)
        else:
            entries[key] = new
    return value if _same_items(entries, value) else entries


def _fit_record(value: Mapping[str, Any], shape: ObjectShape, path: str, edits: Edits) -> Any:
    changes = Edits()
    fields: dict[str, Any] = {}
    for key, item in value.items():
        inner = shape.keys.get(key)
        # The items of a list are checked one by one anyway, so it is not checked as a whole first.
        if inner is not None and (
            (item is None and key in shape.nulls) or (not isinstance(inner, Many) and inner.takes(item))
        ):
            fields[key] = item
            continue
        where = at(path, key)
        if inner is None:
            changes.add("unknown_key", where, "dropped", "Unknown parameter.")
            continue
        new = _fit(item, inner, where, changes)
        if new is REFUSED:
            _drop(item, where, changes)
        else:
            fields[key] = new
    if not shape.must <= fields.keys() or (shape.needs and not any(fields.get(key) for key in shape.needs)):
        return REFUSED
    edits.made += changes.made
    return value if _same_items(fields, value) else fields


def _fit_schema(value: Any, shape: Schema, path: str, edits: Edits) -> Any:
    fitting = fit(value, shape.of, path, edits)
    if fitting is REFUSED:
        return REFUSED
    mended, changes = with_references(fitting, shape.keyword)
    for change in changes:
        edits.add("reference", path + change.path, change.detail, change.rule)
    return mended


def _same_items(new: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    return len(new) == len(value) and all(new[key] is value[key] for key in new)


def _drop(value: Any, path: str, edits: Edits) -> None:
    edits.add("unknown_value", path, f"dropped: {brief(value)}", "Invalid value.")


# -- keys alone ----------------------------------------------------------------------------------


def prune(value: Any, shape: Shape) -> Any:
    """`value` without keys that `shape` does not have; `value` itself if there are no such keys."""
    if shape.takes(value):
        return value
    if isinstance(shape, Either):
        shape = next((inner for inner in shape.of if _is_for(value, inner)), ANY)
    if isinstance(shape, Schema):
        shape = shape.of
    if isinstance(shape, Many) and isinstance(value, list):
        items = [prune(item, shape.of) for item in value]
        return value if unchanged(items, value) else items
    if isinstance(shape, Tagged) and isinstance(value, dict):
        tag = value.get(shape.tag)
        return prune(value, shape.shapes.get(shape.missing if tag is None else str(tag), ANY))
    if not isinstance(shape, ObjectShape) or not isinstance(value, dict):
        return value
    fields = {key: prune(item, shape.keys[key]) for key, item in value.items() if key in shape.keys}
    return value if _same_items(fields, value) else fields
