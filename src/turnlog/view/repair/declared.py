"""Limit the number of tools that a request declares."""

from __future__ import annotations

from collections.abc import Sequence

from ...log.messages import Tool
from ..rules import Rules
from ..types import Loss

_NAMED = 3
"""How many of the tools left out are named."""


def as_many_as_taken(tools: Sequence[Tool], choice: str, rules: Rules, losses: list[Loss]) -> tuple[Tool, ...]:
    """The first tools, as many as a request may declare. If `choice` requires a certain tool (`tool:NAME`), that tool
    is always included."""
    most = rules.tools_max
    if len(tools) <= most:
        return tuple(tools)
    chosen = [tool for tool in tools[most:] if choice == f"tool:{tool.name}"][:1]
    first = most - len(chosen)
    gone = [repr(tool.name) for tool in tools[first:] if tool not in chosen]
    names = ", ".join(gone[:_NAMED]) + (f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else "")
    losses.append(Loss("tool", f"tools beyond the {most} that a request may declare left out: {names}"))
    return (*tools[:first], *chosen)
