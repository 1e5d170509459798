"""Edits of the history that can be undone: rewinding to an earlier record, pinning messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from .._platform.units import counted
from ..errors import Conflict, InputError
from ..log.messages import ToolResult
from ..log.records import Body, Decision, FileChange, MessageRecord, PartialAnswer, Record, TurnOpened
from ..log.store import RecordStore
from ..view.decisions import SIZING, Rewinds, active_decisions
from ..view.fold import select
from ..view.tool_calls import CallInfo, calls_of
from ..view.turns import TurnInfo, turns_of
from ..workspace.diff import NetChange, net_changes, root_of

_SHAPING = SIZING | {"clear"}
"""Actions of decisions that leave something out of what is said between a rewind and its undoing."""

_INSISTS = (True, True, False, False, False)
"""For each try, whether it is given up where somebody else appends first. Where others append all the time every such
one is; the next appends behind what came, and is taken back if that should have had a say in it."""


class _Append(Protocol):
    def __call__(self, *bodies: Body, expected: int | None = None) -> tuple[Record, ...]:
        """Put these on record. With `expected`, raises Conflict if that is not the last record."""


class Rewind(Struct, frozen=True, repr_omit_defaults=True):
    """What going back does, by record numbers.

    `n` is the record that says it, 0 if that is only tried. The conversation is as it was at record `to`: the messages
    `gone` are taken back, those `back` come into it again (where `to` lies in what was taken back before, or before a
    clearing), decisions `ended` hold no longer. Where what took a decision back is taken back, that is one of those
    that hold `again`, and the messages `hidden` are left out by it as they were then. `turns` are those that begin in
    what leaves. `files` are the changes recorded in it, net: they stay on disk.
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
    """Goes back in one session's conversation. `read` gives its log from a record on, `living` the id of a turn that
    this process has open."""

    def __init__(
        self, session_id: str, read: Callable[[int], Iterable[Record]], append: _Append, living: Callable[[], str]
    ) -> None:
        self._id = session_id
        self._read = read
        self._append = append
        self._living = living

    def rewind(self, turns: int | None, to: int | None, why: str, *, dry_run: bool) -> Rewind:
        """Go back. Arguments and errors as for `Session.rewind`."""
        if dry_run:
            return _rewound(self._closed([]), turns, to, why)
        made: list[Rewind] = []

        def decided(records: Sequence[Record]) -> Decision:
            made[:] = [_rewound(records, turns, to, why)]
            return made[0].decision

        record = self._decide(decided, _decides)
        return msgspec.structs.replace(made[0], n=record.n)

    def undo(self) -> Record:
        """Take the last rewind back. Errors as for `Session.undo_rewind`."""
        return self._decide(_undone, lambda record: _decides(record) or _is_said(record))

    def _decide(self, decide: Callable[[Sequence[Record]], Decision], concerns: Callable[[Record], bool]) -> Record:
        """Put on record what is decided on the log as it stands. What others append meanwhile comes after that, unless
        it `concerns` the decision, which then is made anew. Raises Conflict if such records come all the time."""
        records: list[Record] = []
        for insists in _INSISTS:
            decision = decide(self._closed(records))
            try:
                (made,) = self._append(decision, expected=len(records) if insists else None)
            except Conflict:
                continue
            meanwhile = () if insists else self._read(len(records) + 1)
            if not any(concerns(record) for record in meanwhile if record.n < made.n):
                return made
            self._append(Decision("undo", why="others decided something meanwhile", supersedes=made.n))
        raise Conflict(self._id, expected=len(records), actual=made.n)

    def _closed(self, records: list[Record]) -> Sequence[Record]:
        """The log, in which no turn is open; `records` are what is read of it."""
        records.extend(self._read(len(records) + 1))
        newest = turns_of(records)[-1:]
        left = newest[0].id if newest and newest[0].is_open else ""
        if found := self._living() or left:
            raise InputError(
                f"turn {found!r} is open: leave its `with` block first, or end it with its cancel(); if its process "
                "died, turnlog.open and `turnlog doctor ID --fix` close it"
            )
        return records


def _rewound(records: Sequence[Record], turns: int | None, to: int | None, why: str) -> Rewind:
    """What it does to go back from the end of a whole log."""
    if (turns is None) == (to is None):
        raise InputError("rewind() takes the number of turns to take back, or the record to go back to: turns= or to=")
    if to is None:
        to = _before_turns(records, turns)
        why = why or f"{counted(turns or 0, 'turn')} taken back"
    elif not isinstance(to, int) or isinstance(to, bool) or not 0 <= to < len(records):
        raise InputError(f"rewind(to={to!r}): give a record before the last one, {len(records)}; 0 is the beginning")
    else:
        _check_cut(_branch(records, to), to)
    decision = Decision("rewind", to + 1, len(records), why or f"back to record {to}")
    return _described(records, decision)


def _undone(records: Sequence[Record]) -> Decision:
    """The decision that takes the last rewind back, unless the conversation has gone on since: the two would be mixed,
    and what was summarised since knows nothing of what would come back."""
    held = active_decisions(records)
    n = max((n for n, decision in held.items() if decision.action == "rewind"), default=0)
    if not n:
        raise InputError("no rewind is in force that could be taken back")
    rewinds = Rewinds.of(records)
    said = [r.n for r in records[n:] if not rewinds.by(r.n) and (_is_said(r) or (r.n in held and _shapes(held[r.n])))]
    if said:
        raise InputError(
            f"the conversation has gone on since the rewind on record {n}, at record {said[0]}: "
            f"rewind(to={n - 1}) goes back to before it and takes back what came since, fork(at={n - 1}) keeps both"
        )
    return Decision("undo", why="rewind taken back", supersedes=n)


def _before_turns(records: Sequence[Record], turns: int | None) -> int:
    """The last record before the newest turns that stand."""
    cleared = max((n for n, one in active_decisions(records).items() if one.action == "clear"), default=0)
    starts = [turn.first for turn in turns_of(records) if not turn.rewound and turn.first > cleared]
    if not isinstance(turns, int) or isinstance(turns, bool) or not 1 <= turns <= len(starts):
        have = f"the conversation has {counted(len(starts), 'turn')}"
        if cleared:
            have += f" since it was cleared; rewind(to={cleared - 1}) goes back to before that"
        raise InputError(f"rewind(turns={turns!r}): give a number of turns, from 1 on; {have}")
    return starts[-turns] - 1


def _branch(records: Sequence[Record], to: int) -> list[Record]:
    """The records that stood, or stand, together with record `to`."""
    end = len(records)
    while True:
        rewinds = Rewinds.of(records[:end])
        by = rewinds.by(to)
        if not by:
            return [record for record in records[:end] if not rewinds.by(record.n)]
        end = by - 1


def _check_cut(branch: Sequence[Record], to: int) -> None:
    """Raises InputError where record `to` stands in the midst of a tool's run: what the tool did would be denied."""
    spans = [(info.record, _end(info), info) for info in calls_of(branch)]
    talk = [record.n for record in branch if isinstance(record.body, MessageRecord) and _speaks(record)]
    runs = [one for one in spans if not any(one[0] < n <= one[1] for n in talk)]
    cut = next((info for first, last, info in runs if first <= to < last), None)
    if cut is None:
        return
    before = after = to
    while inside := [first for first, last, _ in runs if first <= before < last]:
        before = min(inside) - 1
    while inside := [last for first, last, _ in runs if first <= after < last]:
        after = max(inside)
    raise InputError(
        f"record {to} stands between call {cut.call.id!r} of {cut.call.name!r} in record {cut.record} and what became "
        f"of it: go back to record {before} or {after}"
    )


def _end(info: CallInfo) -> int:
    return max(info.record, info.started, info.finished, info.result)


def _speaks(record: Record) -> bool:
    message = record.message
    return message is not None and message.role == "user" and _is_said(record)


def _decides(record: Record) -> bool:
    """Whether a record says what the conversation is from there on, or that somebody goes on with it."""
    return isinstance(record.body, (Decision, TurnOpened))


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
    before, now = _shown(records), _shown(after)
    held_before, held = active_decisions(records), active_decisions(after)
    return Rewind(
        n=0,
        to=decision.first - 1,
        decision=decision,
        gone=tuple(n for n in before if n not in now and are.by(n)),
        back=tuple(n for n in now if n not in before),
        ended=tuple(n for n in held_before if n not in held),
        turns=tuple(turn for turn in turns_of(records) if turn.first in numbers),
        files=tuple(net_changes(taken, root=root)),
        hidden=tuple(n for n in before if n not in now and not are.by(n)),
        again=tuple(n for n in held if n not in held_before and n <= len(records)),
    )


def _shown(records: Sequence[Record]) -> dict[int, None]:
    """The message records that a view shows something of."""
    return dict.fromkeys(shown.records[0] for shown in select(records)[0] if shown.treatment != "summarised")


def undone_last(decisions: Mapping[int, Decision]) -> str:
    """What the last decision in force that can be undone is: `compaction` or `rewind`. Raises InputError if none is."""
    found = [decision.action for _, decision in sorted(decisions.items())]
    last = next((action for action in reversed(found) if action == "rewind" or action in SIZING), "")
    if not last:
        raise InputError("no compaction and no rewind is in force that could be taken back")
    return last if last == "rewind" else "compaction"


def pin_for(store: RecordStore, session_id: str, n: int, why: str) -> Decision:
    """The decision that pins message record `n`. Raises InputError if there is no such message, or it was rewound."""
    found = list(store.read(session_id, first=n, last=n)) if isinstance(n, int) and n > 0 else []
    if not found or found[0].message is None:
        raise InputError(f"record {n!r} of session {session_id!r} is no message that could be pinned")
    if gone := Rewinds.of(store.of_kinds(session_id, ("decision",))).by(n):
        raise InputError(f"record {n} of session {session_id!r} was taken back by decision {gone}: go back to it first")
    return Decision("pin", first=n, last=n, why=why)


def unpins_for(decisions: Mapping[int, Decision], n: int) -> list[Decision]:
    """The decisions that take back the pins of message record `n`. Raises InputError if there is none."""
    pins = [number for number, decision in decisions.items() if (decision.action, decision.first) == ("pin", n)]
    if not pins:
        raise InputError(f"record {n!r} is not pinned")
    return [Decision("undo", why="no longer pinned", supersedes=number) for number in pins]
