"""Translate tools and settings into the target's terms, before a request's conversation is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from .._platform.lazy import Later
from ..log.messages import Message, Tool
from ..log.records import Configuration
from ..models.target import Target
from ..providers import provider
from ..providers.protocol import Provider, SettingPaths
from ..providers.tool_declarations import beside_choice, chosen_as_sent, settings_of_choice
from ..view.repair.media_room import beside_texts
from ..view.rules import Rules
from ..view.types import Loss
from .carried import carried, disclosed

if TYPE_CHECKING:
    from . import answers
else:  # an open session seldom needs it
    answers = Later(lambda: import_module(f"{__package__}.answers"))

# -- declared --------------------------------------------------------------------------------------
#
# Limit the number of tools that a request declares.

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


class RequestPlan(Struct, frozen=True, eq=False):
    """How requests for a target are made: everything except the conversation.

    `local` is the configuration in the provider's terms, `losses` what cannot be expressed in these terms. `complete`:
    turnlog builds the whole request; otherwise it repairs a request that the caller gave.
    """

    provider: Provider
    target: Target
    local: Configuration
    rules: Rules
    losses: tuple[Loss, ...]
    complete: bool

    @property
    def taken_out(self) -> frozenset[str]:
        """The steps of strategies that the provider performs itself, because the settings ask for it."""
        return self.provider.takes_out(self.local.settings)


def plan(
    configuration: Configuration, target: Target, *, complete: bool = True, messages: Iterable[Message] = ()
) -> RequestPlan:
    """The plan for a target.

    `configuration` has tools and settings in the terms of any provider; those that the target's provider does not have
    or cannot run become losses. `target.settings` override its settings. With `complete`, missing settings that every
    request needs are filled in; otherwise they are reported as an edit. `messages` are those of the conversation, if
    another provider's items in them may say which tools there are.
    """
    to = provider(target.provider)
    local, lost = translate(configuration, to, target)
    settings = {**(to.required_settings(target) if complete else {}), **local.settings, **target.settings}
    declared: tuple[Tool, ...] = disclosed(local.tools, to, target)
    if local.answer_schema is not None:
        settings, declared = answers.asking(local.answer_schema, to, target, settings, declared)
    rules = to.rules(target, settings)
    tools = carried(declared, messages, to, target, rules, lost)
    elsewhere = [tool for tool in tools if tool.kind == "hosted" and tool.provider != to.name]
    lost += [
        Loss(
            "tool",
            f"tool {tool.name!r} left out: it is a hosted tool of {tool.provider or 'no known provider'}, which "
            f"{to.name} cannot run",
        )
        for tool in elsewhere
    ]
    tools = tuple(tool for tool in tools if tool not in elsewhere)
    if complete:  # otherwise too many tools are the caller's mistake, and reported as such
        tools = as_many_as_taken(tools, to.tool_choice(settings) or "", rules, lost)
        rules = beside_texts(rules, target.input_limit)
    settings = chosen_as_sent(to, settings, tools, rules)
    local = msgspec.structs.replace(local, model=target.model, settings=settings, tools=tools)
    if rules.results_together == "all" and not complete:
        rules = msgspec.structs.replace(rules, results_together="added")
    return RequestPlan(to, target, local, rules, tuple(lost), complete)


def translate(
    configuration: Configuration, to: Provider, target: Target | None = None
) -> tuple[Configuration, list[Loss]]:
    """`configuration` in the terms of provider `to`: settings that all providers share are converted, each other
    setting is a loss. A schema for the answer is one too if the model of `target` does not take it."""
    if not configuration.provider or configuration.provider == to.name:
        return msgspec.structs.replace(configuration, provider=to.name), []
    source = provider(configuration.provider)
    settings, given, losses = answers.carried_along(source, configuration, to, target)
    left = _leaves(given, source.setting_paths)
    for name, path in (*source.older_paths.items(), *source.setting_paths.items()):
        if left.get(path) is not None and name in to.setting_paths:
            _put(settings, to.setting_paths[name], _as_common(name, left.pop(path)))
    choice = source.tool_choice(configuration.settings)
    if choice is not None:
        settings = to.with_tool_choice(settings, choice)
        choice_keys = settings_of_choice(source, configuration.settings, choice)
        left = {path: value for path, value in left.items() if path[0] not in choice_keys}
        left.update(beside_choice(source, configuration.settings, choice_keys, choice))
    lost = [".".join(path) for path in left if left[path] is not None]
    losses += [Loss("setting", f"setting {name} of {source.name} left out") for name in lost]
    local = Configuration(
        provider=to.name,
        model=configuration.model,
        settings=settings,
        tools=configuration.tools,
        answer_schema=configuration.answer_schema,
    )
    return local, losses


def _leaves(settings: Mapping[str, Any], paths: SettingPaths) -> dict[tuple[str, ...], Any]:
    """Settings by path. An object that contains a shared setting is split into its entries, others are kept whole."""
    openable = {path[:1] for path in paths.values() if len(path) > 1}
    leaves: dict[tuple[str, ...], Any] = {}
    for key, value in settings.items():
        if (key,) in openable and isinstance(value, dict):
            leaves.update({(key, inner): item for inner, item in value.items()})
        else:
            leaves[(key,)] = value
    return leaves


def _as_common(name: str, value: Any) -> Any:
    return [value] if name == "stop" and isinstance(value, str) else value


def _put(settings: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        settings = settings.setdefault(key, {})
    settings[path[-1]] = value
