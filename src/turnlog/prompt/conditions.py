"""Whether the conditions of a section are met."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec import Struct

from ..log.prompt import When


class Facts(Struct, frozen=True):
    """What conditions are about. `used_in` returns the names of the tools called in the last turns of the user, so
    many."""

    tools: Collection[str] = ()
    used_in: Callable[[int], Collection[str]] = lambda turns: ()
    provider: str = ""
    labels: Collection[str] = ()


def unmet(when: When, facts: Facts) -> str:
    """The first condition that is not met, in words; empty if all are."""
    if when.tool and when.tool not in facts.tools:
        return f"there is no tool {when.tool!r}"
    if when.provider and when.provider != facts.provider:
        return f"requests do not go to {when.provider!r}"
    if when.label and when.label not in facts.labels:
        return f"the prompt has no label {when.label!r}"
    if when.used and when.used not in facts.used_in(when.turns):
        turns = "turn" if when.turns == 1 else f"{when.turns} turns"
        return f"tool {when.used!r} was not called in the last {turns}"
    return ""
