"""How a provider's spelling of a value is kept: the difference to our default rendering.

A delta is a dict of up to four entries:
    "+": {key: value}   keys that were there and that our rendering does not write (or writes
                        with another value)
    "-": [key, ...]     keys that our rendering writes and that were not there
    "=": {ours: theirs} the same key in another spelling (camelCase against snake_case)
    "~": {key: delta}   the same again inside a nested object
`spell(default, difference(default, seen)) == seen` for all dicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..log.messages import Form


def same(left: Any, right: Any) -> bool:
    """Equality that tells 1 from True and 1 from 1.0, at every depth."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return False
        for key, value in left.items():  # a plain loop: all that is read is compared, and `all` takes twice as long
            other = right[key]
            if (value is not other or isinstance(value, (dict, list))) and not same(value, other):
                return False
        return True
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def difference(default: Mapping[str, Any], seen: Mapping[str, Any]) -> dict[str, Any] | None:
    """What turns `default` into `seen`, or None if nothing does."""
    if same(default, seen):
        return None
    added: dict[str, Any] = {}
    missing: list[str] = []
    respelled: dict[str, str] = {}
    nested: dict[str, Any] = {}
    matched: set[str] = set()
    for key, value in default.items():
        theirs = key if key in seen else _other_spelling(key)
        if theirs not in seen:
            missing.append(key)
            continue
        matched.add(theirs)
        if theirs != key:
            respelled[key] = theirs
        other = seen[theirs]
        if same(value, other):
            continue
        if isinstance(value, dict) and isinstance(other, dict):
            nested[key] = difference(value, other)
        else:
            added[theirs] = other
    added.update({key: value for key, value in seen.items() if key not in matched})
    delta = {"+": added, "-": missing, "=": respelled, "~": nested}
    return {sign: entry for sign, entry in delta.items() if entry} or None


def spell(default: Mapping[str, Any], delta: Mapping[str, Any] | None) -> dict[str, Any]:
    """`default` in the spelling that `delta` holds; the opposite of `difference`.

    An id or a name that `default` has and that was not there, or was null, has been given by repair
    since: it stays.
    """
    if not delta:
        return dict(default)
    respelled = delta.get("=", {})
    missing = set(delta.get("-", ()))
    nested = delta.get("~", {})
    result: dict[str, Any] = {}
    for key, value in default.items():
        given = key in _IDENTITY and bool(value)
        if key in missing and not given:
            continue
        inner = nested.get(key)
        result[respelled.get(key, key)] = (
            spell(value, inner) if inner is not None and isinstance(value, dict) else value
        )
    for key, value in delta.get("+", {}).items():
        if value or not (key in _IDENTITY and result.get(key)):
            result[key] = value
    return result


def formed(provider: str, default: Mapping[str, Any], seen: Mapping[str, Any], shape: str = "") -> Form | None:
    """The form of a value whose default rendering is `default` and that was seen as `seen`."""
    delta = difference(default, seen)
    return Form(provider=provider, shape=shape, delta=delta) if delta or shape else None


_IDENTITY = frozenset({"call_id", "id", "name", "tool_call_id", "tool_use_id"})

_BOUNDARY = re.compile(r"(?<=[a-z0-9])([A-Z])")


def _other_spelling(key: str) -> str:
    """camelCase for snake_case and the other way round."""
    if "_" in key:
        head, *rest = key.split("_")
        return head + "".join(word[:1].upper() + word[1:] for word in rest)
    return _BOUNDARY.sub(lambda match: "_" + match[1].lower(), key)
