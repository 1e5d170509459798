"""What models can do and what they refuse, by the families of their names.

`data/families.json` is written by hand, with a source for each entry. It also tells of models that are in no table: a
new model is most often like others of its name.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

_FAMILIES = Path(__file__).parent / "data" / "families.json"  # importlib.resources takes 10 ms to import


class Abilities(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a model takes and refuses. The defaults are those of a model that nothing is known of."""

    bound_thinking: bool = False
    """Whether its thinking is valid only behind what it was sent when it thought."""

    reads_thinking_of: tuple[str, ...] = ()
    """Models whose thinking it reads beside its own."""

    thinking: tuple[Literal["adaptive", "enabled", "disabled", "between_tools"], ...] | None = None
    """The types of Anthropic's setting `thinking` that it takes; None: any."""

    forced_tools: bool = True
    """Whether a tool choice may force a call."""

    prefill: bool = True
    """Whether an assistant's message may be last."""

    sampling: Literal["any", "one", "default", "none"] = "any"
    """Which sampling settings it takes: any, not `temperature` and `top_p` together, none but the defaults, none."""

    stop: bool = True
    """Whether it takes stop sequences."""

    system_midway: bool = False
    """Whether system text may stand in the middle of a conversation, where its provider takes that of some models."""

    system_role: bool = True
    """Whether it takes system text at all."""

    max_completion_tokens: bool = False
    """Whether its limit on the answer is called `max_completion_tokens` in Chat Completions."""

    custom_tools: bool = True
    """Whether it takes tools whose input is free text."""

    deferred_tools: bool = False
    """Whether tools may be declared that it finds by search only."""

    server_compaction: bool = False
    """Whether its provider can replace a conversation by a summary on demand."""

    chat_media: tuple[Literal["image", "audio"], ...] = ()
    """Media that Chat Completions takes for it, though the table of models may not say so."""

    replays_reasoning: bool = False
    """Whether its own reasoning may be sent back as text."""

    signed_calls: bool = False
    """Whether the first call of each step must be signed, and results may hold media inside."""

    empty_text: bool = False
    """Whether Google takes empty texts for it."""


def family_entries(model: str) -> list[tuple[dict[str, Any], str]]:
    """The facts about the families that a model's name belongs to, each with its source; later ones win."""
    name = model.lower()
    return [(facts, source) for pattern, facts, source in _families() if pattern.search(name)]


@cache
def _families() -> tuple[tuple[re.Pattern[str], dict[str, Any], str], ...]:
    held = json.loads(_FAMILIES.read_bytes())["families"]
    return tuple((re.compile(each["names"]), each["facts"], each["source"]) for each in held)
