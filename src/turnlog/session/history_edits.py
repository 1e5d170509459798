"""Edits of the history that can be undone: rewinding to an earlier record, pinning messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from .._platform.units import counted
from ..errors import Conflict, InputError
from ..log.actions import ACTIONS, SHOWN_BY, action_of
from ..log.messages import Message, ToolResult
from ..log.records import Body, Decision, FileChange, MessageRecord, PartialAnswer, Record, TurnOpened, TurnResumed
from ..log.store import RecordStore
from ..view.decisions import Rewinds, active_decisions
from ..view.fold import as_left, select
from ..view.tool_calls import CallInfo, calls_of
from ..view.turns import TurnInfo, turns_of
from ..workspace.diff import NetChange, net_changes
from ..workspace.diff.folding import root_of

_SHAPING = frozenset(name for name in SHOWN_BY if ACTIONS[name].refreshes)
"""Actions of decisions that leave out messages recorded between a rewind and its undo."""

_INSISTS = (True, True, False, False, False)
"""For each try, whether it is given up if another process appends first. If others keep appending, every such try
fails; so the last tries append after the new records, and the decision is taken back if those records should have
influenced it."""


class _Append(Protocol):
    def __call__(self, *bodies: Body, expected: int | None = None) -> tuple[Record, ...]:
        """Put these on record. With `expected`, raises Conflict if that is not the last record."""


class Rewind(Struct, frozen=True, repr_omit_defaults=True):
    """What a rewind changes; numbers are those of records.

    `n`: the record of the rewind, 0 in a dry run. `to`: the conversation is now as it was after this record. `gone`:
    messages taken back. `back`: messages that are part of the conversation again, because an earlier rewind or clearing
    is undone. `ended`: decisions no longer in force. `again`: decisions in force again, because their undo was taken
    back. `hidden`: messages that the decisions in `again` leave out. `turns`: turns that began in what was taken back.
    `files`: net changes of files recorded there; they stay on disk.
    """

    n: int
    to: int
    decision: Decision
    gone: tuple[int, ...]
    back: tuple[int, ...]
    ended: tuple[int, ...]
    turns: tuple[TurnInfo, ...]
    files: tuple[NetChange, ...]
    hidden: tuple[int, ...] = ()
    again: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"Rewind({self!s:.300})"

    def __str__(self) -> str:
        told = f"back to record {self.to}: {counted(len(self.gone), 'message')} taken back"
        if self.back:
            told += f", {counted(len(self.back), 'message')} shown again"
        if self.hidden:
            told += f", {counted(len(self.hidden), 'message')} left out again"
        if self.files:
            told += f"; still changed on disk: {', '.join(change.path for change in self.files)}"
        return told


class Rewinder:
    """Rewinds one session's conversation. `read` returns its records from a number on, `living` the id of the turn that
    this process has open."""

    def __init__(
        self, session_id: str, read: Callable[[int], Iterable[Record]], append: _Append, living: Callable[[], str]
    ) -> None:
        self._id = session_id
        self._read = read
        self._append = append
        self._living = living

    def rewind(self, turns: int | None, messages: int | None, to: int | None, why: str, *, dry_run: bool) -> Rewind:
        """Go back. Arguments and errors as for `Session.rewind`."""
        if dry_run:
            return _rewound(self._closed([]), turns, messages, to, why)
        rewinds: list[Rewind] = []

        def decided(records: Sequence[Record]) -> Decision:
            rewinds[:] = [_rewound(records, turns, messages, to, why)]
            return rewinds[0].decision

        record = self._decide(decided, _decides)
        return msgspec.structs.replace(rewinds[0], n=record.n)

    def undo(self) -> Record:
        """Undo the last rewind. Raises as `Session.undo`."""
        return self._decide(_undone, lambda record: _decides(record) or _is_said(record))

    def _decide(self, decide: Callable[[Sequence[Record]], Decision], concerns: Callable[[Record], bool]) -> Record:
        """Record what `decide` returns for the log as it is. Records that others append meanwhile come before the
        decision; if they matter for it (`concerns`), it is made again. Raises Conflict if such records keep coming."""
        records: list[Record] = []
        for insists in _INSISTS:
            decision = decide(self._closed(records))
            try:
                (appended,) = self._append(decision, expected=len(records) if insists else None)
            except Conflict:
                continue
            meanwhile = () if insists else self._read(len(records) + 1)
            if not any(concerns(record) for record in meanwhile if record.n < appended.n):
                return appended
            self._append(Decision("undo", why="others decided something meanwhile", supersedes=appended.n))
        raise Conflict(self._id, expected=len(records), actual=appended.n)

    def _closed(self, records: list[Record]) -> Sequence[Record]:
        """The log; raises InputError if a turn is open. `records` are the records already read."""
        records.extend(self._read(len(records) + 1))
        newest = turns_of(records)[-1:]
        left = newest[0].id if newest and newest[0].is_open and not newest[0].waits_for_approval else ""
        if open_turn := self._living() or left:
            raise InputError(
                f"turn {open_turn!r} is open: wait for its end, or cancel it; if its process died, it is closed by "
                "opening the session again and by `turnlog doctor ID --fix`"
            )
        return records


def _rewound(records: Sequence[Record], turns: int | None, messages: int | None, to: int | None, why: str) -> Rewind:
    """What a rewind from the end of a whole log changes."""
    if [turns, messages, to].count(None) != 2:
        raise InputError(
            "rewind(): give exactly one of turns=, messages= (how many to take back) and to= (the record to go back to)"
        )
    if turns is not None:
        starts = [turn.first for turn in turns_of(records) if not turn.rewound]
        to = _before(records, "turn", starts, turns)
        why = why or f"{counted(turns, 'turn')} taken back"
    elif messages is not None:
        to = _before(records, "message", [shown.records[0] for shown in as_left(records)], messages)
        why = why or f"{counted(messages, 'message')} taken back"
    elif not isinstance(to, int) or isinstance(to, bool) or not 0 <= to < len(records):
        last = len(records)
        raise InputError(
            f"to: give the number of a record from 0 (the beginning) to {last - 1}, not {to!r}; the last record is "
            f"{last}"
            if last
            else "to: the session has no records"
        )
    else:
        _check_cut(_branch(records, to), to)
    decision = Decision("rewind", to + 1, len(records), why or f"back to record {to}")
    return _described(records, decision)


def _undone(records: Sequence[Record]) -> Decision:
    """The decision that undoes the last rewind. Raises InputError if the conversation continued after it: the two
    continuations would be mixed, and summaries made since do not cover the messages that would come back."""
    held = active_decisions(records)
    n = max((n for n, decision in held.items() if decision.action == "rewind"), default=0)
    if not n:
        raise InputError("no rewind is in force that could be taken back")
    rewinds = Rewinds.of(records)
    continuing = [
        r.n for r in records[n:] if not rewinds.by(r.n) and (_is_said(r) or (r.n in held and _shapes(held[r.n])))
    ]
    if continuing:
        raise InputError(
            f"the rewind in record {n} cannot be undone, as record {continuing[0]} continued the conversation; "
            f"going back to record {n - 1} restores the conversation as it was before the rewind and takes back what "
            f"came since; a fork at record {n - 1} puts that state into a second session and leaves this one as it is"
        )
    return Decision("undo", why="rewind taken back", supersedes=n)


def _before(records: Sequence[Record], noun: str, starts: Sequence[int], wanted: int) -> int:
    """The last record before the newest turns or messages (`noun`), as many as wanted, which begin at `starts`."""
    cleared = max((n for n, decision in active_decisions(records).items() if decision.action == "clear"), default=0)
    starts = [start for start in starts if start > cleared]
    if not isinstance(wanted, int) or isinstance(wanted, bool) or not 1 <= wanted <= len(starts):
        have = f"the conversation has {counted(len(starts), noun)}"
        if cleared:
            have += f" since it was cleared; go back to record {cleared - 1} for what was before that"
        allowed = f"give a number from 1 to {len(starts)}, not {wanted!r}; " if starts else ""
        raise InputError(f"{noun}s: {allowed}{have}")
    to = starts[-wanted] - 1
    # A program's own compaction, whose summary begins the turn, was made for it: without the summary nothing is left.
    while to and isinstance(body := records[to - 1].body, Decision) and body.detail.get("summary", 0) > to:
        to -= 1
    return to


def _branch(records: Sequence[Record], to: int) -> list[Record]:
    """The records that are, or were, part of the same conversation as record `to`."""
    end = len(records)
    while True:
        rewinds = Rewinds.of(records[:end])
        by = rewinds.by(to)
        if not by:
            return [record for record in records[:end] if not rewinds.by(record.n)]
        end = by - 1


def _check_cut(branch: Sequence[Record], to: int) -> None:
    """Raises InputError if record `to` lies between a tool call and the end of its run: the conversation would deny
    what the tool did."""
    spans = [(info.record, _end(info), info) for info in calls_of(branch)]
    talk = [record.n for record in branch if isinstance(record.body, MessageRecord) and _speaks(record)]
    runs = [span for span in spans if not any(span[0] < n <= span[1] for n in talk)]
    cut = next((info for first, last, info in runs if first <= to < last), None)
    if cut is None:
        return
    before = after = to
    while inside := [first for first, last, _ in runs if first <= before < last]:
        before = min(inside) - 1
    while inside := [last for first, last, _ in runs if first <= after < last]:
        after = max(inside)
    raise InputError(
        f"to: record {to} lies between tool call {cut.call.id!r} of {cut.call.name!r} (record "
        f"{cut.record}) and the end of its run; go back to record {before} or {after}"
    )


def _end(info: CallInfo) -> int:
    return max(info.record, info.started, info.finished, info.result)


def _speaks(record: Record) -> bool:
    message = record.message
    return message is not None and message.role == "user" and _is_said(record)


def _decides(record: Record) -> bool:
    """Whether a record changes or continues the conversation."""
    return isinstance(record.body, (Decision, TurnOpened, TurnResumed))


def _is_said(record: Record) -> bool:
    """Whether a record adds something to the conversation besides results of tools."""
    message = record.message
    if message is None or (isinstance(record.body, PartialAnswer) and not message.parts):
        return False
    return not message.parts or not all(isinstance(part, ToolResult) for part in message.parts)


def _shapes(decision: Decision) -> bool:
    return decision.action in _SHAPING


def _described(records: Sequence[Record], decision: Decision) -> Rewind:
    after = [*records, Record(len(records) + 1, "", decision)]
    were, are = Rewinds.of(records), Rewinds.of(after)
    taken = [record for record in records if are.by(record.n) and not were.by(record.n)]
    numbers = {record.n for record in taken}
    root = root_of(record.body for record in records if isinstance(record.body, FileChange))
    shown_before, shown_after = _shown(records), _shown(after)
    held_before, held = active_decisions(records), active_decisions(after)
    return Rewind(
        n=0,
        to=decision.first - 1,
        decision=decision,
        gone=tuple(n for n in shown_before if n not in shown_after and are.by(n)),
        back=tuple(n for n in shown_after if n not in shown_before),
        ended=tuple(n for n in held_before if n not in held),
        turns=tuple(turn for turn in turns_of(records) if turn.first in numbers),
        files=tuple(net_changes(taken, root=root)),
        hidden=tuple(n for n in shown_before if n not in shown_after and not are.by(n)),
        again=tuple(n for n in held if n not in held_before and n <= len(records)),
    )


def _shown(records: Sequence[Record]) -> dict[int, None]:
    """The message records of which a view shows something."""
    return dict.fromkeys(shown.records[0] for shown in select(records)[0] if not shown.stands_in)


def undone_last(decisions: Mapping[int, Decision]) -> str:
    """Which kind of decision undo takes back: `compaction`, `exclusion` or `rewind`, whichever is in force and came
    last. Raises InputError if there is none."""
    kinds = [action_of(decision.action).undone for _, decision in sorted(decisions.items())]
    last = next(filter(None, reversed(kinds)), "")
    if not last:
        raise InputError("no compaction, exclusion or rewind is in force that could be taken back")
    return last


def pin_for(store: RecordStore, session_id: str, n: int, why: str) -> Decision:
    """The decision that pins message record `n`. Raises InputError if there is no such message, or it was rewound."""
    message_to_decide(store, session_id, n, "pinned")
    return Decision("pin", first=n, last=n, why=why)


def message_to_decide(store: RecordStore, session_id: str, n: int, done: str) -> Message:
    """The message of record `n`, about which something is decided (`done`). Raises InputError if there is no such
    message, or it was rewound."""
    records = list(store.read(session_id, first=n, last=n)) if type(n) is int and n > 0 else []
    if not records or records[0].message is None:
        raise InputError(f"record {n!r} of session {session_id!r} is not a message, so it cannot be {done}")
    if gone := Rewinds.of(store.of_kinds(session_id, ("decision",))).by(n):
        raise InputError(
            f"record {n} of session {session_id!r} was taken back by the rewind in record {gone}, so it cannot be "
            f"{done}; undo that rewind first"
        )
    return records[0].message


def unpins_for(decisions: Mapping[int, Decision], n: int) -> list[Decision]:
    """The decisions that undo the pins of message record `n`. Raises InputError if it is not pinned."""
    pins = [number for number, decision in decisions.items() if (decision.action, decision.first) == ("pin", n)]
    if not pins:
        raise InputError(f"record {n!r} is not pinned")
    return [Decision("undo", why="no longer pinned", supersedes=number) for number in pins]
