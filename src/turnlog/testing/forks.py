"""Checks of forks, and of deleting sessions that have forks. Part of `check_store`."""

from __future__ import annotations

from ..errors import Conflict, InputError, SessionNotFound
from ..log.records import Note
from ..log.store import Draft, Store
from .probing import raises, said, texts


def check_forks(store: Store) -> None:
    """A fork begins with the records of its parent and then has its own; the same holds for forks of forks."""
    store.create("a")
    store.append("a", [said("a1"), said("a2"), Draft(Note("n")), said("a4")])
    fork = store.fork("a", "b", at=3, title="B")
    assert (fork.id, fork.title, fork.parent, fork.parent_records) == ("b", "B", "a", 3), f"fork returned {fork}"
    assert (fork.records, fork.messages) == (3, 2), f"a fork counts what it shares: {fork}"
    assert store.info("b") == fork, "info differs from what fork returned"
    assert [record.n for record in store.append("b", [said("b4"), said("b5")])] == [4, 5], "numbers go on"
    store.append("a", [said("a5")])
    store.fork("b", "c", at=2)
    store.fork("b", "d")
    store.append("d", [said("d6")])
    store.fork("d", "e", at=5)
    store.append("e", [said("e6")])
    store.fork("a", "z", at=0)
    wanted = {
        "a": ["a1", "a2", "a4", "a5"],
        "b": ["a1", "a2", "b4", "b5"],
        "c": ["a1", "a2"],
        "d": ["a1", "a2", "b4", "b5", "d6"],
        "e": ["a1", "a2", "b4", "b5", "e6"],
        "z": [],
    }
    for session, expected in wanted.items():
        found = texts(store, session)
        assert found == expected, f"fork {session!r} has {found}, not {expected}"
        back = [record.n for record in store.read(session, reverse=True)]
        assert back == list(range(store.info(session).records, 0, -1)), f"fork {session!r} read backwards"
    assert [record.n for record in store.read("e", first=3, last=6)] == [3, 4, 5, 6], "a range across the boundary"
    assert store.info("e").messages == 5, "messages of a fork of a fork"
    for at in (-1, 6, True, 2.0, "2"):  # True equals 1, and would be stored as True
        raises(InputError, f"fork at {at!r} of 5 records", store.fork, "a", "f", at=at)
    raises(SessionNotFound, "fork of no session", store.fork, "y", "f")
    assert store.verify() == [], "verify found damage in forks"


def check_delete(store: Store) -> None:
    """A deleted session no longer exists, its forks are complete, and its id can be used for a new, empty session."""
    store.create("a")
    store.append("a", [said(f"a{n}") for n in range(1, 6)])
    store.fork("a", "b", at=3)
    store.append("b", [said("b4")])
    store.fork("b", "c", at=2)
    conflict = raises(Conflict, "delete, expected too low", store.delete, "a", expected=4)
    assert (conflict.expected, conflict.actual) == (4, 5), f"the conflict says {conflict}"
    assert texts(store, "a") == [f"a{n}" for n in range(1, 6)], "a refused delete took something away"
    store.delete("a", expected=5)
    for use in (store.info, store.read, store.delete, lambda id: store.append(id, [said("x")]), store.verify):
        raises(SessionNotFound, "use of a deleted session", use, "a")
    store.delete("a", missing_ok=True)
    assert sorted(info.id for info in store.sessions()) == ["b", "c"], "a deleted session is listed"
    assert texts(store, "b") == ["a1", "a2", "a3", "b4"], "a fork lost records with its parent"
    store.create("a")
    assert texts(store, "a") == [], "a new session has records of a deleted one"
    store.append("a", [said("new")])
    store.delete("b")
    assert texts(store, "c") == ["a1", "a2"], "a fork lost records with its parents"
    assert store.verify() == [], "verify found damage after deleting"
    store.append("c", [said("c3")])
    store.delete("c")
    assert texts(store, "a") == ["new"], "deleting forks touched another session"
    assert [info.id for info in store.sessions()] == ["a"], "sessions after deleting"
    assert store.verify() == [], "verify found damage after deleting forks"
