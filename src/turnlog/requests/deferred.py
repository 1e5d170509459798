"""Deferred tools: declared, but not part of the prompt until the model finds them by search."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ..log.messages import Message, Opaque, Tool, ToolResult
from ..providers.protocol import Provider


def is_deferred(tool: Tool, provider: str) -> bool:
    """Whether requests to this provider declare the tool as deferred."""
    if tool.kind == "hosted":
        return isinstance(tool.data, dict) and tool.data.get("defer_loading") is True
    form = tool.form
    extra = form.delta.get("+") if form is not None and form.provider == provider and form.delta else None
    return isinstance(extra, dict) and extra.get("defer_loading") is True


def tools_in_prompt(tools: Sequence[Tool], provider: Provider, found: Collection[str] = ()) -> Sequence[Tool]:
    """The declarations that are in the prompt: without the deferred tools, or their schemas, that the model has not
    `found`."""
    if not provider.deferred:
        return tools
    shown = (
        _shown(tool, provider) if tool.name not in found or provider.deferred == "schema" else tool for tool in tools
    )
    return [tool for tool in shown if tool is not None]


def found_tools(messages: Iterable[Message]) -> set[str]:
    """The names of the tools that searches in these messages found."""
    return {name for message in messages for part in message.parts for name in _found(part)}


def _shown(tool: Tool, provider: Provider) -> Tool | None:
    """What the prompt contains of a tool that was not found; None if nothing."""
    if is_deferred(tool, provider.name):
        return replace(tool, parameters=None) if provider.deferred == "schema" and tool.kind == "function" else None
    inner = tool.data.get("tools") if tool.kind == "hosted" and isinstance(tool.data, dict) else None
    if provider.deferred != "schema" or not isinstance(inner, list):
        return tool
    shown = [each for each in inner if not (isinstance(each, dict) and each.get("defer_loading") is True)]
    return tool if len(shown) == len(inner) else replace(tool, data={**tool.data, "tools": shown})


def _found(part: Any) -> Iterator[str]:
    if isinstance(part, ToolResult):
        for inner in part.parts:
            yield from _found(inner)
    elif isinstance(part, Opaque):
        yield from _referred(part.data)


def _referred(data: Any) -> Iterator[str]:
    """The names in all references to tools in one of the provider's own items."""
    if isinstance(data, dict):
        if data.get("type") == "tool_reference" and isinstance(name := data.get("tool_name"), str):
            yield name
        for key in ("content", "tool_references"):
            yield from _referred(data.get(key))
    elif isinstance(data, list):
        for item in data:
            yield from _referred(item)
