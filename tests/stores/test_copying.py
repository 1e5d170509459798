"""A store is copied into another, whatever became of the sessions in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from store_parts import filled, said, texts

from turnlog.log.store import Store
from turnlog.stores import FilesStore, MemoryStore, SqliteStore, copy_store, open_store

Opener = Callable[[Path], Store]
STORES: tuple[Opener, ...] = (
    lambda folder: MemoryStore(),
    lambda folder: SqliteStore(folder / "s.db"),
    lambda folder: FilesStore(folder / "logs"),
    lambda folder: open_store(folder / "sealed.db", key=bytes(32)),
)


@pytest.fixture(params=(*STORES, None), ids=("memory", "sqlite", "files", "encrypted", "postgres"))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opener = request.param
    place = tmp_path if opener else request.getfixturevalue("postgres").new_place()
    with closing(opener(place) if opener else open_store(place)) as store:
        yield store


def told(store: Store) -> dict[str, list[str]]:
    """What every session says."""
    return {info.id: texts(store.read(info.id)) for info in store.sessions()}


def test_a_session_that_was_forked_back_from_its_fork_is_copied(store: Store) -> None:
    """Each is the parent of the other: a copy that looks for the first of them never ends, and fills the memory."""
    filled(store, "a", 3)
    store.fork("a", "b")
    store.delete("a")
    store.append("b", [said("b4")])
    store.fork("b", "a", at=3)
    store.fork("a", "c", at=1)
    other = MemoryStore()
    assert copy_store(store, other) == 4
    assert told(other) == told(store) == {"a": ["1", "2", "3"], "b": ["1", "2", "3", "b4"], "c": ["1"]}
    assert copy_store(store, other) == 0


@pytest.mark.parametrize("number", [2, 4])
def test_a_fork_is_copied_with_what_it_was_made_of(store: Store, number: int) -> None:
    """The words of another session in it, where what it was forked from was deleted and another has that id now."""
    filled(store, "a", 3)
    store.fork("a", "b")
    store.append("b", [said("b4")])
    store.delete("a")
    store.create("a")
    store.append("a", [said(f"other {n}") for n in range(number)])
    other = MemoryStore()
    assert copy_store(store, other) == 4 + number
    assert told(other) == told(store)
    assert other.info("b").parent == "a"
    other.delete("b")
    other.delete("a")
    filled(other, "a", 5)
    store.delete("a")
    copy_store(store, other)
    assert told(other) == {"a": ["1", "2", "3", "4", "5"], "b": ["1", "2", "3", "b4"]}


def test_what_is_kept_is_kept_in_the_copy(store: Store) -> None:
    """Sessions that `gc` was told to leave alone, deleted by the first one that is run after the move to an encrypted
    store."""
    for name in "abc":
        filled(store, name, 1)
    for name in "ab":
        store.keep(name)
    other = MemoryStore()
    copy_store(store, other)
    assert other.inventory().kept == {"a", "b"}
    store.keep("c")
    store.keep("a", kept=False)
    copy_store(store, other)
    assert other.inventory().kept == {"a", "b", "c"}  # what is there already is left alone


def test_what_was_interrupted_is_kept_when_it_goes_on(store: Store) -> None:
    """A copy that was killed after it had made a session, and not marked it, would leave it to `gc` for good."""
    filled(store, "a", 2)
    store.keep("a")
    other = MemoryStore()
    filled(other, "a", 0)
    copy_store(store, other)
    assert told(other) == {"a": ["1", "2"]}
    assert other.inventory().kept == {"a"}
