"""Shapes: the values that a wire format allows, as data.

A shape is one of
    ANY                 any JSON
    Value("string")     a JSON value of one type, within bounds
    WordShape({...})    one of a few words
    ObjectShape({...})  an object with these keys and no others; a value is a shape
    Each(shape)         an object with any keys, the values of one shape
    Many(shape)         a list of that shape
    Tagged("type", {})  an object whose tag picks the shape
    Either((...))       several shapes for different JSON types
    Read(shape, (...))  one shape to send, and others that a reader understands too
    Schema(shape)       a JSON schema of that shape, whose references lead somewhere
    NamedShape(f)       a shape that contains itself
`record` and `words` are short notations for most of them.

Most values are fine, so each shape has two fast checks, built once, on first use: `takes` (can the value be sent as it
is?) and `reads` (does it have the JSON types that its reader relies on?). Only a value that fails its check is walked
(`walk.py`). The order of a conversation, pairing and limits over a whole request are `Rules`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct

from ..._platform.lazy import cached_property, lazy_pattern
from ...log.references import with_references
from ...view.rules import NO_LIMIT

Check = Callable[[Any], bool]


class Shape(Struct, frozen=True, dict=True):
    """The allowed values; the base class allows any JSON."""

    @cached_property
    def takes(self) -> Check:
        """Whether a value can be sent unchanged. False for some unusual values that could be sent (a subclass, a
        tuple); never true for a value that could not."""
        return _check(self, reading=False)

    @cached_property
    def reads(self) -> Check:
        """Whether a value other than null has the JSON types that its reader relies on; false for some unusual
        values."""
        return _check(self, reading=True)


class Value(Shape, frozen=True):
    """A JSON value of one type. Numbers, and the lengths of strings, are between `low` and `high`; strings match
    `pattern`. A `quoted` number may be written as a string, as proto3 JSON allows."""

    kind: Literal["string", "integer", "number", "boolean", "object", "array", "null"]
    low: float = -math.inf
    high: float = math.inf
    pattern: str = ""
    quoted: bool = False

    def number(self, value: Any) -> float | None:
        """The finite number in a value of this shape, or None."""
        if self.kind not in ("integer", "number"):
            return None
        if isinstance(value, str):
            value = float(value) if self.quoted and _QUOTED.fullmatch(value) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not -math.inf < value < math.inf:
            return None
        whole = isinstance(value, int) or (self.quoted and value == int(value))
        return value if whole or self.kind == "number" else None


class WordShape(Shape, frozen=True):
    """One of a few words."""

    words: frozenset[str]


class ObjectShape(Shape, frozen=True):
    """An object with these keys and no others.

    `must` are required, only `nulls` may be null, and at least one of `needs` has a value. `read` are the keys whose
    JSON types a reader relies on.
    """

    keys: Mapping[str, Shape]
    must: frozenset[str] = frozenset()
    nulls: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    read: frozenset[str] = frozenset()


class Each(Shape, frozen=True):
    """An object of at most `most` keys, each at most `longest` characters long."""

    of: Shape
    most: int = NO_LIMIT
    longest: int = NO_LIMIT


class Many(Shape, frozen=True):
    """A list of at most `most` values of one shape. If it `vanishes`, it is removed when all its values are refused."""

    of: Shape
    most: int = NO_LIMIT
    vanishes: bool = False


class Tagged(Shape, frozen=True):
    """An object whose value at `tag` selects the shape; without a tag, `missing` is the tag.

    An object with an unknown tag is not changed if the tag matches the pattern `others`: servers may know more tags
    than turnlog. Readers also understand the tags in `read`, which are not sent.
    """

    tag: str
    shapes: Mapping[str, Shape]
    missing: str = ""
    others: str = ""
    read: Mapping[str, Shape] = {}

    @cached_property
    def leaves(self) -> Check:
        """Whether an object with this unknown tag is not changed."""
        match = re.compile(self.others).fullmatch
        return lambda tag: bool(self.others) and match(tag) is not None


class Either(Shape, frozen=True):
    """Several shapes for different JSON types."""

    of: tuple[Shape, ...]


class Read(Shape, frozen=True):
    """One shape to send; a reader also understands the shapes `also`, which have other JSON types."""

    sent: Shape
    also: tuple[Shape, ...]


class Schema(Shape, frozen=True):
    """A JSON schema: a value of the shape `of` in which each `keyword` leads to a schema, read from its root."""

    of: Shape
    keyword: str = "$ref"


class NamedShape(Shape, frozen=True):
    """The shape that a function returns, for a shape that contains itself."""

    get: Callable[[], Shape]


# -- the checks ----------------------------------------------------------------------------------


def _check(shape: Shape, *, reading: bool) -> Check:
    """Build a shape's `takes` or `reads`: a function that no longer needs the shape."""
    inner: Callable[[Shape], Check] = attrgetter("reads" if reading else "takes")
    match shape:
        case Value():
            return _type_check(shape) if reading else _value_check(shape)
        case WordShape(known):
            return (
                (lambda value: type(value) is str) if reading else lambda value: type(value) is str and value in known
            )
        case ObjectShape():
            return _readable_check(shape) if reading else _record_check(shape)
        case Each():
            return (lambda value: type(value) is dict) if reading else _each_check(shape)
        case Many(of, most):
            return _list_check(inner(of), NO_LIMIT if reading else most)
        case Tagged(tag, shapes, missing, _, read):
            checks = {word: inner(of) for word, of in ({**read, **shapes} if reading else shapes).items()}
            return _tagged_check(tag, checks, missing, (lambda word: True) if reading else shape.leaves)
        case Either(of):
            return _any_check([inner(option) for option in of])
        case Read(sent, also):
            return _any_check([inner(option) for option in ((sent, *also) if reading else (sent,))])
        case Schema(of, keyword):
            check = inner(of)
            return check if reading else lambda value: check(value) and not with_references(value, keyword)[1]
        case NamedShape(get):
            return lambda value: inner(get())(value)
    return lambda value: True


_NUMBERS = frozenset({int, float})
_QUOTED = lazy_pattern(r"-?\d{1,300}(\.\d+)?([eE][-+]?\d{1,3})?")
JSON_TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}


def _type_check(shape: Value) -> Check:
    if shape.kind == "number":
        return lambda value: type(value) in _NUMBERS
    expected = JSON_TYPES[shape.kind]
    return lambda value: type(value) is expected


def _value_check(shape: Value) -> Check:
    low, high = shape.low, shape.high
    if shape.quoted:
        return lambda value: (number := shape.number(value)) is not None and low <= number <= high
    if shape.pattern:
        match = re.compile(shape.pattern).fullmatch
        return lambda value: type(value) is str and match(value) is not None
    if shape.kind == "string" and (low > 0 or high < math.inf):
        return lambda value: type(value) is str and low <= len(value) <= high
    if shape.kind == "integer":
        return lambda value: type(value) is int and low <= value <= high
    if shape.kind == "number":
        return lambda value: type(value) in _NUMBERS and low <= value <= high and -math.inf < value < math.inf
    return _type_check(shape)


def _readable_check(shape: ObjectShape) -> Check:
    checks = [(key, shape.keys[key].reads) for key in sorted(shape.read)]

    def reads(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, check in checks:
            item = value.get(key)
            if item is not None and not check(item):
                return False
        return True

    return reads


def _record_check(shape: ObjectShape) -> Check:
    checks = {key: _or_null(of.takes) if key in shape.nulls else of.takes for key, of in shape.keys.items()}
    must, needs = shape.must, shape.needs

    def takes(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            check = checks.get(key)
            if check is None or not check(item):
                return False
        return must <= value.keys() and (not needs or any(value.get(key) for key in needs))

    return takes


def _each_check(shape: Each) -> Check:
    check, most, longest = shape.of.takes, shape.most, shape.longest

    def takes(value: Any) -> bool:
        if type(value) is not dict or len(value) > most:
            return False
        return all(type(key) is str and len(key) <= longest and check(item) for key, item in value.items())

    return takes


def _list_check(check: Check, most: int) -> Check:
    return lambda value: type(value) is list and len(value) <= most and all(map(check, value))


def _tagged_check(tag: str, checks: Mapping[str, Check], missing: str, unknown: Check) -> Check:
    def check(value: Any) -> bool:
        if type(value) is not dict:
            return False
        word = value.get(tag)
        if word is None:
            word = missing
        elif type(word) is not str:
            return False
        return checks[word](value) if word in checks else unknown(word)

    return check


def _or_null(check: Check) -> Check:
    return lambda value: value is None or check(value)


def _any_check(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) or second(value)
    return lambda value: any(check(value) for check in checks)


# -- short notations -----------------------------------------------------------------------------

ANY = Shape()
STRING = Value("string")
INTEGER = Value("integer")
NUMBER = Value("number")
FLAG = Value("boolean")
OBJECT = Value("object")
TYPES: Mapping[str, Shape] = {
    "any": ANY,
    "any_schema": Schema(ANY),
    "flag": FLAG,
    "id": Value("string", 1, 64),
    "int": INTEGER,
    "num": NUMBER,
    "object": OBJECT,
    "objects": Many(OBJECT),
    "schema": Schema(OBJECT),
    "text": STRING,
    "texts": Many(STRING),
}
"""The names of types for `record`."""
_KEY = lazy_pattern(r"(\*?)(\w+)(?::(\w+))?([!?]*)")


def record(
    keys: str = "", nested: Mapping[str, Shape] | None = None, *, needs: str = "", types: Mapping[str, Shape] = TYPES
) -> ObjectShape:
    """A record from words such as `name! limit:int? *strict:flag`: a key, its type (default: text), `!` if it is
    required, `?` if it may be null, and `*` in front if a reader relies on its type. `nested` adds keys with other
    shapes, marked in the same way. At least one key of `needs` has a value."""
    shapes: dict[str, Shape] = {}
    marked: dict[str, list[str]] = {"*": [], "!": [], "?": []}
    for word, shape in [*((word, None) for word in keys.split()), *(nested or {}).items()]:
        match = _KEY.fullmatch(word)
        assert match, word
        star, key, kind, marks = match.groups()
        shapes[key] = types[kind or "text"] if shape is None else shape
        for mark in (star or "") + marks:
            marked[mark].append(key)
    must, nulls, read = (frozenset(marked[mark]) for mark in "!?*")
    return ObjectShape(shapes, must, nulls, frozenset(needs.split()), read)


CALL_OPTIONS = "extra_body:any extra_headers:any extra_query:any timeout:any"
"""Options of an SDK's method, for `record`: they may be given beside a body."""


def words(some: str) -> WordShape:
    """One of the words in `some`."""
    return WordShape(frozenset(some.split()))


def maybe(shape: Shape) -> Either:
    """`shape`, or null."""
    return Either((shape, Value("null")))
