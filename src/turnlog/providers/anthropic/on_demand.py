"""Tools on demand: declared with `defer_loading`, loaded by references in a result of `find_tools`. Source:
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool (custom tool search).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ...log.messages import Form, Opaque, Tool
from ...skills.ready import FIND_TOOLS
from ..protocol import OnDemand
from .form import NAME


def _declared(tool: Tool) -> Tool:
    """A tool that is not in the prompt until a result refers to it."""
    own = tool.form if tool.form is not None and tool.form.provider == NAME else Form(NAME)
    delta = dict(own.delta or {})
    delta["+"] = {**delta.get("+", {}), "defer_loading": True}
    return replace(tool, form=replace(own, delta=delta), on_demand=False)


def _found(tools: Sequence[Tool]) -> tuple[Opaque, ...]:
    """References to tools: the API puts their definitions in their place."""
    references = ({"type": "tool_reference", "tool_name": tool.name} for tool in tools)
    return tuple(Opaque(NAME, "tool_reference", reference) for reference in references)


ON_DEMAND = OnDemand(declared=_declared, search=FIND_TOOLS, found=_found)
