"""Shapes: what a provider's values may be, as data.

A shape is one of
    ANY                 whatever JSON
    Value("string")     a JSON value of one type, within bounds
    Words({...})        one of a few words
    Keys({...})         an object with these keys and no others, each may be null; a value is a shape
    Record({...})       the same, but some keys must be there, and only some may be null
    Each(shape)         an object with whatever keys, the values of one shape
    Many(shape)         a list of that shape
    Tagged("type", {})  an object whose tag picks the shape
    Loose("type", {})   the same, but an unknown tag is left alone
    Either((...))       of several shapes the one that is for the value's JSON type
What is done by them (pruned, fitted, refused) stands in `values`. Nearly every value is as it should be, so
a shape answers that first: `takes` and `reads` are made once, as functions without a look at shapes.
Order, pairing and limits of a conversation are `Rules`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from ..view.rules import NO_LIMIT

_Check = Callable[[Any], bool]


class Shape(Struct, frozen=True, dict=True):
    """What a value may be; by itself whatever JSON."""

    @cached_property
    def takes(self) -> _Check:
        """Whether a value can be sent just as it is. May say no of an unusual value (a subclass, a
        tuple) that could; never yes of one that could not."""
        return lambda value: True

    @cached_property
    def reads(self) -> _Check:
        """Whether a value that is not null has the right JSON types throughout, as far as the shape
        knows its keys; sure in the same way."""
        return lambda value: True


class Value(Shape, frozen=True):
    """A JSON value of one type. Numbers, and the lengths of strings, lie between `low` and `high`."""

    kind: Literal["string", "integer", "number", "boolean", "object", "array", "null"]
    low: float = -math.inf
    high: float = math.inf

    @cached_property
    def takes(self) -> _Check:
        """See `Shape`."""
        low, high = self.low, self.high
        if self.kind == "string" and (low > 0 or high < math.inf):
            return lambda value: type(value) is str and low <= len(value) <= high
        if self.kind == "integer":
            return lambda value: type(value) is int and low <= value <= high
        if self.kind == "number":
            return lambda value: type(value) in _NUMBERS and low <= value <= high and -math.inf < value < math.inf
        return self.reads

    @cached_property
    def reads(self) -> _Check:
        """See `Shape`."""
        if self.kind == "number":
            return lambda value: type(value) in _NUMBERS
        found = _TYPES[self.kind]
        return lambda value: type(value) is found


class Words(Shape, frozen=True):
    """One of a few words."""

    words: frozenset[str]

    @cached_property
    def takes(self) -> _Check:
        """See `Shape`."""
        known = self.words
        return lambda value: type(value) is str and value in known

    @cached_property
    def reads(self) -> _Check:
        """See `Shape`."""
        return lambda value: type(value) is str


class Keys(Shape, frozen=True):
    """An object with these keys and no others. Of `needs`, at least one has a value."""

    keys: Mapping[str, Shape]
    needs: frozenset[str] = frozenset()

    @property
    def required(self) -> frozenset[str]:
        """Keys that must be there."""
        return frozenset()

    @property
    def nullable(self) -> frozenset[str]:
        """Keys whose value may be null."""
        return frozenset(self.keys)

    @cached_property
    def takes(self) -> _Check:
        """See `Shape`."""
        nullable = self.nullable
        checks = {key: _or_null(shape.takes) if key in nullable else shape.takes for key, shape in self.keys.items()}
        return _object_check(checks, self.required, self.needs)

    @cached_property
    def reads(self) -> _Check:
        """See `Shape`."""
        checks = {key: shape.reads for key, shape in self.keys.items() if shape != ANY}

        def reads(value: Any) -> bool:
            if type(value) is not dict:
                return False
            for key, item in value.items():
                if item is not None and key in checks and not checks[key](item):
                    return False
            return True

        return reads


class Record(Keys, frozen=True):
    """An object with these keys and no others: all of `must` are there, only `nulls` may be null."""

    must: frozenset[str] = frozenset()
    nulls: frozenset[str] = frozenset()

    @property
    def required(self) -> frozenset[str]:
        """Keys that must be there."""
        return self.must

    @property
    def nullable(self) -> frozenset[str]:
        """Keys whose value may be null."""
        return self.nulls


class Each(Shape, frozen=True):
    """An object of at most `most` keys, each at most `longest` characters long."""

    of: Shape
    most: int = NO_LIMIT
    longest: int = NO_LIMIT

    @cached_property
    def takes(self) -> _Check:
        """See `Shape`."""
        check, most, longest = self.of.takes, self.most, self.longest

        def takes(value: Any) -> bool:
            if type(value) is not dict or len(value) > most:
                return False
            return all(type(key) is str and len(key) <= longest and check(item) for key, item in value.items())

        return takes

    @cached_property
    def reads(self) -> _Check:
        """See `Shape`."""
        return lambda value: type(value) is dict


class Many(Shape, frozen=True):
    """A list of things of one shape."""

    of: Shape

    @cached_property
    def takes(self) -> _Check:
        """See `Shape`."""
        return _list_check(self.of.takes)

    @cached_property
    def reads(self) -> _Check:
        """See `Shape`."""
        return _list_check(self.of.reads)


class Tagged(Shape, frozen=True):
    """An object whose value at `tag` picks the shape; `missing` serves where there is no tag."""

    tag: str
    shapes: Mapping[str, Shape]
    missing: str = ""

    @cached_property
    def takes(self) -> _Check:
        """See `Shape`."""
        checks = {tag: shape.takes for tag, shape in self.shapes.items()}
        return _tagged_check(self.tag, checks, self.missing, unknown=isinstance(self, Loose))

    @cached_property
    def reads(self) -> _Check:
        """See `Shape`."""
        checks = {tag: shape.reads for tag, shape in self.shapes.items()}
        return _tagged_check(self.tag, checks, self.missing, unknown=True)


class Loose(Tagged, frozen=True):
    """As Tagged, for servers that know more tags than we do."""


class Either(Shape, frozen=True):
    """Several shapes for different JSON types."""

    of: tuple[Shape, ...]

    @cached_property
    def takes(self) -> _Check:
        """See `Shape`."""
        return _any_check([shape.takes for shape in self.of])

    @cached_property
    def reads(self) -> _Check:
        """See `Shape`."""
        return _any_check([shape.reads for shape in self.of])


# -- the checks ----------------------------------------------------------------------------------

_NUMBERS = frozenset({int, float})
_TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}


def _or_null(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


def _object_check(checks: Mapping[str, _Check], must: frozenset[str], needs: frozenset[str]) -> _Check:
    def takes(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            if key not in checks or not checks[key](item):
                return False
        return must <= value.keys() and (not needs or any(value.get(key) for key in needs))

    return takes


def _list_check(check: _Check) -> _Check:
    def takes(value: Any) -> bool:
        if type(value) is not list:
            return False
        return all(map(check, value))

    return takes


def _tagged_check(tag: str, checks: Mapping[str, _Check], missing: str, *, unknown: bool) -> _Check:
    def takes(value: Any) -> bool:
        if type(value) is not dict:
            return False
        word = value.get(tag)
        if word is None:
            word = missing
        elif type(word) is not str:
            return False
        return checks[word](value) if word in checks else unknown

    return takes


def _any_check(checks: list[_Check]) -> _Check:
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) or second(value)
    return lambda value: any(check(value) for check in checks)


# -- shapes in short -----------------------------------------------------------------------------

ANY = Shape()
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
