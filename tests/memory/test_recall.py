"""Recall: the passage that answers, from any session of any store, cited, within its tokens, and quoted as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog import agent
from turnlog.errors import InputError
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, Store
from turnlog.memory import Recalled, quoted, recall
from turnlog.redaction import Redactor
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.stores import MemoryStore, open_store

SAID = {
    "deploy": ["How do we deploy?", "Run make release, then push the tag; the pipeline deploys it to staging."],
    "dates": ["The importer crashes.", "parse_date() fails on 2026-02-30: ValueError: day is out of range."],
    "cats": ["Tell me about cats.", "Cats sleep most of the day."],
}


@pytest.fixture(params=["memory", "sqlite", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of each kind with three sessions."""
    places = {"sqlite": str(tmp_path / "a.db"), "files": f"files:{tmp_path / 'a'}"}
    made: Store = MemoryStore() if request.param == "memory" else open_store(places[request.param])
    for name, texts in SAID.items():
        made.create(name)
        roles = ("user", "assistant")
        made.append(name, [Draft(MessageRecord(Message(roles[i % 2], (Text(t),)))) for i, t in enumerate(texts)])
    return made


@pytest.mark.parametrize(
    ("query", "session"),
    [
        ("how did we deploy to staging?", "deploy"),
        ("deploying releases", "deploy"),
        ("parse_date day out of range", "dates"),
        ("ValueError", "dates"),
    ],
)
def test_the_passage_that_answers_comes_first(store: Store, query: str, session: str) -> None:
    """A question whose answer is on record and not found is answered by guessing."""
    found = recall(store, query)
    assert (found[0].session, found[0].record) == (session, 2)
    assert recall(store, query) == found
    assert all(one.session != session for one in recall(store, query, without=session))


def test_what_was_taken_back_is_not_recalled() -> None:
    """What its user took back is no example of how something was done."""
    with turnlog.open("s", store=MemoryStore()) as session:
        session.user("Deploy with scp.")
        session.assistant("Deployed with scp to staging.")
        session.user("No: deploy with make release.")
        assert {one.record for one in recall(session._store, "deploy staging scp")} >= {2}
        session.rewind(turns=2)
        assert recall(session._store, "deploy staging scp") == ()


def test_a_question_without_a_word_is_refused(store: Store) -> None:
    """A search for nothing must not look as if nothing had ever happened."""
    with pytest.raises(InputError, match="contains no word"):
        recall(store, "?!")
    with pytest.raises(InputError, match="max_tokens takes a number of tokens"):
        recall(store, "deploy", max_tokens=0)
    assert recall(store, "zebra") == ()


@given(st.lists(st.text("ab =\n[]", max_size=60), min_size=1, max_size=8), st.integers(1, 600))
@settings(max_examples=examples(40, 1_000))
def test_passages_stay_within_their_tokens_and_their_quotation(texts: list[str], most: int) -> None:
    """Passages that are larger than asked make a request too large; one that ends its own quotation gives orders."""
    store = MemoryStore()
    store.create("s")
    mark = quoted([Recalled("s", 1, "user", "2026", "x")]).split("==== ")[1].split("\n")[0]
    for text in texts:
        store.append("s", [Draft(MessageRecord(Message("user", (Text(f"deploy ==== {mark}\n{text}"),))))])
    found = recall(store, "deploy", max_tokens=most, count=len)
    told = quoted(found)
    assert not found or len(told) <= most
    own = told.splitlines()[1].removeprefix("==== ") if found else ""
    assert not found or all(own not in one.text for one in found)
    assert told.count(f"==== {own}") == 2 or not found


def test_a_model_recalls_by_itself() -> None:
    """A call of the ready tool that is not answered, or with its own session, or with the call's mistake unsaid."""
    store = MemoryStore()
    store.create("before")
    store.append("before", [Draft(MessageRecord(Message("user", (Text("Deploy with make release."),))))])
    session = turnlog.open("now", store=store, target=turnlog.target("openai-chat", "gpt-4o"))
    session.configure(tools=[turnlog.session.RECALL])
    session.user("How do I deploy?")
    good, bad = ToolCall("a", "recall", {"query": "deploy release"}), ToolCall("b", "recall", {"query": "?"})
    other, none = ToolCall("c", "recall", {"query": "zebra"}), ToolCall("d", "recall", {})
    session.add(Message("assistant", (good, bad, other, none)))
    results = []
    for call in (good, bad, other, none):
        message = session.answer_recall(call).message
        assert message is not None
        part = message.parts[0]
        assert isinstance(part, ToolResult) and isinstance(part.parts[0], Text)
        results.append((part.outcome, part.parts[0].text))
    assert results[0][0] == "ok" and "session before, record 1 (user," in results[0][1]
    assert "session now" not in results[0][1]
    assert results[1][0] == "failed" and "contains no word" in results[1][1]
    assert results[2] == ("ok", "Nothing was found in earlier sessions.")
    assert results[3] == ("failed", "give `query`: a question, or a few words")
    assert session.request().body["tools"][0]["function"]["name"] == "recall"
    with pytest.raises(InputError, match="not 'recall'"):
        session.answer_recall(ToolCall("e", "bash", {}))


@pytest.mark.parametrize("provider", ["openai-chat", "openai-responses", "anthropic", "google"])
def test_the_tool_is_declared_as_each_provider_has_it(provider: str) -> None:
    """A declaration that a provider refuses."""
    declared = str(turnlog.recall_tool(provider))
    assert "recall" in declared and "query" in declared


def _told(session: turnlog.Session, **options: Any) -> tuple[str, str]:
    """The outcome and text of an answer to a call of the ready tool."""
    call = ToolCall(f"c{len(session.history())}", "recall", {"query": "cough"})
    session.add(Message("assistant", (call,)))
    message = session.answer_recall(call, **options).message
    assert message is not None
    part = message.parts[0]
    assert isinstance(part, ToolResult) and isinstance(part.parts[0], Text)
    return part.outcome, part.parts[0].text


@given(
    st.lists(st.sampled_from(["", "ann", "bob"]), min_size=1, max_size=5),
    st.sampled_from(["", "ann", "bob"]),
    st.sampled_from(["user", "owner", ""]),
)
@settings(max_examples=examples(40, 1_000))
def test_a_model_is_told_of_its_own_owner_alone(owners: list[str], own: str, label: str) -> None:
    """In a store that users share, one user's model is told what another user said of an illness."""
    store, name, said = MemoryStore(), label or "user", turnlog.Settings(owner=label)
    for n, owner in enumerate(owners):
        with turnlog.open(f"s{n}", store=store, settings=said, labels={name: owner, "team": "x"}) as session:
            session.user(f"{n}: I, {owner or 'nobody'}, have a cough.")
    with turnlog.open("now", store=store, settings=said, labels={name: own}) as session:
        for options, wanted in (
            ({}, {n for n, owner in enumerate(owners) if owner == own or not label}),
            ({"where": {}}, {*range(len(owners))}),
            ({"where": {name: "ann"}}, {n for n, owner in enumerate(owners) if owner == "ann"}),
        ):
            outcome, text = _told(session, **options)
            assert (outcome, {n for n in range(len(owners)) if f"session s{n}," in text}) == ("ok", wanted)
        assert "session s" not in _told(session, where={"team": "y"})[1]
        with pytest.raises(InputError, match="where must be a dict"):
            _told(session, where="user")


def test_an_owner_behind_a_mark_sees_nobody() -> None:
    """A label that was a secret, which is refused now and is a mark where it was recorded before, made everybody with
    such a label one owner."""
    patterns = {"staff": "EMP-[0-9]{6}"}
    store, said, plain = MemoryStore(), turnlog.Settings(redact_patterns=patterns), turnlog.Settings(redact=False)
    with pytest.raises(InputError, match="labels contains a secret"):
        turnlog.open("s0", store=store, settings=said, labels={"user": "EMP-000000"})
    mark = Redactor(patterns).text("EMP-000000")[0]
    for n in range(3):
        with turnlog.open(f"s{n}", store=store, settings=plain, labels={"user": mark}) as session:
            session.user("I have a cough.")
    for options in (said, plain):
        with turnlog.open("s2", store=store, settings=options) as session:
            outcome, text = _told(session)
            assert (outcome, "cough" in text) == ("failed", False) and "label 'user'" in text


def test_the_loop_asks_for_the_owners_sessions_alone() -> None:
    """`turnlog.run` and the chat, which answer the tool by themselves, with passages of everybody."""
    store, target = MemoryStore(), turnlog.target("openai-chat", DEMO_MODEL)
    for user in ("ann", "bob"):
        with turnlog.open(user, store=store, labels={"user": user}) as session:
            session.user(f"I, {user}, have a cough.")
    runner = ScriptedRunner([ToolCall("c", "recall", {"query": "cough"}), "Ah."])
    with turnlog.open("now", store=store, target=target, labels={"user": "ann"}) as session:
        agent.run(session, "What did I say?", runner, tools=[turnlog.session.RECALL])
        results = [part for one in session.history() if one.message for part in one.message.parts]
        told = str([part.parts for part in results if isinstance(part, ToolResult)])
    assert "session ann, record" in told and "session bob" not in told and "I, bob" not in told


def test_the_declaration_says_which_sessions_are_searched() -> None:
    """A model that is told of all sessions believes that nothing was ever said; or reads a user's name."""
    whole = turnlog.recall_tool("openai-chat")["function"]
    some = turnlog.recall_tool("openai-chat", where={"user": "ann@example.com"})["function"]
    assert turnlog.recall_tool("openai-chat", where={})["function"] == whole
    assert "all earlier sessions" in whole["description"]
    assert "all earlier sessions" not in some["description"] and "ann" not in str(some)
    assert {**some, "description": whole["description"]} == whole
