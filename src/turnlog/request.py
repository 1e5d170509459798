"""From a view to a request: repair, declare, render, tidy, for any provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .content import Opaque, Part
from .models import Target
from .providers import provider
from .providers.protocol import BlobReader, Provider, SettingPaths
from .records import Configuration
from .view.arrange import Fate, with_parts
from .view.repair import declare_tools, repair
from .view.shown import Edit, Loss, Shown
from .view.sniff import sniff

__all__ = ["Prepared", "prepare", "render_only", "translate", "without_unknown"]


class Prepared(Struct, frozen=True):
    """A request that can be sent as it is, and how it came about.

    `request` is a plain dict for the SDK call. `edits` are changes made so that the provider accepts
    it, `losses` what the target cannot take; both name record numbers. `view` is what was rendered.
    """

    request: dict[str, Any]
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    view: tuple[Shown, ...]
    target: Target


def prepare(
    view: Sequence[Shown],
    configuration: Configuration,
    target: Target,
    blob: BlobReader,
    *,
    fate: Fate | None = None,
    complete: bool = True,
) -> Prepared:
    """The request for `view`: valid for `target`, whatever the view holds.

    `configuration` holds tools and settings in the terms of any provider; what the target's provider
    has no word for is a loss. `target.settings` are laid over it. With `complete`, settings that no
    request may be without are filled in; else their absence is mended as an edit.
    """
    to = provider(target.provider)
    local, lost = translate(configuration, to)
    required = to.required_settings(target) if complete else {}
    settings = {**required, **local.settings, **target.settings}
    local = msgspec.structs.replace(local, model=target.model, settings=settings)
    rules = to.rules(target, local.settings)
    known = without_unknown(sniff(view, blob, lost), to, lost)
    repaired = repair(known, rules, fate)
    if repaired.thinking_off:
        local = msgspec.structs.replace(local, settings=to.without_thinking(local.settings))
    tools, declared = declare_tools(repaired.view, local.tools, rules)
    local = msgspec.structs.replace(local, tools=tools)
    rendered = to.render(repaired.view, local, target, blob)
    tidied = to.tidy(rendered.request, target)
    return Prepared(
        request=tidied.request,
        edits=(*repaired.edits, *declared, *rendered.edits, *tidied.edits),
        losses=(*lost, *repaired.losses, *rendered.losses, *tidied.losses),
        view=repaired.view,
        target=target,
    )


def without_unknown(view: Sequence[Shown], to: Provider, losses: list[Loss]) -> list[Shown]:
    """The view without opaque parts of the provider's own that it does not take in requests."""
    out: list[Shown] = []
    for shown in view:
        kept: list[Part] = []
        for part in shown.message.parts:
            if isinstance(part, Opaque) and part.provider == to.name and not to.knows(part):
                losses.append(Loss("opaque", f"{part.kind} left out: {to.name} takes none in a request", shown.records))
            else:
                kept.append(part)
        if kept or not shown.message.parts:
            out.append(with_parts(shown, tuple(kept)))
    return out


def render_only(
    view: Sequence[Shown], configuration: Configuration, target: Target, blob: BlobReader
) -> dict[str, Any]:
    """The request as the view and its forms spell it, unrepaired: what came in goes out again."""
    return provider(target.provider).render(view, configuration, target, blob).request


def translate(configuration: Configuration, to: Provider) -> tuple[Configuration, list[Loss]]:
    """`configuration` in the terms of provider `to`: the settings that all share are carried over, each
    other one is a loss."""
    if not configuration.provider or configuration.provider == to.name:
        return msgspec.structs.replace(configuration, provider=to.name), []
    source = provider(configuration.provider)
    settings: dict[str, Any] = {}
    left = _leaves(configuration.settings, source.setting_paths)
    for name, path in source.setting_paths.items():
        if path in left and name in to.setting_paths:
            _put(settings, to.setting_paths[name], _as_common(name, left.pop(path)))
    choice = source.tool_choice(configuration.settings)
    if choice is not None:
        settings = to.with_tool_choice(settings, choice)
        without = source.with_tool_choice({}, choice)
        left = {path: value for path, value in left.items() if path[0] not in without}
    losses = [
        Loss("setting", f"{'.'.join(path)} is a setting of {source.name} only")
        for path in left
        if left[path] is not None
    ]
    local = Configuration(provider=to.name, model=configuration.model, settings=settings, tools=configuration.tools)
    return local, losses


def _leaves(settings: Mapping[str, Any], paths: SettingPaths) -> dict[tuple[str, ...], Any]:
    """Settings by path; objects that hold a shared setting are opened, others are one leaf."""
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
