"""Compactions that a provider made: what that provider is shown of them, and what all others are.

Such a decision has further entries in its `detail`:

- `provider`: for requests to this provider the other entries apply (`kept`, `replacement`, `at`). `system_too`: the
  decision covers system text as well;
- `elsewhere`: entries that apply for all other providers instead. Without it, only that provider can read the
  compaction, and for the others the decision has no effect;
- `bound`: what reasoning after the covered records was bound to, if they were replaced while it was written: see
  `Prefix`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..log.records import Decision, Record

PROVIDER, ELSEWHERE, BOUND = "provider", "elsewhere", "bound"

_ONLY_THERE = frozenset({PROVIDER, ELSEWHERE, BOUND, "system_too", "kept", "replacement", "at", "tokens", "counter"})
"""The entries that apply only for the provider itself."""


class Prefix(Struct, frozen=True):
    """What a compaction replaces, for reasoning after it that is bound to it: `before` is the digest of everything
    before the compacted messages, `all` the digest up to their end, `role` the role of the last of them."""

    before: str
    all: str
    role: str


def shown_to(decisions: Mapping[int, Decision], provider: str) -> dict[int, Decision]:
    """The decisions as requests to a provider follow them."""
    followed = ((n, _shown_to(decision, provider)) for n, decision in decisions.items())
    return {n: decision for n, decision in followed if decision is not None}


def is_for_one_provider(decisions: Mapping[int, Decision]) -> bool:
    """Whether any of the decisions applies differently for different providers."""
    return any(PROVIDER in decision.detail for decision in decisions.values())


def as_recorded(record: Record, decision: Decision) -> Decision | None:
    """The decision in a record. If secrets in it were replaced, the provider must not be sent the changed compaction as
    its own, so it is shown what all other providers are. None if that is nothing."""
    return _shown_to(decision, "") if record.redacted else decision


def _shown_to(decision: Decision, provider: str) -> Decision | None:
    if decision.detail.get(PROVIDER, provider) == provider:
        return decision
    elsewhere = decision.detail.get(ELSEWHERE)
    if not isinstance(elsewhere, dict):
        return None
    detail = {key: value for key, value in decision.detail.items() if key not in _ONLY_THERE}
    return replace(decision, detail={**detail, **elsewhere})


def prefixes_of(decisions: Mapping[int, Decision]) -> Iterator[tuple[int, Prefix]]:
    """What each compaction stands for, by the number of its decision."""
    for n, decision in decisions.items():
        bound = decision.detail.get(BOUND)
        if isinstance(bound, list) and len(bound) == 3 and all(isinstance(value, str) for value in bound):
            yield n, Prefix(*bound)
