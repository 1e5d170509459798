"""What models accept and refuse, by the families that their names belong to.

`data/families.json` is written by hand, with a source for each entry. It also covers models that are not in the table
of models: a new model is most often like the others of its family.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from .._platform.lazy import lazy_pattern

_FAMILIES = Path(__file__).parent / "data" / "families.json"  # importlib.resources takes 10 ms to import


EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""How much a model reasons, in the words of all providers, from the least on."""


class Abilities(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a model accepts and refuses. The defaults are for a model about which nothing is known."""

    bound_thinking: bool = False
    """Whether its thinking is valid only if everything before it is as it was when the model produced it."""

    reads_thinking_of: tuple[str, ...] = ()
    """Other models whose thinking it accepts."""

    thinking: tuple[Literal["adaptive", "enabled", "disabled", "between_tools"], ...] | None = None
    """The types of Anthropic's setting `thinking` that it accepts; None: any."""

    forced_tools: bool = True
    """Whether a tool choice may force a call."""

    answer_schema: Literal["no", "alone", "any"] = "no"
    """Whether its provider makes it answer by a schema: not at all, only in requests without tools, or in any."""

    efforts: tuple[str, ...] = ()
    """The words for how much it reasons, of `EFFORTS`; () if nothing is known of them."""

    prefill: bool = True
    """Whether a request may end with an assistant's message."""

    sampling: Literal["any", "one", "default", "none"] = "any"
    """The sampling settings that it accepts. `any`: all; `one`: `temperature` or `top_p`, not both; `default`: default
    values only; `none`: none."""

    stop: bool = True
    """Whether it accepts stop sequences."""

    system_midway: bool = False
    """Whether system text may be in the middle of a conversation, if its provider allows that for some models only."""

    tools_midway: bool = False
    """Whether tools may be added and removed in the middle of a conversation, by parts of a system message."""

    system_role: bool = True
    """Whether it accepts system text at all."""

    max_completion_tokens: bool = False
    """Whether Chat Completions calls its limit on the answer `max_completion_tokens`."""

    custom_tools: bool = True
    """Whether it accepts tools whose input is free text."""

    deferred_tools: bool = False
    """Whether it accepts deferred tools, which it sees only after it has found them by search."""

    server_compaction: bool = False
    """Whether its provider can replace a conversation with a summary on demand."""

    chat_media: tuple[Literal["image", "audio"], ...] = ()
    """Media that Chat Completions accepts for it, beside those in the table of models."""

    replays_reasoning: bool = False
    """Whether its own reasoning may be sent back as text."""

    reflective: bool = False
    """Whether a summary for it holds the user's requests alone, as it works out the rest by itself."""

    signed_calls: bool = False
    """Whether the first call of each step must be signed, and results may contain media."""

    empty_text: bool = False
    """Whether Google accepts empty texts for it."""

    template_system: Literal["any", "first", "none"] = "any"
    """Where its chat template accepts system text: anywhere, in one message at the beginning, nowhere."""

    template_alternates: tuple[Literal["user", "assistant", "results"], ...] = ()
    """As `Server.alternates`, for its chat template."""

    template_call_ids: str = ""
    """A pattern for the ids of calls that its chat template accepts; "": any."""

    template_user: bool = False
    """Whether its chat template requires a message of the user."""

    tool_template: bool = True
    """Whether its chat template has a place for tools, calls and results."""


_TURNED = lazy_pattern(r"claude-([4-9](?:[-.]\d)?)-(opus|sonnet|haiku|fable|mythos)")
_DATED = lazy_pattern(r"[-@]\d{8}\b.*")


def reads_thinking(model: str, maker: str, abilities: Abilities) -> bool:
    """Whether `model`, which has these abilities, accepts the thinking that the model `maker` produced."""
    return _bare(maker) in {_bare(model), *abilities.reads_thinking_of}


def _bare(model: str) -> str:
    """A model's name without its date and the prefix of a reseller."""
    return _DATED.sub("", model.lower().rpartition("/")[2].rpartition("anthropic.")[2])


def turned(name: str) -> str:
    """A Claude's name in Anthropic's order: OpenRouter has `claude-4.5-sonnet-20250929`."""
    return _TURNED.sub(r"claude-\2-\1", name)


def family_entries(model: str) -> list[tuple[dict[str, Any], str]]:
    """The facts about the families that a model's name belongs to, each with its source; later ones win."""
    name = turned(model.lower())
    return [(facts, source) for pattern, facts, source in _families() if pattern.search(name)]


@cache
def _families() -> tuple[tuple[re.Pattern[str], dict[str, Any], str], ...]:
    entries = json.loads(_FAMILIES.read_bytes())["families"]
    return tuple((re.compile(each["names"]), each["facts"], each["source"]) for each in entries)
