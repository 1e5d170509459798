"""What repair puts into a view takes room as well: results in the place of those that nobody gave, signatures, what
frames answers that are joined, and a user's word at an end where a provider wants one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

import msgspec

from ..content import Message, ToolCall, ToolResult
from ..rules import Rules
from .arrange import Fate, fate_of_call, synthetic_result
from .blocks import Item
from .pairing import At, pair
from .repair import added_ends, joined_runs, signed_call
from .shown import Shown

__all__ = ["Added", "with_added"]


class Added:
    """Sees a view message by message, so that it is gone through only where a call may be without a result, or an
    answer behind one that calls."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._calling = self._joins = False
        self._made: tuple[int, Rules, Sequence[Item], int] | None = None

    def see(self, message: Message) -> None:
        """The next message of the view."""
        self._calling = self._calling and message.role == "assistant"
        self._joins = self._joins or self._calling
        for part in message.parts:
            if isinstance(part, ToolCall):
                self._calling = True
                self._open[part.id] = self._open.get(part.id, 0) + 1
            elif isinstance(part, ToolResult) and (count := self._open.pop(part.call_id, 0)) > 1:
                self._open[part.call_id] = count - 1

    def sized(
        self, items: Sequence[Item], rules: Rules, fate: Fate, count: Callable[[Message], int], last: int
    ) -> tuple[Sequence[Item], int]:
        """The items as `with_added` gives them, and what is added in all. `last` is the number of the log's last
        record."""
        made = self._made
        if made is None or made[0] != last or made[1] is not rules:
            sized = with_added(items, rules, fate, count, calls=bool(self._open), joins=self._joins)
            beside = 0 if sized is items else sum(item.beside for item in sized)
            self._made = made = last, rules, sized, beside
        return made[2:]


def with_added(
    items: Sequence[Item],
    rules: Rules,
    fate: Fate,
    count: Callable[[Message], int],
    *,
    calls: bool = True,
    joins: bool = True,
) -> Sequence[Item]:
    """The items of a view with the size of what repair adds to them; the same if it adds nothing. `calls` says whether
    a call may be without a result, `joins` whether answers may stand behind one that calls."""
    view = [item.shown for item in items]
    beside: dict[int, int] = {}
    waiting = pair(view).waiting if calls else ()
    for i, tokens in (
        *_results(view, waiting, fate, count),
        *(_signatures(view, rules, count) if rules.step_signature else ()),
        *(_joints(view, count) if joins and rules.merge_calls else ()),
        *_ends(view, waiting, rules, count),
    ):
        beside[i] = beside.get(i, 0) + tokens
    if not beside and not any(item.beside for item in items):
        return items
    return [msgspec.structs.replace(item, beside=beside.get(i, 0)) for i, item in enumerate(items)]


def _results(
    view: Sequence[Shown], waiting: Sequence[At], fate: Fate, count: Callable[[Message], int]
) -> Iterator[tuple[int, int]]:
    """Where a result is put in, and how large it is."""
    for i, j in waiting:
        call = view[i].message.parts[j]
        assert isinstance(call, ToolCall)
        result = synthetic_result(call, fate_of_call(call, view[i].records, fate))
        yield i, count(Message("user", (result,)))


def _signatures(view: Sequence[Shown], rules: Rules, count: Callable[[Message], int]) -> Iterator[tuple[int, int]]:
    for i, shown in enumerate(view):
        signed = signed_call(shown.message, rules)
        if signed is not None:
            bare = msgspec.structs.replace(signed, signature="")
            yield i, count(Message("assistant", (signed,))) - count(Message("assistant", (bare,)))


def _joints(view: Sequence[Shown], count: Callable[[Message], int]) -> Iterator[tuple[int, int]]:
    """By how much answers are larger when they stand in one message."""
    for run in joined_runs(view):
        parts = tuple(part for i in run for part in view[i].message.parts)
        yield run[-1], count(Message("assistant", parts)) - sum(count(view[i].message) for i in run)


def _ends(
    view: Sequence[Shown], waiting: Sequence[At], rules: Rules, count: Callable[[Message], int]
) -> Iterator[tuple[int, int]]:
    opening, closing = added_ends(view, rules)
    if not view or (opening is None and closing is None):
        return
    said = [i for i, shown in enumerate(view) if shown.message.role != "system"]
    if opening is not None:
        yield said[0], count(opening.message)
    if closing is not None:
        answers = set(takewhile(lambda i: view[i].message.role == "assistant", reversed(said)))
        if answers.isdisjoint(i for i, _ in waiting):  # else the results that are put in stand at the end
            yield said[-1] if said else len(view) - 1, count(closing.message)
