"""Put calls and results where a provider requires them.

The view is divided into runs of consecutive assistant messages, each followed by a zone: the messages up to the next
assistant message. A zone that already answers its run legally is left exactly as it is. Otherwise the results are put
directly after the run, in the order of the calls, and the rest of the zone follows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from itertools import groupby

import msgspec

from ...log.messages import Message, Outcome, Part, Text, ToolCall, ToolResult, unchanged
from ..rules import Rules
from ..tool_calls import Standing
from ..types import Edit, Shown, Treatment
from .clean import sendable_name
from .pairing import At, Pairs

Fate = Mapping[tuple[int, str], Standing]
"""The state of each call without a result, by record number and call id."""

_SAYS: dict[Standing, str] = {
    "ok": "The tool finished, but its result was lost.",
    "failed": "The tool failed; what it said was lost.",
    "timeout": "The tool ran out of time. It may have run, wholly or in part.",
    "canceled": "The call was canceled and did not run.",
    "aborted": "The call was interrupted. It may have run, wholly or in part; check before repeating it.",
    "lost": "No result of this call is on record. It may have run; check before repeating it.",
    "asked": "The call needs approval that nobody has given yet; it has not run.",
    # Not every program records that a tool starts, so this text must not claim more than the records show.
    "approved": "The call was approved; by what is on record it has not run yet.",
}

_KNOWN: dict[Standing, str] = {
    "ok": "it ended, but its result was not recorded",
    "failed": "it failed, but its result was not recorded",
    "timeout": "it ran out of time, and may have run",
    "canceled": "it was canceled and did not run",
    "aborted": "it was interrupted, and may have run",
    "lost": "it may have run",
    "asked": "it waits for approval",
    "approved": "it was approved, but not started",
}
"""What edits say about a call without a result."""


def synthetic_result(call: ToolCall, standing: Standing) -> ToolResult:
    """A result in place of one that was not recorded. It says only what is known about the call."""
    outcome: Outcome
    match standing:
        case "asked":
            outcome = "canceled"
        case "approved" | "ok":
            outcome = "lost"
        case ended:
            outcome = ended
    return ToolResult(
        call_id=call.id,
        name=call.name,
        parts=(Text(_SAYS[standing]),),
        outcome=outcome,
        kind=call.kind,
        synthetic=True,
    )


def arrange(view: Sequence[Shown], pairs: Pairs, rules: Rules, fate: Fate) -> tuple[list[Shown], list[Edit]]:
    """The view with exactly one result for each call, in the right place, and without other results."""
    if not (pairs.answers or pairs.waiting or pairs.orphans):
        return list(view), []
    arranger = _Arranger(view, pairs, rules, fate)
    i = 0
    while i < len(view):
        start = i
        while i < len(view) and view[i].message.role == "assistant":
            i += 1
        zone = i
        while i < len(view) and view[i].message.role != "assistant":
            i += 1
        arranger.run(range(start, zone), range(zone, i))
    return arranger.out, arranger.edits


class _Arranger:
    def __init__(self, view: Sequence[Shown], pairs: Pairs, rules: Rules, fate: Fate) -> None:
        self.view = view
        self.pairs = pairs
        self.rules = rules
        self.fate = fate
        self.out: list[Shown] = []
        self.edits: list[Edit] = []
        self.answered_at = {result: call for call, result in pairs.answers.items()}
        self.early = {result for call, result in pairs.answers.items() if result < call}
        self.used_ids: set[str] = set()
        self.new_ids: dict[At, str] = {}

    def run(self, assistants: range, zone: range) -> None:
        """Arrange one run of assistant messages and the zone after it."""
        calls: list[tuple[At, ToolCall]] = []
        turn_ids: set[str] = set()
        for i in assistants:
            new_calls = self._calls_of(i, turn_ids)
            calls.extend(new_calls)
            self.out.append(self._with_ids(i))
        if self._zone_is_legal(calls, zone):
            self.out.extend(self._zone_message(i) for i in zone)
            return
        if self.rules.results == "later":
            self._answer_missing(calls)
            self._place_answers(
                [(place, call) for place, call in calls if self.pairs.answers.get(place) in self.early], zone
            )
        else:
            self._place_answers(calls, zone)
        for i in zone:
            self._rest_of(i)

    def _calls_of(self, i: int, turn_ids: set[str]) -> list[tuple[At, ToolCall]]:
        """The calls of message `i`, each with an id that the rules accept."""
        calls: list[tuple[At, ToolCall]] = []
        for j, part in enumerate(self.view[i].message.parts):
            if not isinstance(part, ToolCall):
                continue
            taken = self.used_ids if self.rules.call_id_unique == "view" else turn_ids
            new = self._id_for(part.id, self.view[i].records, j, taken)
            if new != part.id:
                self.new_ids[i, j] = new
                self.edits.append(Edit("id", f"call id {part.id!r} sent as {new!r}", self.view[i].records))
            self.used_ids.add(new)
            turn_ids.add(new)
            calls.append(((i, j), part))
        return calls

    def _id_for(self, call_id: str, records: tuple[int, ...], j: int, taken: set[str]) -> str:
        if self._fits(call_id) and call_id not in taken:
            return call_id
        # Derived from the call's record and its place there, so that it is the same in every view.
        derived = f"call_{'_'.join(map(str, records[:1]))}_{j}"
        while derived in taken or derived in self.used_ids or not self._fits(derived):
            derived = f"{derived}x" if self._fits(f"{derived}x") else _short_id(derived)
        return derived

    def _fits(self, call_id: str) -> bool:
        rules = self.rules
        return len(call_id) <= rules.call_id_max and re.fullmatch(rules.call_id_pattern, call_id) is not None

    def _with_ids(self, i: int) -> Shown:
        shown = self.view[i]
        if not self.new_ids and not any(isinstance(part, ToolResult) for part in shown.message.parts):
            return shown
        parts = tuple(
            msgspec.structs.replace(part, id=self.new_ids[i, j]) if (i, j) in self.new_ids else part
            for j, part in enumerate(shown.message.parts)
            if not isinstance(part, ToolResult)
        )
        return with_parts(shown, parts)

    def _zone_is_legal(self, calls: list[tuple[At, ToolCall]], zone: range) -> bool:
        """Whether the zone answers all of `calls` and nothing else, in a place that the rules allow."""
        results = [
            (i, j) for i in zone for j, part in enumerate(self.view[i].message.parts) if isinstance(part, ToolResult)
        ]
        answers = [self.pairs.answers.get(place) for place, _ in calls]
        if self.rules.results == "later":
            if not self.early.isdisjoint([*answers, *results]):
                return False
            return None not in answers and all(place in self.answered_at or self._may_stay(place) for place in results)
        if None in answers or set(results) != set(answers):
            return False
        if not results:
            return True
        if self.rules.results_in_one and len({i for i, _ in results}) > 1:
            return False
        return self._follow_calls(results, zone) and self._results_in_order(calls)

    def _results_in_order(self, calls: Sequence[tuple[At, ToolCall]]) -> bool:
        """Whether results of one tool are in the order of its calls, if its calls are sent without ids and only the
        order shows which result belongs to which call."""
        if self.rules.sent_without_id is None or len(calls) < 2:
            return True
        by_order = {call.name for _, call in calls if self.rules.sent_without_id(call)}
        places: dict[str, list[At]] = {name: [] for name in by_order}
        for place, call in calls:
            if call.name in by_order and place in self.pairs.answers:
                places[call.name].append(self.pairs.answers[place])
        return all(answers == sorted(answers) for answers in places.values())

    def _follow_calls(self, results: list[At], zone: range) -> bool:
        """Whether the rules allow all content between the calls and these results."""
        last_message, last_part = max(results)
        for i in range(zone.start, last_message + 1):
            message = self.view[i].message
            if message.role == "system":
                return False
            if self.rules.results == "counted":
                continue
            before = message.parts if i < last_message else message.parts[: last_part + 1]
            if not before or not all(isinstance(part, ToolResult) for part in before):
                return False
        return True

    def _zone_message(self, i: int) -> Shown:
        """A message of a legal zone. Only the ids, names and kinds of its results may change."""
        shown = self.view[i]
        parts: list[Part] = []
        for j, part in enumerate(shown.message.parts):
            is_paired = isinstance(part, ToolResult) and (i, j) in self.answered_at
            parts.append(self._matching((i, j), part) if is_paired and isinstance(part, ToolResult) else part)
        return with_parts(shown, tuple(parts))

    def _matching(self, at: At, result: ToolResult) -> ToolResult:
        """`result` with the id, name and kind of the call it answers."""
        call_at = self.answered_at[at]
        call = self.view[call_at[0]].message.parts[call_at[1]]
        assert isinstance(call, ToolCall)
        call_id = self.new_ids.get(call_at, call.id)
        name = call.name if result.name else ""
        if (call_id, name, call.kind) == (result.call_id, result.name, result.kind):
            return result
        if name != sendable_name(result.name, self.rules):
            records = self.view[at[0]].records
            self.edits.append(
                Edit("name", f"tool result named {result.name!r} sent with the name of its call, {name!r}", records)
            )
        return msgspec.structs.replace(result, call_id=call_id, name=name, kind=call.kind)

    def _place_answers(self, calls: list[tuple[At, ToolCall]], zone: range) -> None:
        """Put the results of `calls` directly after their run. Results recorded in one message stay in one message."""
        in_order = self._results_in_order(calls)
        first = len(self.out)
        for source, group in groupby(calls, key=lambda entry: self.pairs.answers.get(entry[0], (-1, 0))[0]):
            members = list(group)
            if source < 0:
                self._answer_missing(members)
                continue
            shown = self.view[source]
            results: list[Part] = []
            for call_at, call in members:
                result_at = self.pairs.answers[call_at]
                part = shown.message.parts[result_at[1]]
                assert isinstance(part, ToolResult)
                results.append(self._matching(result_at, part))
                well_placed = source in zone and self._follow_calls([result_at], zone)
                if not well_placed or not in_order:
                    place = "into the order of the calls" if well_placed else "directly after its call"
                    detail = f"result of {call.name!r} ({call.id}) moved {place}"
                    self.edits.append(Edit("moved", detail, shown.records + self.view[call_at[0]].records))
            self.out.append(with_parts(shown, tuple(results)))
        if self.rules.results_in_one and len(self.out) - first > 1:
            self._join_results(first)

    def _join_results(self, first: int) -> None:
        """Put the messages from index `first` of the output, which contain only results, into one message."""
        several = self.out[first:]
        recorded = any(shown.treatment != "synthetic" for shown in several)
        self.out[first:] = [as_one(several, "joined" if recorded else "synthetic")]

    def _answer_missing(self, calls: list[tuple[At, ToolCall]]) -> None:
        for place, call in calls:
            if place in self.pairs.answers:
                continue
            records = self.view[place[0]].records
            standing = fate_of_call(call, records, self.fate)
            sent = msgspec.structs.replace(call, id=self.new_ids.get(place, call.id))
            result = synthetic_result(sent, standing)
            self.out.append(Shown(Message("user", (result,)), records, "synthetic"))
            detail = f"call of {call.name!r} ({call.id}) has no result on record: {_KNOWN[standing]}"
            self.edits.append(Edit("unanswered", detail, records))

    def _rest_of(self, i: int) -> None:
        """Add the rest of a zone message: without results that have moved, and without stray results."""
        shown = self.view[i]
        stays = self.rules.results == "later"
        parts: list[Part] = []
        for j, part in enumerate(shown.message.parts):
            if not isinstance(part, ToolResult):
                parts.append(part)
            elif (i, j) in self.answered_at:
                if stays and (i, j) not in self.early:
                    parts.append(self._matching((i, j), part))
            elif self._may_stay((i, j)):
                parts.append(part)
            else:
                self._stray((i, j), part)
        if parts:
            self.out.append(with_parts(shown, tuple(parts)))

    def _may_stay(self, at: At) -> bool:
        """Whether a result without a call in the view may answer a call that the provider has stored. A provider stores
        no calls under ids that it does not accept."""
        result = self.view[at[0]].message.parts[at[1]]
        assert isinstance(result, ToolResult)
        taken = not result.call_id or self._fits(result.call_id)
        return self.rules.calls_elsewhere and at not in self.pairs.duplicates and taken

    def _stray(self, at: At, result: ToolResult) -> None:
        records = self.view[at[0]].records
        if at in self.pairs.duplicates:
            detail = f"second result of call {result.call_id!r} left out"
            self.edits.append(Edit("duplicate", detail, records))
        else:
            reason = "no call before it has that id and name"
            if result.call_record:
                reason = f"its call, in record {result.call_record}, is not shown"
            detail = f"result of {result.call_id!r} left out: {reason}"
            self.edits.append(Edit("orphan", detail, records))


def fate_of_call(call: ToolCall, records: tuple[int, ...], fate: Fate) -> Standing:
    """The state of a call in these records that has no result."""
    for n in records:
        if (n, call.id) in fate:
            return fate[n, call.id]
    return "lost"


def _short_id(text: str) -> str:
    """Nine letters and digits for a text: the only ids that some servers accept."""
    return hashlib.sha256(text.encode()).hexdigest()[:9]


def as_one(several: Sequence[Shown], treatment: Treatment = "joined") -> Shown:
    """Several messages as one, with the role and name of the first."""
    parts = tuple(part for shown in several for part in shown.message.parts)
    records = tuple(dict.fromkeys(n for shown in several for n in shown.records))
    first = several[0].message
    return Shown(Message(first.role, parts, name=first.name), records, treatment)


def with_parts(shown: Shown, parts: tuple[Part, ...]) -> Shown:
    """`shown` with other parts; the same object if the parts are unchanged."""
    if unchanged(parts, shown.message.parts):
        return shown
    return shown.repaired(msgspec.structs.replace(shown.message, parts=parts))


def has_results_alone(message: Message) -> bool:
    """Whether a message is a user message that contains only results."""
    alone = message.role == "user" and bool(message.parts) and not message.name
    return alone and all(isinstance(part, ToolResult) for part in message.parts)
