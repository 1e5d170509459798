"""A clock that is set back: sessions that were written to just now do not look old."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

import turnlog
from turnlog.log.records import Note
from turnlog.log.store import Draft, Store
from turnlog.stores import FilesStore, Limits, MemoryStore, SqliteStore, open_store

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda path: MemoryStore(),
    "sqlite": lambda path: SqliteStore(path / "s.db"),
    "files": lambda path: FilesStore(path / "folder"),
    "sealed": lambda path: open_store(path / "s.db", key=b"k" * 32),
}


@pytest.mark.parametrize("kind", [*STORES, "postgres"])
def test_updated_never_goes_back(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A session that is written to while the clock is wrong, listed as old, and collected although it is alive."""
    place = request.getfixturevalue("postgres").new_place() if kind == "postgres" else ""
    with closing(open_store(place) if place else STORES[kind](tmp_path)) as store:
        store.create("s")
        store.create("t")
        store.append("s", [Draft(Note("now"))])
        before = store.info("s").updated
        with patch("turnlog.log.store.time_ns", lambda: int(datetime(2001, 1, 1, tzinfo=UTC).timestamp()) * 10**9):
            [record] = store.append("s", [Draft(Note("then"))])
            assert record.time.startswith("2001") and store.info("s").updated == before
            store.append("t", [Draft(Note("then"))])
        assert {info.updated >= info.created for info in store.sessions()} == {True}
        assert turnlog.collect(store, Limits(max_age=timedelta(days=1))).gone == ()
        assert store.verify() == []
        last = store.append("s", [Draft(Note("again"))])[0]
        assert store.info("s").updated == last.time >= before


def test_a_lost_head_of_a_log_is_no_lost_time(tmp_path: Path) -> None:
    """A crash between the write of a record and that of the head, after which the session looks old."""
    with closing(FilesStore(tmp_path / "folder")) as store:
        store.create("s")
        store.append("s", [Draft(Note("now"))])
        before, head = store.info("s").updated, (tmp_path / "folder/sessions/s.head").read_bytes()
        store.append("s", [Draft(Note("then"), "2001-01-01T00:00:00.000Z")])
        (tmp_path / "folder/sessions/s.head").write_bytes(head)
        assert store.info("s").updated == before and store.info("s").records == 2
