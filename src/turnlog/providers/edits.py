"""How sanitizers change a request and record what they changed.

Nothing is changed in place: a changed object is a new one, an unchanged object is returned as it is.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

from ..errors import FormatError
from ..log.messages import unchanged
from ..models.target import Target
from ..view.types import Edit
from .protocol import Rendered

Object = dict[str, Any]
Change = Callable[[Object, str], Object]
"""Returns the changed object; the second argument is its path."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60


class Edits:
    """The edits of one request, in order. `path` is the path of the object to change, empty for the request itself;
    `rule` is the error that the provider would have returned."""

    def __init__(self) -> None:
        self.made: list[Edit] = []

    def add(self, kind: str, path: str, detail: str, rule: str) -> None:
        """Record a change that was made at `path`."""
        self.made.append(Edit(kind, detail, rule=rule, path=path))

    def drop(
        self, holder: Object, key: str, rule: str, *, path: str = "", reason: str = "", kind: str = "setting"
    ) -> Object:
        """`holder` without `key`."""
        self.add(kind, at(path, key), f"dropped: {reason}" if reason else "dropped", rule)
        return {name: value for name, value in holder.items() if name != key}

    def put(
        self,
        holder: Object,
        key: str,
        value: Any,
        rule: str,
        *,
        path: str = "",
        detail: str = "",
        kind: str = "setting",
    ) -> Object:
        """`holder` with another value at `key`."""
        was = f", was {brief(holder[key])}" if holder.get(key) is not None else ""
        self.add(kind, at(path, key), detail or f"set to {brief(value)}{was}", rule)
        return {**holder, key: value}


def at(path: str, key: str) -> str:
    """The path of a key of the object at `path`."""
    return f"{path}.{key}" if path else key


def changed(holder: Object, key: str, path: str, change: Change) -> Object:
    """`holder`, whose path is `path`, with `change` applied to each object in the list at `key`, or to the single
    object at `key`."""
    given, where = holder.get(key), at(path, key)
    if isinstance(given, dict):
        new: Any = change(given, where)
        return holder if new is given else {**holder, key: new}
    if not isinstance(given, list):
        return holder
    new = [change(item, f"{where}[{i}]") if isinstance(item, dict) else item for i, item in enumerate(given)]
    return holder if unchanged(new, given) else {**holder, key: new}


def without_lost_choice(body: Object, choice: str | None, names: Collection[str], edits: Edits) -> Object:
    """The request without a tool choice that names a tool which the request does not declare. `choice` is the tool
    choice in common words, `names` are the tools that it may name."""
    name = (choice or "").partition(":")[2]
    if not name or name in names or "tool_choice" not in body:
        return body
    rule = f"Tool choice {name!r} not found in 'tools' parameter."
    return edits.drop(body, "tool_choice", rule, reason=f"no tool {name!r}")


Steps = Callable[[Object, Target, Edits], Object]
"""Changes a request and records its edits."""


def sanitizer(known: Collection[str]) -> Callable[[Steps], Callable[[Object, Target], Rendered]]:
    """Make a provider's `sanitize` from a function that changes a request and records its edits. `sanitize` raises
    FormatError for a request that is nested too deeply. For a compatible server, keys that are not `known` are sent
    unchanged, because its settings are not known."""

    def sanitizing(steps: Steps) -> Callable[[Object, Target], Rendered]:
        @wraps(steps)
        def sanitize(request: Object, target: Target) -> Rendered:
            edits = Edits()
            others = {key: request[key] for key in request if key not in known} if target.compatible else {}
            ours = {key: request[key] for key in request if key in known} if others else request
            try:
                body = steps(ours, target, edits)
            except RecursionError:
                raise FormatError("the request body is nested too deeply to be read", path="body") from None
            return Rendered(body={**body, **others} if others else body, edits=tuple(edits.made))

        return sanitize

    return sanitizing


def brief(value: Any) -> str:
    """A value, shortened to fit into a sentence."""
    try:
        shown = _SHORT.repr(value)
    except ValueError:  # an integer with thousands of digits
        return f"a value of type {type(value).__name__}"
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
