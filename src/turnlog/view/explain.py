"""How requests show each message of a log, and which decisions caused it.

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
from .decisions import Effects, Rewinds, active_decisions, ended_decisions, stand_ins
from .fold import Viewed, as_shown, viewed
from .provider_compaction import shown_to
from .types import Shown

Fate = Literal["kept", "curated", "replaced", "masked", "cut", "placeholder", "summarised", "left out", "rewound"]
"""How requests show a message. `kept`: as it is on record. `curated`: its tool outputs are shortened by what the tool
is. `replaced`: with another text. `masked`: each of its tool results is one line. `cut`: of giant outputs, only the
beginning and the end. `placeholder`: each image is one line. `summarised`: a summary covers it. `left out`: not at all.
`rewound`: not at all, because it was taken back."""


class Account(Struct, frozen=True, repr_omit_defaults=True):
    """How requests show one message.

    `n`: its record. `fate`: kept, curated, replaced, masked, cut, placeholder, summarised, left out or rewound. `by`:
    the decisions that caused it, in order; for a kept message, those that pinned it; none for an output that was
    curated when it came. `tokens`: its size; `shown`: how many of them requests still contain, not counting summaries.
    A rewound message saves no tokens: it is no longer part of the conversation. `curator`: what its tool outputs are
    that were curated, as `kind` of `turnlog.curate`.
    """

    n: int
    fate: Fate
    by: tuple[int, ...]
    tokens: int
    shown: int
    curator: str = ""

    @property
    def saved(self) -> int:
        """The tokens that requests save with this message."""
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
    rules = _Rules(held, Rewinds.of([*records, *tried]))
    originals = [shown for record in records for shown in as_shown(record)]
    summaries: dict[int, int] = {}
    curated: dict[int, Viewed] = {}
    for item in viewed([*records, *tried], held):
        shown = item.shown
        if shown.stands_in:
            summaries[shown.records[0]] = summaries.get(shown.records[0], 0) + count(shown.message)
        if item.curator:
            curated[item.place] = item
    accounts = {shown.records[0]: rules.account(shown, count) for shown in originals}
    for n, item in curated.items():
        account, tokens = accounts[n], count(item.shown.message)
        fate: Fate = "curated" if account.fate == "kept" else account.fate
        by = (*account.by, *(m for m, decision in held.items() if n in outputs_of((decision,))))
        accounts[n] = msgspec.structs.replace(account, fate=fate, by=by, shown=tokens, curator=item.curator)
    return Explanation(accounts, tuple(rulings), summaries)


class _Rules:
    """The decisions in force, prepared for looking up one message after another."""

    def __init__(self, held: Mapping[int, Decision], rewinds: Rewinds) -> None:
        self._rewinds = rewinds
        self._effects = Effects.of(held)
        alone = {n: Effects.of({n: decision}) for n, decision in held.items()}
        self._hiding = {n: effects for n, effects in alone.items() if effects.hidings or effects.late.ranges}
        self._stands = {n: stand_ins(n, decision) for n, decision in held.items()}
        self._changing: dict[int, list[int]] = {}
        self._pins: dict[int, list[int]] = {}
        for n, decision in held.items():
            for record in alone[n].changes:
                self._changing.setdefault(record, []).append(n)
            if decision.action == "pin":
                self._pins.setdefault(decision.first, []).append(n)

    def account(self, original: Shown, count: Callable[[Message], int]) -> Account:
        """How requests show a message, which is given as recorded."""
        n, tokens = original.records[0], count(original.message)
        if gone := self._rewinds.by(n):
            return Account(n, "rewound", (gone,), tokens, 0)
        if self._effects.hides(n, original.message):
            by, summarised = self._hidden(n, original.message)
            summarised = summarised and not self._effects.hides_late(n, original.message)
            return Account(n, "summarised" if summarised else "left out", by, tokens, 0)
        treated = self._effects.treat(original)
        if treated is original:
            return Account(n, "kept", tuple(self._pins.get(n, ())), tokens, tokens)
        return Account(n, self._effects.treatment_of(n), tuple(self._changing[n]), tokens, count(treated.message))

    def _hidden(self, n: int, message: Message) -> tuple[tuple[int, ...], bool]:
        """The decisions that hide a message, and whether a summary covers it.

        That summary may itself have been merged into a later one, or left out.
        """
        by: list[int] = []
        summary = 0
        for number, effects in self._hiding.items():
            _, standing = self._stands[number]
            inside = bool(summary) and effects.hides_stand_in(summary, self._stands[summary][0])
            if effects.hides(n, message) or inside:
                by.append(number)
                told = any(shown.treatment == "summarised" for shown in standing)
                summary = number if told else 0 if inside else summary
        return tuple(by), bool(summary)
