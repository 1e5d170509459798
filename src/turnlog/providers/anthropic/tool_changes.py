"""Tools that are added and removed in the middle of a conversation: blocks of a system message.

`tool_addition` names a tool that the request declares, or defines one; `tool_removal` names one. Source:
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...log.messages import Opaque, Tool
from ..edits import Edits
from . import sanitize_tools
from .form import FORMS, NAME
from .parts import tool_block

ADDITION, REMOVAL = "tool_addition", "tool_removal"


def tool_changes(declared: Sequence[Tool], before: Sequence[Tool], now: Sequence[Tool]) -> tuple[Opaque, ...] | None:
    """The blocks that change the model's tools from those `before` to those of `now`, in a request that declares
    `declared`. None if blocks cannot say that."""
    if not declared:
        return None  # "Requests which include `tool_use` or `tool_result` blocks must define tools."
    kept = [tool for tool in now if tool in before]
    gone = [tool for tool in before if tool not in kept]
    new = [tool for tool in now if tool not in kept]
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
