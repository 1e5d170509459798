"""What the log keeps about prompt caches."""

from __future__ import annotations

from msgspec import Struct


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
