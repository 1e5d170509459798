"""What decisions do to late blocks of the system prompt, and to tools on demand.

A decision that makes requests smaller leaves out the late blocks that newer ones replaced, and declares tools that were
loaded since at the beginning. Its `detail` says so, with all that earlier ones said: of several decisions in force, the
newest that has the entry `late` counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..log.records import Decision
from .types import Edit

LATE, CUTS, LOADED = "late", "late_cuts", "loaded"
"""The entries of `detail`, as in `Late`."""


class Late(Struct, frozen=True):
    """The late entries that count, and the number `n` of their decision, 0 if there is none.

    `ranges`: in these ranges of record numbers, system messages are left out. `cuts`: of these messages, so many
    characters are shown. `loaded`: the names of tools on demand that are declared in full.
    """

    n: int = 0
    ranges: tuple[tuple[int, int], ...] = ()
    cuts: tuple[tuple[int, int], ...] = ()
    loaded: frozenset[str] = frozenset()

    @classmethod
    def of(cls, decisions: Mapping[int, Decision]) -> Late:
        """Those of the decisions in force, which are given by record number, oldest first."""
        for n, decision in reversed([*decisions.items()]):
            detail = decision.detail
            if LATE in detail:
                return cls(n, _pairs(detail[LATE]), _pairs(detail.get(CUTS, ())), frozenset(detail.get(LOADED, ())))
        return cls()

    def leaves_out(self, n: int) -> bool:
        """Whether the system message of record `n` is left out."""
        return any(first <= n <= last for first, last in self.ranges)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """What is left out, as edits."""
        detail = "parts of the system prompt left out that newer ones replaced"
        return tuple(Edit("late", detail, (first,), through=last) for first, last in self.ranges)


def _pairs(entry: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(a), int(b)) for a, b in entry)
