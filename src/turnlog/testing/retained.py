"""Checks of what retention needs: the sessions in use, the readers of records, and their sizes. Part of
`check_store`."""

from __future__ import annotations

import threading

from ..errors import SessionIdError, SessionNotFound
from ..log.messages import sha256_hex
from ..log.store import Held, Store
from .probing import raises, said, texts


def check_holds(store: Store) -> None:
    """A session is in use while anybody holds its lock; an exclusive lock makes others wait."""
    assert _in_use(store) in (set(), None), "a new store has sessions in use"
    raises(SessionIdError, "a hold of a bad id", store.hold, "x" * 201)
    if _in_use(store) is None:  # this system or disk cannot report it
        return
    first, second = _lock(store, "a"), _lock(store, "a")  # before such a session exists
    store.create("a")
    assert _in_use(store) == {"a"}, "a locked session is not in use"
    assert store.hold("a", alone=True) is None, "a session that others hold was given to one alone"
    first.close()
    first.close()
    assert _in_use(store) == {"a"}, "a session is not in use though one of two holds it still"
    second.close()
    assert _in_use(store) == set(), "a session that nobody holds any more is in use"
    alone = _lock(store, "a", alone=True)
    assert store.hold("a", alone=True) is None, "two have a session alone"
    entered = threading.Event()

    def enter() -> None:
        hold = store.hold("a")
        entered.set()
        assert hold is not None
        hold.close()

    waiting = threading.Thread(target=enter)
    waiting.start()
    assert not entered.is_set(), "a session was entered while another had it alone"
    alone.close()
    waiting.join()
    assert entered.is_set(), "who waited for a session never got it"
    assert _in_use(store) == set(), "a hold outlived its end"


def check_inventory(store: Store) -> None:
    """The inventory lists the readers of all records, the blobs that they need, and the kept sessions."""
    small, large, _ = (store.put_blob(letter * size) for letter, size in ((b"s", 10), (b"l", 100_000), (b"x", 7)))
    store.create("a")
    store.append("a", [said("a1"), said("a2", blob=small), said("a3", blob=large), said("a4")])
    store.fork("a", "b", at=3)
    store.append("b", [said("b4")])
    store.create("c")
    found = store.inventory()
    assert sorted(found.blobs.values()) == [7, 10, 100_000], f"blobs are {found.blobs}"
    assert _owners(store) == {("a", "ab"), ("b", "b")}, f"pieces are {found.pieces}"
    assert _named(store) == {10, 100_000}, "the blobs that records name"
    assert all(piece.size > 0 for piece in found.pieces if piece.owner != "c"), "records take no room"
    store.delete("a")
    assert _owners(store) == {("", "b"), ("b", "b")}, "the records of a deleted session that a fork reads"
    assert _named(store) == {10, 100_000}, "the blobs of a deleted session that a fork reads"
    store.keep("b")
    store.keep("b")
    store.keep("c")
    store.keep("c", kept=False)
    assert store.inventory().kept == {"b"}, "sessions that are kept"
    raises(SessionNotFound, "keep of no session", store.keep, "a")
    store.delete("b")
    store.create("b")
    assert store.inventory().kept == frozenset(), "a new session is kept because one of its name was"
    assert store.verify() == [], "verify found damage after keeping and deleting"


def check_reclaim(store: Store) -> None:
    """Deleting frees disk space, and changes nothing else."""
    empty = store.used()
    for name in ("a", "b"):
        store.create(name)
        store.append(name, [said(_long(name, n)) for n in range(200)])
    full = store.used()
    assert full - empty > 600_000, f"400 records of 4 kB take {full - empty} bytes"
    store.delete("a")
    store.reclaim()
    assert store.used() - empty < (full - empty) * 0.6, "half of what was there is gone, and its room is not"
    assert texts(store, "b") == [_long("b", n) for n in range(200)], "reclaiming changed what was said"
    assert store.verify() == [], "verify found damage after reclaiming"


def _lock(store: Store, session_id: str, *, alone: bool = False) -> Held:
    hold = store.hold(session_id, alone=alone)
    assert hold is not None, f"session {session_id!r} could not be locked"
    return hold


def _in_use(store: Store) -> set[str] | None:
    found = store.inventory().in_use
    return None if found is None else set(found)


def _owners(store: Store) -> set[tuple[str, str]]:
    """The readers of the records that each session owns, regardless of how many pieces these are in."""
    readers: dict[str, set[str]] = {}
    for piece in store.inventory().pieces:
        if piece.readers and piece.size:
            readers.setdefault(piece.owner, set()).update(piece.readers)
    return {(owner, "".join(sorted(found))) for owner, found in readers.items()}


def _named(store: Store) -> set[int]:
    """The sizes of the blobs that records refer to; a store may use other names for them."""
    found = store.inventory()
    return {found.blobs[name] for piece in found.pieces for name in piece.blobs}


def _long(name: str, n: int) -> str:
    """A text of 4 kB that cannot be compressed to less than half."""
    return "".join(sha256_hex(f"{name} {n} {line}".encode()) for line in range(64))
