"""Explain how requests show each message of a log, and which decisions caused it.

A fold over records, like `select`: the same log always gives the same result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from .._platform.units import counted
from ..log.messages import Message
from ..log.records import Decision, Record
from .curate.conversation import outputs_of
from .decisions import (
    Effects,
    Hiding,
    Rewinds,
    active_decisions,
    changed_by,
    ended_decisions,
    first_to_hide,
    lasting,
    stand_ins,
)
from .fold import Viewed, as_shown, viewed
from .provider_compaction import shown_to
from .types import Shown

Fate = Literal["kept", "curated", "replaced", "masked", "cut", "placeholder", "summarised", "left out", "rewound"]
"""How requests show a message. `kept`: as recorded. `curated`: its tool outputs are shortened by what the tool is.
`replaced`: with another text. `masked`: each of its tool results is one line. `cut`: giant outputs are shown only by
their beginning and end. `placeholder`: each image is one line. `summarised`: a summary covers it. `left out`: not at
all. `rewound`: not at all, because it was taken back."""


class Account(Struct, frozen=True, repr_omit_defaults=True):
    """How requests show one message.

    `n`: its record. `fate`: kept, curated, replaced, masked, cut, placeholder, summarised, left out or rewound. `by`:
    the decision that first took the message out or changed it, and the one that says how it is shown now (whose
    summary covers it, or which left that summary out): at most two. For a kept message, the first and the last that
    pinned it; for an output that was curated when it was recorded, none. `tokens`: its size; `shown`: how many of them
    requests still contain, not counting summaries. A rewound message saves no tokens: it is no longer part of the
    conversation. `curator`: the kind of its curated tool outputs, as `kind` of `turnlog.curate`.
    """

    n: int
    fate: Fate
    by: tuple[int, ...]
    tokens: int
    shown: int
    curator: str = ""

    @property
    def saved(self) -> int:
        """The tokens that requests save through this message's form."""
        return 0 if self.fate == "rewound" else self.tokens - self.shown


class Ruling(Struct, frozen=True, repr_omit_defaults=True):
    """A decision on record: its number and time, and the number of the decision that ended it, 0 while it is in
    force."""

    n: int
    time: str
    decision: Decision
    ended_by: int = 0

    @property
    def figures(self) -> tuple[int, int] | None:
        """The tokens of a request before and after the decision, if it was made for size; else None."""
        detail = self.decision.detail
        return (int(detail["before"]), int(detail["after"])) if {"before", "after"} <= detail.keys() else None


class Explanation(Struct, frozen=True, repr_omit_defaults=True):
    """The accounts of all messages, by record number, and all decisions, oldest first.

    `summaries`: the tokens of each summary that is shown, by the number of the decision that made it.
    """

    accounts: dict[int, Account]
    rulings: tuple[Ruling, ...]
    summaries: dict[int, int]

    def __repr__(self) -> str:
        fates = Counter(account.fate for account in self.accounts.values())
        summary = ", ".join(f"{number:,} {fate}" for fate, number in fates.items())
        return (
            f"Explanation({counted(len(self.accounts), 'message')}: {summary or 'none'}; {self.saved:,} tokens saved)"
        )

    @property
    def shown(self) -> int:
        """The tokens of all messages that are shown, including summaries."""
        return sum(account.shown for account in self.accounts.values()) + sum(self.summaries.values())

    @property
    def saved(self) -> int:
        """The tokens that requests save, minus the tokens of the summaries."""
        return sum(account.saved for account in self.accounts.values()) - sum(self.summaries.values())


def explain(
    records: Sequence[Record],
    count: Callable[[Message], int],
    also: Mapping[int, Decision] | None = None,
    provider: str = "",
) -> Explanation:
    """How requests to a provider show every message of a log. `count` returns the tokens of a message; `also` are
    decisions that are treated as if they were on record."""
    tried = [Record(n, "", decision) for n, decision in (also or {}).items()]
    ended = ended_decisions([*records, *tried])
    rulings = [Ruling(r.n, r.time, r.body, ended.get(r.n, 0)) for r in records if isinstance(r.body, Decision)]
    held = shown_to(active_decisions([*records, *tried]), provider)
    rules = _Rules(held, Rewinds.of([*records, *tried]), records[-1].n if records else 0)
    originals = [shown for record in records for shown in as_shown(record)]
    summaries: dict[int, int] = {}
    curated: dict[int, Viewed] = {}
    system = {record.n for record in records if record.message and record.message.role == "system"}
    for item in viewed([*records, *tried], lasting(held, system)):
        shown = item.shown
        if shown.stands_in:
            summaries[shown.records[0]] = summaries.get(shown.records[0], 0) + count(shown.message)
        if item.curator:
            curated[item.place] = item
    accounts = {shown.records[0]: rules.account(shown, count) for shown in originals}
    curating = {n: m for m, decision in held.items() for n in outputs_of((decision,))}
    for n, item in curated.items():
        account, tokens = accounts[n], count(item.shown.message)
        fate: Fate = "curated" if account.fate == "kept" else account.fate
        by = _ends_of((*account.by, *((curating[n],) if n in curating else ())))
        accounts[n] = msgspec.structs.replace(account, fate=fate, by=by, shown=tokens, curator=item.curator)
    return Explanation(accounts, tuple(rulings), summaries)


class _Rules:
    """The decisions in force, prepared for looking up one message after another.

    Of the records that a decision hides, each is looked at once, whatever the number of decisions: time grows with the
    log, not with the log times its decisions.
    """

    def __init__(self, held: Mapping[int, Decision], rewinds: Rewinds, last: int) -> None:
        self._rewinds = rewinds
        self._effects = Effects.of(held)
        hidings = self._effects.hidings
        standing = {hiding.n: stand_ins(hiding.n, held[hiding.n]) for hiding in hidings}
        tells = {n for n, (_, shown) in standing.items() if any(one.treatment == "summarised" for one in shown)}
        self._ends = _ends(hidings, {n: at for n, (at, _) in standing.items() if n in tells})
        self._first, self._newest = {}, {}
        for is_system in (False, True):
            hiding_it = [hiding for hiding in hidings if hiding.system_too or not is_system]
            self._first[is_system] = first_to_hide(hiding_it, last)
            self._newest[is_system] = first_to_hide([h for h in reversed(hiding_it) if h.n in tells], last)
        self._changing: dict[int, list[int]] = {}
        self._pins: dict[int, list[int]] = {}
        for n, decision in held.items():
            for record in changed_by(decision):
                self._changing.setdefault(record, []).append(n)
            if decision.action == "pin":
                self._pins.setdefault(decision.first, []).append(n)
        for record, _ in self._effects.late.cuts:
            self._changing.setdefault(record, []).append(self._effects.late.n)

    def account(self, original: Shown, count: Callable[[Message], int]) -> Account:
        """How requests show a message, given as recorded."""
        n, tokens = original.records[0], count(original.message)
        if gone := self._rewinds.by(n):
            return Account(n, "rewound", (gone,), tokens, 0)
        is_system = original.message.role == "system"
        late = self._effects.late.n if self._effects.hides_late(n, original.message) else 0
        if (first := self._first[is_system].get(n, late)) != 0:
            summary, dropped = self._ends.get(self._newest[is_system].get(n, 0), (0, 0))
            fate: Fate = "summarised" if summary and not late else "left out"
            return Account(n, fate, _ends_of((first, summary or dropped or first)), tokens, 0)
        treated = self._effects.treat(original)
        if treated is original:
            return Account(n, "kept", _ends_of(self._pins.get(n, ())), tokens, tokens)
        return Account(n, self._effects.treatment_of(n), _ends_of(self._changing[n]), tokens, count(treated.message))


def _ends_of(decisions: Sequence[int]) -> tuple[int, ...]:
    """The first and the last of these decisions: () if there is none, one number if they are the same."""
    return tuple(dict.fromkeys((*decisions[:1], *decisions[-1:])))


def _ends(hidings: Sequence[Hiding], places: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """What became of each summary, by the number of its decision: the decision whose summary tells it now, itself or a
    later one that it was merged into, and 0; or 0 and the decision that left the last of them out. `places` are the
    records before which the summaries stand."""
    ends: dict[int, tuple[int, int]] = {}
    for index in range(len(hidings) - 1, -1, -1):
        n = hidings[index].n
        if n in places:
            later = (hidings[i] for i in range(index + 1, len(hidings)))
            leaves = next((hiding.n for hiding in later if hiding.hides_stand_in(n, places[n])), 0)
            ends[n] = ends.get(leaves, (0, leaves)) if leaves else (n, 0)
    return ends
