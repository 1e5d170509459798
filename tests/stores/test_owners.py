"""Searches among the sessions with some labels: nothing of anybody else, all of one's own, in every kind of store."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_parts import said

import turnlog
from turnlog.errors import InputError
from turnlog.log.messages import text_of
from turnlog.log.store import Draft, Store
from turnlog.memory import recall
from turnlog.redaction import RedactingStore, Redactor
from turnlog.stores import FilesStore, MemoryStore, PastDamage, open_store
from turnlog.stores.labels import labels_note

WORDS = ("apple", "boat", "cough")
IDS = st.sampled_from(["s0", "s1", "s2", "s3"])
OWNERS = st.sampled_from(["", "ann", "bob"])
QUESTIONS = st.tuples(
    st.just("ask"),
    st.lists(st.sampled_from([*WORDS, "app*", "none"]), min_size=1, max_size=3).map(" ".join),
    st.dictionaries(st.sampled_from(["user", "team"]), OWNERS, max_size=2),
    st.none() | IDS,
    st.none() | st.integers(1, 3),
)
STEPS = st.one_of(
    st.tuples(st.just("create"), IDS, OWNERS),
    st.tuples(st.just("say"), IDS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)),
    st.tuples(st.just("label"), IDS, st.sampled_from(["user", "team"]), OWNERS),
    st.tuples(st.just("fork"), IDS, IDS, st.integers(0, 6)),
    st.tuples(st.just("delete"), IDS),
    QUESTIONS,
)


class Said(NamedTuple):
    """A record as the model of a store has it: a number of its own, its text, and the labels that it sets."""

    own: int
    text: str
    labels: dict[str, str] | None


class Model:
    """What stores must find, from lists alone: the sessions in the order in which they were made."""

    def __init__(self) -> None:
        self.sessions: dict[str, list[Said]] = {}
        self._made = 0

    def add(self, session: str, text: str, labels: dict[str, str] | None = None) -> None:
        """Append a record."""
        self._made += 1
        self.sessions[session].append(Said(self._made, text, labels))

    def labels(self, session: str) -> dict[str, str]:
        """The labels in force."""
        return next((one.labels for one in reversed(self.sessions[session]) if one.labels is not None), {})

    def asked(self, where: dict[str, str]) -> list[str]:
        """The sessions with these labels, the oldest first."""
        return [
            name
            for name in self.sessions
            if all(self.labels(name).get(key, "") == value for key, value in where.items())
        ]

    def hits(self, query: str, where: dict[str, str], session: str | None) -> list[tuple[str, int]]:
        """The session and number of each record with all words, the newest first."""
        seen: set[int] = set()
        found = []
        for name in self.asked(where) if session is None else {session} & {*self.asked(where)}:
            for n, one in enumerate(self.sessions[name], 1):
                if one.own not in seen and all(_is_in(word, one.text) for word in query.split()):
                    found.append((name, n))
                seen.add(one.own)
        order = list(self.sessions)
        return sorted(found, key=lambda hit: (order.index(hit[0]), hit[1]), reverse=True)


def _is_in(word: str, text: str) -> bool:
    return any(each.startswith(word[:-1]) if word.endswith("*") else each == word for each in text.split())


def check_question(store: Store, model: Model, query: str, where: dict[str, str], session: Any, limit: Any) -> None:
    """A search and a recall among the sessions with these labels find what is in these sessions, and nothing else."""
    asked = model.asked(where)
    assert sorted(info.id for info in store.sessions(where=where)) == sorted(asked)
    wanted = model.hits(query, where, session if session in model.sessions else None)
    found = store.search(query, where=where, session=session if session in model.sessions else None, limit=limit)
    assert [(hit.session, hit.record) for hit in found] == wanted[:limit]
    for passage in recall(store, query, where=where):
        assert passage.session in asked
        assert passage.text == model.sessions[passage.session][passage.record - 1].text


def carry_out(stores: list[Store], model: Model, step: Any) -> None:
    """One step in the model and in every store; one that is not possible is left out."""
    match step:
        case ("create", name, owner) if name not in model.sessions:
            model.sessions[name] = []
            for store in stores:
                store.create(name)
            if owner:
                carry_out(stores, model, ("label", name, "user", owner))
        case ("say", name, text) if name in model.sessions:
            model.add(name, text)
            for store in stores:
                store.append(name, [said(text)])
        case ("label", name, key, owner) if name in model.sessions:
            note = labels_note(model.labels(name), {key: owner})
            if note is not None:
                model.add(name, "", dict(note.data))
                for store in stores:
                    store.append(name, [Draft(note)])
        case ("fork", name, new, at) if name in model.sessions and new not in model.sessions:
            at = min(at, len(model.sessions[name]))
            model.sessions[new] = model.sessions[name][:at]
            for store in stores:
                store.fork(name, new, at=at)
        case ("delete", name) if name in model.sessions:
            del model.sessions[name]
            for store in stores:
                store.delete(name)
        case ("ask", query, where, session, limit):
            for store in stores:
                check_question(store, model, query, where, session, limit)


@pytest.mark.slow
@given(st.lists(STEPS, max_size=16), st.lists(QUESTIONS, min_size=1, max_size=3))
def test_nothing_of_another_owner_is_found(steps: list[Any], questions: list[Any]) -> None:
    """One user's model is told what another user said of an illness; or is not told what its own user said."""
    model = Model()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        places = [f"{folder}/s.db", f"files:{folder}/f"]
        stores = [opened.enter_context(closing(store)) for store in (MemoryStore(), *map(open_store, places))]
        for step in (*steps, *questions):
            carry_out(stores, model, step)
        others = [opened.enter_context(closing(open_store(place, read_only=True))) for place in places]
        for question in questions:
            carry_out(others, model, question)
        assert [problem for store in stores for problem in store.verify()] == []


@given(st.lists(STEPS, max_size=10), QUESTIONS)
def test_wrappers_keep_owners_apart(steps: list[Any], question: Any) -> None:
    """An encrypted store, one that hides secrets, or one that reads past damage that forgets whose a session is."""
    model = Model()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        sealed = opened.enter_context(closing(open_store(f"{folder}/s.db", key=b"k" * 32)))
        redacting = RedactingStore(opened.enter_context(closing(MemoryStore())), Redactor())
        for step in (*steps, question):
            carry_out([sealed, redacting], model, step)
        met: list[object] = []
        carry_out([PastDamage(store, met.append) for store in (sealed, redacting)], model, question)
        assert met == []


@pytest.fixture(scope="module")
def place(postgres: Any) -> str:
    """The URL of an empty store on a server."""
    return str(postgres.new_place())


@pytest.mark.slow
@given(st.lists(STEPS, max_size=10), QUESTIONS)
def test_a_server_keeps_owners_apart(place: str, steps: list[Any], question: Any) -> None:
    """The store that many machines share, in which sessions of users are most likely to meet."""
    model = Model()
    with closing(open_store(place)) as store:
        for info in store.sessions():
            store.delete(info.id)
        for step in (*steps, question):
            carry_out([store], model, step)
        assert store.verify() == []


def test_a_label_that_is_a_secret_finds_nobody() -> None:
    """Users whose labels are secrets have the same mark on record: each was shown what the others said."""
    store = RedactingStore(MemoryStore(), Redactor({"staff": "EMP-[0-9]{6}"}))
    for user in ("EMP-000001", "EMP-000002"):
        with turnlog.open(user[-1], store=store, labels={"user": user, "team": "x"}) as session:
            session.user("I have a cough.")
        met: list[object] = []
        for ask in (
            lambda where: store.sessions(where=where),
            lambda where: store.search("cough", where=where),
            lambda where: recall(store, "cough", where=where),
            PastDamage(store, met.append).sessions,
        ):
            with pytest.raises(InputError, match="label 'user' is a secret") as told:
                ask(where={"user": user, "team": "x"})
            assert user not in str(told.value)
    assert len(store.search("cough", where={"team": "x"})) == 2


@pytest.mark.parametrize("where", ["user", {"user": 5}, {3: "ann"}, ["user"]])
def test_labels_asked_for_are_texts(where: Any) -> None:
    """A mistake in the labels that finds all sessions, or none, without a word."""
    store = MemoryStore()
    for ask in (lambda: store.search("a", where=where), lambda: store.sessions(where=where)):
        with pytest.raises(InputError, match=r"label|where"):
            ask()


def test_a_session_whose_labels_cannot_be_read_is_nobodys(tmp_path: Path) -> None:
    """A damaged label made a user's session one that belongs to nobody, and so to everybody without a user."""
    with closing(FilesStore(tmp_path / "f")) as store:
        store.create("s")
        note = labels_note({}, {"user": "ann"})
        assert note is not None
        store.append("s", [Draft(note), said("apple")])
        log = tmp_path / "f" / "sessions" / "s.jsonl"
        log.write_bytes(log.read_bytes().replace(b'"ann"', b'"anm"'))
        for where in ({"user": ""}, {"user": "ann"}, {"user": "anm"}):
            assert store.sessions(where=where) == [] and store.search("apple", where=where) == []
        assert [text_of(record.message) for record in store.read("s", first=2) if record.message] == ["apple"]
