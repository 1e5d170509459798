"""JSON schemas that providers can hold a model to: objects with exactly their properties, and few keywords.

What all of OpenAI, Anthropic and Google accept is less than any of them accepts. What is left out of a schema is said
in its description, so that the model knows it, and is checked when the answer is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from ..log.messages import compact_json
from ..log.references import keys_of, step

_KEPT = frozenset("$defs $ref additionalProperties anyOf description enum items properties type".split())
"""Keywords that all providers accept in strict schemas.
https://platform.openai.com/docs/guides/structured-outputs#supported-schemas,
https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations,
https://ai.google.dev/gemini-api/docs/structured-output#json_schema_support"""
_NAMED = ("properties", "$defs", "definitions")
_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
"""Values of `format` that OpenAI and Anthropic accept."""
_UNTOLD = frozenset({"$id", "$schema", "const", "default", "discriminator", "oneOf", "required", "title"})
"""Keywords that say nothing the model has to know beside the others."""

_TYPES = {str: "string", int: "integer", bool: "boolean", float: "number", type(None): "null", list: "array"}


def strict_schema(schema: Any) -> Any:
    """A JSON schema as strict modes accept it, as far as it can be: each property is required, no other is allowed, and
    what is no keyword of strict modes is in the description. `is_strict` tells whether it is strict then."""
    if not isinstance(schema, dict):
        return {} if schema is True else schema
    schema = _plain(schema)
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED:
            strict[key] = {name: strict_schema(inner) for name, inner in value.items()}
        elif key == "anyOf":
            strict[key] = [strict_schema(inner) for inner in value]
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            strict[key] = strict_schema(value)
        elif key in _KEPT or (key == "format" and value in _FORMATS):
            strict[key] = value
    if "properties" in strict:
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    left = {key: schema[key] for key in schema if key not in strict and key not in _UNTOLD}
    if left:
        texts = {key: value if isinstance(value, str) else compact_json(value) for key, value in left.items()}
        said = ", ".join(f"{key} {text}" for key, text in texts.items())
        strict["description"] = f"{strict.get('description', '')} ({said})".strip()
    if "$ref" in strict:  # OpenAI refuses a description beside it
        return {key: value for key, value in strict.items() if key in ("$ref", "$defs", "definitions")}
    return strict


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in the words that strict modes have: `anyOf`, `enum`, one type, `items` for all."""
    if isinstance(every := schema.get("allOf"), list) and len(every) == 1:
        schema = {**every[0], **{key: value for key, value in schema.items() if key != "allOf"}}
    if "oneOf" in schema and "anyOf" not in schema:
        schema = {**schema, "anyOf": schema["oneOf"]}
    if "const" in schema:
        schema = {**schema, "enum": [schema["const"]]}
    if "enum" in schema and "type" not in schema:
        return _typed(schema)
    if isinstance(schema.get("type"), list):
        kinds = [{**schema, "type": kind} for kind in schema["type"]]
        return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if places := schema.get("prefixItems"):
        kinds = [kind for at, kind in enumerate(places) if kind not in places[:at]]
        rest = {key: value for key, value in schema.items() if key not in ("prefixItems", "items")}
        told = " and ".join(
            str(kind.get("$ref") or kind.get("type") or "any").rpartition("/")[2] if isinstance(kind, dict) else "any"
            for kind in places
        )
        items = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        return {**rest, "items": items, "in this order": told}
    return schema


def _typed(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema of an `enum` with the type of its values; with several types, one schema for each."""
    kinds: dict[str, list[Any]] = {}
    for value in schema["enum"]:
        kinds.setdefault(_TYPES.get(type(value), "object"), []).append(value)
    typed = [{"type": kind, "enum": values} for kind, values in kinds.items()]
    rest = {key: value for key, value in schema.items() if key not in ("enum", "const")}
    return {**rest, **typed[0]} if len(typed) == 1 else {**rest, "anyOf": typed}


def schemas_in(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all schemas inside it; not the values of `enum`, `const` and `default`."""
    if isinstance(schema, dict):
        yield schema
        for inner in _inside(schema):
            yield from schemas_in(inner)


def _inside(schema: dict[str, Any]) -> Iterator[Any]:
    for key, value in schema.items():
        if key in _NAMED:
            yield from value.values() if isinstance(value, dict) else ()
        elif key not in ("enum", "const", "default", "examples", "required"):
            yield from value if isinstance(value, list) else [value]


def is_strict(schema: dict[str, Any]) -> bool:
    """Whether a provider can make sure of a schema: each value has a type, and each object exactly its properties."""
    for each in schemas_in(schema):
        if not each.keys() & {"type", "enum", "anyOf", "$ref"} or (each.get("type") == "array" and "items" not in each):
            return False
        if each.get("type") == "object":
            exact = each.get("additionalProperties") is False and "properties" in each
            if not exact or set(each.get("required", ())) != set(each["properties"]):
                return False
    return True


OPENAI_LIMITS = {"properties": 5000, "levels": 10, "characters": 120_000, "values": 1000, "long enum": 15_000}
"""https://platform.openai.com/docs/guides/structured-outputs#supported-schemas"""
ANTHROPIC_LIMITS = {"unions": 16}
"""https://platform.claude.com/docs/en/build-with-claude/structured-outputs#schema-complexity-limits"""


def sizes(schema: dict[str, Any]) -> dict[str, int]:
    """What providers limit in strict schemas: properties, objects inside of each other, characters of names and values,
    values of enums, characters of an enum with more than 250 values, and unions."""
    parts = list(schemas_in(schema))
    names = [list(each[key]) for each in parts for key in _NAMED if isinstance(each.get(key), dict)]
    enums = [list(map(str, each["enum"])) for each in parts if isinstance(each.get("enum"), list)]
    return {
        "properties": sum(len(each.get("properties", ())) for each in parts),
        "levels": _levels(schema, schema, {}),
        "characters": len("".join(map("".join, names + enums))),
        "values": sum(map(len, enums)),
        "long enum": max((len("".join(values)) for values in enums if len(values) > 250), default=0),
        "unions": sum("anyOf" in each for each in parts),
    }


def _levels(schema: Any, root: dict[str, Any], known: dict[str, int]) -> int:
    """How many objects are inside of each other. `known` are the levels of definitions by reference; one that contains
    itself is counted once."""
    if not isinstance(schema, dict):
        return 0
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in known:
        known[reference] = 0
        known[reference] = _levels(reduce(step, keys_of(reference), root), root, known)
    deepest = max((_levels(each, root, known) for each in _inside(schema)), default=0)
    return max(known.get(str(reference), 0), deepest + (schema.get("type") == "object"))


def is_recursive(schema: dict[str, Any]) -> bool:
    """Whether a schema contains itself."""
    names = {
        f"#/{key}/{name}": {each.get("$ref") for each in schemas_in(inner)}
        for key in ("$defs", "definitions")
        for name, inner in schema.get(key, {}).items()
    }
    while True:  # drop what refers to nothing that is left, until nothing changes: what stays is in a circle
        left = {name: refers & names.keys() for name, refers in names.items() if refers & names.keys()}
        if left == names:
            return bool(names) or any(each.get("$ref") == "#" for each in schemas_in(schema))
        names = left
