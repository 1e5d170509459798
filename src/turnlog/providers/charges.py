"""What providers themselves say that an answer cost."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from .spelling import inner

_TICKS = 10_000_000_000
"""Ticks of a dollar (xAI): 127,344,000 were 467 tokens of output, 3,834 of input and two searches, of Grok 4."""
_HIGHEST = 1_000_000
"""A cost in dollars above which a figure is no cost of one answer."""


def charge_of(raw: Mapping[str, Any]) -> Decimal | None:
    """What a usage object says that the answer cost, in US dollars, to the digit; None if it does not say.

    OpenRouter has `cost`; for the key of another provider (`is_byok`) that is its own fee only, and what the other
    provider takes is in `cost_details`. Perplexity's `cost` is an object with a `total_cost`. xAI has
    `cost_in_usd_ticks`.
    """
    ticks = _dollars(raw.get("cost_in_usd_ticks"), _TICKS)
    if ticks is not None:
        return ticks
    told = raw.get("cost")
    cost = _dollars(told.get("total_cost") if isinstance(told, Mapping) else told)
    if raw.get("is_byok") is not True or cost is None:
        return cost
    others = _dollars(inner(raw, "cost_details").get("upstream_inference_cost"))
    return None if others is None else cost + others


def _dollars(value: Any, parts: int = 1) -> Decimal | None:
    """A number of dollars, or of parts of a dollar; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _HIGHEST * parts:
        return None
    return Decimal(repr(value)) / parts
