"""Decide which tools of another provider's conversation a request declares.

A provider may have tools that the model finds by search (deferred tools), and tools that are added or removed within
the conversation. Another provider cannot read the items that say so, so its requests declare the outcome: tools that
were found or added like any other tool, the remaining deferred tools as deferred if that provider has a tool search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ..errors import UnknownProvider
from ..log.messages import Form, Media, Message, Opaque, Text, Tool, ToolResult, Unknown, extra_keys, unchanged
from ..models.target import Target
from ..providers import provider
from ..providers.protocol import OnDemand, Provider, ToolNews
from ..skills.ready import FIND_TOOLS, USE_TOOL
from ..view.rules import Rules
from ..view.types import Loss, Shown

# -- deferred --------------------------------------------------------------------------------------
#
# Deferred tools: declared, but not part of the prompt until the model finds them by search.

# -- disclosed -------------------------------------------------------------------------------------
#
# Tools on demand: which of them a request declares.
#
# A provider that can keep tools back until the model asks for them does so in its own form. For all others, tools on
# demand are not declared, and the model uses them through `use_tool`, whose declaration never changes.


def native(to: Provider, target: Target) -> OnDemand | None:
    """The provider's own form of tools on demand; None if it has none for the target's model."""
    return to.on_demand if target.abilities.deferred_tools else None


def disclosed(tools: Sequence[Tool], to: Provider, target: Target) -> tuple[Tool, ...]:
    """The tools that requests to a target declare; tools on demand are held back."""
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
    """The declarations in the prompt. Deferred tools that are not in `found` are left out, or only their schemas."""
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


_Inner = Text | Media | Opaque | Unknown

_NAMED = 3
"""How many tools a loss names."""


def carried(
    tools: Sequence[Tool], messages: Iterable[Message], to: Provider, target: Target, rules: Rules, lost: list[Loss]
) -> tuple[Tool, ...]:
    """The tools of a conversation as requests to `to` declare them. What the declarations cannot express is added to
    `lost`."""
    declared = [opened for tool in tools for opened in _opened(tool, to)]
    found_names: set[str] = set()
    for news in _news(messages, to, rules):
        gone = {*news.removed, *(tool.name for tool in news.added if isinstance(tool, Tool))}
        declared = [tool for tool in declared if tool.name not in gone or tool.kind == "hosted"]
        declared += (tool for tool in news.added if isinstance(tool, Tool))
        found_names.update(_names(news))
    foreign = [tool for tool in declared if _defers_elsewhere(tool, to)]
    if not foreign:
        return tuple(tools) if declared == [*tools] else tuple(declared)
    waiting = [tool for tool in foreign if tool.name not in found_names]
    can_wait = to.search_tool is not None and bool(to.deferred) and target.abilities.deferred_tools
    carried_tools = [
        _own(tool, to, lost, waits=can_wait and tool in waiting) if tool in foreign else tool for tool in declared
    ]
    if waiting and can_wait and to.search_tool is not None:
        carried_tools = [tool for tool in carried_tools if not _searches(tool) or tool.provider == to.name]
        carried_tools += () if any(map(_searches, carried_tools)) else (to.search_tool,)
    elif waiting:
        names = ", ".join(repr(tool.name) for tool in waiting[:_NAMED])
        names += f" and {len(waiting) - _NAMED} more" if len(waiting) > _NAMED else ""
        lost.append(Loss("tool", f"deferred tools declared at once, as the model cannot search for tools: {names}"))
    return tuple(carried_tools)


def are_carried(tools: Iterable[Tool], to: str) -> bool:
    """Whether any of these tools is hosted by a provider other than `to`, or deferred in the form of one. If so, items
    of the conversation may say what became of it."""
    for tool in tools:
        if tool.kind == "hosted" and tool.provider not in ("", to):
            return True
        if tool.form is not None and tool.form.provider != to and is_deferred(tool, tool.form.provider):
            return True
    return False


def _opened(tool: Tool, to: Provider) -> tuple[Tool, ...]:
    """The tools in another provider's group of tools; for any other tool, the tool itself."""
    if tool.kind != "hosted" or tool.provider in ("", to.name):
        return (tool,)
    try:
        return provider(tool.provider).client_tools(tool) or (tool,)
    except UnknownProvider:
        return (tool,)


def _news(messages: Iterable[Message], to: Provider, rules: Rules) -> Iterator[ToolNews]:
    """What items that the provider cannot read say about tools, oldest first."""
    for message in messages:
        for part in message.parts:
            for inner in part.parts if isinstance(part, ToolResult) else (part,):
                if isinstance(inner, Opaque) and not _is_read(inner, to, rules):
                    yield news_of(inner)


def _is_read(part: Opaque, to: Provider, rules: Rules) -> bool:
    if part.provider != to.name:
        return False
    return part.kind not in rules.system_parts or rules.system == "top_or_after_user"


def _defers_elsewhere(tool: Tool, to: Provider) -> bool:
    """Whether another provider's form of a tool says that it is deferred."""
    return tool.kind != "hosted" and are_carried((tool,), to.name)


def _own(tool: Tool, to: Provider, lost: list[Loss], *, waits: bool) -> Tool:
    """A tool that another provider's form defers, without that form's mark; if it `waits`, deferred in the provider's
    own form."""
    form, delta = tool.form, dict((tool.form and tool.form.delta) or {})
    delta["+"] = {key: value for key, value in delta.get("+", {}).items() if key != DEFER}
    left = None if form is None else replace(form, delta={key: value for key, value in delta.items() if value} or None)
    if not waits:
        return replace(tool, form=left)
    if keys := extra_keys(left):
        lost.append(Loss("extra", f"{', '.join(keys)} of tool {tool.name!r} left out"))
    return replace(tool, form=Form(to.name, delta={"+": {DEFER: True}}))


def _searches(tool: Tool) -> bool:
    """Whether this is a provider's own search for tools."""
    kind = tool.data.get("type") if tool.kind == "hosted" and isinstance(tool.data, dict) else None
    return isinstance(kind, str) and kind.startswith(SEARCH)


def found_as_text(view: Sequence[Shown], to: Provider, losses: list[Loss]) -> list[Shown]:
    """The view, in which results that name found tools in another provider's form name them in text."""
    out: list[Shown] = []
    for shown in view:
        parts = tuple(_as_text(part, to) if isinstance(part, ToolResult) else part for part in shown.message.parts)
        if not unchanged(parts, shown.message.parts):
            losses.append(Loss("opaque", "tools that a search found named in text", shown.records))
            shown = shown.repaired(replace(shown.message, parts=parts))
        out.append(shown)
    return out


def _as_text(result: ToolResult, to: Provider) -> ToolResult:
    parts = tuple(_named(part, to) for part in result.parts)
    return result if unchanged(parts, result.parts) else replace(result, parts=parts)


def _named(part: _Inner, to: Provider) -> _Inner:
    names = _names(news_of(part)) if isinstance(part, Opaque) and part.provider != to.name else []
    return Text(f"[tools found: {', '.join(names)}]") if names else part


def _names(news: ToolNews) -> list[str]:
    return [tool if isinstance(tool, str) else tool.name for tool in news.added]
