"""Tool choices in the settings of any provider: their keys, the settings beside them, and renaming their tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..log.messages import Tool
from ..view.repair.clean import sendable_name
from ..view.rules import Rules
from .protocol import Provider


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
    """Settings beside a tool choice that the common word for it does not include, by path: allowed tools, no parallel
    calls, search locations. The choice is the same without them."""
    found: dict[tuple[str, ...], Any] = {}
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
                found[(*path, key)] = value
    return found


def _at(settings: Any, path: Sequence[str]) -> Any:
    for key in path:
        settings = settings[key]
    return settings


def _without(settings: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    key, *rest = path
    if rest:
        return {**settings, key: _without(settings[key], rest)}
    return {name: value for name, value in settings.items() if name != key}
