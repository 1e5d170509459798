"""Types of parameters as pydantic, msgspec and dataclasses make them, and values built for a JSON schema."""

from __future__ import annotations

import base64
import dataclasses
import enum
import itertools
import json
import types
import typing
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union, get_args, get_origin

import msgspec
import pydantic
import typing_extensions
from hypothesis import strategies as st

Draw = Callable[[st.SearchStrategy[Any]], Any]

NAMES = ("Item", "Unit", "Node", "Kind")
"""Few names, so that they clash."""
FIELDS = ("a", "b", "defs", "ref", "type", "properties")
"""Names of fields, some of which look like keywords of a schema."""
T = TypeVar("T")
_MODULES = itertools.count()


def drawn_kind(draw: Draw, by: str, depth: int = 0) -> Any:
    """A type that `by` reads: "pydantic", "msgspec", or "dataclass" (which both do)."""
    simple = (_scalar, _constrained, _literal, _enum)
    if depth > 2:
        return draw(st.sampled_from(simple))(draw, by)
    make = draw(st.sampled_from((*simple, _container, _container, _optional, _union, _class, _class, _class, _class)))
    return make(draw, by) if make in simple else make(draw, by, depth + 1)


def _scalar(draw: Draw, by: str) -> Any:
    return draw(st.sampled_from([int, str, float, bool, Path, *([bytes] if by == "msgspec" else [])]))


def _apart(made: Any) -> Any:
    """The class in a module of its own: classes of one name and one module cannot be told from each other."""
    made.__module__ = f"module_{next(_MODULES)}"
    return made


def _constrained(draw: Draw, by: str) -> Any:
    low, high = draw(st.integers(0, 3)), draw(st.integers(4, 6))
    if by == "pydantic":
        return draw(
            st.sampled_from(
                [
                    Annotated[int, pydantic.Field(ge=low, lt=high, description="some")],
                    Annotated[str, pydantic.Field(min_length=low, max_length=high)],
                    Annotated[list[int], pydantic.Field(max_length=high, title="t")],
                    Annotated[float, pydantic.Field(gt=low, multiple_of=0.5)],
                ]
            )
        )
    return draw(
        st.sampled_from(
            [
                Annotated[int, msgspec.Meta(ge=low, lt=high, description="some")],
                Annotated[str, msgspec.Meta(min_length=low, max_length=high)],
                Annotated[list[int], msgspec.Meta(max_length=high, title="t")],
            ]
        )
    )


def _literal(draw: Draw, by: str) -> Any:
    return Literal[tuple(draw(st.sampled_from([("a", "b"), ("c",), (1, 2), ("a/b", "")])))]  # type: ignore[valid-type]


def _enum(draw: Draw, by: str) -> Any:
    name = draw(st.sampled_from(NAMES))
    values = draw(st.sampled_from([("x", "y"), ("y", "z"), (1, 2), ("only",)]))
    return _apart(enum.Enum(name, {f"M{i}": value for i, value in enumerate(values)}))


def _container(draw: Draw, by: str, depth: int) -> Any:
    inner = drawn_kind(draw, by, depth)
    another = drawn_kind(draw, by, depth)
    return draw(st.sampled_from([list[inner], dict[str, inner], tuple[inner, another], tuple[inner, ...]]))


def _optional(draw: Draw, by: str, depth: int) -> Any:
    return Optional[drawn_kind(draw, by, depth)]  # noqa: UP045 - of any type


def _union(draw: Draw, by: str, depth: int) -> Any:
    """A union that `by` reads; of models, by a tag."""
    if draw(st.booleans()):
        return int | str
    tags = ("cat", "dog")
    if by == "msgspec":
        fields = [_fields(draw, by, depth) for _ in tags]
        cat, dog = (
            _apart(msgspec.defstruct("Pet", some, kw_only=True, tag_field="pet", tag=tag))
            for tag, some in zip(tags, fields, strict=True)
        )
        return cat | dog
    if by == "pydantic":
        cat, dog = (
            pydantic.create_model(
                draw(st.sampled_from(NAMES)), kind=(Literal[tag], ...), other=(drawn_kind(draw, by, depth), ...)
            )
            for tag in tags
        )
        return Annotated[cat | dog, pydantic.Field(discriminator="kind")]
    return str | float


def _fields(draw: Draw, by: str, depth: int) -> list[Any]:
    """Names and types of fields, some with a default."""
    names = draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=2, unique=True))
    fields: list[Any] = [(name, drawn_kind(draw, by, depth)) for name in names]
    if draw(st.booleans()):
        fields.append(("count", int, 3))
    return fields


def _class(draw: Draw, by: str, depth: int) -> Any:
    name = draw(st.sampled_from(NAMES))
    ways = {"pydantic": (_model, _recursive_model, _generic_model, _aliased_model), "dataclass": (_dataclass, _typed)}
    ways["msgspec"] = (_struct, _recursive_struct, _generic_struct, _renamed_struct, *ways["dataclass"], _inside)
    ways["pydantic"] += ways["dataclass"]
    return draw(st.sampled_from(ways[by]))(draw, by, depth, name)


def _model(draw: Draw, by: str, depth: int, name: str) -> Any:
    fields = {one[0]: one[1:] if len(one) == 3 else (one[1], ...) for one in _fields(draw, by, depth)}
    return pydantic.create_model(name, **fields)


def _aliased_model(draw: Draw, by: str, depth: int, name: str) -> Any:
    field = pydantic.Field(alias="aliasOf", description="By another name.")
    return pydantic.create_model(name, original=(drawn_kind(draw, by, depth), field))


def _recursive_model(draw: Draw, by: str, depth: int, name: str) -> Any:
    made = pydantic.create_model(
        name,
        more=(list[name], []),
        value=(drawn_kind(draw, by, depth), ...),  # type: ignore[valid-type]
    )
    made.model_rebuild(_types_namespace={name: made})
    return made


class Box(pydantic.BaseModel, Generic[T]):
    """A generic model."""

    inside: T


class Crate(msgspec.Struct, Generic[T]):
    """A generic struct."""

    inside: T


def _generic_model(draw: Draw, by: str, depth: int, name: str) -> Any:
    return Box[drawn_kind(draw, by, depth)]  # type: ignore[misc]


def _generic_struct(draw: Draw, by: str, depth: int, name: str) -> Any:
    return Crate[drawn_kind(draw, by, depth)]  # type: ignore[misc]


def _struct(draw: Draw, by: str, depth: int, name: str) -> Any:
    return _apart(msgspec.defstruct(name, _fields(draw, by, depth), kw_only=True))


def _renamed_struct(draw: Draw, by: str, depth: int, name: str) -> Any:
    return _apart(msgspec.defstruct(name, [("some_value", drawn_kind(draw, by, depth))], rename="camel"))


class Tree(msgspec.Struct):
    """A struct that refers to itself."""

    value: int
    more: list[Tree] = []


def _recursive_struct(draw: Draw, by: str, depth: int, name: str) -> Any:
    return Tree


def _dataclass(draw: Draw, by: str, depth: int, name: str) -> Any:
    return _apart(dataclasses.make_dataclass(name, _fields(draw, by, depth), kw_only=True))


def _typed(draw: Draw, by: str, depth: int, name: str) -> Any:
    fields = {one[0]: one[1] for one in _fields(draw, by, depth)}
    if draw(st.booleans()):
        return _apart(NamedTuple(name, list(fields.items())))  # type: ignore[misc]
    return _apart(typing_extensions.TypedDict(name, fields))  # type: ignore[operator]


def _inside(draw: Draw, by: str, depth: int, name: str) -> Any:
    """A pydantic model, which msgspec asks for its schema."""
    return _model(draw, "pydantic", depth, name)


# -- values --------------------------------------------------------------------------------------


def built(draw: Draw, schema: Any, root: Any, depth: int = 0) -> Any:
    """A value that a JSON schema allows."""
    if schema is True or schema == {}:
        return draw(st.sampled_from(["any", 1, None]))
    if "$ref" in schema:
        target = root
        for key in schema["$ref"].split("/")[1:]:
            target = target[key.replace("~1", "/").replace("~0", "~").replace("%25", "%")]
        return built(draw, target, root, depth + 1)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            options = schema[word]
            if depth > 6 and {"type": "null"} in options:
                return None
            return built(draw, draw(st.sampled_from(options)), root, depth)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else draw(st.sampled_from(schema["enum"]))
    return _BUILDERS[schema["type"]](draw, schema, root, depth)


def _object(draw: Draw, schema: Any, root: Any, depth: int) -> Any:
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    wanted = [name for name in properties if name in required or (depth < 6 and draw(st.booleans()))]
    made = {name: built(draw, properties[name], root, depth + 1) for name in wanted}
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and depth < 6:
        for name in draw(st.sets(st.sampled_from(["k", "$ref", "a/b"]), max_size=2)):
            made[name] = built(draw, others, root, depth + 1)
    return made


def _array(draw: Draw, schema: Any, root: Any, depth: int) -> Any:
    made = [built(draw, one, root, depth + 1) for one in schema.get("prefixItems", ())]
    least = schema.get("minItems", 0)
    most = min(schema.get("maxItems", least + 2), least + 2) if depth < 6 else least
    while len(made) < draw(st.integers(least, max(least, most))) and schema.get("items") is not False:
        made.append(built(draw, schema.get("items", True), root, depth + 1))
    return made


def _string(draw: Draw, schema: Any, root: Any, depth: int) -> Any:
    if schema.get("contentEncoding") == "base64":
        return base64.b64encode(draw(st.binary(max_size=3))).decode()
    text = st.text("abc", min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 9))
    return draw(text)


def _number(draw: Draw, schema: Any, root: Any, depth: int) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -2) + ("exclusiveMinimum" in schema))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 4) - ("exclusiveMaximum" in schema))
    whole = draw(st.integers(int(low), int(high)))
    return whole if schema["type"] == "integer" or draw(st.booleans()) else whole + 0.5


_BUILDERS: dict[str, Callable[[Draw, Any, Any, int], Any]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _number,
    "number": _number,
    "boolean": lambda draw, schema, root, depth: draw(st.booleans()),
    "null": lambda draw, schema, root, depth: None,
}


def is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a type, with all that is in it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return is_of(value, inner[0])
    if origin in (Union, types.UnionType):
        return any(is_of(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if kind is None or kind is type(None):
        return value is None
    if origin is list:
        return isinstance(value, list) and all(is_of(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(is_of(one, inner[1]) for one in value.values())
    if origin is tuple:
        kinds = itertools.repeat(inner[0]) if inner[-1] is Ellipsis else inner
        return isinstance(value, tuple) and all(map(is_of, value, kinds))
    if typing_extensions.is_typeddict(kind):
        return isinstance(value, dict) and all(is_of(value[key], kind.__annotations__[key]) for key in value)
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        fields = typing.get_type_hints(kind, include_extras=True)
        return isinstance(value, kind) and all(is_of(getattr(value, name), one) for name, one in fields.items())
    if kind is Path:
        return isinstance(value, PurePath)
    return isinstance(value, origin or kind)


def as_arguments(value: Any) -> Any:
    """A value as it is read from a call's JSON."""
    return json.loads(json.dumps(value))
