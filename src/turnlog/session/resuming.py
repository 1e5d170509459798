"""Puts on record what is known of what a crash left half-done: an open turn, an answer that was being streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice, tee
from typing import Protocol

from ..errors import Conflict
from ..log.records import Body, Note, Record, StreamCheckpoint, TurnClosed, TurnOpened
from ..view.turns import LEFT_OPEN, TurnInfo, turns_of
from ..workspace.watch import FileRecorder
from .checkpoint import as_interrupted, unfinished_stream
from .recorder import Journal
from .recovery import TOUCHED, Recovered, calls_left_open, told

__all__ = ["recover"]

_NEAR = 500
"""So many of the newest records are looked through for the opening of a turn before all are."""

_RACES = 8
"""So often somebody else may append first."""

_MARKS = ("turn_opened", "turn_closed")


class _Log(Protocol):
    def newest(self) -> Iterator[Record]:
        """The records, the last first."""

    def of_kinds(self, *kinds: str) -> Iterator[Record]:
        """The records of these kinds, oldest first."""

    def records(self, first: int = 1) -> Iterator[Record]:
        """The records from number `first` on, oldest first."""


def recover(log: _Log, journal: Journal, files: Callable[[str], FileRecorder], shared: Callable[[], int]) -> Recovered:
    """Put on record, as an interrupted answer, what had come of a stream, and close as failed a turn that nobody
    closed; returns what was found. `files` gives what can look into a folder that was watched, `shared` how many
    records are those of the session that this one was forked from: what a turn among them did to files is told there.

    Of several who open a session at once, one puts that on record, and the others find nothing any more.
    """
    for _ in range(_RACES):
        with suppress(Conflict):
            return _recovered(log, journal, files, shared)
    return _recovered(log, journal, files, shared, exact=False)


def _recovered(
    log: _Log,
    journal: Journal,
    files: Callable[[str], FileRecorder],
    shared: Callable[[], int],
    *,
    exact: bool = True,
) -> Recovered:
    """See `recover`. If `exact`, raises Conflict where somebody else appends meanwhile.

    Reads back to the newest opening of a turn, and all openings and closings only if none is near.
    """
    near, to_stream, to_calls, to_last = tee((record.in_passing for record in islice(log.newest(), _NEAR)), 4)
    last = next((record.n for record in to_last), 0) if exact else None
    opened, is_closed = _newest_opening(near)
    if opened is None:
        opened, is_closed = _newest_opening(reversed(list(log.of_kinds(*_MARKS))))
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
    touched = _touched(watched, turn, records, files) if watched and opened.n > shared() else ()
    ending: list[Body] = [TurnClosed(opened.body.turn_id, "failed", reason)]
    if touched:  # said with it, or never: the next opening cannot tell any more who changed them
        ending.append(Note(TOUCHED, f"changed without a record: {', '.join(touched)}", list(touched)))
    made = journal.append(*bodies, *ending, expected=last)
    return Recovered(turn, made[0].n if bodies else 0, calls, touched)


def _newest_opening(backwards: Iterable[Record]) -> tuple[Record | None, bool]:
    """The newest opening of a turn, if there is one, and whether that turn was closed."""
    closed: set[str] = set()
    for record in backwards:
        if isinstance(record.body, TurnClosed):
            closed.add(record.body.turn_id)
        elif isinstance(record.body, TurnOpened):
            return record, record.body.turn_id in closed
    return None, False


def _touched(
    folder: str, turn: TurnInfo, records: Iterable[Record], files: Callable[[str], FileRecorder]
) -> tuple[str, ...]:
    """Files of a watched folder that changed since a turn began, as far as their times tell, and are not on record."""
    try:
        since = datetime.fromisoformat(turn.started)
    except ValueError:  # a store holds any text; nobody knows since when then
        return ()
    with files(folder) as recorder:
        return tuple(recorder.touched(since, records))
