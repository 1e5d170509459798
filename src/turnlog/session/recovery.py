"""What a crash left unfinished: found when a session is opened, recorded, and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice, tee
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from ..errors import Conflict, InputError
from ..log.messages import Message, ToolCall, ToolResult
from ..log.records import (
    Approval,
    Body,
    Decision,
    MessageRecord,
    Note,
    Record,
    SessionOpened,
    StreamCheckpoint,
    TurnClosed,
    TurnOpened,
    TurnResumed,
)
from ..view.decisions import Rewinds
from ..view.repair.arrange import synthetic_result
from ..view.tool_calls import LEDGER, CallInfo, calls_of, fate_of, unanswered
from ..view.turns import LEFT_OPEN, TurnInfo, turns_of
from ..workspace.watch import FileRecorder
from .checkpoint import as_interrupted, unfinished_stream
from .configure import Change, SessionState, changes_of, changes_since, environment_of
from .marks import marks_decision
from .parts import Parts
from .reader import SessionLog
from .telling import opening_text
from .tool_run import denied

# -- going on --------------------------------------------------------------------------------------
#
# Going on with a turn that did not come to its end: which turn that is, and what becomes of its calls.

Calls = Literal["answer", "run", "ask"]
"""What becomes of the calls without a result. `answer`: what is known of each is recorded as its result; `run`: they
wait to be run; `ask`: those that may have run wait for somebody to say whether they may run again."""

GOES_ON = "turnlog"
"""Who approves that a call of an agent goes on which waited for what the agent waited for."""

_CHOICES = ("answer", "run", "ask")
_TURN_RECORDS = ("turn_opened", "turn_closed", "turn_resumed")
_INSTEAD = "session.turn(TEXT) begins a turn"


class Resumption(NamedTuple):
    """How a turn goes on: the number of the record that opened it, its id, and the records to append."""

    opened: int
    turn_id: str
    bodies: tuple[Body, ...]


def calls_given(calls: str) -> None:
    """Raises InputError unless `calls` is one of the choices."""
    if calls not in _CHOICES:
        raise InputError(f"calls must be 'answer', 'run' or 'ask', not {calls!r}")


def resumption(log: SessionLog, calls: Calls, *, alone: bool) -> Resumption:
    """How the newest turn goes on. Raises InputError, with the reason, if it cannot: unless the owner is `alone`, also
    if another one has gone on with it since something was decided."""
    newest = newest_turn(log)
    if isinstance(newest, str):
        raise InputError(f"there is no turn to go on with: {newest}; {_INSTEAD}")
    opened, turn = newest
    if not alone and turn.is_open:
        resumed = next((record.n for record in log.of_kinds("turn_resumed", reverse=True)), 0)
        if resumed > max((info.approval_record for info in turn.awaiting if info.approved_by != GOES_ON), default=0):
            raise InputError(
                f"another owner of the session goes on with turn {turn.id} (record {resumed}), or nothing was decided "
                "since; if its process is lost, open the session alone, without shared=True"
            )
    open_calls = [info for info in turn.calls if info.awaits]
    denied_calls = [info for info in open_calls if info.approval == "denied" and info.is_decided]
    waiting = [info for info in open_calls if info not in denied_calls]
    bodies: list[Body] = [TurnResumed(turn.id)]
    bodies += refused(denied_calls)  # by somebody who only said so
    if calls == "answer":
        bodies += stand_ins(log, waiting)
    elif calls == "ask":
        asked = (info for info in waiting if info.may_have_run and not info.is_decided)
        bodies += [Approval(info.call.id, "asked", info.record, reason=info.standing) for info in asked]
    return Resumption(opened, turn.id, tuple(bodies))


def newest_turn(log: SessionLog) -> tuple[int, TurnInfo] | str:
    """The number of the record that opened the newest turn, and that turn; or the reason why it cannot go on."""
    newest = latest_turn(log)
    if isinstance(newest, str):
        return newest
    turn = newest[1]
    if turn.is_open and not turn.waits_for_approval:
        return f"turn {turn.id} is open"
    return f"turn {turn.id} is completed" if turn.status == "completed" else newest


def latest_turn(log: SessionLog) -> tuple[int, TurnInfo] | str:
    """The number of the record that opened the newest turn, and that turn, however it stands; or the reason why there
    is none, or why it is over for good."""
    marks = log.of_kinds(*_TURN_RECORDS, reverse=True)
    opened = next((record for record in marks if isinstance(record.body, TurnOpened)), None)
    if opened is None:
        return "the log has no recorded turn"
    records = list(log.records(opened.n))
    turn, *later = turns_of(records)
    if later:
        return f"after turn {turn.id}, the user said something else (record {later[0].first})"
    if turn.rewound:
        return f"turn {turn.id} was taken back by decision {turn.rewound}"
    cleared = next((r.n for r in records if isinstance(r.body, Decision) and r.body.action == "clear"), 0)
    if cleared:
        return f"turn {turn.id} was cleared by decision {cleared}"
    return opened.n, turn


TOUCHED = "recovered files"
"""Topic of the note that lists files which an unfinished turn changed without a record."""


class Recovered(Struct, frozen=True, repr_omit_defaults=True):
    """What was unfinished when a session was opened again.

    `turn`: the turn that was open, as it was then; it is now closed as failed. `answer`: the number of the new record
    with the part of an answer that had arrived, 0 if no answer was being streamed. `calls`: the calls without a result
    in that turn or, if no turn was recorded, since the last user message; `standing` of each tells whether it may have
    run. `files`: files in the watched folder that were modified after the turn began and whose changes are not on
    record. They may include changes made by others after the crash. Deleted files are not listed.
    """

    turn: TurnInfo | None = None
    answer: int = 0
    calls: tuple[CallInfo, ...] = ()
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != Recovered()

    def __str__(self) -> str:
        clauses = []
        if self.turn is not None:
            clauses.append(f"turn {self.turn.id} was left open and is closed as failed")
        if self.answer:
            clauses.append(f"what had come of an interrupted answer is kept as record {self.answer}")
        clauses += [f"{info.call.name} ({info.call.id}) {info.standing}" for info in self.calls]
        if self.files:
            names = ", ".join(self.files[:5]) + (f" and {len(self.files) - 5} more" if len(self.files) > 5 else "")
            clauses.append(f"changed without a record: {names}")
        return "; ".join(clauses)


class Resumed(Struct, frozen=True, repr_omit_defaults=True):
    """What opening an existing session found. `record` is its last record then; `recovered` is what a crash left
    unfinished; `changes` are differences to the last configuration: in the arguments, the table of models, or the
    version of turnlog. `kept` are differences of arguments that did not apply, as the session has its own: `before` is
    what it kept, `after` the argument. `source` is the `source` setting, if one was given. `session` is the session
    that is resumed: this one, or the one that it is a fork of."""

    record: int
    recovered: Recovered = Recovered()
    changes: tuple[Change, ...] = ()
    source: str = ""
    kept: tuple[Change, ...] = ()
    session: str = ""

    def __repr__(self) -> str:
        return f"Resumed({self!s:.300})"

    def __str__(self) -> str:
        clauses = [opening_text(self.source, self.session, self.record)]
        if self.recovered:
            clauses.append(f"recovered: {self.recovered}")
        if self.changes:
            clauses.append(f"changed since: {', '.join(map(str, self.changes))}")
        if self.kept:
            clauses.append(f"not taken over without override=True: {', '.join(map(str, self.kept))}")
        return "; ".join(clauses)


def begin(
    parts: Parts,
    was: SessionState,
    configure: Callable[[], object],
    *,
    created: bool,
    source: str,
    kept: tuple[Change, ...],
    of: str = "",
) -> Resumed | None:
    """Open a session: `configure` it, record what a crash left unfinished, and report to listeners how it was opened.
    Returns what an existing session had, None for a new one.

    `was` is the state before that; `source` is the `source` setting, recorded first; `created` tells that the session
    is new; `kept` is as in `Resumed`, and `of` the session that this one is a fork of, if it is one.
    """
    journal, events, context = parts.journal, parts.events, parts.context
    before = context.last
    resumed_id = "" if created else of or parts.log.id
    opening = journal.append(SessionOpened(source, not created, resumed_id))[0] if source else None
    if not created and (moved := context.version_decision()) is not None:  # before this version configures anything
        with suppress(Conflict):
            journal.append(moved, expected=context.last)
    configure()
    with events.opening():
        if created:
            events.emit("session_opened", opening_text(source), opening)
            return None
        recovered, changes, configuration = recover(parts), changes_of(was, parts.state), context.configuration
        shows = marks_decision(
            context.marks, context.decisions, lambda n: parts.store.read(parts.log.id, first=n, last=n)
        )
        if shows is not None:
            with suppress(Conflict):  # another process was faster
                journal.append(shows, expected=context.last)
        here = environment_of(configuration.provider, configuration.model)
        if configuration.environment not in (None, here):  # said once: the next opening compares with what is here
            why = f"resumed: {', '.join(map(str, changes_since(configuration.environment, here)))}"
            journal.append(msgspec.structs.replace(configuration, environment=here, why=why))
        resumed = Resumed(before, recovered, changes, source, kept, resumed_id)
        events.emit("session_resumed", str(resumed), opening, resumed)
        if kept:
            events.warn(
                f"not taken over, as the session has its own: {', '.join(map(str, kept))}; open it with override=True "
                "to replace what is on record, or leave these arguments out"
            )
    return resumed


def stand_ins(log: SessionLog, calls: Iterable[CallInfo]) -> list[MessageRecord]:
    """The stand-in results that requests contain for these calls, which have no result."""
    rewinds = Rewinds.of(log.of_kinds("decision"))
    fate = fate_of(record for record in log.of_kinds(*LEDGER) if not rewinds.by(record.n))
    results = (synthetic_result(info.call, fate.get((info.record, info.call.id), "lost")) for info in calls)
    return [MessageRecord(Message("user", (result,))) for result in results]


def refused(calls: Iterable[CallInfo]) -> Iterator[MessageRecord]:
    """The results of calls that were denied, or of which nobody has said in time that they may run."""
    for info in calls:
        result = denied(info.call, info.reason if info.approval == "denied" else _TOO_LATE, began=info.started > 0)
        yield MessageRecord(Message("user", (result,)))


def calls_left_open(backwards: Iterable[Record]) -> list[CallInfo]:
    """The calls without a result since the last user message, if no turn was recorded for them. `backwards` gives
    records, the last first."""
    newest: list[Record] = []
    asked: set[str] = set()
    for record in backwards:
        if isinstance(record.body, TurnClosed):
            break
        newest.append(record)
        parts = record.message.parts if record.message is not None else ()
        asked.update(part.id for part in parts if isinstance(part, ToolCall))
        if isinstance(record.body, MessageRecord) and record.body.message.role == "user":
            if not all(isinstance(part, ToolResult) for part in parts):
                break
    return unanswered(calls_of(reversed(newest))) if asked else []


def told(calls: Sequence[CallInfo]) -> str:
    """Calls without a result, for people: the first of them, and how many more."""
    names = ", ".join(f"{info.call.name} ({info.call.id}: {info.standing})" for info in calls[:3])
    return f"without a result: {names}" + (f" and {len(calls) - 3} more" if len(calls) > 3 else "")


_NOT_AWAITED = "another turn began before anybody said whether its calls may run"

_TOO_LATE = "The conversation went on without it."

_NEAR = 500
"""How many of the newest records are searched for the opening of a turn before all are."""

_RACES = 8
"""How often another process may append first."""


def recover(parts: Parts, *, begins: bool = False) -> Recovered:
    """Record the part of an unfinished answer as an interrupted answer, and close as failed a turn that was left open.
    Returns what was found. A turn that only waits for approvals stays open, unless another `begins` now. While others
    share the session, nothing is recorded: what looks unfinished may be theirs."""
    if not parts.lease.alone:
        return Recovered()
    for _ in range(_RACES):
        with suppress(Conflict):
            return _recovered(parts, begins=begins)
    return _recovered(parts, begins=begins, exact=False)


def _recovered(parts: Parts, *, begins: bool, exact: bool = True) -> Recovered:
    """See `recover`. If `exact`, raises Conflict if somebody else appends meanwhile.

    Reads back to the newest record that opened a turn.
    """
    log, journal = parts.log, parts.journal
    near, to_stream, to_calls, to_last = tee((record.in_passing for record in islice(log.newest(), _NEAR)), 4)
    last = next((record.n for record in to_last), 0) if exact else None
    opened, is_closed = newest_opening(near)
    if opened is None:
        opened, is_closed = newest_opening(log.of_kinds(*_TURN_RECORDS, reverse=True))
    if is_closed:
        opened = None
    stream = None if journal.is_streaming else unfinished_stream(to_stream)  # one that lives tells its end itself
    bodies: list[Body] = []
    if stream is not None and isinstance(stream.body, StreamCheckpoint):
        bodies.append(as_interrupted(stream.body))
    records = [] if opened is None else list(log.records(opened.n))
    turn = turns_of(records)[0] if records else None
    if opened is None or not isinstance(opened.body, TurnOpened) or turn is None or not turn.is_open:
        answer = journal.append(*bodies, expected=last)[0].n if bodies else 0
        return Recovered(answer=answer, calls=tuple(calls_left_open(to_calls)))
    calls = tuple(info for info in turn.calls if not info.result)
    reason = f"{LEFT_OPEN}; {told(calls)}" if calls else LEFT_OPEN
    watched = opened.body.watch
    shared = parts.store.info(log.id).parent_records  # the session it was forked from tells of their files
    if turn.waits_for_approval and not bodies and opened.n > shared:
        if begins:
            over = TurnClosed(turn.id, "cancelled", f"{_NOT_AWAITED}; {told(calls)}")
            journal.append(*refused(calls), over, expected=last)
        return Recovered()
    touched = _touched(parts, watched, turn, records) if watched and opened.n > shared else ()
    ending: list[Body] = [TurnClosed(opened.body.turn_id, "failed", reason)]
    if touched:  # said with it, or never: the next opening cannot tell any more who changed them
        ending.append(Note(TOUCHED, f"changed without a record: {', '.join(touched)}", list(touched)))
    appended = journal.append(*bodies, *ending, expected=last)
    return Recovered(turn, appended[0].n if bodies else 0, calls, touched)


def newest_opening(backwards: Iterable[Record]) -> tuple[Record | None, bool]:
    """The newest record that opened a turn, if there is one, and whether that turn was closed and not resumed."""
    closed: dict[str, bool] = {}  # as the newest record says
    for record in backwards:
        if isinstance(record.body, (TurnClosed, TurnResumed)):
            closed.setdefault(record.body.turn_id, isinstance(record.body, TurnClosed))
        elif isinstance(record.body, TurnOpened):
            return record, closed.get(record.body.turn_id, False)
    return None, False


def _touched(parts: Parts, folder: str, turn: TurnInfo, records: Iterable[Record]) -> tuple[str, ...]:
    """Files of a watched folder that changed since a turn began, as far as their times tell, and are not on record."""
    try:
        since = datetime.fromisoformat(turn.started)
    except ValueError:  # a store holds any text; nobody knows since when then
        return ()
    with FileRecorder(folder, parts.journal.append, parts.store.put_blob) as recorder:
        return tuple(recorder.touched(since, records))
