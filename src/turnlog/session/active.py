"""The turn that runs in a session now, with the answer that is being streamed."""

from __future__ import annotations

from msgspec import Struct

from ..log.messages import Message, Reasoning, text_of
from ..log.records import StreamCheckpoint
from ..view.tool_calls import CallInfo
from ..view.turns import TurnInfo, turns_of
from .checkpoint import unfinished_stream
from .reader import SessionLog
from .recorder import Journal
from .recovery import newest_opening
from .turn import Turn


class ActiveTurn(Struct, frozen=True, repr_omit_defaults=True):
    """A turn that has not ended: as `TurnInfo`, with the `calls` so far; `text` and `reasoning` are those of the answer
    that is being streamed, as far as they have come, empty if none is."""

    id: str
    started: str
    input: str
    status: str
    calls: tuple[CallInfo, ...] = ()
    text: str = ""
    reasoning: str = ""


def active_here(turn: Turn, journal: Journal) -> ActiveTurn | None:
    """The turn that this session object has open; None while its opening is not on record yet."""
    try:
        info = turn.info
    except IndexError:
        return None
    status = "cancelled" if turn.is_cancelled else info.status
    return _active(info, status, journal.said("text"), journal.said("reasoning"))


def active_elsewhere(log: SessionLog) -> ActiveTurn | None:
    """The turn that another owner has open, by what is on record: of an answer, that is its newest checkpoint."""
    opened, is_closed = newest_opening(log.of_kinds("turn_opened", "turn_closed", "turn_resumed", reverse=True))
    if opened is None or is_closed:
        return None
    records = list(log.records(opened.n))
    checkpoint = unfinished_stream(reversed(records))
    body = None if checkpoint is None else checkpoint.body
    said = [Message("assistant", (*body.message.parts, *body.fragments))] if isinstance(body, StreamCheckpoint) else []
    reasons = [part for message in said for part in message.parts if isinstance(part, Reasoning)]
    info = turns_of(records)[0]
    return _active(info, info.status, "".join(map(text_of, said)), "".join(part.text for part in reasons))


def _active(info: TurnInfo, status: str, text: str, reasoning: str) -> ActiveTurn:
    return ActiveTurn(info.id, info.started, info.input, status, info.calls, text, reasoning)
