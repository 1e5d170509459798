"""Tool declarations as Anthropic's and Google's models probably see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..log.messages import Tool, compact_json
from .schemas import References, mapping

_UNSEEN = frozenset(
    "$defs definitions $schema additionalProperties title pattern minLength maxLength minItems maxItems uniqueItems "
    "minimum maximum prefixItems".split()
)
"""Keys of a schema that Gemini does not see, judging by bills."""


def spaced_json(tool: Tool) -> str:
    """A declaration as JSON with spaces, for Claude."""
    if tool.kind == "hosted":
        return compact_json(tool.data)
    return json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters})


def flat_json(tool: Tool) -> str:
    """A declaration as compact JSON with references resolved and without titles, for Gemini 2.5 and later."""
    if tool.kind == "hosted":
        return compact_json(tool.data)
    return compact_json({"name": tool.name, "description": tool.description, "parameters": _flat(tool)})


def nested_objects(tool: Tool) -> str:
    """The object schemas directly inside others, as compact JSON: Gemini 2.5 bills them again."""
    return "".join(map(compact_json, _nested(_flat(tool), top=True)))


def names_only(tool: Tool) -> str:
    """Names and descriptions of a tool and its parameters, for Gemini 2.0 and Vertex AI."""
    return "\n".join(filter(None, (tool.name, tool.description, *_names(_flat(tool)))))


def _flat(tool: Tool) -> Any:
    """A tool's schema with its references resolved, without keys that models do not see."""
    return _unfolded(tool.parameters, References(tool.parameters), 0)


def _unfolded(schema: Any, references: References, depth: int, *, names: bool = False) -> Any:
    """A schema with its references resolved. With `names`, its keys are names of properties, not keywords."""
    if isinstance(schema, list):
        return [_unfolded(item, references, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and not names:
        depth += 2  # Gemini expands a recursive schema at most three times
        if not references.may_enter(depth):
            return {}
        schema = {**references.resolved(schema), **{key: value for key, value in schema.items() if key != "$ref"}}
    return {
        key: _unfolded(value, references, depth, names=key == "properties" and not names)
        for key, value in schema.items()
        if names or key not in _UNSEEN
    }


def _nested(schema: Any, *, top: bool) -> Iterator[Any]:
    inner = mapping(mapping(schema).get("properties"))
    if inner and not top:
        yield schema
    for value in inner.values():
        yield from _nested(value, top=False)


def _names(schema: Any) -> Iterator[str]:
    """The names and descriptions in a schema, in order."""
    if isinstance(schema, list):
        for item in schema:
            yield from _names(item)
    for key, value in mapping(schema).items():
        if key == "properties":
            for name, inner in mapping(value).items():
                yield name
                yield from _names(inner)
        elif key == "description" and isinstance(value, str):
            yield value
        elif key in ("required", "enum") and isinstance(value, list):
            yield from map(str, value)
        elif isinstance(value, (dict, list)):
            yield from _names(value)
