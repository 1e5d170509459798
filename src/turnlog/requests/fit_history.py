"""A history that is fitted again and again: its messages, and the decisions about them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Protocol

from msgspec import Struct

from ..log.messages import Message
from ..log.records import Binding, Decision
from ..view.compaction.curation import Curation
from ..view.types import Shown
from .standalone import given_bindings
from .translate import Plan


class Counting(Protocol):
    """A counter of messages; `id` is its name."""

    @property
    def id(self) -> str:
        """The name of the counter."""

    def message(self, message: Message) -> int:
        """The tokens of a message."""


class History(Struct, eq=False):
    """Messages, their sizes by one counter, and the decisions about them. `spare` tokens are left free, because whole
    requests counted so much more than their messages. `bindings` are the bindings of answers among the first `bound`
    messages; `last_binding` is the binding of an answer to the last request. `curation` keeps what was found out about
    tool outputs."""

    seen: list[Message] = []
    sizes: list[int] = []
    counter: str = ""
    decisions: dict[int, Decision] = {}
    spare: int = 0
    bindings: dict[int, Binding] = {}
    bound: int = 0
    last_binding: Binding | None = None
    curation: Curation | None = None

    def bind(self, ways: Plan) -> None:
        """Add the bindings of new answers: to the last request, or, the first time, to the history as it was given."""
        if not self.bound:
            view = [Shown(message, (n,)) for n, message in enumerate(self.seen, start=1)]
            self.bindings = given_bindings(view, ways)
        elif self.last_binding is not None:
            later = range(self.bound + 1, len(self.seen) + 1)
            answer = next((n for n in later if self.seen[n - 1].role == "assistant"), 0)
            self.bindings |= {answer: self.last_binding} if answer else {}
        self.bound = len(self.seen)

    def common(self, messages: Sequence[Message]) -> int:
        """How many messages of the history `messages` begins with. System text in the same place counts as equal even
        if it differs, unless a decision shortened it: no other decision depends on system text."""
        for i, (own, one) in enumerate(zip(self.seen, messages, strict=False)):
            if own != one and not (own.role == one.role == "system" and i + 1 not in self._shortened()):
                return i
        return min(len(self.seen), len(messages))

    def _shortened(self) -> set[int]:
        details = [decision.detail for decision in self.decisions.values()]
        return {entry[0] for detail in details for key in ("texts", "cuts") for entry in detail.get(key, ())}

    def until(self, same: int) -> History:
        """A new history with the first `same` messages and the decisions that concern only these."""
        made = takewhile(lambda one: max(one[1].last, one[1].detail.get("at", 0) - 1) <= same, self.decisions.items())
        bindings = {n: binding for n, binding in self.bindings.items() if n <= same}
        bound = min(self.bound, same)
        return History(self.seen[:same], self.sizes[:same], self.counter, dict(made), self.spare, bindings, bound)

    def take(self, messages: Sequence[Message], counting: Counting) -> None:
        """Replace the messages by the history as it is now. Sizes of unchanged messages are kept."""
        known = len(self.seen) if self.counter == counting.id else 0
        for i, own in enumerate(self.seen[:known]):
            if own.role == "system" and own != messages[i]:  # the others are the same
                self.sizes[i] = counting.message(messages[i])
        self.sizes[known:] = [counting.message(message) for message in messages[known:]]
        self.seen, self.counter = list(messages), counting.id

    def forget(self, made: int) -> None:
        """Keep only the first `made` decisions, so that a request that failed changes nothing."""
        self.spare = 0
        while len(self.decisions) > made:
            self.decisions.popitem()

    def size(self, shown: Shown, raw: Shown, counting: Counting) -> int:
        """The tokens of a message as shown."""
        if shown is raw and shown.treatment == "verbatim":
            return self.sizes[raw.records[0] - 1]
        return counting.message(shown.message)
