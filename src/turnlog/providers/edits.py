"""How sanitizers change a request and record what they changed.

Nothing is changed in place: a changed object is a new one, an unchanged object is returned as it is.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Collection
from functools import wraps
from typing import Any

from .._platform.units import an
from ..errors import FormatError
from ..log.messages import Form, extra_keys, unchanged
from ..models.target import Target
from ..view.types import Edit, Loss, Shown
from .protocol import Rendered

Object = dict[str, Any]
Change = Callable[[Object, str], Object]
"""A function that returns the changed object; the second argument is the object's path."""

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
"""A function that changes a request and records its edits."""


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


# -- losses ----------------------------------------------------------------------------------------
#
# How renderers record what a request cannot express.


class Losses:
    """The losses of one request, in order, with the records of the current message.

    With `apart`, each key of another provider's form is a separate loss; otherwise all keys of a form are one.
    """

    def __init__(self, provider: str, *, apart: bool = False) -> None:
        self.made: list[Loss] = []
        self.records: tuple[int, ...] = ()
        self._provider = provider
        self._apart = apart

    def add(self, kind: str, detail: str) -> None:
        """Record that something of the current message is left out or moved."""
        self.made.append(Loss(kind, detail, self.records))

    def begin(self, shown: Shown) -> None:
        """Start the next message, and record the keys of its form that cannot be sent."""
        message, self.records = shown.message, shown.records
        if message.form is not None:
            self.extras(message.form, f"{an(message.role)} message")

    def extras(self, form: Form | None, what: str) -> None:
        """Record the keys in another provider's form of `what`, because they cannot be sent."""
        if form is None or form.provider == self._provider:
            return
        keys = extra_keys(form)
        for some in keys if self._apart else [", ".join(keys)] if keys else ():
            self.add("extra", f"{some} of {what} left out")

    def author(self, name: str) -> None:
        """Record that an author's name cannot be sent."""
        if name:
            self.add("extra", f"author's name {name!r} left out")
