"""A store that is copied into another: what is said of its sessions beside their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from turnlog.log import Draft, Store
from turnlog.records import Note
from turnlog.stores import MemoryStore, copy_store, open_store

STORES: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: open_store(folder / "s.db"),
    "files": lambda folder: open_store(f"files:{folder}/s"),
    "memory": lambda folder: MemoryStore(),
    "sealed": lambda folder: open_store(folder / "s.db", key=b"k" * 32),
}


@contextmanager
def _stores(source: str, target: str, folder: Path) -> Iterator[tuple[Store, Store]]:
    """Two stores; the first has three sessions, of which the first and the fork of it are marked to be kept."""
    (folder / "from").mkdir()
    (folder / "to").mkdir()
    here, there = STORES[source](folder / "from"), STORES[target](folder / "to")
    for name in ("kept", "other"):
        here.create(name)
        here.append(name, [Draft(Note("n", name)), Draft(Note("n", "more"))])
    here.fork("kept", "fork")
    here.keep("kept")
    here.keep("fork")
    try:
        yield here, there
    finally:
        here.close()
        there.close()


@pytest.mark.parametrize("target", STORES)
@pytest.mark.parametrize("source", STORES)
def test_what_is_kept_is_kept_in_the_copy(source: str, target: str, tmp_path: Path) -> None:
    """Who encrypts a store by copying it, and deletes the old one, would have `gc` delete what they had it keep."""
    with _stores(source, target, tmp_path) as (here, there):
        copy_store(here, there)
        assert there.inventory().kept == frozenset({"kept", "fork"})


def test_what_is_there_already_is_kept_or_not_as_it_is_there(tmp_path: Path) -> None:
    """A second copy would mark again what somebody has let go in the new store since."""
    with _stores("sqlite", "files", tmp_path) as (here, there):
        copy_store(here, there)
        there.keep("kept", kept=False)
        copy_store(here, there)
        assert there.inventory().kept == frozenset({"fork"})


def test_what_was_interrupted_is_kept_when_it_goes_on(tmp_path: Path) -> None:
    """A copy that was killed after it had made a session, and not marked it, would leave it to `gc` for good."""
    with _stores("sqlite", "sqlite", tmp_path) as (here, there):
        there.create("kept")
        copy_store(here, there)
        assert there.inventory().kept == frozenset({"kept", "fork"})
