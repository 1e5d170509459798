"""Tokens: as turnlog counts them before a request, and as a provider bills them after it."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

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


class Usage(Struct, frozen=True, repr_omit_defaults=True, gc=False, omit_defaults=True):
    """What a provider billed for one request, in tokens.

    The figures follow one convention for all providers. `input` is everything the model read, including cached parts;
    `cached` is the part read from the provider's cache, `cache_write` the part written to it, and `cache_write_1h` the
    part of `cache_write` that is kept for an hour. `output` is everything the model wrote, including reasoning;
    `reasoning` is the part that was reasoning. `window` is what the model read in its last step, if the provider billed
    several steps as one request (a compaction and an answer, or tools that it runs); 0: `input`. `cleared` is what the
    provider left out of the request by itself, and so is not in `input`. `incomplete`: more was billed than is known,
    as a transcript has the figures from before the end of an answer, or a server did not count; all figures are
    minimums.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cache_write_1h: int = 0
    window: int = 0
    cleared: int = 0
    incomplete: bool = False

    def __add__(self, other: Usage) -> Usage:
        """The sum of what was billed."""
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached=self.cached + other.cached,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            cache_write_1h=self.cache_write_1h + other.cache_write_1h,
            incomplete=self.incomplete or other.incomplete,
        )


def tokens_billed(value: Any) -> int:
    """A figure of a usage object as tokens: 0 if it is no whole number below 2 ** 53 (all JSON readers have them).

    Servers that imitate an API report -1 for figures that they did not count, and 12.0 for 12.
    """
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
        if value is not None
    )
