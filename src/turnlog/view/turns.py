"""Derive the turns of a log from its records: each goes from a user's input to the answer that ends the turn.

Recorded turns count as they are; if no recorded turn is open, each message that a user wrote begins a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Struct

from .._platform.units import counted
from ..log.bills import Bills, total_usage, usage_by_model
from ..log.messages import Reasoning, ToolCall, ToolResult, text_of
from ..log.records import MessageRecord, PartialAnswer, Record, TurnClosed, TurnOpened, TurnResumed
from ..log.usage import Usage
from ..models.pricing import Cost, total_cost
from .decisions import Rewinds
from .fold import is_answer
from .program_prefaces import is_preface
from .tool_calls import CallInfo, calls_of

TurnStatus = Literal["processing", "awaiting_approval", "awaiting_tool_result", "completed", "failed", "cancelled"]
"""The state of a turn: while it is open, one of the first three."""

LEFT_OPEN = "left open: the process ended, or the session was forked, in the midst of it"
"""The reason given for a turn that was found open later and closed as failed."""

_NEVER_CLOSED = "the next turn began before this one ended"


class TurnInfo(Struct, frozen=True, repr_omit_defaults=True):
    """A turn: the records `first` to `last`.

    `id` is empty if the turn was not recorded but derived from messages. `status` is one of `TurnStatus`, `reason` says
    why the turn ended so. `started` is the time of its first record; `seconds` its duration, None while it is open.
    `input` is the text that began it, `answer` the text of the last answer without calls. `reasoning` is the reasoning
    that the model showed: its summaries, or its text if there are none. `bills` are the billed usage of its requests,
    by model. `rewound` is the decision that took the turn back, 0 if none did. If only a part of the turn was taken
    back, the fields describe the rest.
    """

    id: str
    first: int
    last: int
    status: str
    reason: str = ""
    started: str = ""
    seconds: float | None = None
    input: str = ""
    answer: str = ""
    reasoning: str = ""
    calls: tuple[CallInfo, ...] = ()
    bills: Bills = {}
    rewound: int = 0

    def __repr__(self) -> str:
        calls = f", {counted(len(self.calls), 'call')}" if self.calls else ""
        return f"TurnInfo(records {self.first} to {self.last}, {self.standing}{calls}: {self.input!r:.60})"

    @property
    def is_open(self) -> bool:
        """Whether the turn has not ended."""
        return self.status in ("processing", "awaiting_approval", "awaiting_tool_result")

    @property
    def awaiting(self) -> tuple[CallInfo, ...]:
        """The calls that an open turn waits for; `CallInfo.awaits` says whether for approval or for a result."""
        return tuple(info for info in self.calls if info.awaits) if self.is_open else ()

    @property
    def waits_for_approval(self) -> bool:
        """Whether an open turn only waits for approvals: nothing is known of its calls without a result but that they
        wait for them, or have not begun since. Such a turn needs no process."""
        return bool(self.awaiting) and all(info.is_decided for info in self.awaiting)

    @property
    def standing(self) -> str:
        """The state of the turn, as text for people: which calls it waits for, or how it ended and why."""
        if self.awaiting:
            waits = (
                f"{'approval' if info.awaits == 'approval' else 'the result'} of {info.call.name} ({info.call.id})"
                for info in self.awaiting
            )
            return f"awaiting {', '.join(waits)}"
        if self.reason == _NEVER_CLOSED:  # nothing is known to have failed
            return f"no end on record: {self.reason.removesuffix(' before this one ended')}"
        return f"{self.status}: {self.reason}" if self.reason else self.status

    @property
    def usage(self) -> Usage:
        """The sum of the billed usage of the turn's requests."""
        return total_usage(self.bills)

    @property
    def cost(self) -> Cost:
        """The cost of the turn's requests at list prices."""
        return total_cost(self.bills)


def turn_spans(records: Iterable[Record], last: int) -> list[tuple[int, int]]:
    """The first and the last record of each turn of a log that ends with record `last`; a turn extends to the record
    before the next turn. `records` may omit everything but messages and the openings and closings of turns."""
    starts = [n for n, _ in _starts(records)]
    return list(zip(starts, [*(start - 1 for start in starts[1:]), last], strict=False))


def turns_of(records: Iterable[Record]) -> list[TurnInfo]:
    """Every turn of a log, oldest first."""
    records = list(records)
    starts = _starts(records)
    place = {record.n: i for i, record in enumerate(records)}
    edges = [*(place[n] for n, _ in starts), len(records)]
    closings: dict[str, Record] = {}
    for record in records:
        if isinstance(record.body, TurnClosed):
            closings[record.body.turn_id] = record
        elif isinstance(record.body, TurnResumed):
            closings.pop(record.body.turn_id, None)
    calls: dict[int, list[CallInfo]] = {}
    for info in calls_of(records):
        calls.setdefault(info.record, []).append(info)
    rewinds = Rewinds.of(records)
    standing = max((n for n, _ in starts if not rewinds.by(n)), default=0)
    turns = []
    for (n, turn_id), start, end in zip(starts, edges, edges[1:], strict=False):
        part, gone = records[start:end], rewinds.by(n)
        turn_calls = tuple(info for record in part for info in calls.get(record.n, ()))
        newest = end == len(records) if turn_id else n == standing
        remaining = part if gone else [record for record in part if not rewinds.by(record.n)]
        turn = _turn(turn_id, remaining, turn_calls, closings.get(turn_id), newest=newest, gone=gone)
        turns.append(msgspec.structs.replace(turn, last=part[-1].n, bills=usage_by_model(part)))
    return turns


def _starts(records: Iterable[Record]) -> list[tuple[int, str]]:
    """The first record and the id of each turn; the id is empty for turns that were not recorded. Does not keep
    `records` in memory."""
    marks: list[tuple[int, str | None]] = []
    closed: dict[str, int] = {}
    for record in records:
        if isinstance(record.body, TurnOpened):
            marks.append((record.n, record.body.turn_id))
        elif isinstance(record.body, TurnClosed):
            closed[record.body.turn_id] = record.n  # the last closing counts: one by another process may be wrong
        elif isinstance(record.body, TurnResumed):
            closed.pop(record.body.turn_id, None)
        elif _is_word_of_user(record):
            marks.append((record.n, None))
    starts: list[tuple[int, str]] = []
    until: int | None = 0
    for n, opened in marks:
        if opened is not None:
            starts.append((n, opened))
            until = closed.get(opened)
        elif until is not None and n > until:
            starts.append((n, ""))
    return starts


def _is_word_of_user(record: Record) -> bool:
    """Whether the user wrote the message. A message that a program wrote in the user's name (a notification, the
    contents of a skill) begins no turn."""
    body = record.body
    return (
        isinstance(body, MessageRecord)
        and body.message.role == "user"
        and not all(isinstance(part, ToolResult) for part in body.message.parts)
        and not is_preface(body.message)
    )


def _turn(
    turn_id: str,
    records: Sequence[Record],
    calls: tuple[CallInfo, ...],
    closing: Record | None,
    *,
    newest: bool,
    gone: int,
) -> TurnInfo:
    """A turn as described by `records`: by those that were not taken back, or by all if the decision `gone` took the
    whole turn back."""
    inputs = [text_of(record.message) for record in records if record.message and _is_word_of_user(record)]
    answers = [record for record in records if is_answer(record)]
    texts = [text_of(a.message) for a in answers if a.message is not None and not _has_calls(a)]
    info = TurnInfo(
        id=turn_id,
        first=records[0].n,
        last=records[-1].n,
        status="processing",
        started=records[0].time,
        input=inputs[0] if inputs else "",
        answer=texts[-1] if texts else "",
        reasoning=_reasoning(answers),
        calls=calls,
        rewound=gone,
    )
    if turn_id and closing is not None:
        body = closing.body
        assert isinstance(body, TurnClosed)
        found_later = body.reason.startswith(LEFT_OPEN)  # the process that closed it did not see its end
        seconds = _lasted(info, records) if found_later else seconds_between(info.started, closing.time)
        return msgspec.structs.replace(info, status=body.status, reason=body.reason, seconds=seconds)
    status, reason = _standing(answers[-1] if answers else None, calls, bool(turn_id), newest, gone)
    info = msgspec.structs.replace(info, status=status, reason=reason)
    if info.is_open:
        return info
    return msgspec.structs.replace(info, seconds=_lasted(info, records))


def _lasted(info: TurnInfo, records: Sequence[Record]) -> float | None:
    """The seconds until the last message; None if there are none."""
    ends = [record.time for record in records if record.message is not None]
    return seconds_between(info.started, ends[-1]) if ends else None


def _standing(
    answer: Record | None, calls: tuple[CallInfo, ...], recorded: bool, newest: bool, gone: int
) -> tuple[TurnStatus, str]:
    """The status of a turn without a recorded closing, and the reason. An imported transcript may not record that a
    turn ended."""
    body = None if answer is None or _has_calls(answer) else answer.body
    if isinstance(body, MessageRecord) and body.source and not gone:
        return "completed", ""
    if not newest and recorded and not gone:
        return "failed", _NEVER_CLOSED
    if not recorded and answer is not None and isinstance(answer.body, PartialAnswer):
        return "failed", answer.body.reason
    if not recorded and answer is not None and not _has_calls(answer):
        return "completed", ""
    if gone:
        return "cancelled", f"taken back by decision {gone}"
    if not newest:
        return "failed", _NEVER_CLOSED
    waiting = {info.awaits for info in calls}
    if "approval" in waiting:
        return "awaiting_approval", ""
    return ("awaiting_tool_result" if "result" in waiting else "processing"), ""


def _has_calls(record: Record) -> bool:
    return record.message is not None and any(isinstance(part, ToolCall) for part in record.message.parts)


def _reasoning(answers: Iterable[Record]) -> str:
    shown: list[str] = []
    for record in answers:
        for part in record.message.parts if record.message else ():
            if isinstance(part, Reasoning):
                shown += part.summary or (part.text,)
    return "\n\n".join(text for text in shown if text)


def seconds_between(start: str, end: str) -> float | None:
    """The seconds between two times of records; None if one of them is not a time."""
    try:
        return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
    except (ValueError, TypeError):
        return None
