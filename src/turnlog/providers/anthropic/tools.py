"""Tools that blocks of a system message add or remove in the middle of a conversation.

`tool_addition` names a tool that the request declares, or defines one; `tool_removal` names one. Source:
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...log.messages import Form, Opaque, Tool
from ...skills.ready import FIND_TOOLS
from ..edits import Edits
from ..protocol import OnDemand, ToolNews
from ..schema.walk import fitted
from . import sanitize_tools
from .form import FORMS, NAME
from .parse import read_tool
from .parts import tool_block
from .schema_tools import TOOL

# -- tool choice -----------------------------------------------------------------------------------
#
# The tool choice, in common words and in this API's.

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_TYPES = {word: kind for kind, word in _CHOICES.items()}


def tool_choice(settings: Mapping[str, Any]) -> str | None:
    """The tool choice in common words; None if there is none."""
    choice = settings.get("tool_choice")
    if not isinstance(choice, Mapping):
        return None
    kind, name = choice.get("type"), choice.get("name", "")
    if kind == "tool":
        return f"tool:{name}" if isinstance(name, str) and name else None
    return _CHOICES.get(kind) if isinstance(kind, str) else None


def with_tool_choice(settings: dict[str, Any], choice: str) -> dict[str, Any]:
    """`settings` with a tool choice in common words."""
    name = choice.partition(":")[2]
    return {**settings, "tool_choice": {"type": "tool", "name": name} if name else {"type": _TYPES[choice]}}


# -- tool search -----------------------------------------------------------------------------------
#
# Tools that a search or a change adds to a conversation. Source:
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool.

SEARCH_TOOL = Tool(
    "tool_search_tool_bm25",
    kind="hosted",
    provider=NAME,
    data={"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
)


def tool_news(part: Opaque) -> ToolNews:
    """The tools that a block adds or removes."""
    tool = part.data.get("tool") if isinstance(part.data, Mapping) else None
    if part.kind not in (ADDITION, REMOVAL) or not isinstance(tool, Mapping):
        return ToolNews(added=tuple(_referred(part.data)))
    defined, name = fitted([tool.get("definition")], TOOL), tool.get("name")
    if part.kind == ADDITION and defined:
        return ToolNews(added=tuple(map(read_tool, defined)))
    named = (name,) if tool.get("type") == "tool_reference" and isinstance(name, str) else ()
    return ToolNews(added=named) if part.kind == ADDITION else ToolNews(removed=named)


def _referred(data: Any) -> Iterator[str]:
    """The names in all references to tools in a block."""
    if isinstance(data, Mapping):
        if data.get("type") == "tool_reference" and isinstance(name := data.get("tool_name"), str):
            yield name
        for key in ("content", "tool_references"):
            yield from _referred(data.get(key))
    elif isinstance(data, list):
        for item in data:
            yield from _referred(item)


# -- on demand -------------------------------------------------------------------------------------
#
# Tools on demand: declared with `defer_loading`, loaded by references in a result of `find_tools`. Source:
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool (custom tool search).


def _declared(tool: Tool) -> Tool:
    """A tool that is not in the prompt until a result refers to it."""
    form = tool.form if tool.form is not None and tool.form.provider == NAME else Form(NAME)
    delta = dict(form.delta or {})
    delta["+"] = {**delta.get("+", {}), "defer_loading": True}
    return replace(tool, form=replace(form, delta=delta), on_demand=False)


def _found(tools: Sequence[Tool]) -> tuple[Opaque, ...]:
    """References to tools, in whose place the API puts the definitions."""
    references = ({"type": "tool_reference", "tool_name": tool.name} for tool in tools)
    return tuple(Opaque(NAME, "tool_reference", reference) for reference in references)


ON_DEMAND = OnDemand(declared=_declared, search=FIND_TOOLS, found=_found)


ADDITION, REMOVAL = "tool_addition", "tool_removal"


def tool_changes(declared: Sequence[Tool], before: Sequence[Tool], now: Sequence[Tool]) -> tuple[Opaque, ...] | None:
    """The blocks that change the model's tools from those `before` to those of `now`, in a request that declares
    `declared`. None if blocks cannot express it."""
    if not declared:
        return None  # "Requests which include `tool_use` or `tool_result` blocks must define tools."
    remaining = [tool for tool in now if tool in before]
    gone = [tool for tool in before if tool not in remaining]
    new = [tool for tool in now if tool not in remaining]
    if not all(map(_is_plain, (*gone, *new))):
        return None
    removals = (_block(REMOVAL, _reference(tool)) for tool in gone)
    return (*removals, *(_block(ADDITION, _reference(tool) if tool in declared else _defined(tool)) for tool in new))


def _is_plain(tool: Tool) -> bool:
    """Whether the client runs the tool, and the model sees it from the beginning."""
    return tool.kind != "hosted" and not tool_block_of(tool).get("defer_loading")


def tool_block_of(tool: Tool) -> dict[str, Any]:
    """The declaration of a tool that the client runs, in the form that the API accepts."""
    wire = FORMS.spelled(tool_block(tool), tool.form)
    (block,) = sanitize_tools.mended({"tools": [wire]}, Edits())["tools"]
    return {key: value for key, value in block.items() if key != "cache_control"}


def _reference(tool: Tool) -> dict[str, Any]:
    return {"type": "tool_reference", "name": tool.name}


def _defined(tool: Tool) -> dict[str, Any]:
    return {"type": "tool_definition", "definition": {"type": "custom", **tool_block_of(tool)}}


def _block(kind: str, tool: dict[str, Any]) -> Opaque:
    return Opaque(NAME, kind, {"type": kind, "tool": tool})
