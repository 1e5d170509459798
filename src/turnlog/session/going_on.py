"""Going on with a turn that did not come to its end: which turn that is, and what becomes of its calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from ..errors import InputError
from ..log.records import Approval, Body, Decision, TurnOpened, TurnResumed
from ..view.turns import TurnInfo, turns_of
from .reader import SessionLog, session_given
from .recovery import stand_ins

if TYPE_CHECKING:
    from .session import Session

Calls = Literal["answer", "run", "ask"]
"""What becomes of the calls without a result: `answer`: they are answered with what is on record; `run`: they wait to
be run; `ask`: those that may have run wait for somebody to say whether they may run again."""

_CHOICES = ("answer", "run", "ask")
_MARKS = ("turn_opened", "turn_closed", "turn_resumed")
_INSTEAD = "session.turn(TEXT) begins a turn"


class Resumption(NamedTuple):
    """How a turn goes on: the number of the record that opened it, its id, and what is put on record."""

    opened: int
    turn_id: str
    bodies: tuple[Body, ...]


def calls_given(calls: str) -> None:
    """Raises InputError for what is no choice."""
    if calls not in _CHOICES:
        raise InputError(f"calls must be 'answer', 'run' or 'ask', not {calls!r}")


def interrupted_turn(session: Session) -> TurnInfo | None:
    """The turn that `session.turn()` goes on with: the newest one, if it ended before it came to its end. None if there
    is none, also while it is open."""
    session_given(session)
    found = _newest(session.log)
    return found[1] if isinstance(found, tuple) else None


def resumption(log: SessionLog, calls: Calls) -> Resumption:
    """What makes the newest turn go on. Raises InputError, which says why, if none can."""
    found = _newest(log)
    if isinstance(found, str):
        raise InputError(f"there is no turn to go on with: {found}; {_INSTEAD}")
    opened, turn = found
    waiting = [info for info in turn.calls if info.awaits]
    bodies: list[Body] = [TurnResumed(turn.id)]
    if calls == "answer":
        bodies += stand_ins(log, waiting)
    elif calls == "ask":
        asked = (info for info in waiting if info.may_have_run and info.awaits != "approval")
        bodies += [Approval(info.call.id, "asked", info.record, reason=info.standing) for info in asked]
    return Resumption(opened, turn.id, tuple(bodies))


def _newest(log: SessionLog) -> tuple[int, TurnInfo] | str:
    """The record that opened the newest turn, and that turn; or why it cannot go on."""
    marks = log.of_kinds(*_MARKS, reverse=True)
    opened = next((record for record in marks if isinstance(record.body, TurnOpened)), None)
    if opened is None:
        return "the log has no recorded turn"
    records = list(log.records(opened.n))
    turn, *later = turns_of(records)
    if later:
        return f"after turn {turn.id}, the user said something else (record {later[0].first})"
    if turn.is_open:
        return f"turn {turn.id} is open"
    if turn.status == "completed":
        return f"turn {turn.id} is completed"
    if turn.rewound:
        return f"turn {turn.id} was taken back by decision {turn.rewound}"
    cleared = next((r.n for r in records if isinstance(r.body, Decision) and r.body.action == "clear"), 0)
    if cleared:
        return f"turn {turn.id} was cleared by decision {cleared}"
    return opened.n, turn
