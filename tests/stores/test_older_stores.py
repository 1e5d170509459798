"""SQLite stores that an older turnlog wrote: nothing in them is told as damage that is none."""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from store_parts import said, texts

from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft
from turnlog.stores import SqliteStore
from turnlog.stores.records import COLUMNS, SessionRow, seal
from turnlog.stores.sqlite.schema import SCHEMA_VERSION, upgrade
from turnlog.stores.sqlite.store import Appender

SYSTEM = Draft(MessageRecord(Message("system", (Text("Be brief."),))))


def _written(path: Path, version: int, *afterwards: str) -> None:
    """A store of an older version with system text and a word of the user's, and statements carried out in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        upgrade(db, str(path), to=version)
        db.execute("pragma journal_mode = wal")
        row = SessionRow(1, "s", "T", "2026", "2026", 0, 0, bytes(32), "", 0, None)
        marks = ", ".join("?" for _ in row)
        db.execute(f"insert into sessions ({COLUMNS}, seal) values ({marks}, ?)", (*row, seal(row)))
        Appender().append(db, "s", [SYSTEM, said("go")], None)
        for statement in afterwards:
            db.execute(statement)


@pytest.mark.parametrize("version", [1, 2])
def test_system_text_of_the_first_versions_is_no_damage(tmp_path: Path, version: int) -> None:
    """`turnlog verify`, which only looks, tells every session with system text as damaged."""
    path = tmp_path / "s.db"
    _written(path, version, "update records set kind = 'message'")  # as they had it
    for read_only in (True, False):
        with closing(SqliteStore(path, read_only=read_only)) as store:
            assert (store.verify(), texts(store.read("s"))) == ([], ["Be brief.", "go"])
            assert [record.n for record in store.of_kinds("s", ("system",))] == [1]


def test_a_search_index_that_will_be_dropped_is_no_damage(tmp_path: Path) -> None:
    """For an hour version 10 had an index with a column of another name: its stores, told as damaged."""
    path = tmp_path / "s.db"
    index = "fts5(text, role, tools, content = '', columnsize = 0, tokenize = 'ascii')"
    _written(path, 10, "drop table search", f"create virtual table search using {index}")
    for read_only in (True, False):
        with closing(SqliteStore(path, read_only=read_only)) as store:
            assert (store.verify(), [hit.record for hit in store.search("go")]) == ([], [2])


@pytest.mark.parametrize("version", [*range(1, SCHEMA_VERSION)])
def test_labels_are_found_in_older_stores(tmp_path: Path, version: int) -> None:
    """A store made before there was an index of labels, in which users lose their sessions or get those of others."""
    path = tmp_path / "s.db"
    _written(path, version, *["update records set kind = 'message'"] * (version < 3))  # as they had it
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        Appender().append(db, "s", [Draft(Note("labels", "", {"user": "ann"})), said("ran")], None)
    before = path.read_bytes()
    for read_only in (True, False):
        with closing(SqliteStore(path, read_only=read_only)) as store:
            for user, wanted in (("ann", ["s"]), ("bob", []), ("", [])):
                where = {"user": user}
                assert [info.id for info in store.sessions(where=where)] == wanted
                assert [hit.session for hit in store.search("ran", where=where)] == wanted
            assert (store.verify(), texts(store.read("s"))) == ([], ["Be brief.", "go", "ran"])
        assert (path.read_bytes() == before) or not read_only


def test_an_index_of_labels_notices_what_it_was_not_told(tmp_path: Path) -> None:
    """A process of an older version that still runs changes labels, and a user goes on to see the session; or an entry
    that was damaged is believed."""
    path = tmp_path / "s.db"
    with closing(SqliteStore(path)) as store:
        store.create("s")
        store.append("s", [Draft(Note("labels", "", {"user": "ann"}))])
        assert len(store.sessions(where={"user": "ann"})) == 1
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            Appender().append(db, "s", [said("go"), Draft(Note("labels", "", {"user": "bob"})), said("ran")], None)
        assert store.sessions(where={"user": "ann"}) == [] and len(store.sessions(where={"user": "bob"})) == 1
        assert store.verify() == []
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("update labelled set labels = replace(labels, 'bob', 'ann')")
        assert ["index of labels was damaged" in problem.what for problem in store.verify()] == [True]
        assert store.sessions(where={"user": "ann"}) == [] and store.verify() == []
        store.append("s", [said("x")])
        assert len(store.sessions(where={"user": "bob"})) == 1
        store.delete("s")
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("select * from labelled").fetchall() == []


def test_a_damaged_index_of_labels_is_done_without(tmp_path: Path) -> None:
    """A bad page under an index, which can be derived, keeps all users from their sessions."""
    path = tmp_path / "s.db"
    with closing(SqliteStore(path)) as store:
        for user in ("ann", "bob"):
            store.create(user)
            store.append(user, [Draft(Note("labels", "", {"user": user})), said("go")])
        assert len(store.sessions(where={"user": "ann"})) == 1
    with closing(sqlite3.connect(path)) as db:
        size = db.execute("pragma page_size").fetchone()[0]
        page = db.execute("select rootpage from sqlite_master where name = 'labelled'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    for read_only in (True, False):
        with closing(SqliteStore(path, read_only=read_only)) as store:
            assert [info.id for info in store.sessions(where={"user": "ann"})] == ["ann"]
            assert [hit.session for hit in store.search("go", where={"user": "bob"})] == ["bob"]
            assert store.verify() != []


def test_upgrades_are_only_added_to() -> None:
    """A step that is edited, or a condition that stands in one: stores that took it before are others than those that
    take it now, and no step leads from the one to the other."""
    steps = sys.modules["turnlog.stores.sqlite.schema"]._UPGRADES
    digests = [hashlib.sha256(repr(step).encode()).hexdigest()[:10] for step in steps]
    assert digests[:13] == [
        "55355bb6a0", "7e4dcd3568", "9cdd60a7df", "e8a1002c21", "87bd10748c", "7a36f11a73", "96d2980f75", "28468da3c4",
        "8366aa53c4", "7dcb5de5f0", "fa690acae3", "fafa56c058",
        "e27cdc615a",
    ]  # fmt: skip
    assert len(digests) == SCHEMA_VERSION
