"""Read tool declarations in the format of any provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..errors import InputError
from ..log.messages import Tool
from ..view.curate.recognise import OUTPUTS
from ..view.repair.clean import sendable_name
from ..view.rules import Rules
from . import PROVIDERS
from .protocol import Provider

# -- tool choice -----------------------------------------------------------------------------------
#
# Tool choices in the settings of any provider: their keys, the settings beside them, and renaming their tools.

# -- json mode -------------------------------------------------------------------------------------
#
# JSON mode of both OpenAI APIs: it requires the word `json` in a message.

JSON_PLEASE = "Please answer in JSON."
"""The message that is added if no other message has the word."""


def is_json_mode(answer_format: Any) -> bool:
    """Whether a setting asks for any JSON object rather than one that follows a schema."""
    return isinstance(answer_format, Mapping) and answer_format.get("type") == "json_object"


def chosen_as_sent(to: Provider, settings: dict[str, Any], tools: Sequence[Tool], rules: Rules) -> dict[str, Any]:
    """Settings whose tool choice uses the names under which the tools are declared."""
    sent = {tool.name: sendable_name(tool.name, rules) for tool in tools if tool.kind != "hosted"}
    renamed = {name: other for name, other in sent.items() if name != other}
    choice = to.tool_choice(settings) if renamed else None
    if choice is None:
        return settings
    return {**settings, **{key: _renamed(settings[key], renamed) for key in settings_of_choice(to, settings, choice)}}


def _renamed(choice: Any, names: Mapping[str, str]) -> Any:
    """A tool choice with its tools renamed at every depth."""
    if isinstance(choice, dict):
        return {key: _renamed(value, names) for key, value in choice.items()}
    if isinstance(choice, list):
        return [_renamed(value, names) for value in choice]
    return names.get(choice, choice) if isinstance(choice, str) else choice


def settings_of_choice(source: Provider, settings: Mapping[str, Any], choice: str) -> list[str]:
    """The keys of the settings that contain the tool choice."""
    usual = source.with_tool_choice({}, choice)
    return [key for key in settings if key in usual or source.tool_choice(_without(settings, (key,))) != choice]


def beside_choice(
    source: Provider, settings: Mapping[str, Any], choice_keys: Sequence[str], choice: str
) -> dict[tuple[str, ...], Any]:
    """The settings beside a tool choice, by path, that the common word for it leaves out: allowed tools, no parallel
    calls, search locations. The choice is the same without them."""
    extras: dict[tuple[str, ...], Any] = {}
    open_paths: list[tuple[str, ...]] = [(key,) for key in choice_keys]
    while open_paths:
        path = open_paths.pop()
        holder = _at(settings, path)
        for key, value in holder.items() if isinstance(holder, dict) else ():
            if key == "type" or value is None:
                continue
            if source.tool_choice(_without(settings, (*path, key))) != choice:
                open_paths.append((*path, key))
            else:
                extras[(*path, key)] = value
    return extras


def _at(settings: Any, path: Sequence[str]) -> Any:
    for key in path:
        settings = settings[key]
    return settings


def _without(settings: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    key, *rest = path
    if rest:
        return {**settings, key: _without(settings[key], rest)}
    return {name: value for name, value in settings.items() if name != key}


ON_DEMAND = "on_demand"
"""A key of declarations of any format: the model sees name and one line of the tool until it loads it."""


def read_tools(tools: Iterable[Tool | Mapping[str, Any]]) -> tuple[Tool, ...]:
    """Tools from `Tool` objects, or from dicts in the format of any provider.

    Raises InputError for a dict that is not a declaration, and for a value that is not a list of declarations.
    """
    declared: list[Tool] = []
    readers = sorted(PROVIDERS.values(), key=lambda each: each.declares_rest)
    if isinstance(tools, (str, bytes, Mapping, Tool)) or not isinstance(tools, Iterable):
        raise InputError(f"tools must be a list of declarations, not {type(tools).__name__}")
    for i, tool in enumerate(tools):
        if isinstance(tool, Tool):
            declared.append(_with_known_output(tool))
            continue
        if not isinstance(tool, Mapping):
            raise InputError(f"tools[{i}] is {type(tool).__name__}: declare a tool by a dict or turnlog.Tool")
        if isinstance(tool.get("name"), str) and "type" not in tool and "input_schema" not in tool:
            declared.append(_plain(tool))
            continue
        tool, on_demand = {key: value for key, value in tool.items() if key != ON_DEMAND}, tool.get(ON_DEMAND)
        reader = next((each for each in readers if each.declares(tool)), None)
        if reader is None:
            raise InputError(
                f"tools[{i}] is not a tool declaration: give it 'name', 'description' and 'parameters' (a JSON "
                "schema), or the format that your provider documents"
            )
        read = reader.parse({reader.conversation: [], "tools": [tool]}).configuration.tools
        declared.extend(replace(parsed, on_demand=True) if on_demand is True else parsed for parsed in read)
    return tuple(declared)


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
    """The tool, if its declared kind of output is known. Raises InputError."""
    if tool.output not in ("", *OUTPUTS):
        raise InputError(f"tool {tool.name!r}: output={tool.output!r}: give one of {', '.join(OUTPUTS)}")
    return tool
