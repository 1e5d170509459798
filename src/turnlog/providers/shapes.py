"""Shapes: which keys a provider's objects may have, as data, and pruning by them.

A shape is one of
    ANY                 whatever JSON
    Keys({...})         an object with these keys and no others; a value is a shape
    Tagged("type", {})  an object whose tag picks the shape; an unknown tag is left alone
    Many(shape)         a list of that shape; other values are left alone
Shapes say what may ride along, not what must be there: order, pairing and limits are `Rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..view.shown import Edit

__all__ = ["ANY", "Keys", "Many", "Shape", "Tagged", "prune"]


class Any_(Struct, frozen=True):
    """Whatever JSON."""


class Keys(Struct, frozen=True):
    """An object with these keys and no others."""

    keys: Mapping[str, Shape]


class Tagged(Struct, frozen=True):
    """An object whose value at `tag` picks the shape; `missing` serves where there is no tag."""

    tag: str
    shapes: Mapping[str, Shape]
    missing: str = ""


class Many(Struct, frozen=True):
    """A list of things of one shape."""

    of: Shape


Shape = Any_ | Keys | Tagged | Many

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
        if inner is None:
            changed = True
            edits.append(Edit("unknown_key", f"{where} dropped", rule=f"Unknown parameter: '{where}'."))
            continue
        result[key] = prune(item, inner, where, edits)
        changed = changed or result[key] is not item
    return result if changed else value
