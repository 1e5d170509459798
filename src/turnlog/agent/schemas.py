"""Tools with a schema of their own: what their function must take, and whether arguments fit the schema.

Arguments are checked against the keywords of JSON Schema that say something of a value's type, size and members, and
local references. Not checked are `pattern` and `patternProperties` (a pattern of somebody else may freeze Python's
regular expressions, and is written for those of JavaScript), `format`, `multipleOf`, `uniqueItems`, `propertyNames`,
`contains`, `if`, `dependent...`, `unevaluated...` and references to other documents: the function sees such arguments
as they came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any, TypeVar

import msgspec

from ..errors import InputError
from ..log.messages import compact_json
from ..log.references import keys_of, step, with_references
from ..providers.schema.shapes import JSON_TYPES
from .parameters import signature_of

_T = TypeVar("_T", dict[str, Any], list[Any])

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "min": (">=", ge),
    "max": ("<=", le),
    "exclusiveMin": (">", gt),
    "exclusiveMax": ("<", lt),
}


class SchemaParameters:
    """The parameters of a function whose declaration is a JSON schema of its own, as `Parameters` for the others.

    Raises InputError for what is no JSON schema of an object, and for a function that cannot take what it declares.
    """

    def __init__(self, function: Callable[..., Any], name: str, schema: Any) -> None:
        self.schema = _read(schema, name)
        parameters, _, self.context = signature_of(function, name)
        named = [one for one in parameters if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)]
        self.takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
        self.names = [one.name for one in named]
        declared, required = _given(self.schema, "properties", dict), _given(self.schema, "required", list)
        for argument in declared:
            if argument == self.context or not (self.takes_any or argument in self.names):
                says = f"its schema declares {argument!r}, which the function does not take: add it, or **kwargs"
                raise InputError(f"tool {name!r}: {says}")
        for one in parameters:
            is_given = one in named and one.name in required
            if one.default is one.empty and not is_given and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
                says = f"the function needs {one.name!r}, which the schema does not require: give it a default"
                raise InputError(f"tool {name!r}: {says}, or name it in the schema's 'properties' and 'required'")

    def takes(self, name: Any) -> bool:
        """Whether the function takes an argument of this name from a model."""
        return isinstance(name, str) and name != self.context and (self.takes_any or name in self.names)

    def read(self, arguments: Any) -> dict[str, Any]:
        """The arguments as they came. Raises InputError, worded for the model, for arguments that do not fit."""
        try:
            wrong = next(misfits(self.schema, arguments, self.schema), "")
        except RecursionError:
            wrong = "they are nested too deeply"
        unknown = "" if wrong else next((name for name in arguments if not self.takes(name)), None)
        if unknown:
            wrong = f"Object contains unknown field `{unknown}`"
        if wrong:
            raise InputError(f"The tool was not run, as its arguments do not fit: {wrong}")
        return dict(arguments)


def _read(schema: Any, name: str) -> dict[str, Any]:
    """The schema as plain JSON, so that nobody changes it later, with references that lead somewhere."""
    wanted = "parameters must be the JSON schema of an object, {'type': 'object', 'properties': {...}}"
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise InputError(f"tool {name!r}: {wanted}, not {schema!r:.100}")
    try:
        plain = msgspec.json.decode(msgspec.json.encode(dict(schema)))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"tool {name!r}: {wanted}; this one is not JSON: {error}") from error
    whole: dict[str, Any] = with_references({"type": "object", "properties": {}, **plain})[0]
    return whole


def _given(schema: Mapping[str, Any], key: str, kind: type[_T]) -> _T:
    """The value of a keyword, if it is of the type that it must be; else an empty one, which says nothing."""
    value = schema.get(key)
    return value if isinstance(value, kind) else kind()


# -- checks ----------------------------------------------------------------------------------------


def misfits(schema: Any, value: Any, root: Any, at: str = "$", within: tuple[str, ...] = ()) -> Iterator[str]:
    """What does not fit, in the words that msgspec has for it. `root` is the schema in which references lead; `within`
    are the references that led here from the same value. A keyword that has a wrong type says nothing."""
    if schema is False:
        yield f"Unexpected value - at `{at}`"
    if not isinstance(schema, dict) or (value is None and schema.get("nullable") is True):
        return
    kinds = schema.get("type")
    kinds = [kind.lower() for kind in (kinds if isinstance(kinds, list) else [kinds]) if isinstance(kind, str)]
    if kinds and not any(_is(kind, value) for kind in kinds):
        yield f"Expected `{' | '.join(kinds)}`, got `{_kind_of(value)}` - at `{at}`"
        return
    for allowed in (_given(schema, "enum", list), [schema["const"]] if "const" in schema else []):
        if allowed and not any(_same(value, one) for one in allowed):
            yield f"Expected one of {compact_json(allowed)[:300]}, got {compact_json(value)[:100]} - at `{at}`"
    if isinstance(value, dict):
        yield from _of_object(schema, value, root, at)
    elif isinstance(value, list):
        yield from _of_array(schema, value, root, at)
    elif isinstance(value, str):
        yield from _bounds(schema, len(value), "Length", "characters", at)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _bounds(schema, value, "imum", "number", at)
    yield from _combined(schema, value, root, at, within)


def _combined(schema: dict[str, Any], value: Any, root: Any, at: str, within: tuple[str, ...]) -> Iterator[str]:
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#") and reference not in within:
        meant = root
        for key in keys_of(reference):
            meant = step(meant, key)
        yield from misfits(meant, value, root, at, (*within, reference))
    for one in _given(schema, "allOf", list):
        yield from misfits(one, value, root, at, within)
    for key in ("anyOf", "oneOf"):
        if branches := _given(schema, key, list):
            wrong = [next(misfits(one, value, root, at, within), "") for one in branches]
            if all(wrong):
                yield " or ".join(dict.fromkeys(wrong[:4]))
            elif key == "oneOf" and wrong.count("") > 1:
                yield f"Value fits more than one of `oneOf` - at `{at}`"
    if "not" in schema and not next(misfits(schema["not"], value, root, at, within), ""):
        yield f"Value is of a kind that is not allowed - at `{at}`"


def _of_object(schema: dict[str, Any], value: dict[str, Any], root: Any, at: str) -> Iterator[str]:
    properties, others = _given(schema, "properties", dict), schema.get("additionalProperties")
    for key in _given(schema, "required", list):
        if isinstance(key, str) and key not in value:
            yield f"Object missing required field `{key}`{'' if at == '$' else f' - at `{at}`'}"
    for key, item in value.items():
        if key in properties:
            yield from misfits(properties[key], item, root, f"{at}.{key}")
        elif _given(schema, "patternProperties", dict):
            continue
        elif others is False:
            yield f"Object contains unknown field `{key}`{'' if at == '$' else f' - at `{at}`'}"
        else:
            yield from misfits(others, item, root, f"{at}.{key}")
    yield from _bounds(schema, len(value), "Properties", "properties", at)


def _of_array(schema: dict[str, Any], value: list[Any], root: Any, at: str) -> Iterator[str]:
    first, rest = _given(schema, "prefixItems", list), schema.get("items")
    for n, item in enumerate(value):
        yield from misfits(first[n] if n < len(first) else rest, item, root, f"{at}[{n}]")
    yield from _bounds(schema, len(value), "Items", "items", at)


def _bounds(schema: dict[str, Any], size: float, suffix: str, what: str, at: str) -> Iterator[str]:
    """What is out of bounds: `suffix` is how the keywords end, such as `Length` and, for numbers, `imum`."""
    for prefix, (sign, holds) in _BOUNDS.items():
        bound = schema.get(f"{prefix}{suffix}")
        if isinstance(bound, (int, float)) and not isinstance(bound, bool) and not holds(size, bound):
            yield f"Expected {what} {sign} {bound}, got {size} - at `{at}`"


def _is(kind: str, value: Any) -> bool:
    """Whether a value is of a type of JSON; of an unknown type everything is."""
    if kind in ("integer", "number"):
        is_float = isinstance(value, float) and isfinite(value) and (kind == "number" or value.is_integer())
        return is_float or (isinstance(value, int) and not isinstance(value, bool))
    return kind not in JSON_TYPES or isinstance(value, JSON_TYPES[kind])


def _kind_of(value: Any) -> str:
    return next((kind for kind in (*JSON_TYPES, "number") if _is(kind, value)), type(value).__name__)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal in JSON, where true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(isinstance(one, bool) == isinstance(other, bool) and one == other)
