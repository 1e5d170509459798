"""Labels of sessions: set, changed, searched by, and carried along, in every kind of store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import turnlog
from turnlog.cli import main
from turnlog.errors import InputError
from turnlog.log.store import Store
from turnlog.redaction import RedactingStore, Redactor
from turnlog.stores import FilesStore, MemoryStore, SqliteStore, copy_store, open_store, salvage

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda path: MemoryStore(),
    "sqlite": lambda path: SqliteStore(path / "s.db"),
    "files": lambda path: FilesStore(path / "folder"),
    "sealed": lambda path: open_store(path / "s.db", key=b"k" * 32),
    "redacting": lambda path: RedactingStore(SqliteStore(path / "s.db"), Redactor()),
}


@pytest.fixture(params=[*STORES, "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    on_server = request.param == "postgres"
    made = open_store(request.getfixturevalue("postgres").new_place()) if on_server else STORES[request.param](tmp_path)
    with closing(made):
        yield made


def names(store: Store, **where: str) -> list[str]:
    """The ids of the sessions with these labels, sorted."""
    return sorted(info.id for info in store.sessions(where=where))


def test_sessions_are_found_by_their_labels(store: Store) -> None:
    """A session that is not found by its user, is found by another, or loses a label when another is set."""
    for n, user in enumerate(("ann", "bob", "ann")):
        with turnlog.open(f"s{n}", store=store, labels={"user": user, "project": "x"}) as session:
            session.user("hi")
    turnlog.open("none", store=store).user("hi")
    assert names(store, user="ann") == ["s0", "s2"] and names(store, user="bob", project="x") == ["s1"]
    assert names(store, user="cy") == [] and names(store) == ["none", "s0", "s1", "s2"]
    assert [info.id for info in store.sessions(where={"project": "x"}, limit=1)] == ["s2"]
    with turnlog.open("s0", store=store) as session:
        assert session.label({"user": "", "team": "née ☂"}) == {"project": "x", "team": "née ☂"} == session.log.labels
        before = len(session.history())
        session.label({"project": "x"})
        assert len(session.history()) == before
        assert "née" not in str(session.view())
    assert names(store, user="ann") == ["s2"] and names(store, team="née ☂") == ["s0"]


def test_labels_go_along(store: Store, tmp_path: Path) -> None:
    """A fork, a copy or a salvaged session that belongs to nobody."""
    turnlog.open("s", store=store, labels={"user": "ann"}).user("hi")
    store.fork("s", "fork")
    salvage(store, "s", "saved")
    target = MemoryStore()
    copy_store(store, target)
    assert names(store, user="ann") == names(target, user="ann") == ["fork", "s", "saved"]


@pytest.mark.parametrize("where", ["", (), [], False, 0, {"": ""}, {"": "ann"}, {"user": None}, "user=ann"], ids=repr)
def test_only_none_and_an_empty_dict_ask_for_all_sessions(store: Store, where: Any) -> None:
    """A service that passes on an empty text, and lists the sessions of all users."""
    turnlog.open("s", store=store, labels={"user": "ann"}).close()
    uses: list[Callable[[], object]] = [
        lambda: store.sessions(where=where),
        lambda: store.search("x", where=where),
        lambda: turnlog.recall_tool("openai-chat", where=where),
    ]
    for use in uses:
        with pytest.raises(InputError, match=r"^where|label"):
            use()
    assert [info.id for info in store.sessions(where={})] == [info.id for info in store.sessions()] == ["s"]


@pytest.mark.parametrize("labels", [{"user": 5}, {1: "a"}, "user", ["a"], {"": "a"}])
def test_labels_are_texts(labels: Any) -> None:
    """A value that is found by no search; or a session that is made although its labels cannot be set."""
    store = MemoryStore()
    with pytest.raises(InputError, match="label"):
        turnlog.open("s", store=store, labels=labels)
    assert store.sessions() == []


def test_ls_searches_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command line by which nobody finds a user's sessions."""
    monkeypatch.setenv("TURNLOG_STORE", str(tmp_path / "s.db"))
    for user in ("ann@example.com", "bob"):
        with turnlog.open(f"of {user}", store=tmp_path / "s.db", labels={"user": user}) as session:
            session.user("hi")
    assert main(["ls", "--label", "user=ann@example.com"]) == 0
    out = capsys.readouterr().out
    assert "of ann@example.com" in out and "user=ann@example.com" in out and "bob" not in out
    assert main(["ls", "--label", "user=cy"]) == 0
    assert "no session has this label" in capsys.readouterr().err
    assert main(["ls", "--label", "user"]) == 2
