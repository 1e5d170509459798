"""How many of the tools that a conversation has are declared in a request."""

from __future__ import annotations

from collections.abc import Sequence

from ...log.messages import Tool
from ..rules import Rules
from ..types import Loss

_NAMED = 3
"""So many of those that are left out are named."""


def as_many_as_taken(tools: Sequence[Tool], choice: str, rules: Rules, losses: list[Loss]) -> tuple[Tool, ...]:
    """The first of the tools, as many as the rules let a request declare; the one that `choice` says has to be called
    (`tool:NAME`) stays among them."""
    most = rules.tools_max
    if len(tools) <= most:
        return tuple(tools)
    chosen = [tool for tool in tools[most:] if choice == f"tool:{tool.name}"][:1]
    first = most - len(chosen)
    gone = [repr(tool.name) for tool in tools[first:] if tool not in chosen]
    names = ", ".join(gone[:_NAMED]) + (f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else "")
    losses.append(Loss("tool", f"tools beyond the {most} that a request may declare left out: {names}"))
    return (*tools[:first], *chosen)
