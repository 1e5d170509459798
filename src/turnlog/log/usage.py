"""Tokens: as turnlog counts them before a request, and as a provider bills them after it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from msgspec import Struct

PROMPT_LENGTHS = (32_000, 100_000, 128_000, 199_999, 200_000, 256_000, 272_000, 512_000, 524_288)
"""Lengths of prompts, in tokens, above which a model of the table costs more. A sum keeps apart what was billed for
prompts between two of them, so that it costs what its answers cost."""

# -- caching ---------------------------------------------------------------------------------------
#
# What the log keeps about prompt caches.


class CacheRead(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """What a request was expected to read from its provider's prompt cache.

    `expected` is in billed tokens. `changed` says what differs from the beginning of the request before it: `tools`,
    `settings`, `system` or `messages`; empty if nothing does. `why` is for people: the cause of that, or why nothing is
    expected. `reason` is what the provider said about a missed cache, in its own words; empty if it found no change,
    None if it said nothing.
    """

    expected: int = 0
    changed: str = ""
    why: str = ""
    reason: str | None = None


class Count(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """The tokens of a message, counted when it was recorded and never again.

    `counter` is the name and version of the counter, `certainty` how far to trust the count. `at_once` is True if the
    message was counted as one of several parallel results, for a provider that bills these differently.
    """

    tokens: int
    counter: str
    certainty: Literal["exact", "calibrated", "estimated"] = "estimated"
    at_once: bool = False


class _Figures(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """The figures of a bill: see `Usage`."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0


class Bracket(_Figures, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """The part of a sum of usage that was billed for prompts of more than `above` tokens, up to the next of
    `PROMPT_LENGTHS`. The other fields are those of `Usage`. Answers of which the provider said what it charged are in
    a bracket of their own."""

    above: int = 0
    incomplete: bool = False
    charged: Decimal | None = None


class Usage(_Figures, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """What a provider billed for one request, in tokens.

    The figures follow one convention for all providers. `input` is everything the model read, including cached parts;
    `cached` is the part read from the provider's cache, `cache_write` the part written to it, and `cache_write_1h` the
    part of `cache_write` that is kept for an hour. `output` is everything the model wrote, including reasoning;
    `reasoning` is the part that was reasoning. `window` is what the model read in its last step, if the provider billed
    several steps as one request (a compaction and an answer, or tools that it runs); 0: `input`. `cleared` is what the
    provider left out of the request by itself, and so is not in `input`. `incomplete`: more was billed than is known,
    as a transcript has the figures from before the end of an answer, or a server did not count; all figures are
    minimums. `charged` is what the provider itself says that it charged, in US dollars; None if it does not say.

    Usage can be added. `charged` is then the sum of what is known of it, and `apart` the parts of the sum that may have
    different prices. It is empty if there is one such part, and `input` by itself would be taken for the same.
    """

    window: int = 0
    cleared: int = 0
    incomplete: bool = False
    charged: Decimal | None = None
    apart: tuple[Bracket, ...] = ()

    def __add__(self, other: Usage) -> Usage:
        """The sum of what was billed."""
        return summed((self, other))

    def brackets(self) -> tuple[Bracket, ...]:
        """What was billed, in parts as in `apart`; one for one answer."""
        return self.apart or (_added((self,), _above(self.window or self.input)),)


def summed(usages: Iterable[Usage]) -> Usage:
    """The sum of what was billed, in any order."""
    parts: dict[tuple[int, bool], list[Usage | Bracket]] = {}
    for usage in usages:
        for part in usage.apart or (usage,):
            above = part.above if isinstance(part, Bracket) else _above(part.window or part.input)
            parts.setdefault((above, part.charged is not None), []).append(part)
    brackets = [_added(parts[key], key[0]) for key in sorted(parts)]
    brackets = [each for each in brackets if each != Bracket(above=each.above)]
    total = _added(brackets, 0)
    is_plain = not brackets or (len(brackets) == 1 and brackets[0].above == _above(total.input))
    apart = () if is_plain else tuple(brackets)
    return Usage(
        input=total.input,
        output=total.output,
        cached=total.cached,
        cache_write=total.cache_write,
        reasoning=total.reasoning,
        cache_write_1h=total.cache_write_1h,
        incomplete=total.incomplete,
        charged=total.charged,
        apart=apart,
    )


def _added(parts: Sequence[Usage | Bracket], above: int) -> Bracket:
    """The sum of the figures, without telling them apart."""
    charges = [part.charged for part in parts if part.charged is not None]
    return Bracket(
        input=sum([part.input for part in parts]),
        output=sum([part.output for part in parts]),
        cached=sum([part.cached for part in parts]),
        cache_write=sum([part.cache_write for part in parts]),
        reasoning=sum([part.reasoning for part in parts]),
        cache_write_1h=sum([part.cache_write_1h for part in parts]),
        above=above,
        incomplete=any(part.incomplete for part in parts),
        charged=sum(charges, Decimal()) if charges else None,
    )


def _above(tokens: int) -> int:
    """The longest of `PROMPT_LENGTHS` that a prompt exceeds, 0 if it exceeds none."""
    found = bisect_left(PROMPT_LENGTHS, tokens)
    return PROMPT_LENGTHS[found - 1] if found else 0


def tokens_billed(value: Any) -> int:
    """A figure of a usage object as tokens: 0 if it is no whole number below 2 ** 53 (all JSON readers have them).

    Servers that imitate an API report -1 for figures that they did not count, and 12.0 for 12.
    """
    if type(value) is int and 0 <= value < 1 << 53:
        return value
    return 0 if value is None or is_uncounted(value) else int(value)


def is_uncounted(*values: Any) -> bool:
    """Whether one of these figures of a usage object is there, but says nothing, so that more was billed than is
    known."""
    return any(
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 <= value < 1 << 53
        or value != int(value)
        for value in values
        if value is not None and not (type(value) is int and 0 <= value < 1 << 53)
    )


_TICKS = 10_000_000_000
"""Ticks of a dollar (xAI): 127,344,000 were 467 tokens of output, 3,834 of input and two searches, of Grok 4."""
_HIGHEST_CHARGE = 1_000_000
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
    upstream = raw.get("cost_details")
    others = _dollars(upstream.get("upstream_inference_cost") if isinstance(upstream, Mapping) else None)
    return None if others is None else cost + others


def _dollars(value: Any, parts: int = 1) -> Decimal | None:
    """A number of dollars, or of parts of a dollar; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _HIGHEST_CHARGE * parts:
        return None
    return Decimal(repr(value)) / parts
