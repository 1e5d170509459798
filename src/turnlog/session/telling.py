"""Which events the records of a session are: the same for the session that appends them and for whoever follows its log
(`following.py`), because both make them here, of records as they are on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from .._platform.lazy import Later
from .._platform.texts import on_one_line
from .._platform.units import lasted
from ..errors import InputError, TurnlogError
from ..log.actions import SHRINKING
from ..log.messages import ToolCall
from ..log.records import (
    Approval,
    Decision,
    FileChange,
    Note,
    PartialAnswer,
    Record,
    SessionOpened,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    TurnResumed,
)
from ..log.store import Store
from ..models.pricing import dollars
from ..redaction.redactor import counts_text
from ..redaction.store import SHOWS_MARKS, as_kept
from ..view.decisions import failures_of
from ..view.turns import TurnInfo, turns_of
from ..workspace.diff import net_changes
from ..workspace.diff.folding import differences
from .answer import RESPONSE, RUNNER, TRANSPORT

if TYPE_CHECKING:
    from ..workspace.diff import stat
else:
    stat = Later(lambda: import_module("turnlog.workspace.diff.stat"))  # for turns that changed files

EventKind = Literal[
    "session_opened",
    "session_resumed",
    "session_closed",
    "turn_started",
    "turn_resumed",
    "turn_diff",
    "turn_completed",
    "turn_failed",
    "turn_cancelled",
    "tool_started",
    "tool_finished",
    "approval_asked",
    "approval_given",
    "approval_denied",
    "compacted",
    "rewound",
    "undone",
    "diff",
    "redacted",
    "warning",
]
"""What can happen."""


class Event(Struct, frozen=True, repr_omit_defaults=True):
    """Something that happened in a session: its `kind`, one line for people, and the record with the details, if there
    is one. `found` has more: for a session that was opened again a `turnlog.session.Resumed`, for the end of a turn its
    `TurnInfo` (status, seconds, calls, usage, cost), for `turn_diff` a `turnlog.workspace.diff.stat.DiffStat`."""

    kind: EventKind
    session: str
    text: str
    record: Record | None = None
    found: Struct | None = None

    def __repr__(self) -> str:
        where = f", record {self.record.n}" if self.record is not None else ""
        return f"Event({self.kind}: {self.text:.300}{where})"


class Teller:
    """Tells the events of the records of one session. Nothing of an earlier record is remembered: what an event says
    beyond its own record is read from the log, up to that record."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = as_kept(store)
        self._id = session_id

    def events(self, record: Record, *, figures: bool = True) -> Iterator[Event]:
        """The events that a record is, as it is on disk. Without `figures`, the end of a turn that did not fail is told
        without what takes time to find out."""
        body = record.body
        if isinstance(body, TurnClosed):
            yield from self._end(record, body, figures=figures)
        else:
            told = _told(record, self._tool_of(body) if isinstance(body, ToolFinished) else "")
            if told is not None:
                yield Event(told[0], self._id, on_one_line(told[1]), record)
        for kind, number in record.redacted.items():
            text = f"record {record.n}: {counts_text({kind: number})} replaced on disk"
            yield Event("redacted", self._id, text, record)

    def _end(self, record: Record, body: TurnClosed, *, figures: bool) -> Iterator[Event]:
        turn, changed = self._figures(record, body.turn_id) if figures or body.status == "failed" else (None, None)
        if changed is not None and changed.box:
            yield Event("turn_diff", self._id, f"turn {body.turn_id}: {changed}", record, changed)
        kinds: dict[str, EventKind] = {"failed": "turn_failed", "cancelled": "turn_cancelled"}
        text = f"turn {body.turn_id} {body.status}" + (_bill(turn) if turn is not None else "")
        text += f": {body.reason}" if body.reason else ""
        yield Event(kinds.get(body.status, "turn_completed"), self._id, on_one_line(text), record, turn)

    def _figures(self, closing: Record, turn_id: str) -> tuple[TurnInfo | None, stat.DiffStat | None]:
        """The turn that a record closes and the change of its files; None if the log has no opening of it, or is
        damaged, which others tell of."""
        with suppress(TurnlogError):
            first = self._opening_of(turn_id, closing.n)
            records = list(self._store.read(self._id, first=first, last=closing.n)) if first else []
            changes = net_changes(record for record in records if isinstance(record.body, FileChange))
            found = stat.diff_stat(differences(changes, self._store.get_blob)) if changes else None
            return (turns_of(records)[0] if records else None), found
        return None, None

    def _opening_of(self, turn_id: str, before: int) -> int:
        """The number of the record that opens a turn; 0 if there is none before `before`."""
        n = int(turn_id) if turn_id.isdecimal() and len(turn_id) < 10 else 0  # its record's number, if turnlog made it
        if 0 < n < before and any(_opens(record, turn_id) for record in self._store.read(self._id, first=n, last=n)):
            return n
        openings = self._store.of_kinds(self._id, ("turn_opened",), reverse=True)
        return next((record.n for record in openings if record.n < before and _opens(record, turn_id)), 0)

    def _tool_of(self, body: ToolFinished) -> str:
        """The name of the tool that ended, which the record of its end does not have; empty if it is not known."""
        n = body.call_record
        with suppress(TurnlogError):
            messages = (record.message for record in self._store.read(self._id, first=n, last=n))
            parts = (part for message in messages if message is not None for part in message.parts)
            return next((part.name for part in parts if isinstance(part, ToolCall) and part.id == body.call_id), "")
        return ""


def _opens(record: Record, turn_id: str) -> bool:
    return isinstance(record.body, TurnOpened) and record.body.turn_id == turn_id


def opening_text(source: str, session: str = "", record: int | None = None) -> str:
    """The line about a session that was opened: made, or resumed at the last record of `session`."""
    did = "session opened" if record is None else f"session {session} resumed at record {record}".replace("  ", " ")
    return f"{did}, {source}" if source else did


def _bill(turn: TurnInfo) -> str:
    took, usage = "" if turn.seconds is None else f" after {lasted(turn.seconds)}", turn.usage
    tokens = f", {usage.input:,} tokens in, {usage.output:,} out" if turn.bills else ""
    with suppress(InputError):  # the user's own file of models cannot be used
        return took + tokens + (f", {dollars(turn.cost)}" if turn.bills else "")
    return took + tokens


def _told(record: Record, tool: str) -> tuple[EventKind, str] | None:
    """The event that a record is, and a line about it. `tool` is the name of the tool that ended."""
    match record.body:
        case SessionOpened(source=source, resumed=True, session=session):
            return "session_resumed", opening_text(source, session, record.n - 1)
        case SessionOpened(source=source):
            return "session_opened", opening_text(source)
        case TurnOpened(turn_id=turn_id):
            return "turn_started", f"turn {turn_id} started"
        case TurnResumed(turn_id=turn_id):
            return "turn_resumed", f"turn {turn_id} goes on"
        case ToolStarted(call_id=call_id, name=name):
            return "tool_started", f"{name} ({call_id}) started"
        case ToolFinished(call_id=call_id, outcome=outcome, reason=reason):
            name = f"{tool} ({call_id})" if tool else call_id
            return "tool_finished", f"{name} ended: {outcome}" + (f", {reason}" if reason else "")
        case Approval(call_id=call_id, state=state, reason=reason):
            asked: dict[str, EventKind] = {"asked": "approval_asked", "given": "approval_given"}
            text = f"approval of {call_id} {state}"
            return asked.get(state, "approval_denied"), f"{text}: {reason}" if reason else text
        case Decision(action=action) as decision if action in SHRINKING:
            return "compacted", _compacted(decision)
        case Decision(action="rewind", first=first, last=last, why=why):
            return "rewound", f"records {first} to {last} were taken back: {why}"
        case Decision(action=action, why=why) if action == SHOWS_MARKS:
            return "redacted", why
        case Decision(action="undo", supersedes=undone, why=why):
            return "undone", f"decision {undone} no longer holds: {why}"
        case FileChange(path=path, action=action):
            return "diff", f"{path} {action}"
        case Note(topic=topic, text=text) if topic in (RESPONSE, RUNNER, TRANSPORT) and text:
            return "warning", text
        case PartialAnswer(reason=reason):
            return "warning", f"the answer was interrupted: {reason}"
        case _:
            return None


def _compacted(decision: Decision) -> str:
    """A compaction in a line, with the tokens of a request before and after it."""
    sizes = [decision.detail.get(key) for key in ("before", "after")]
    from_to = f" ({sizes[0]:,} → {sizes[1]:,} tokens)" if all(isinstance(size, int) for size in sizes) else ""
    failed = "; ".join(failures_of([decision]))
    return f"{decision.action}: {decision.why}{from_to}" + (f"; no summarizer could: {failed}" if failed else "")
