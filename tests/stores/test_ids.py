"""The session that a person means by the beginning of an id, `latest` or `-2`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.errors import SessionNotFound
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft, SessionFacts, SessionInfo
from turnlog.stores import FilesStore, MemoryStore, SqliteStore, open_store
from turnlog.stores.ids import Family, families, session_named, short_ids


def info(name: str, parent: str = "", shared: int = 0, updated: str = "") -> SessionInfo:
    """A session as it is listed."""
    return SessionInfo(name, "", "", updated, shared, 0, parent, shared)


@given(st.lists(st.text("abc.", min_size=1, max_size=7), unique_by=str.lower, max_size=12), st.data())
def test_short_ids_stand_for_one_session(names: list[str], data: st.DataObject) -> None:
    """An id that `ls` shows, and another session, or none, answers to it."""
    store = MemoryStore()
    made: list[str] = []
    for name in names:
        parent = data.draw(st.sampled_from(["", *made]))
        store.create(f"s{name}", parent=parent)
        made.append(f"s{name}")
    infos = store.sessions()
    short = short_ids(made, infos)
    assert {name: session_named(store, text) for name, text in short.items()} == {name: name for name in made}
    assert all(name.startswith(text) for name, text in short.items())


@given(st.permutations(range(6)))
def test_families_hold_each_session_once(order: list[int]) -> None:
    """A session that is in two rows, or in none; a circle of parents that never ends; a subagent as the row."""
    known = [
        info("root", updated="1"),
        info("fork", "root", 3, updated="9"),
        info("agent", "fork", updated="5"),
        info("lost", "gone", updated="4"),
        info("a", "b", updated="2"),
        info("b", "a", updated="3"),
    ]
    infos = sorted((known[i] for i in order), key=lambda each: each.updated, reverse=True)
    rows = families(infos)
    assert sorted(each.id for row in rows for each in (row.info, *row.folded)) == sorted(each.id for each in known)
    assert rows[0] == Family(known[1], (known[2], known[0])) and rows[0].updated == "9"
    assert Family(known[3]) in rows


def test_latest_is_the_first_row() -> None:
    """`show latest` that shows a subagent; a row that is not there, or an empty store, without a word."""
    store = MemoryStore()
    with pytest.raises(SessionNotFound, match="the store has no sessions"):
        session_named(store, "latest")
    for name, parent in (("one", ""), ("two", ""), ("two.agent", "two")):
        store.create(name, parent=parent, created="2026-01-01T00:00:00.000Z")
        store.append(name, [Draft(Note("x"))])
    assert [session_named(store, name) for name in ("latest", "-1", "-2", "on")] == ["two", "two", "one", "one"]
    for name, said in (("-3", "`turnlog ls` has 2 rows"), ("three", "there is no session 'three'"), ("", "''")):
        with pytest.raises(SessionNotFound, match=said):
            session_named(store, name)
    with pytest.raises(SessionNotFound, match="these ids begin with it: one; with --yes, give the whole id"):
        session_named(store, "on", exact=True)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "files", "sealed", "postgres"])
def test_facts_are_those_of_the_notes(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """A session of another agent, folder or user; or one whose labels, as an older turnlog indexed them, hide its
    agent."""
    makers = {
        "memory": lambda: MemoryStore(),
        "sqlite": lambda: SqliteStore(tmp_path / "s.db"),
        "files": lambda: FilesStore(tmp_path / "folder"),
        "sealed": lambda: open_store(tmp_path / "k.db", key=b"k" * 32),
        "postgres": lambda: open_store(request.getfixturevalue("postgres").new_place()),
    }
    with closing(makers[kind]()) as store:
        store.create("codex")
        store.append("codex", [Draft(Note("session_meta", "", {"cwd": "/work/x"}))])
        store.create("own")
        store.append("own", [Draft(Note("labels", "", {"user": "ann", "folder": "/home"}))])
        store.create("none")
        expected = {
            "codex": SessionFacts({}, "codex", "/work/x"),
            "own": SessionFacts({"user": "ann", "folder": "/home"}, "", "/home"),
            "none": SessionFacts(),
        }
        assert store.facts() == store.facts() == expected
        said = [Draft(MessageRecord(Message("user", (Text(f"{n}"),)))) for n in range(60)]
        store.append("none", [*said, Draft(Note("session_meta", "", {"cwd": "/late"}))])
        store.append("codex", [*said, Draft(Note("labels", "", {"user": "bob"}))])
        expected["codex"] = SessionFacts({"user": "bob"}, "codex", "/work/x")
        assert store.facts() == expected and store.verify() == []
        store.append("codex", [Draft(Note("labels", "", {}))])
        store.delete("own")
        assert store.facts() == {"codex": SessionFacts({}, "codex", "/work/x"), "none": SessionFacts()}


def test_entries_of_an_older_index_are_made_again(tmp_path: Path) -> None:
    """A store indexed before agents and folders were known, which never tells them."""
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        store.create("s")
        store.append("s", [Draft(Note("session_meta", "", {"cwd": "/w"}))])
        assert store.facts() == {"s": SessionFacts({}, "codex", "/w")}
        with store._database.writing() as db:
            db.execute("update labelled set labels = '{}'")
        assert store.facts() == {"s": SessionFacts({}, "codex", "/w")}
