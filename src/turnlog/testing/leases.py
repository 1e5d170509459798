"""Checks of leases: who may write to a session. A part of `check_store`; and losing an owner, for tests."""

from __future__ import annotations

import threading

from ..errors import SessionBusy, SessionIdError, StoreError
from ..log.store import Leased, Store
from ..session.session import Session
from .probing import raises


def check_leases(store: Store) -> None:
    """One owner at a time has a session, or several that all share it; a lease that is closed is free at once."""
    raises(SessionIdError, "a lease of a bad id", store.lease, "x" * 201)
    first = store.lease("a")  # before such a session exists
    assert (first.session_id, first.alone, first.is_ours) == ("a", True, True), "a lease that nobody else has"
    first.check()
    for shared in (False, True):
        error = raises(SessionBusy, f"a lease of a session that another has, shared: {shared}", _take, store, shared)
        assert error.process and error.since, f"the error does not say who has the session: {error}"
    store.lease("b").close()  # another session is free
    store.create("a")
    raises(SessionBusy, "deleting a session that somebody has", store.delete, "a")
    assert store.info("a").id == "a", "a session that somebody has was deleted"
    waiting = _Waiting(store)
    first.close()
    first.close()
    second = waiting.lease()
    assert second.alone and not first.is_ours, "who waited is not the only owner"
    raises(StoreError, "the check of a lease that is closed", first.check)
    second.close()

    third = store.lease("a", shared=True)
    assert third.alone, "who shares a session that nobody has is not alone"
    raises(SessionBusy, "a lease before who came first lets others in", _take, store, True)
    third.share()
    fourth = store.lease("a", shared=True)
    assert not third.alone and not fourth.alone, "of two who share a session, one is alone"
    fourth.share()
    raises(SessionBusy, "a lease of a session that others share", _take, store, False)
    third.close()
    raises(SessionBusy, "a lease of a session that another still shares", _take, store, False)
    fourth.close()
    last = store.lease("a")
    assert last.alone, "a session that nobody has any more is not given to one alone"
    last.close()
    store.delete("a")
    store.lease("a").close()  # deleting gives the lease back


def _take(store: Store, shared: bool) -> None:
    store.lease("a", shared=shared).close()


class _Waiting:
    """A thread that waits for the lease of session `a`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()

    def _wait(self) -> None:
        self._found = self._store.lease("a", wait=60)

    def lease(self) -> Leased:
        self._thread.join()
        return self._found


# -- losing the owner of a session, as `kill -9` would, without a process of its own ---------------


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
