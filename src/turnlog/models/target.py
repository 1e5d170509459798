"""The target of a request: provider, model and limits, and a warning for models that are not in the table."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterable
from types import FrameType
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .._platform.given import text_given
from .._platform.texts import without_password
from ..errors import InputError, UnknownProvider
from ..errors import UnknownModelWarning as UnknownModelWarning
from .abilities import Abilities
from .catalog import VARIABLE, family_media, find_model, model_abilities, own_file, seller_of
from .makers import PROVIDER_ROWS
from .servers import Server, recognised, server_given, server_row

_ELSEWHERE = {
    **dict.fromkeys(("provider", "model", "target"), "switch() for the model"),
    "tools": "configure(tools=)",
    "settings": "an argument for each of them, such as temperature=0, or **settings",
    **dict.fromkeys(
        ("input_limit", "output_limit"), f"{VARIABLE} or models.json for what a model takes, budget= for what to send"
    ),
    **dict.fromkeys(("summarizer", "summary_timeout", "checkpoint", "redact"), "turnlog.load_settings() for open()"),
}


def not_settings() -> dict[str, str]:
    """Names that are not settings of a request, although the bodies of some providers have such keys, and what to use
    instead."""
    keys = (key for row in PROVIDER_ROWS.values() for key in (row.conversation, *row.system_keys))
    return {**_ELSEWHERE, **dict.fromkeys(keys, "system() and user() for text")}


def check_settings(names: Iterable[str]) -> None:
    """Raises InputError for names that are not settings of a request: they would replace the conversation or its tools,
    or have no effect."""
    elsewhere = not_settings() if names else {}
    for name in names:
        if name in elsewhere:
            raise InputError(f"{name!r} is not a setting of a request: use {elsewhere[name]}")


class Target(Struct, frozen=True, repr_omit_defaults=True, kw_only=True):
    """A provider and a model, with the model's limits.

    `input_limit` and `output_limit` are in tokens. `input_media` are the media kinds that the model reads (`image`,
    `document`, `audio`, `video`). `taken_for`: the similarly named model whose limits are used, if the model itself is
    not in the table. `known` is False if no similar model was found either; then the common limits of the provider are
    used. `settings` are top-level keys of the provider's request; they override those of the conversation. `base_url`
    is the address of another server with the provider's API. `compatible` is true for a model on such a server, of
    another maker, or newer than the table: settings that turnlog does not know are then passed on unchanged. `server`
    is the name of the server's row (docs/servers.md), "" for the maker's own and for one that is not known.
    """

    provider: str
    model: str
    input_limit: int
    output_limit: int
    input_media: frozenset[str]
    known: bool = True
    taken_for: str = ""
    settings: dict[str, Any] = {}
    base_url: str = ""
    compatible: bool = False
    server: str = ""

    @property
    def server_row(self) -> Server:
        """What is known about what the server accepts."""
        return server_row(self.server, self.model)

    @property
    def abilities(self) -> Abilities:
        """What is known about what the model accepts and refuses."""
        return model_abilities(self.model)

    @property
    def seller(self) -> str:
        """Whose server it is, as the tables of prices name it; empty if it is not known, or the maker's."""
        return _seller(self.model, self.base_url, self.server)

    @property
    def sold_as(self) -> str:
        """The model as the tables of prices name it: `MODEL`, or `SELLER/MODEL`."""
        return f"{self.seller}/{self.model}" if self.seller else self.model

    def __str__(self) -> str:
        return f"{self.provider} {self.model}" + (f" at {without_password(self.base_url)}" if self.base_url else "")

    def __repr__(self) -> str:
        return Struct.__repr__(replace(self, base_url=without_password(self.base_url)))

    def with_settings(self, **settings: Any) -> Target:
        """This target with more request settings, which override those that it has. Raises InputError."""
        check_settings(settings)
        return msgspec.structs.replace(self, settings={**self.settings, **settings})

    @property
    def doubt(self) -> str:
        """The limits assumed for a model that is not in the table, and how to correct them; else empty."""
        if self.known and not self.taken_for:
            return ""
        limits = f"the limits of {self.taken_for!r}" if self.taken_for else "the common limits of its provider"
        entry = json.dumps({"models": {self.model: {"input": self.input_limit, "output": self.output_limit}}})
        return (
            f"model {self.model!r} is not in the table of models; {limits} are used: {self.input_limit:,} input and "
            f"{self.output_limit:,} output tokens. If they are wrong, add the right ones to {own_file()}, e.g. {entry}"
        )


def target(provider: str, model: str, /, *, base_url: str = "", server: str = "", **settings: Any) -> Target:
    """The target for a provider's model, e.g. `target("anthropic", "claude-sonnet-4-5", max_tokens=2000)`.

    `settings` are top-level request keys of that provider. `base_url` is another server that speaks the provider's API,
    if there is one (see `Target`). `server` names a server that imitates Chat Completions (docs/servers.md); if it is
    not given, the address tells which one it is, else the model's name. Warns once about a model that is not in the
    table (UnknownModelWarning). Raises UnknownProvider, InputError.
    """
    if not isinstance(provider, str) or not isinstance(model, str):
        raise InputError(f"target(): provider and model must be strings, not {provider!r} and {model!r}")
    if provider not in PROVIDER_ROWS:
        raise UnknownProvider(f"unknown provider {provider!r}; use one of {', '.join(PROVIDER_ROWS)}")
    row = PROVIDER_ROWS[provider]
    if not model:
        raise InputError(f"target(): the model is empty; give a model such as {row.model!r}")
    check_settings(settings)
    text_given("base_url", base_url)
    maker, plain = row.maker, find_model(model)
    is_own = plain is not None and plain.facts.provider == maker.name
    found = _server(provider, model, base_url, server, is_own=is_own)
    seller = _seller(model, base_url, found)
    match = find_model(f"{seller}/{model}") if seller else plain
    input_limit, output_limit, media = maker.input_limit, maker.output_limit, maker.input_media
    if match is not None:
        facts = match.facts
        input_limit, output_limit = facts.input or input_limit, facts.output or output_limit
        media = media if facts.media is None else frozenset(facts.media)
    else:
        media = family_media(model, media)
    own_api = bool(found) and server_row(found, model).own_api
    built = Target(
        provider=provider,
        model=model,
        input_limit=input_limit,
        output_limit=output_limit,
        input_media=media,
        known=match is not None,
        taken_for=match.taken_for if match else "",
        settings=dict(settings),
        base_url=base_url,
        compatible=not own_api and (bool(base_url or found) or match is None or match.newer or not is_own),
        server=found,
    )
    if built.taken_for or not built.known:
        _warn(built)
    return built


def _seller(model: str, base_url: str, server: str) -> str:
    usual = server_row(server, "").seller if server and not base_url else ""
    return seller_of(model, base_url, usual) if base_url or usual else ""


def _server(provider: str, model: str, base_url: str, given: str, *, is_own: bool) -> str:
    """The name of the row of the server that a target means. `is_own`: the model is the maker's own."""
    text_given("server", given)
    imitated = PROVIDER_ROWS[provider].maker.imitated
    if provider != imitated:
        if given:
            raise InputError(f"target(): server={given!r} is for {imitated or 'openai-chat'}, not for {provider}")
        return ""
    if given:
        return server_given(given)
    return "" if is_own and not base_url and model.isascii() and "/" not in model else recognised(base_url, model)


_warned: set[str] = set()


def _warn(target: Target) -> None:
    """Warn once per process, pointing at the line outside this package that made the target."""
    if target.model in _warned:
        return
    _warned.add(target.model)
    frame: FrameType | None = sys._getframe(1)  # `target`
    level = 2
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "turnlog":
        frame, level = frame.f_back, level + 1
    warnings.warn(target.doubt, UnknownModelWarning, stacklevel=level)
