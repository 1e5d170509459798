"""What repair puts into a view takes room as well: results in the place of those that nobody gave, signatures, what
frames answers that are joined, and a user's word at an end where a provider wants one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import takewhile

import msgspec

from ..content import Message, ToolCall
from ..rules import Rules
from .arrange import Fate, fate_of_call, synthetic_result
from .blocks import Item
from .pairing import Pairing
from .repair import added_ends, joined_runs, signed_call
from .shown import Shown

__all__ = ["Added", "with_added"]

_Count = Callable[[Message], int]


class Added:
    """Sees a view message by message, and tells what repair would add to it: what was counted once is remembered."""

    def __init__(self) -> None:
        self._view: list[Shown] = []
        self._pairing = Pairing()
        self._calling = self._joins = False
        self._sizes: dict[Hashable, int] = {}
        self._signed: tuple[Rules | None, dict[int, int], int] = (None, {}, 0)
        self._made: tuple[int, Rules, dict[int, int]] | None = None

    def see(self, shown: Shown) -> None:
        """The next message of the view."""
        message = shown.message
        self._view.append(shown)
        self._pairing.see(message)
        if message.role != "assistant":
            self._calling = False
            return
        self._joins = self._joins or self._calling
        self._calling = self._calling or any(isinstance(part, ToolCall) for part in message.parts)

    def beside(self, rules: Rules, fate: Fate, count: _Count, last: int) -> dict[int, int]:
        """The tokens that are added, by the index of the message that they are there for. `fate` is as the log has it
        up to record number `last`, `count` the same in every call."""
        if self._made is None or self._made[0] != last or self._made[1] is not rules:
            found: dict[int, int] = dict(self._signatures(rules, count)) if rules.step_signature else {}
            for i, tokens in (*self._results(fate, count), *self._joints(rules, count), *self._ends(rules, count)):
                found[i] = found.get(i, 0) + tokens
            self._made = last, rules, found
        return self._made[2]

    def _results(self, fate: Fate, count: _Count) -> Iterator[tuple[int, int]]:
        for i, j in self._pairing.waiting:
            call = self._view[i].message.parts[j]
            assert isinstance(call, ToolCall)
            outcome = fate_of_call(call, self._view[i].records, fate)
            yield i, self._counted((i, j, outcome), Message("user", (synthetic_result(call, outcome),)), count)

    def _signatures(self, rules: Rules, count: _Count) -> dict[int, int]:
        known, found, seen = self._signed
        if known is not rules:
            found, seen = {}, 0
        for i in range(seen, len(self._view)):
            signed = signed_call(self._view[i].message, rules)
            if signed is not None:
                bare = msgspec.structs.replace(signed, signature="")
                found[i] = count(Message("assistant", (signed,))) - count(Message("assistant", (bare,)))
        self._signed = rules, found, len(self._view)
        return found

    def _joints(self, rules: Rules, count: _Count) -> Iterator[tuple[int, int]]:
        """By how much answers are larger when they stand in one message."""
        for run in joined_runs(self._view) if self._joins and rules.merge_calls else ():
            said = [self._view[i].message for i in run]
            whole = Message("assistant", tuple(part for message in said for part in message.parts))
            apart = sum(self._counted(i, self._view[i].message, count) for i in run)
            yield run[-1], self._counted((run.start, run.stop), whole, count) - apart

    def _ends(self, rules: Rules, count: _Count) -> Iterator[tuple[int, int]]:
        view = self._view
        opening, closing = added_ends(view, rules)
        if not view or (opening is None and closing is None):
            return
        said = [i for i, shown in enumerate(view) if shown.message.role != "system"]
        if opening is not None:
            yield said[0], self._counted(opening.message, opening.message, count)
        if closing is not None:
            answers = set(takewhile(lambda i: view[i].message.role == "assistant", reversed(said)))
            if answers.isdisjoint(i for i, _ in self._pairing.waiting):  # else the results put in stand at the end
                yield said[-1] if said else len(view) - 1, self._counted(closing.message, closing.message, count)

    def _counted(self, key: Hashable, message: Message, count: _Count) -> int:
        if key not in self._sizes:
            self._sizes[key] = count(message)
        return self._sizes[key]


def with_added(items: Sequence[Item], rules: Rules, fate: Fate, count: _Count) -> Sequence[Item]:
    """The items of a view with the size of what repair adds to them."""
    added = Added()
    for item in items:
        added.see(item.shown)
    beside = added.beside(rules, fate, count, 0)
    return [_larger(item, beside.get(i, 0)) for i, item in enumerate(items)]


def _larger(item: Item, beside: int) -> Item:
    return item if item.beside == beside else msgspec.structs.replace(item, beside=beside)
