"""What each model takes, and the target that a request is made for.

The table `data/models.json` is written by `scripts/models_table.py`; it carries its date and source.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from .errors import InputError, UnknownProvider

__all__ = ["Target", "model_facts", "target"]


class Target(Struct, frozen=True, kw_only=True):
    """Provider, model, and what they can take.

    `input_limit` and `output_limit` are in tokens. `input_media` are the media kinds that the model
    reads (`image`, `document`, `audio`, `video`). `known` says whether the model is in the table; an
    unknown one gets its provider's common limits. `settings` are top-level request keys of the
    provider, laid over the conversation's own.
    """

    provider: str
    model: str
    input_limit: int
    output_limit: int
    input_media: frozenset[str]
    known: bool = True
    settings: dict[str, Any] = {}

    def with_settings(self, **settings: Any) -> Target:
        """This target with more request settings laid over it."""
        return msgspec.structs.replace(self, settings={**self.settings, **settings})


# What an unknown model of a provider is taken to have: the smallest limits still sold widely
# (the table's own minimum over current chat models), so that a guess errs on the safe side.
_COMMON: dict[str, dict[str, Any]] = {
    "openai": {"input": 128_000, "output": 16_384, "media": ["image"], "prices": {}},
    "anthropic": {"input": 200_000, "output": 8_192, "media": ["image", "document"], "prices": {}},
    "google": {"input": 1_048_576, "output": 8_192, "media": ["image", "document", "audio", "video"], "prices": {}},
}
_OWNER = {"openai-chat": "openai", "openai-responses": "openai"}
_DATED = re.compile(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|@\d{8}|-latest|-preview.*|-exp.*|-\d{3})$")


@cache
def _table() -> dict[str, dict[str, Any]]:
    text = resources.files("turnlog").joinpath("data/models.json").read_text("utf-8")
    models: dict[str, dict[str, Any]] = json.loads(text)["models"]
    return models


def model_facts(model: str) -> dict[str, Any] | None:
    """What the table says of a model: `provider`, `input`, `output` (tokens), `media`, `prices`
    (US dollars per token), or None.

    A dated or preview name falls back to the name without its suffix, then to the longest known
    name that it starts with.
    """
    table = _table()
    name = model.rsplit("/", 1)[-1]
    if name in table:
        return table[name]
    short = _DATED.sub("", name)
    if short in table:
        return table[short]
    known = [key for key in table if name.startswith((key + "-", key + "."))]
    return table[max(known, key=len)] if known else None


def target(provider: str, model: str, /, **settings: Any) -> Target:
    """The target for a provider's model, e.g. `target("anthropic", "claude-sonnet-4-5", max_tokens=2000)`.

    `settings` are top-level request keys of that provider. Raises UnknownProvider.
    """
    if not isinstance(provider, str) or not isinstance(model, str):
        raise InputError(f"a target is a provider's name and a model's, not {provider!r} and {model!r}")
    owner = _OWNER.get(provider, provider)
    if owner not in _COMMON or provider == "openai":
        raise UnknownProvider(
            f"unknown provider {provider!r}; use one of openai-chat, openai-responses, anthropic, google"
        )
    facts = model_facts(model)
    common = _COMMON[owner]
    found = facts or common
    return Target(
        provider=provider,
        model=model,
        input_limit=found["input"] or common["input"],
        output_limit=found["output"] or common["output"],
        input_media=frozenset(found["media"]),
        known=facts is not None,
        settings=dict(settings),
    )
