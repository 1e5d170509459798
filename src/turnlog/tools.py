"""Tool declarations, in whatever shape people have them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .content import Tool
from .errors import InputError
from .providers import provider

__all__ = ["read_tools"]


def read_tools(tools: Iterable[Tool | Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Canonical tools from canonical ones, or from dicts in the shape of any provider.

    Raises InputError for a dict that is no declaration.
    """
    found: list[Tool] = []
    for i, tool in enumerate(tools):
        if isinstance(tool, Tool):
            found.append(tool)
            continue
        shape = _shape(tool)
        if shape is None:
            raise InputError(
                f"tools[{i}] is no tool declaration: give it 'name', 'description' and 'parameters' (a JSON schema), "
                "or the shape that your provider documents"
            )
        key = "contents" if shape == "google" else "input" if shape == "openai-responses" else "messages"
        found.extend(provider(shape).parse({key: [], "tools": [dict(tool)]}).configuration.tools)
    return tuple(found)


def _shape(tool: Mapping[str, Any]) -> str | None:
    if "functionDeclarations" in tool or "function_declarations" in tool:
        return "google"
    if "input_schema" in tool:
        return "anthropic"
    if "function" in tool:
        return "openai-chat"
    return "openai-responses" if "name" in tool or "type" in tool else None
