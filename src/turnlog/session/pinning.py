"""Pins: messages that stay in every view, and that may go again."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InputError
from ..log.records import Decision
from ..log.store import RecordStore
from ..view.decisions import Rewinds

__all__ = ["pin_for", "unpins_for"]


def pin_for(store: RecordStore, session_id: str, n: int, why: str) -> Decision:
    """The decision that pins message record `n`. Raises InputError if there is no such message, or it was rewound."""
    found = list(store.read(session_id, first=n, last=n)) if isinstance(n, int) and n > 0 else []
    if not found or found[0].message is None:
        raise InputError(f"record {n!r} of session {session_id!r} is no message that could be pinned")
    if gone := Rewinds.of(store.landmarks(session_id)).by(n):
        raise InputError(f"record {n} of session {session_id!r} was taken back by decision {gone}: go back to it first")
    return Decision("pin", first=n, last=n, why=why)


def unpins_for(decisions: Mapping[int, Decision], n: int) -> list[Decision]:
    """The decisions that take back the pins of message record `n`. Raises InputError if there is none."""
    pins = [number for number, decision in decisions.items() if (decision.action, decision.first) == ("pin", n)]
    if not pins:
        raise InputError(f"record {n!r} is not pinned")
    return [Decision("undo", why="no longer pinned", supersedes=number) for number in pins]
