"""Tool declarations, read and written.

A body's `tools` is a list of objects with function declarations or tools that Google runs. By default, consecutive
functions share one object and a hosted tool has a separate object. Form words of a tool: `apart` (starts a new object),
`joined` (shares the object before it), `snake` (the key is `function_declarations`), `object` (a single declaration,
not a list); and for its schema `schema` (`parameters`, types in capitals), `numbered` (types as numbers), `referring`
(as `schema`, with `ref` and `defs` for `$ref` and `$defs`) or `plain` (`parameters` unchanged) instead of the default
`parametersJsonSchema`, which accepts any JSON schema.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...log.messages import Tool, free_text
from ..edits import Losses
from ..gemini import choice_of
from ..spelling import inner, string
from .enums import MODES, SCHEMA_TYPES, enum_name
from .form import FORMS, NAME, spelled
from .keys import camel, camel_deep, find

# -- tool choice -----------------------------------------------------------------------------------
#
# The tool choice, in common words and in this API's.

_WORDS = {"AUTO": "auto", "VALIDATED": "auto", "NONE": "none", "ANY": "required"}


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words; None if there is none. The mode `VALIDATED` counts as `auto`."""
    config = _calling(camel_deep(dict(settings)))
    return choice_of(enum_name(config.get("mode"), MODES), config.get("allowedFunctionNames"), _WORDS)


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words."""
    plain = camel_deep(settings)
    config = {key: value for key, value in _calling(plain).items() if key != "allowedFunctionNames"}
    if choice.startswith("tool:"):
        config |= {"mode": "ANY", "allowedFunctionNames": [choice.removeprefix("tool:")]}
    else:
        config["mode"] = {"none": "NONE", "required": "ANY"}.get(choice, "AUTO")
    return {**plain, "toolConfig": {**inner(plain, "toolConfig"), "functionCallingConfig": config}}


def _calling(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    return inner(inner(settings, "toolConfig"), "functionCallingConfig")


def read_tools(tools: Sequence[Any]) -> tuple[Tool, ...]:
    """The tools of a body, whose types the schema has checked."""
    read: list[Tool] = []
    for entry in tools:
        first = True
        for key, value in entry.items() or [("", None)]:
            if _declares(key, value):
                read += _functions(value, key, first, read)
            else:
                read.append(_hosted(key, entry, first))
            first = False
    return tuple(read)


def _declares(key: str, value: Any) -> bool:
    return camel(key) == "functionDeclarations" and (
        isinstance(value, dict) or (isinstance(value, list) and bool(value))
    )


def _hosted(key: str, entry: dict[str, Any], first: bool) -> Tool:
    data = {key: entry[key]} if key else {}
    form = FORMS.shaped("" if first else "joined")
    return Tool(name=camel(key), kind="hosted", provider=NAME, data=data, form=form)


def _functions(value: Any, key: str, first: bool, before: list[Tool]) -> list[Tool]:
    words = []
    if not first:
        words.append("joined")
    elif before and before[-1].kind != "hosted":
        words.append("apart")
    if "_" in key:
        words.append("snake")
    if isinstance(value, dict):
        words.append("object")
        value = [value]
    return [_function(declaration, [] if j else words) for j, declaration in enumerate(value)]


def _function(seen: dict[str, Any], words: list[str]) -> Tool:
    schema, words = seen.get(find(seen, "parametersJsonSchema")), list(words)
    if not isinstance(schema, dict):
        schema = seen.get("parameters")
        if isinstance(schema, dict):
            lowered = lower_types(schema)
            words.append(next((word for word, spell in _SPELLINGS.items() if spell(lowered) == schema), "plain"))
            schema = lowered if words[-1] in _SPELLINGS else schema
    parameters = schema if isinstance(schema, dict) else None
    tool = Tool(string(seen, "name"), description=string(seen, "description"), parameters=parameters)
    return FORMS.formed(tool, _declaration, seen, *words)


def _declaration(tool: Tool) -> dict[str, Any]:
    """The default rendering of a function declaration."""
    wire: dict[str, Any] = {"name": tool.name}
    if tool.description:
        wire["description"] = tool.description
    if tool.parameters is not None:
        words = FORMS.words(tool.form)
        spelling = next((word for word in (*_SPELLINGS, "plain") if word in words), "")
        spell = _SPELLINGS.get(spelling)
        wire["parameters" if spelling else "parametersJsonSchema"] = (
            spell(tool.parameters) if spell else tool.parameters
        )
    return wire


def write_tools(tools: Sequence[Tool], losses: Losses) -> list[dict[str, Any]]:
    """The `tools` of a body."""
    losses.records = ()
    writer = _Writer(losses)
    for tool in tools:
        if tool.kind == "hosted":
            writer.hosted(tool)
        else:
            writer.function(tool)
    for i in sorted(writer.single):
        for key, value in writer.entries[i].items():
            if camel(key) == "functionDeclarations" and len(value) == 1:
                writer.entries[i][key] = value[0]
    return writer.entries


class _Writer:
    """Collects tool objects. `group` is the open list of declarations, `single` the indices of objects that had one
    declaration instead of a list."""

    def __init__(self, losses: Losses) -> None:
        self.entries: list[dict[str, Any]] = []
        self.losses = losses
        self.group: list[dict[str, Any]] | None = None
        self.single: set[int] = set()

    def hosted(self, tool: Tool) -> None:
        if tool.provider != NAME:
            self.losses.add("tool", f"{tool.name!r} is run by {tool.provider or 'nobody'}: not declared")
            return
        data = tool.data if isinstance(tool.data, dict) else {tool.name: {}}
        if "joined" in FORMS.words(tool.form) and self.entries:
            self.entries[-1].update(data)
        else:
            self.entries.append(dict(data))
            self.group = None

    def function(self, tool: Tool) -> None:
        words = FORMS.words(tool.form)
        wire = self._declared(tool)
        if self.group is not None and "apart" not in words and "joined" not in words:
            self.group.append(wire)
            return
        key = "function_declarations" if "snake" in words else "functionDeclarations"
        self.group = [wire]
        if "joined" in words and self.entries and key not in self.entries[-1]:
            self.entries[-1][key] = self.group
        else:
            self.entries.append({key: self.group})
        if "object" in words:
            self.single.add(len(self.entries) - 1)

    def _declared(self, tool: Tool) -> dict[str, Any]:
        self.losses.extras(tool.form, f"tool {tool.name!r}")
        if tool.kind == "function":
            return spelled(_declaration(tool), tool.form)
        detail = f"{tool.kind} tool {tool.name!r} declared as a function with one text, `input`"
        self.losses.add("tool", detail)
        plain = Tool(name=tool.name, description=tool.description, parameters=free_text())
        return _declaration(plain)


_NESTED = ("items", "additionalProperties", "additional_properties", "not")
_MAPS = ("properties", "defs", "$defs", "patternProperties")
_LISTS = ("anyOf", "any_of", "oneOf", "allOf", "prefixItems")


def lower_types(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with Google's types (in capitals, or as numbers), converted to a JSON schema."""
    return _spelled(schema, _lower, {"ref": "$ref", "defs": "$defs"})


def _upper_types(schema: dict[str, Any]) -> dict[str, Any]:
    return _spelled(schema, str.upper, {})


def _numbered_types(schema: dict[str, Any]) -> dict[str, Any]:
    return _spelled(schema, _number, {})


def _referring_types(schema: dict[str, Any]) -> dict[str, Any]:
    return _spelled(schema, str.upper, {"$ref": "ref", "$defs": "defs"})


_SPELLINGS = {"schema": _upper_types, "numbered": _numbered_types, "referring": _referring_types}
"""How `parameters` spell the types of a JSON schema, by form word."""


def _lower(kind: Any) -> str:
    return str(enum_name(kind, SCHEMA_TYPES)).lower()


def _number(kind: Any) -> Any:
    return SCHEMA_TYPES.index(kind.upper()) if kind.upper() in SCHEMA_TYPES else kind


def _typed(key: str, value: Any, spelling: Callable[[Any], Any], keys: Mapping[str, str]) -> Any:
    """A schema's `value` at `key`, with only the `type` of each inner schema and the `keys` of references spelled
    differently."""
    if key == "type" and (isinstance(value, str) or type(value) is int):
        return spelling(value)
    if key in keys and isinstance(value, str):
        holder = next(name for name in keys if name.endswith("defs"))
        return re.sub(f"^#/{re.escape(holder)}/", f"#/{keys[holder]}/", value)
    if key in _NESTED:
        return _schema(value, spelling, keys)
    if key in _MAPS and isinstance(value, dict):
        return {name: _schema(inner, spelling, keys) for name, inner in value.items()}
    if key in _LISTS and isinstance(value, list):
        return [_schema(inner, spelling, keys) for inner in value]
    return value


def _schema(value: Any, spelling: Callable[[Any], Any], keys: Mapping[str, str]) -> Any:
    return _spelled(value, spelling, keys) if isinstance(value, dict) else value


def _spelled(schema: dict[str, Any], spelling: Callable[[Any], Any], keys: Mapping[str, str]) -> dict[str, Any]:
    return {keys.get(key, key): _typed(key, inner, spelling, keys) for key, inner in schema.items()}
