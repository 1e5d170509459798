"""What becomes of values that no provider would take: refused, fitted, pruned; `shapes` says which those are.

`check_types` refuses what is of a wrong type, for readers; `fit` leaves it out, for what is to be sent; `prune`
leaves out only keys and words that are not known; `misfit` asks a type of msgspec's. A value that is
as it should be costs one look; only others are walked with their path at hand.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from .._platform.msgspec_init import ready
from ..errors import FormatError
from ..log.messages import nested_deeper, unchanged
from ..view.types import Edit
from .shapes import ANY, Each, Either, Keys, Loose, Many, Shape, Tagged, Value, Words

REFUSED = object()
"""What `fit` returns for a value of which nothing can be sent."""

_DEEPEST = 200
"""Levels of nesting that a body or a response may have: what a record can hold (docs/format.md)."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


# -- reading -------------------------------------------------------------------------------------


def check_depth(value: Any) -> None:
    """Raises FormatError for what is nested so deeply that nobody means it, and Python gives up."""
    path = nested_deeper(value, _DEEPEST)
    if path is not None:
        raise FormatError(f"nested more than {_DEEPEST} levels deep", path=path[:80])


def check_types(value: Any, shape: Shape, path: str) -> None:
    """Raises FormatError, naming the path, where a key that `shape` knows has a value of a wrong JSON type.

    Null stands for nothing and passes; unknown keys, words out of place and missing keys do too: they
    can be mended.
    """
    if value is None or shape == ANY or shape.reads(value):
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
        case Keys() | Tagged() | Each():
            return isinstance(value, (dict, Mapping))
        case Many():
            return isinstance(value, (list, tuple))
        case Either():
            return any(_is_for(value, inner) for inner in shape.of)
        case Value():
            kind = _type_name(value)
            return kind == shape.kind or (kind == "integer" and shape.kind == "number")
        case Words():
            return isinstance(value, str)
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


# -- sending -------------------------------------------------------------------------------------


def fits(value: Any, shape: Shape) -> bool:
    """Whether `value` could be sent, with a change at most."""
    return fit(value, shape, "", []) is not REFUSED


def fit(value: Any, shape: Shape, path: str, edits: list[Edit]) -> Any:
    """`value` without what `shape` does not take, each thing left out an edit that names its path;
    REFUSED if the value cannot be sent at all. Returns `value` itself where nothing had to change."""
    return value if shape.takes(value) else _fit(value, shape, path, edits)


def _fit(value: Any, shape: Shape, path: str, edits: list[Edit]) -> Any:
    """`fit` for what is not taken as it is."""
    if not _is_for(value, shape):
        return REFUSED
    match shape:
        case Keys():
            return _fit_keys(value, shape, path, edits)
        case Many():
            return _fit_list(value, shape, path, edits)
        case Tagged():
            tag = value.get(shape.tag)
            chosen = shape.shapes.get(shape.missing if tag is None else tag) if isinstance(tag, str | None) else None
            if chosen is None:
                return value if isinstance(shape, Loose) else REFUSED
            return _fit(value, chosen, path, edits)
        case Either():
            return fit(value, next(inner for inner in shape.of if _is_for(value, inner)), path, edits)
        case Value():
            return _bounded(value, shape, path, edits)
        case Words():
            return value if value in shape.words else REFUSED
        case Each():
            return _fit_each(value, shape, path, edits)
    return value


def _fit_list(value: Any, shape: Many, path: str, edits: list[Edit]) -> Any:
    takes = shape.of.takes
    kept: list[Any] = []
    dropped: list[Edit] = []
    same = True
    for i, item in enumerate(value):
        new = item if takes(item) else _fit(item, shape.of, f"{path}[{i}]", edits)
        same = same and new is item
        if new is REFUSED:
            dropped.append(_dropped(f"{path}[{i}]", item))
        else:
            kept.append(new)
    edits += dropped
    return value if same else kept


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
            f"{brief(value)} sent as {bound}",
            rule=f"Expected a value from {shape.low} to {shape.high}.",
            path=path,
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
    keys, must, nulls = shape.keys, shape.required, shape.nullable
    changes: list[Edit] = []
    kept: dict[str, Any] = {}
    for key, item in value.items():
        inner = keys.get(key)
        # Something in here is not taken. If it is in a list, that is looked through item by item anyway.
        if inner is not None and (
            (item is None and key in nulls) or (not isinstance(inner, Many) and inner.takes(item))
        ):
            kept[key] = item
            continue
        where = f"{path}.{key}" if path else key
        if inner is None:
            changes.append(Edit("unknown_key", "dropped", rule="Unknown parameter.", path=where))
            continue
        new = _fit(item, inner, where, changes)
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
    return Edit("unknown_value", f"dropped: {brief(value)}", rule="Invalid value.", path=where)


def brief(value: Any) -> str:
    """A value, as far as it can be shown in a sentence."""
    try:
        shown = _SHORT.repr(value)
    except ValueError:  # an integer of thousands of digits
        return _type_of(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


# -- keys and words alone ------------------------------------------------------------------------


def prune(value: Any, shape: Shape, path: str, edits: list[Edit]) -> Any:
    """`value` without keys that `shape` does not have; each dropped one is an edit naming its path.

    Returns `value` itself where nothing had to go.
    """
    if shape.takes(value):
        return value
    if isinstance(shape, Many):
        if not isinstance(value, list):
            return value
        pruned = [prune(item, shape.of, f"{path}[{i}]", edits) for i, item in enumerate(value)]
        return value if unchanged(pruned, value) else pruned
    if not isinstance(value, dict):
        return value
    if isinstance(shape, Tagged):
        chosen = shape.shapes.get(str(value.get(shape.tag, shape.missing)))
        return value if chosen is None else prune(value, chosen, path, edits)
    if not isinstance(shape, Keys):
        return value
    result: dict[str, Any] = {}
    changed = False
    for key, item in value.items():
        where = f"{path}.{key}" if path else key
        inner = shape.keys.get(key)
        if inner is None:
            changed = True
            edits.append(Edit("unknown_key", "dropped", rule="Unknown parameter.", path=where))
            continue
        result[key] = prune(item, inner, where, edits)
        changed = changed or result[key] is not item
    return result if changed else value


class Later(Struct, frozen=True, dict=True):
    """A type of msgspec's that is made when it is first asked for: to make the hundred of them that a provider
    has takes longer than all the rest of importing it."""

    make: Callable[[], Any]

    @cached_property
    def kind(self) -> Any:
        """The type."""
        return ready(self.make())

    def __or__(self, other: Any) -> Later:
        return Later(lambda: self.kind | made(other))

    def __ror__(self, other: Any) -> Later:
        return Later(lambda: made(other) | self.kind)


def made(kind: Any) -> Any:
    """The type itself, of one that may be a `Later`."""
    return kind.kind if isinstance(kind, Later) else kind


def misfit(value: Any, kind: Any, *, strict: bool = True) -> str:
    """What is wrong with `value` as a `kind`, a type of msgspec's or a `Later`; empty if nothing is. If not `strict`,
    numbers may be written as strings."""
    try:
        msgspec.convert(value, made(kind), strict=strict)
    except (msgspec.ValidationError, RecursionError, UnicodeError) as error:
        return str(error)
    return ""
