"""How a provider spelled a value, stored as the difference from turnlog's default rendering.

A delta is a dict of up to four entries:
    "+": {key: value}   keys that were present and that the default does not have (or has
                        with another value)
    "-": [key, ...]     keys that the default has and that were missing
    "=": {ours: theirs} a key in another spelling (camelCase or snake_case), where both are the same key
    "~": {key: delta}   the delta of a nested object
`spell(default, difference(default, seen)) == seen` for all dicts. Each provider has its own `Forms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from ..log.messages import Form, Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult

# -- reading ---------------------------------------------------------------------------------------
#
# Reading values from JSON objects, for parsers.


def string(holder: Mapping[str, Any], key: str) -> str:
    """The string at `key`; "" if there is no string."""
    value = holder.get(key)
    return value if isinstance(value, str) else ""


def inner(holder: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object at `key`; an empty object if there is no object."""
    value = holder.get(key)
    return value if isinstance(value, Mapping) else {}


def without(holder: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """`holder` without these keys."""
    return {key: value for key, value in holder.items() if key not in keys}


_V = TypeVar("_V", Media, Message, Reasoning, Text, Tool, ToolCall, ToolResult)


def same(left: Any, right: Any) -> bool:
    """Equality that distinguishes 1 from True and 1 from 1.0, at every depth."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return False
        for (
            key,
            value,
        ) in left.items():  # a plain loop: `all` takes twice as long
            other = right[key]
            if isinstance(value, (dict, list)):
                if not same(value, other):
                    return False
            elif value is not other and (type(value) is not type(other) or value != other):
                return False
        return True
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def difference(
    default: Mapping[str, Any], seen: Mapping[str, Any], *, two_spellings: bool = False
) -> dict[str, Any] | None:
    """The delta that turns `default` into `seen`; None if they are the same. With `two_spellings`, camelCase and
    snake_case are the same key."""
    if same(default, seen):
        return None
    added: dict[str, Any] = {}
    missing: list[str] = []
    respelled: dict[str, str] = {}
    nested: dict[str, Any] = {}
    matched: set[str] = set()
    for key, value in default.items():
        theirs = key if key in seen or not two_spellings else _other_spelling(key)
        if theirs not in seen:
            missing.append(key)
            continue
        matched.add(theirs)
        if theirs != key:
            respelled[key] = theirs
        other = seen[theirs]
        if (value is other and not isinstance(value, (dict, list))) or same(value, other):
            continue
        if isinstance(value, dict) and isinstance(other, dict):
            nested[key] = difference(value, other, two_spellings=two_spellings)
        else:
            added[theirs] = other
    if len(matched) < len(seen):
        added.update({key: value for key, value in seen.items() if key not in matched})
    delta = {"+": added, "-": missing, "=": respelled, "~": nested}
    return {sign: entry for sign, entry in delta.items() if entry} or None


def spell(default: Mapping[str, Any], delta: Mapping[str, Any] | None) -> dict[str, Any]:
    """`default` in the spelling of `delta`; the inverse of `difference`.

    If an id or a name was missing or null when the delta was made and `default` has one now, repair has set it, so it
    is kept.
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


class Forms(Struct, frozen=True):
    """Makes and reads the forms of one provider; forms of other providers are ignored.

    A shape is a list of words separated by spaces, some of the form `key=value`. With `two_spellings`, the provider
    accepts each key in camelCase and in snake_case.
    """

    provider: str
    two_spellings: bool = False

    def own(self, form: Form | None) -> Form | None:
        """`form`, if it is this provider's."""
        return form if form is not None and form.provider == self.provider else None

    def shape(self, form: Form | None) -> str:
        """The shape of this provider's form; "" for a form of another provider."""
        return form.shape if form is not None and form.provider == self.provider else ""

    def words(self, form: Form | None) -> list[str]:
        """The words of the shape."""
        return self.shape(form).split()

    def says(self, form: Form | None, word: str) -> bool:
        """Whether the shape contains a word."""
        return form is not None and form.provider == self.provider and word in form.shape.split()

    def value(self, form: Form | None, key: str) -> str:
        """The value of the word `key=value` in the shape; "" if there is no such word."""
        shape = self.shape(form)
        if key not in shape:
            return ""
        return next((word[len(key) + 1 :] for word in shape.split() if word.startswith(f"{key}=")), "")

    def delta(self, form: Form | None) -> dict[str, Any] | None:
        """The delta of this provider's form."""
        return form.delta if form is not None and form.provider == self.provider else None

    def spelled(self, default: dict[str, Any], form: Form | None) -> dict[str, Any]:
        """`default` in the spelling of this provider's form."""
        delta = self.delta(form)
        return spell(default, delta) if delta else default

    def shaped(self, *words: str) -> Form | None:
        """A form made of words only; None if there are no words."""
        shape = " ".join(filter(None, words))
        return Form(self.provider, shape) if shape else None

    def formed(
        self, value: _V, render: Callable[[_V], Mapping[str, Any] | None], seen: Mapping[str, Any], *words: str
    ) -> _V:
        """`value`, which has no form, with a form made of these words and of the delta from its default rendering
        (given these words) to `seen`."""
        shaped = self.shaped(*words) if words else None
        form = self.made(render(replace(value, form=shaped) if shaped else value) or {}, seen, *words)
        return replace(value, form=form) if form else value

    def made(self, default: Mapping[str, Any], seen: Mapping[str, Any], *words: str) -> Form | None:
        """The form of a value that was read as `seen` and has this default rendering; None if there is nothing to
        store."""
        delta = difference(default, seen, two_spellings=self.two_spellings)
        shape = " ".join(filter(None, words)) if words else ""
        return Form(self.provider, shape, delta) if delta or shape else None


_IDENTITY = frozenset({"call_id", "id", "name", "tool_call_id", "tool_use_id"})

_BOUNDARY = lazy_pattern(r"(?<=[a-z0-9])([A-Z])")


def _other_spelling(key: str) -> str:
    """camelCase for snake_case, and vice versa."""
    if "_" in key:
        head, *rest = key.split("_")
        return head + "".join(word[:1].upper() + word[1:] for word in rest)
    return _BOUNDARY.sub(lambda match: "_" + match[1].lower(), key)
