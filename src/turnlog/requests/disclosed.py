"""Tools on demand: which of them a request declares.

A provider that can keep tools back until the model asks for them does so in its own form. For all others, tools on
demand are not declared, and the model uses them through `use_tool`, whose declaration never changes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..log.messages import Tool
from ..models.target import Target
from ..providers.protocol import OnDemand, Provider
from ..skills.ready import FIND_TOOLS, USE_TOOL


def native(to: Provider, target: Target) -> OnDemand | None:
    """The provider's own form of tools on demand; None if it has none for the target's model."""
    return to.on_demand if target.abilities.deferred_tools else None


def disclosed(tools: Sequence[Tool], to: Provider, target: Target) -> tuple[Tool, ...]:
    """The tools as requests to a target declare them: those on demand kept back."""
    if not any(tool.on_demand for tool in tools):
        return tuple(tools)
    own = native(to, target)
    if own is None:
        return tuple(tool for tool in tools if not tool.on_demand)
    found: list[Tool] = []
    for tool in tools:
        if tool == USE_TOOL:
            continue
        declared = own.declared(tool) if tool.on_demand else own.search if tool == FIND_TOOLS else tool
        found += [declared] if declared is not None else []
    return tuple(found)
