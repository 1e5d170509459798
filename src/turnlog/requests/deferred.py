"""Deferred tools: declared, but not part of the prompt until the model finds them by search."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from ..errors import UnknownProvider
from ..log.messages import Message, Opaque, Tool, ToolResult
from ..models.target import Target
from ..providers import provider
from ..providers.protocol import OnDemand, Provider, ToolNews
from ..skills.ready import FIND_TOOLS, USE_TOOL

# -- tools on demand: which of them a request declares ---------------------------------------------


def native(to: Provider, target: Target) -> OnDemand | None:
    """The provider's own form of tools on demand; None if it has none for the target's model."""
    return to.on_demand if target.abilities.deferred_tools else None


def disclosed(tools: Sequence[Tool], to: Provider, target: Target) -> tuple[Tool, ...]:
    """The tools as requests to a target declare them: those on demand kept back."""
    if not any(tool.on_demand for tool in tools):
        return tuple(tools)
    native_form = native(to, target)
    if native_form is None:
        return tuple(tool for tool in tools if not tool.on_demand)
    disclosed_tools: list[Tool] = []
    for tool in tools:
        if tool == USE_TOOL:
            continue
        declared = native_form.declared(tool) if tool.on_demand else native_form.search if tool == FIND_TOOLS else tool
        disclosed_tools += [declared] if declared is not None else []
    return tuple(disclosed_tools)


DEFER = "defer_loading"
"""The key of a declaration that defers a tool, for all providers that can."""

SEARCH = "tool_search"
"""The beginning of the types of all providers' tools that search for deferred tools."""


def is_deferred(tool: Tool, name: str) -> bool:
    """Whether requests to the provider of this name declare the tool as deferred."""
    if tool.kind == "hosted":
        return isinstance(tool.data, dict) and tool.data.get(DEFER) is True
    form = tool.form
    extra = form.delta.get("+") if form is not None and form.provider == name and form.delta else None
    return isinstance(extra, dict) and extra.get(DEFER) is True


def tools_in_prompt(tools: Sequence[Tool], to: Provider, found: Collection[str] = ()) -> Sequence[Tool]:
    """The declarations that are in the prompt: without the deferred tools, or their schemas, that the model has not
    `found`."""
    if not to.deferred:
        return tools
    shown = (_shown(tool, to) if tool.name not in found or to.deferred == "schema" else tool for tool in tools)
    return [tool for tool in shown if tool is not None]


def found_tools(messages: Iterable[Message]) -> set[str]:
    """The names of the tools that searches in these messages found, or that were added in them."""
    return {
        tool if isinstance(tool, str) else tool.name
        for message in messages
        for part in message.parts
        for inner in (part.parts if isinstance(part, ToolResult) else (part,))
        if isinstance(inner, Opaque)
        for tool in news_of(inner).added
    }


def news_of(part: Opaque) -> ToolNews:
    """What a provider's own item says about the model's tools."""
    try:
        return provider(part.provider).tool_news(part)
    except UnknownProvider:
        return ToolNews()


def _shown(tool: Tool, to: Provider) -> Tool | None:
    """What the prompt contains of a tool that was not found; None if nothing."""
    if is_deferred(tool, to.name):
        return replace(tool, parameters=None) if to.deferred == "schema" and tool.kind == "function" else None
    inner = tool.data.get("tools") if tool.kind == "hosted" and isinstance(tool.data, dict) else None
    if to.deferred != "schema" or not isinstance(inner, list):
        return tool
    shown = [each for each in inner if not (isinstance(each, dict) and each.get(DEFER) is True)]
    return tool if len(shown) == len(inner) else replace(tool, data={**tool.data, "tools": shown})
