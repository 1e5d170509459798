"""Match results to calls by position, and find the open calls. No other module does this.

Ids are not unique in real logs: a result answers the nearest call before it that has its id and is still open. Results
without an id (some providers send none) are matched by name, then by order. A result that was recorded before its call,
in the same turn, answers that call unless another result comes after the call.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...log.messages import Message, ToolCall, ToolResult
from ..types import Shown

At = tuple[int, int]
"""The place of a part: index of the message in the view, index of the part in the message."""


class Pairs(Struct, frozen=True, gc=False):
    """`answers` maps each answered call to its result; `orphans` are results without a call, `duplicates` further
    results of a call that has one, `waiting` the calls without a result. `by_name`: a result without an id was matched
    to a call with an id; if more of the view were given, an earlier call might match it. `early` are the ids of
    the orphans that a call after the view, in the same turn, may still claim."""

    answers: dict[At, At]
    orphans: frozenset[At]
    duplicates: frozenset[At]
    waiting: tuple[At, ...]
    by_name: bool = False
    early: frozenset[str] = frozenset()


class Pairing:
    """Pairs the calls and results of a view that is given message by message."""

    def __init__(self) -> None:
        self.open: list[tuple[At, ToolCall]] = []
        """The calls that have no result so far."""
        self._answered: dict[str, tuple[At, ToolResult]] = {}
        self._answers: dict[At, At] = {}
        self._orphans: set[At] = set()
        self._duplicates: set[At] = set()
        self._early: dict[str, tuple[At, ToolResult]] = {}  # results of this turn whose call has not come yet
        self._answered_early: set[At] = set()
        self._seen = 0
        self._by_name = False
        self.orphaned: list[ToolResult] = []
        """The results in the last message that have no call."""

    def see(self, message: Message) -> None:
        """Take the next message of the view."""
        i, self._seen = self._seen, self._seen + 1
        self.orphaned = []
        if message.role == "user" and not any(isinstance(part, ToolResult) for part in message.parts):
            self._early.clear()  # later turns may use the same ids again
        for j, part in enumerate(message.parts):
            if isinstance(part, ToolCall) and message.role == "assistant":
                if not self._is_answered((i, j), part):
                    self.open.append(((i, j), part))
            elif isinstance(part, ToolResult):
                self._take((i, j), part)

    def pairs(self) -> Pairs:
        """The pairs found so far."""
        orphans, duplicates = frozenset(self._orphans), frozenset(self._duplicates)
        waiting = tuple(at for at, _ in self.open)
        return Pairs(dict(self._answers), orphans, duplicates, waiting, self._by_name, frozenset(self._early))

    def _take(self, at: At, result: ToolResult) -> None:
        call = _open_call(self.open, result)
        if call is not None:
            self._answers[call[0]] = at
            self._answered[call[1].id] = call[0], result
            self.open.remove(call)
            self._by_name = self._by_name or call[1].id != result.call_id
        elif result.call_id and result.call_id in self._answered:
            self._another(at, result)
        else:
            self._orphans.add(at)
            self.orphaned.append(result)
            if result.call_id:
                self._early[result.call_id] = at, result

    def _is_answered(self, at: At, call: ToolCall) -> bool:
        """Pair a call with a result that was recorded before it; False if there is none."""
        early = self._early.get(call.id)
        if early is None or (early[1].name and early[1].name != call.name):
            return False
        del self._early[call.id]
        self._orphans.discard(early[0])
        self._answers[at] = early[0]
        self._answered[call.id] = at, early[1]
        self._answered_early.add(at)
        return True

    def _another(self, at: At, result: ToolResult) -> None:
        """A second result of one call: it replaces a synthetic one if it is real itself, else it is a duplicate."""
        call, standing = self._answered[result.call_id]
        if call in self._answered_early:
            self._answered_early.discard(call)
            self._orphans.add(self._answers[call])
        elif standing.synthetic and not result.synthetic:
            self._duplicates.add(self._answers[call])
        else:
            self._duplicates.add(at)
            return
        self._answers[call] = at
        self._answered[result.call_id] = call, result


def pair(view: Sequence[Shown]) -> Pairs:
    """Pair all calls and results of a view."""
    pairing = Pairing()
    for shown in view:
        pairing.see(shown.message)
    return pairing.pairs()


def _open_call(open_calls: list[tuple[At, ToolCall]], result: ToolResult) -> tuple[At, ToolCall] | None:
    fitting = [entry for entry in open_calls if entry[1].id == result.call_id]
    if not fitting and not result.call_id:
        fitting = [entry for entry in open_calls if not result.name or entry[1].name == result.name]
        if fitting:
            return fitting[0]
    if not fitting:
        return None
    latest = [entry for entry in fitting if entry[0][0] == fitting[-1][0][0]]
    return next((entry for entry in latest if entry[1].name == result.name), latest[0])  # several may have the same id
