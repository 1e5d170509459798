"""Tool declarations as OpenAI's models see them: a TypeScript namespace.

The format is not documented; it was inferred from the bills of requests with tools (docs/counting.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..log.messages import Tool
from .schemas import References, mapping


def typescript(tools: Sequence[Tool]) -> str:
    """The namespace that declares these tools."""
    lines = ["namespace functions {\n"]
    for tool in tools:
        lines += _comment(tool.description)
        schema = mapping(tool.parameters)
        inner = _Declaration(schema).properties(schema, 0)
        title = schema.get("title")
        head = f"// {title}\n" if isinstance(title, str) and title else ""
        lines.append(
            f"type {tool.name} = (_: {head}{{\n{inner}\n}}) => any;\n" if inner else f"type {tool.name} = () => any;\n"
        )
    lines.append("} // namespace functions")
    return "\n".join(lines)


def _comment(text: Any) -> list[str]:
    """A comment line for each line of a description, without common indentation (as `inspect.cleandoc` does, which
    takes 9 ms to import)."""
    if not isinstance(text, str) or not text:
        return []
    first, *rest = text.expandtabs().split("\n")
    indents = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    lines = [first.lstrip(), *(line[min(indents, default=0) :] for line in rest)]
    return [f"// {line}".rstrip() for line in "\n".join(lines).strip("\n").split("\n")]


class _Declaration:
    """The types of one tool's parameters."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._references = References(schema)

    def properties(self, schema: Mapping[str, Any], depth: int) -> str:
        """A line for each property, after comments with its title and description."""
        required = schema.get("required")
        required = required if isinstance(required, list) else []
        lines: list[str] = []
        for name, value in mapping(schema.get("properties")).items():
            own = mapping(value)
            whole = self._references.resolved(own)
            title, text = (own.get(key) or whole.get(key) for key in ("title", "description"))
            if isinstance(title, str) and title:
                lines += [f"// {title}", *(["//"] if text else [])]
            lines += _comment(text)
            default = own.get("default")
            note = "" if default is None else f" // default: {json.dumps(default)}"
            lines.append(f"{name}{'' if name in required else '?'}: {self._type(whole, depth)},{note}")
        return "\n".join(lines)

    def _type(self, schema: Mapping[str, Any], depth: int) -> str:
        """The type of a schema; `any` if the type is unknown."""
        if not self._references.may_enter(depth):
            return "any"
        schema = self._references.resolved(schema)
        for key in ("anyOf", "oneOf"):
            choices = schema.get(key)
            if isinstance(choices, list):
                return " | ".join(self._type(mapping(choice), depth + 1) for choice in choices)
        if isinstance(schema.get("enum"), list):
            return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
        if "const" in schema:
            return json.dumps(schema["const"], ensure_ascii=False)
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(self._type({**schema, "type": one}, depth + 1) for one in kind)
        if kind == "array":
            return (self._type(mapping(schema["items"]), depth + 1) if "items" in schema else "any") + "[]"
        if kind == "object" or "properties" in schema:
            inner = self.properties(schema, depth + 1)
            return f"{{\n{inner}\n}}" if inner else "object"
        if isinstance(kind, str):
            return "number" if kind == "integer" else kind
        return "any"
