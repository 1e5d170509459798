"""Read tool declarations in the format of any provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from ..errors import InputError
from ..log.messages import Tool
from ..view.curate.recognise import OUTPUTS
from . import provider

_FORMATS = ("openai-chat", "google", "google-interactions", "anthropic", "openai-responses")
"""Providers in the order in which their formats are tried: the last one accepts what no other recognises."""


ON_DEMAND = "on_demand"
"""A key of declarations of any format: the model sees name and one line of the tool until it loads it."""


def read_tools(tools: Iterable[Tool | Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Tools from `Tool` objects, or from dicts in the format of any provider.

    Raises InputError for a dict that is not a declaration, and for a value that is not a list of declarations.
    """
    found: list[Tool] = []
    if isinstance(tools, (str, bytes, Mapping, Tool)) or not isinstance(tools, Iterable):
        raise InputError(f"tools must be a list of declarations, not {type(tools).__name__}")
    for i, tool in enumerate(tools):
        if isinstance(tool, Tool):
            found.append(_with_known_output(tool))
            continue
        if not isinstance(tool, Mapping):
            raise InputError(f"tools[{i}] is {type(tool).__name__}: declare a tool by a dict or turnlog.Tool")
        if isinstance(tool.get("name"), str) and "type" not in tool and "input_schema" not in tool:
            found.append(_plain(tool))
            continue
        tool, on_demand = {key: value for key, value in tool.items() if key != ON_DEMAND}, tool.get(ON_DEMAND)
        reader = next((each for each in map(provider, _FORMATS) if each.declares(tool)), None)
        if reader is None:
            raise InputError(
                f"tools[{i}] is not a tool declaration: give it 'name', 'description' and 'parameters' (a JSON "
                "schema), or the format that your provider documents"
            )
        read = reader.parse({reader.conversation: [], "tools": [tool]}).configuration.tools
        found.extend(replace(one, on_demand=True) if on_demand is True else one for one in read)
    return tuple(found)


def _plain(tool: Mapping[str, Any]) -> Tool:
    """A tool given as name, description and parameters, not in a provider's format."""
    unknown = tool.keys() - {"name", "description", "parameters", "output", ON_DEMAND}
    parameters = tool.get("parameters")
    if unknown or not isinstance(parameters, (dict, type(None))):
        what = f"unknown key {min(unknown)!r}" if unknown else "'parameters' is not a JSON schema"
        raise InputError(f"tool {tool['name']!r}: {what}; give it 'name', 'description' and 'parameters'")
    description, output = str(tool.get("description") or ""), str(tool.get("output") or "")
    on_demand = tool.get(ON_DEMAND) is True
    return _with_known_output(Tool(tool["name"], description, parameters, output=output, on_demand=on_demand))


def _with_known_output(tool: Tool) -> Tool:
    """The tool, if what it says of its output is known. Raises InputError."""
    if tool.output not in ("", *OUTPUTS):
        raise InputError(f"tool {tool.name!r}: output={tool.output!r}: give one of {', '.join(OUTPUTS)}")
    return tool
