"""Match results to calls by position, and find the open calls; no other module does this.

Ids are not unique in real logs, so a result belongs to the newest message before it that calls its tool under its id.
It answers that message's first call without a result; if all have one, it is a further result of the last, and no older
call is considered. Names count only where both the call and the result have one. Results without an id (some providers
send none) are matched by name alone. A result that was recorded before its call, in the same turn, answers that call
unless another result comes after the call. A result whose `call_record` is known belongs to a call of that record and
to no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ...log.messages import ToolCall, ToolResult, tool_called
from ..types import Shown
from .clean import is_sent_as

At = tuple[int, int]
"""The place of a part: index of the message in the view, index of the part in the message."""


class Pairs(Struct, frozen=True, gc=False):
    """`answers` maps each answered call to its result; `orphans` are results without a call, `duplicates` are further
    results with their already answered calls, and `waiting` are the calls without a result. `early` are the ids of the
    orphans that a call after the view, in the same turn, may still claim."""

    answers: dict[At, At]
    orphans: frozenset[At]
    duplicates: Mapping[At, At]
    waiting: tuple[At, ...]
    early: frozenset[str] = frozenset()


class _Call(Struct, eq=False):
    """A call of the view, the records that its message shows, and where its result is. `synthetic`: no tool made the
    result; `early`: the result was recorded before the call."""

    at: At
    call: ToolCall
    records: tuple[int, ...] = ()
    result: At | None = None
    synthetic: bool = False
    early: bool = False


class Pairing:
    """Pairs the calls and results of a view, given message by message."""

    def __init__(self) -> None:
        self._waiting: dict[At, _Call] = {}
        self._newest: dict[str, dict[tuple[str, str], list[_Call]]] = {}
        """The calls of the newest message that has any, by id and names. The key "" has the calls of all ids."""
        self._answers: dict[At, At] = {}
        self._orphans: set[At] = set()
        self._duplicates: dict[At, At] = {}
        self._early: dict[str, dict[str, tuple[At, ToolResult]]] = {}  # by id and name, results whose call may follow
        self.seen = 0
        """The number of messages so far, which is the index of the next one."""
        self.orphaned: list[ToolResult] = []
        """The results in the last message that have no call."""
        self.answered: dict[int, tuple[At, ToolCall]] = {}
        """The calls that the results in the last message answer, by the index of the result's part. Duplicates are not
        included."""

    @property
    def open(self) -> list[tuple[At, ToolCall]]:
        """The calls that have no result so far."""
        return [(place, entry.call) for place, entry in self._waiting.items()]

    def see(self, shown: Shown) -> None:
        """Take the next message of the view."""
        message = shown.message
        i, self.seen = self.seen, self.seen + 1
        self.orphaned, self.answered = [], {}
        has_results = False
        for j, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                has_results = True
                self._take((i, j), part)
            elif isinstance(part, ToolCall) and message.role == "assistant":
                self._asked(_Call((i, j), part, shown.records))
        if self._early and message.role == "user" and not has_results:
            self._early.clear()  # later turns may use the same ids again

    def pairs(self) -> Pairs:
        """The pairs found so far."""
        early = frozenset(call_id for call_id, results in self._early.items() if results)
        return Pairs(dict(self._answers), frozenset(self._orphans), dict(self._duplicates), tuple(self._waiting), early)

    def _asked(self, entry: _Call) -> None:
        """Take a call. A result recorded before the call answers it."""
        place, call = entry.at, entry.call
        names = call.name, tool_called(call)
        for call_id in (call.id, "") if call.id else ("",):
            newest = self._newest.setdefault(call_id, {})
            same = newest.get(names)
            if same is not None and same[0].at[0] == place[0]:
                same.append(entry)
            else:
                newest[names] = [entry]
        self._waiting[place] = entry
        early = self._early.get(call.id, {}).values() if self._early else ()
        fitting = [found for found in early if may_answer(found[1], call)]
        if fitting:
            result_at, result = max(fitting)
            del self._early[call.id][result.name]
            self._orphans.discard(result_at)
            self._pair(entry, result_at, result)
            entry.early = True

    def _take(self, at: At, result: ToolResult) -> None:
        calls = self._calls_for(result)
        entry = next((entry for entry in calls if entry.result is None or entry.early), None)
        if entry is None and not result.synthetic:
            entry = next((entry for entry in calls if entry.synthetic), None)
        if entry is not None:
            if entry.result is not None and entry.early:
                self._orphans.add(entry.result)
            elif entry.result is not None:
                self._duplicates[entry.result] = entry.at
            entry.early = False
            self._pair(entry, at, result)
            self.answered[at[1]] = entry.at, entry.call
        elif calls:
            self._duplicates[at] = calls[-1].at
        else:
            self._orphans.add(at)
            self.orphaned.append(result)
            if result.call_id and not result.call_record:
                self._early.setdefault(result.call_id, {})[result.name] = at, result

    def _pair(self, entry: _Call, at: At, result: ToolResult) -> None:
        entry.result, entry.synthetic = at, result.synthetic
        self._waiting.pop(entry.at, None)
        self._answers[entry.at] = at

    def _calls_for(self, result: ToolResult) -> list[_Call]:
        """The calls of the newest message that calls the result's tool under its id: those with its name, then those
        without a name."""
        groups = self._newest.get(result.call_id, {}).values()
        if len(groups) == 1 and not result.call_record:  # nearly always: ids are seldom used again
            (calls,) = groups
            return calls if may_answer(result, calls[0].call) else []
        fitting = [calls for calls in groups if may_answer(result, calls[0].call)]
        if result.call_record:
            fitting = [calls for calls in fitting if result.call_record in calls[0].records]
        newest = max((calls[0].at[0] for calls in fitting), default=0)
        calls = [entry for calls in fitting for entry in calls if entry.at[0] == newest]
        return sorted(calls, key=lambda entry: (bool(result.name) and _is_nameless(entry.call), entry.at))


def pair(view: Sequence[Shown]) -> Pairs:
    """Pair all calls and results of a view."""
    pairing = Pairing()
    for shown in view:
        pairing.see(shown)
    return pairing.pairs()


def may_answer(result: ToolResult, call: ToolCall) -> bool:
    """Whether a result has the id and the name of a call, if both have one. A tool used through `use_tool` has two
    names, and a tool may have been sent under a name that is not its own."""
    if result.call_id and result.call_id != call.id:
        return False
    name = result.name
    if not name or name == call.name or _is_nameless(call):
        return True
    return any(is_sent_as(name, called) or is_sent_as(called, name) for called in (call.name, tool_called(call)))


def _is_nameless(call: ToolCall) -> bool:
    return is_sent_as("", call.name)
