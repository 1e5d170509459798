"""Losing the owner of a session, as `kill -9` would, without a process of its own."""

from __future__ import annotations

from ..session.session import Session


def crash(session: Session) -> None:
    """Lose the owner of a session in the midst of what it does: its locks are free, as when its process is killed, and
    nothing is recorded. The session cannot be used any more; whoever opens it next finds what was left unfinished.
    """
    session._services.forget()
    session._watches.forget()
    session._turn.lose()
    for lock in (session._lease, session._hold):
        if lock is not None:
            lock.close()
