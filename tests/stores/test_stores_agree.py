"""Stores on disk do what the memory store does, whatever is asked of them in whatever order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from store_parts import said, texts

from draws import examples
from postgres_server import PostgresServer
from turnlog.errors import TurnlogError
from turnlog.log.codec import encode_record
from turnlog.log.records import Record
from turnlog.log.store import Draft, Store
from turnlog.stores import FilesStore, MemoryStore, SqliteStore, open_store

IDS = st.sampled_from(["a", "b", "B", "c", "d"])
NUMBER = st.integers(0, 9)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), IDS),
        st.tuples(st.just("append"), IDS, st.integers(0, 4), st.none() | NUMBER),
        st.tuples(st.just("fork"), IDS, IDS, st.none() | NUMBER),
        st.tuples(st.just("delete"), IDS),
        st.tuples(st.just("pack"), IDS),
        st.tuples(st.just("rewrite"), IDS, st.integers(1, 9)),
        st.tuples(st.just("read"), IDS, NUMBER, st.none() | NUMBER, st.booleans()),
        st.tuples(st.just("search"), st.sampled_from(["0", "1*", '"3 1"', "none"]), st.none() | IDS),
    ),
    max_size=40,
)


def _do(store: Store, place: int, step: tuple[object, ...]) -> object:
    """What a step comes to: what was returned, times apart, or the name of the error."""
    try:
        match step:
            case ("create", str(name)):
                return store.create(name).id
            case ("append", str(name), int(count), expected):
                drafts = [said(f"{place}.{index}") for index in range(count)]
                return texts(store.append(name, drafts, expected=expected))  # type: ignore[arg-type]
            case ("fork", str(name), str(new), at):
                return store.fork(name, new, at=at).messages  # type: ignore[arg-type]
            case ("delete", str(name)):
                return store.delete(name)
            case ("pack", str(name)):
                return store.pack(name) and None  # type: ignore[attr-defined]
            case ("rewrite", str(name), int(n)):
                changed = encode_record(Record(n, "2026", said(f"changed {place}").body))
                return store.rewrite(name, {n: changed})
            case ("read", str(name), int(first), last, bool(reverse)):
                return texts(store.read(name, first=first, last=last, reverse=reverse))  # type: ignore[arg-type]
            case ("search", str(query), session):
                return [(hit.session, hit.record, hit.snippet) for hit in store.search(query, session=session)]  # type: ignore[attr-defined]
        raise AssertionError(step)
    except TurnlogError as error:
        return type(error).__name__


def _whole(store: Store) -> list[tuple[object, ...]]:
    return sorted(
        (info.id, info.records, info.messages, info.parent, info.parent_records, texts(store.read(info.id)))
        for info in store.sessions()
    )


@given(STEPS)
@settings(max_examples=examples(40, 1_000))
def test_any_order_of_steps(steps: list[tuple[object, ...]]) -> None:
    """Forks, deletes and appends that leave the wrong records behind, anywhere, or damage of their own making."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder, "s.db"))
        try:
            _same_as_in_memory(store, steps)
            with store._database.reading() as db:
                left = db.execute("select 'record', id from records union all select 'session', no from sessions")
                assert left.fetchall() == []
                assert db.execute("select * from search('0 OR 1 OR 2 OR 3')").fetchall() == []
                assert db.execute("select * from packs").fetchall() == []
        finally:
            store.close()


@given(STEPS)
@settings(max_examples=examples(30, 1_000))
def test_any_order_of_steps_in_files(steps: list[tuple[object, ...]]) -> None:
    """The same for the store of files; and files that stay behind when all is deleted."""
    with tempfile.TemporaryDirectory() as folder:
        store = FilesStore(folder + "/s")
        try:
            _same_as_in_memory(store, steps)
            assert list(Path(folder, "s", "sessions").iterdir()) == []
        finally:
            store.close()


@pytest.mark.slow
@given(steps=STEPS)
@settings(max_examples=examples(10, 1_000), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_order_of_steps_on_a_server(postgres: PostgresServer, steps: list[tuple[object, ...]]) -> None:
    """The same for PostgreSQL; and rows that stay behind when all is deleted."""
    place = postgres.new_place()
    store = open_store(place)
    try:
        _same_as_in_memory(store, steps)
        assert (
            postgres.run("select log from turnlog_records union all select no from turnlog_sessions", url=place) == []
        )
    finally:
        store.close()


@pytest.mark.parametrize("place", ["s.db", "files:s"])
@given(steps=STEPS)
@settings(max_examples=examples(30, 1_000))
def test_any_order_of_steps_in_encrypted_stores(place: str, steps: list[tuple[object, ...]]) -> None:
    """Packs that forks, deletes or rewrites tear apart, and records that are looked for under another session's key."""
    with tempfile.TemporaryDirectory() as folder:
        kind, name = ("files:", "s") if place.startswith("files:") else ("", place)
        store = open_store(f"{kind}{Path(folder, name)}", key=bytes(32))
        try:
            _same_as_in_memory(store, steps)
        finally:
            store.close()


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(("make", "fork", "fork", "delete")), NUMBER, NUMBER), max_size=12))
@settings(max_examples=examples(40, 1_000))
def test_a_search_tells_sessions_in_one_order(steps: list[tuple[str, int, int]]) -> None:
    """What forks read of a deleted session found where that was made, not where the oldest of them was: with a limit,
    other hits in one kind of store than in another."""
    with tempfile.TemporaryDirectory() as folder:
        stores = [MemoryStore(), SqliteStore(Path(folder, "s.db")), FilesStore(folder + "/s")]
        for store in stores:
            made: list[str] = []
            for place, (kind, which, at) in enumerate(steps):
                if kind == "delete" and made:
                    store.delete(made.pop(which % len(made)))
                    continue
                if kind == "fork" and made:
                    parent = made[which % len(made)]
                    store.fork(parent, f"s{place}", at=min(at, store.info(parent).records))
                else:
                    store.create(f"s{place}")
                made.append(f"s{place}")
                store.append(f"s{place}", [said("word")] * 3)
        found = [[(hit.session, hit.record) for hit in store.search("word")] for store in stores]
        for store in stores:
            store.close()
        assert found[1:] == found[:1] * 2


@pytest.mark.parametrize("place", [":memory:", "s.db", "files:s"])
def test_a_record_that_is_copied_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """A record that was read out of one session and appended to another with its bytes, taken for one that both share:
    not found in the second, and changed in both when one of them is scrubbed."""
    monkeypatch.chdir(tmp_path)
    store = open_store(place)
    for name in ("a", "b"):
        store.create(name)
    store.append("a", [said("apple")])
    store.append("b", [Draft(record.body, record.time, record.raw) for record in store.read("a")])
    assert [hit.session for hit in store.search("apple")] == ["b", "a"]  # type: ignore[attr-defined]
    store.rewrite("b", {1: encode_record(Record(1, "2026", said("pear").body))})
    assert [texts(store.read(name)) for name in ("a", "b")] == [["apple"], ["pear"]]
    store.close()


def _same_as_in_memory(store: Store, steps: list[tuple[object, ...]]) -> None:
    """Takes the steps in both, compares what is there, and deletes all of it."""
    model = MemoryStore()
    for place, step in enumerate(steps):
        assert _do(store, place, step) == _do(model, place, step), step
    assert _whole(store) == _whole(model)
    assert store.verify() == []
    for info in store.sessions():
        store.delete(info.id)
