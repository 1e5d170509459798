"""The tool calls of a log: their approvals, runs and results. `repair.pairing` matches results to calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from ..log.messages import Message, Outcome, Text, ToolCall, ToolResult
from ..log.records import Approval, MessageRecord, Record, ToolFinished, ToolStarted
from .decisions import Rewinds
from .fold import as_shown
from .repair.pairing import At, Pairs, may_answer, pair
from .types import Shown

Standing = Outcome | Literal["asked", "approved"]
"""The state of a call without a result: how it ended, or that it waits for approval (`asked`), or that it was approved
and has not started (`approved`)."""

LEDGER = ("approval", "tool_finished", "tool_started")
"""The kinds of records about approvals and runs of calls."""


def fate_of(records: Iterable[Record]) -> dict[tuple[int, str], Standing]:
    """The state of each call in the ledger, by the record of the call and its id.

    `aborted`: the call started and never finished, so it may have run. `canceled`: it was denied and did not run.
    `asked`: it waits for approval and has not run. `approved`: it was approved and has not started; it has not run if
    the log records every start. Calls that the ledger does not name are not in the result.
    """
    fate: dict[tuple[int, str], Standing] = {}
    for record in records:
        fate.update(fate_after(record, fate))
    return fate


def fate_after(record: Record, fate: Mapping[tuple[int, str], Standing]) -> dict[tuple[int, str], Standing]:
    """The states of calls that one more record changes. A record that comes before its call is ignored."""
    if isinstance(record.body, (ToolStarted, ToolFinished, Approval)) and record.body.call_record > record.n:
        return {}
    match record.body:
        case ToolStarted(call_id=call_id, call_record=call_record):
            return {(call_record, call_id): "aborted"}
        case ToolFinished(call_id=call_id, call_record=call_record, outcome=outcome):
            return {(call_record, call_id): outcome}
        case Approval(call_id=call_id, call_record=call_record, state=state):
            before = fate.get((call_record, call_id))
            if state == "denied":  # of one that began before, somebody was asked whether it may run again
                return {(call_record, call_id): "canceled"} if before in (None, "asked", "approved") else {}
            if before in (None, "asked", "approved"):
                return {(call_record, call_id): "asked" if state == "asked" else "approved"}
            if state == "given" and before == "canceled":  # whether it ran is not known
                return {(call_record, call_id): "lost"}
    return {}


class CallInfo(Struct, frozen=True, repr_omit_defaults=True):
    """A tool call, its run and its result. Numbers are those of records, 0 if there is no such record.

    `record`: the message with the call, recorded at `time`. `session`: the subagent's that has it, "" for that of the
    log which was asked. `approval`: the last decision on whether it may run, made
    by `approved_by` in record `approval_record`. `started` and `finished`: the records that the tool began and ended;
    `seconds`: how long it ran. `result`: the record of its result, and `result_part` which part of that message it is,
    from 0; `synthetic`: that result was not made by a tool. `outcome`: that of the result, else of the `finished`
    record; `aborted` if the call started and never finished; None if unknown. `reason`: why the call ended so or was
    denied. `tokens`: the size of the result, as counted when it was recorded. `rewound`: the rewind that took the call
    back, after which no result is expected. `superseded`: the newer call of this tool that took over its id before it
    had a result; a result recorded now would be that one's.
    """

    call: ToolCall
    record: int
    time: str = ""
    session: str = ""
    approval: Literal["", "asked", "given", "denied"] = ""
    approved_by: str = ""
    approval_record: int = 0
    started: int = 0
    finished: int = 0
    seconds: float = 0.0
    result: int = 0
    result_part: int = 0
    synthetic: bool = False
    outcome: Outcome | None = None
    reason: str = ""
    tokens: int = 0
    rewound: int = 0
    superseded: int = 0

    def __repr__(self) -> str:
        return f"CallInfo({self.call.name} {self.call.id} in record {self.record}: {self.standing})"

    @property
    def awaits(self) -> Literal["", "approval", "result"]:
        """What the call waits for: `approval`, `result`, or "" if it waits for nothing."""
        if self.result or self.rewound or self.superseded:
            return ""
        return "approval" if self.approval == "asked" and self.approval_record > self.started else "result"

    @property
    def is_decided(self) -> bool:
        """Whether the last that is known of a call without a result is about its approval: it waits for that, or has
        not begun since it was given or denied."""
        return bool(self.awaits and self.approval) and self.approval_record > max(self.started, self.finished)

    @property
    def may_have_run(self) -> bool:
        """Whether the call has no result and may have run, wholly or in part: it started, or nothing is on record about
        it. A call that waits for approval, or was approved and has not started, has not run."""
        return not self.result and bool(self.started or self.finished or not self.approval)

    @property
    def standing(self) -> str:
        """The state of the call, as text for people."""
        if self.result:
            return f"answered in record {self.result}" + (" (not by a tool)" if self.synthetic else "")
        begun = max(self.started, self.finished)
        if begun and self.approval_record > begun:
            again = {"asked": "waits for approval to run again", "given": "approved to run again"}
            return f"may have run; {again.get(self.approval, 'may not run again')}"
        if self.finished:
            return f"ended ({self.outcome}), but its result is not on record"
        if self.started:
            return "started and never ended: it may have run"
        words = {"asked": "waits for approval", "given": "approved, not started", "denied": "denied"}
        return words.get(self.approval, "not on record whether it started")


class ToolUse(Struct, frozen=True, repr_omit_defaults=True):
    """The calls of one tool. `timed` is the number of runs whose time is on record, `seconds` their sum and `longest`
    the longest; `result_tokens` are the tokens of real results, as far as they were counted."""

    name: str
    calls: int = 0
    outcomes: dict[str, int] = {}
    timed: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    result_tokens: int = 0

    @property
    def failed(self) -> int:
        """The number of calls that failed or ran out of time."""
        return self.outcomes.get("failed", 0) + self.outcomes.get("timeout", 0)


def calls_of(records: Iterable[Record]) -> list[CallInfo]:
    """Every call of a log, oldest first. Results are matched to calls by position, as in requests, and a result that
    was taken back answers only calls that were taken back."""
    records = list(records)
    by_number = {record.n: record for record in records}
    rewinds = Rewinds.of(records)
    view = [shown for record in records for shown in as_shown(record)]
    answers = pairs_of(view, rewinds).answers
    infos: list[CallInfo] = []
    for i, shown in enumerate(view):
        n = shown.records[0]
        for j, part in enumerate(shown.message.parts):
            if isinstance(part, ToolCall) and shown.message.role == "assistant":
                info = CallInfo(part, n, by_number[n].time, rewound=rewinds.by(n))
                answer_place = answers.get((i, j))
                infos.append(
                    info if answer_place is None else _answered(info, view[answer_place[0]], answer_place[1], by_number)
                )
    return _with_ledger(_with_newer(infos), records, rewinds)


def pairs_of(view: Sequence[Shown], rewinds: Rewinds) -> Pairs:
    """The calls and results of a whole log, paired. Those that were not taken back are paired among themselves, as in
    requests; those that were taken back, among all messages."""
    everything = pair(view)
    if not rewinds.ranges:
        return everything
    gone = [bool(rewinds.by(shown.records[0])) for shown in view]
    standing = [i for i, taken in enumerate(gone) if not taken]
    standing_pairs = pair([view[i] for i in standing])

    def placed(place: At) -> At:
        return standing[place[0]], place[1]

    answers = {call: result for call, result in everything.answers.items() if gone[call[0]]}
    answers |= {placed(call): placed(result) for call, result in standing_pairs.answers.items()}
    orphans = set(map(placed, standing_pairs.orphans))
    duplicates = {placed(result): placed(call) for result, call in standing_pairs.duplicates.items()}
    return Pairs(
        answers,
        frozenset(place for place in everything.orphans if gone[place[0]] or place in orphans),
        {
            place: duplicates.get(place, call)
            for place, call in everything.duplicates.items()
            if gone[place[0]] or place in duplicates
        },
        (*(place for place in everything.waiting if gone[place[0]]), *map(placed, standing_pairs.waiting)),
    )


def unanswered(calls: Iterable[CallInfo]) -> list[CallInfo]:
    """The calls without a result on record, except those that were taken back or superseded."""
    return [info for info in calls if info.awaits]


def tools_used(calls: Iterable[CallInfo]) -> list[ToolUse]:
    """The use of each tool, by name. An unknown outcome counts as `unknown`."""
    used: dict[str, ToolUse] = {}
    for info in calls:
        use = used.get(info.call.name, ToolUse(info.call.name))
        word = info.outcome or "unknown"
        timed = (info.finished > 0 or info.result > 0) and info.seconds > 0
        used[info.call.name] = ToolUse(
            use.name,
            use.calls + 1,
            {**use.outcomes, word: use.outcomes.get(word, 0) + 1},
            use.timed + timed,
            use.seconds + info.seconds,
            max(use.longest, info.seconds),
            use.result_tokens + (0 if info.synthetic else info.tokens),
        )
    return [used[name] for name in sorted(used)]


def _with_newer(calls: Sequence[CallInfo]) -> list[CallInfo]:
    """The calls. Each call without a result names the newer call that a result with its id and tool would belong to."""
    by_id: dict[str, list[CallInfo]] = {}
    for info in calls:
        if not info.rewound:
            by_id.setdefault(info.call.id, []).append(info)
    completed = []
    for info in calls:
        if not (info.result or info.rewound):
            expected = ToolResult(info.call.id, info.call.name)
            newer = (other.record for other in by_id[info.call.id] if may_answer(expected, other.call))
            info = msgspec.structs.replace(info, superseded=next((n for n in newer if n > info.record), 0))
        completed.append(info)
    return completed


def _answered(info: CallInfo, shown: Shown, at: int, by_number: dict[int, Record]) -> CallInfo:
    result = shown.message.parts[at]
    assert isinstance(result, ToolResult)
    n = shown.records[0]
    return msgspec.structs.replace(
        info,
        result=n,
        result_part=at,
        synthetic=result.synthetic,
        outcome=result.outcome,
        tokens=_tokens(by_number[n], shown.message, at),
    )


def _tokens(record: Record, message: Message, at: int) -> int:
    """The tokens of one result: a share of its message's tokens, in proportion to the length of its text."""
    body = record.body
    if not isinstance(body, MessageRecord) or body.count is None:
        return 0
    sizes = [_size(part) for part in message.parts]
    return body.count.tokens * sizes[at] // sum(sizes)


def _size(part: object) -> int:
    if isinstance(part, Text):
        return 1 + len(part.text)
    return 1 + sum(map(_size, part.parts)) if isinstance(part, ToolResult) else 1


def _with_ledger(calls: Sequence[CallInfo], records: Iterable[Record], rewinds: Rewinds) -> list[CallInfo]:
    """The calls, completed from the records about their runs and approvals. For a call that was not taken back, only
    records that were not taken back count."""
    completed = list(calls)
    places: dict[tuple[int, str], int] = {}
    newest: dict[str, list[int]] = {}
    for i, info in enumerate(completed):
        places.setdefault((info.record, info.call.id), i)
        newest.setdefault(info.call.id, []).append(i)
    for record in records:
        body = record.body
        if not isinstance(body, (ToolStarted, ToolFinished, Approval)):
            continue
        index = places.get((body.call_record, body.call_id))
        if index is None and isinstance(body, Approval) and not body.call_record:
            index = next((i for i in reversed(newest.get(body.call_id, ())) if completed[i].record < record.n), None)
        if index is not None and (completed[index].rewound or not rewinds.by(record.n)):
            completed[index] = msgspec.structs.replace(
                completed[index], **dict(_news(completed[index], record.n, body))
            )
    return completed


def _news(info: CallInfo, n: int, body: ToolStarted | ToolFinished | Approval) -> Iterator[tuple[str, object]]:
    """The fields of a call, with new values, that a record about its run or approval changes."""
    match body:
        case ToolStarted():
            yield from (("started", n), ("finished", 0))
            outcome: Outcome = "aborted"
        case ToolFinished():
            yield from (("finished", n), ("seconds", body.seconds), ("reason", body.reason))
            outcome = body.outcome
        case Approval():
            yield from (("approval", body.state), ("approved_by", body.by), ("reason", body.reason))
            yield "approval_record", n
            if body.state != "denied" or info.started:
                return
            outcome = "canceled"
    if not info.result or info.synthetic:
        yield "outcome", outcome
