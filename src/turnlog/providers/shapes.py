"""Shapes: which keys a provider's objects may have, as data, and pruning by them.

A shape is one of
    ANY                 whatever JSON
    Keys({...})         an object with these keys and no others; a value is a shape
    Tagged("type", {})  an object whose tag picks the shape; an unknown tag is left alone
    Many(shape)         a list of that shape; other values are left alone
    OneOf(words)        one of a few words, or null
Shapes say what may ride along, not what must be there: order, pairing and limits are `Rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..view.shown import Edit

__all__ = ["ANY", "Keys", "Many", "OneOf", "Shape", "Tagged", "conforms", "prune"]


class Any_(Struct, frozen=True):
    """Whatever JSON."""


class Keys(Struct, frozen=True):
    """An object with these keys and no others. Of `needs`, at least one has a value."""

    keys: Mapping[str, Shape]
    needs: frozenset[str] = frozenset()


class Tagged(Struct, frozen=True):
    """An object whose value at `tag` picks the shape; `missing` serves where there is no tag."""

    tag: str
    shapes: Mapping[str, Shape]
    missing: str = ""


class Many(Struct, frozen=True):
    """A list of things of one shape."""

    of: Shape


class OneOf(Struct, frozen=True):
    """One of a few words, or null."""

    words: frozenset[str]


Shape = Any_ | Keys | Tagged | Many | OneOf

ANY = Any_()


def prune(value: Any, shape: Shape, path: str, edits: list[Edit]) -> Any:
    """`value` without keys that `shape` does not have; each dropped one is an edit naming its path.

    Returns `value` itself where nothing had to go.
    """
    if isinstance(shape, Many):
        if not isinstance(value, list):
            return value
        pruned = [prune(item, shape.of, f"{path}[{i}]", edits) for i, item in enumerate(value)]
        return value if all(new is old for new, old in zip(pruned, value, strict=True)) else pruned
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
        if isinstance(inner, OneOf) and not conforms(item, inner):
            changed = True
            edits.append(Edit("unknown_value", f"{where} dropped: {item!r}", rule=f"Invalid value: '{item}'."))
            continue
        if inner is None:
            changed = True
            edits.append(Edit("unknown_key", f"{where} dropped", rule=f"Unknown parameter: '{where}'."))
            continue
        result[key] = prune(item, inner, where, edits)
        changed = changed or result[key] is not item
    return result if changed else value


def conforms(value: Any, shape: Shape) -> bool:
    """Whether the provider knows every tag and word in `value` and finds what it needs; keys it does
    not know do not matter here, `prune` drops them."""
    if isinstance(shape, Many):
        return not isinstance(value, list) or all(conforms(item, shape.of) for item in value)
    if isinstance(shape, OneOf):
        return value is None or (isinstance(value, str) and value in shape.words)
    if not isinstance(value, dict):
        return True
    if isinstance(shape, Tagged):
        chosen = shape.shapes.get(str(value.get(shape.tag, shape.missing)))
        return chosen is not None and conforms(value, chosen)
    if not isinstance(shape, Keys):
        return True
    if shape.needs and not any(value.get(key) for key in shape.needs):
        return False
    return all(conforms(item, shape.keys[key]) for key, item in value.items() if key in shape.keys)
