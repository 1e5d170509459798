"""The conversation in a provider's format: what was put in comes out, whatever requests make of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from agents import CHAT, says, session_in
from draws import examples
from judging import TARGETS, shown
from recorded_bodies import recorded_bodies
from turnlog.errors import InputError
from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.providers import PROVIDERS, provider
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories


def spelled(history: History, target: Target) -> list[Any]:
    """The messages of a history in a target's format, damage and all."""
    speaker = provider(target.provider)
    configuration = Configuration(provider=speaker.name)
    body = speaker.render(shown(history), configuration, target, history.blobs.__getitem__).body
    return list(body[speaker.conversation])


def mangled(items: list[Any], random: Random) -> list[Any]:
    """The same messages with one left out, one twice and one elsewhere: ids repeat, and reasoning is alone."""
    left = [item for item in items if random.random() > 0.1]
    for _ in range(random.randint(0, 2)):
        if left:
            left.insert(random.randrange(len(left) + 1), random.choice(left))
    return left


BESIDE = ("anthropic", "google-interactions")
"""The formats that have system text at the beginning beside the messages, even if it was put in among them."""


def without_beginning(items: list[Any], target: Target) -> list[Any]:
    """The messages without system text at the beginning, in formats that have it elsewhere."""
    count = 0
    while target.provider in BESIDE and system_text(items[count : count + 1], target):
        count += 1
    return items[count:]


def system_text(items: list[Any], target: Target) -> list[Any]:
    """The messages of system text, which stay when a conversation is cleared."""
    speaker = provider(target.provider)
    read = (speaker.parse({speaker.conversation: [item]}).messages for item in items)
    return [item for item, messages in zip(items, read, strict=True) if messages[0].role == "system"]


def opened(store: MemoryStore, target: Target, session_id: str = "s") -> Session:
    """A session without system text that every process opens alike."""
    return turnlog.open(session_id, store=store, target=target, settings=turnlog.Settings(redact=False))


@pytest.mark.slow
@given(history=damaged_histories(), target=st.sampled_from(TARGETS), data=st.data())
@settings(max_examples=examples(60, 2_000))
def test_what_was_put_in_comes_out(history: History, target: Target, data: st.DataObject) -> None:
    """A program that keeps its history in a session would otherwise get another history than it had: an id less, a
    message more, two in one. Taking messages back leaves exactly those before them, also inside a tool exchange, and
    undoing it brings them back; a session opened again agrees, and each request stays valid."""
    random = data.draw(st.randoms(use_true_random=False))
    items = mangled(spelled(history, target), random)
    store, expected = MemoryStore(), list[Any]()
    session, undone, at, kept = opened(store, target), list[list[Any]](), 0, 0
    for step in data.draw(st.lists(st.sampled_from(("put", "put", "take", "undo", "clear", "reopen")), max_size=12)):
        before = list(expected)
        match step:
            case "put":
                count = random.randint(1, 4)
                session.extend(items[at : at + count])
                expected += items[at : at + count]
                at, undone = at + count, undone if at >= len(items) else []
            case "take" if len(expected) > kept:
                count = random.randint(1, min(3, len(expected) - kept))
                session.rewind(messages=count)
                expected = expected[:-count]
                undone.append(before)
            case "undo" if undone:
                session.undo("rewind")
                expected = undone.pop()
            case "clear":
                session.clear()
                expected, undone = system_text(expected, target), []
                kept = len(expected)
            case "reopen":
                session.close()
                session = opened(store, target)
        assert session.messages() == without_beginning(expected, target)
        assert turnlog.check(session.preview().body, target.provider) == []


@pytest.mark.slow
def test_recorded_bodies_come_out(shared: Path) -> None:
    """Bodies that programs sent have spellings that nobody thought of. They are put in by pieces, and twice, so that
    messages which belong together are apart, and ids repeat."""
    wrong, random = list[str](), Random(7)
    for recorded in list(recorded_bodies(shared))[::5]:
        speaker = provider(recorded.provider)
        items = recorded.body.get(speaker.conversation)
        if not isinstance(items, list):
            continue
        items = [*items, *random.sample(items, min(2, len(items)))]
        session = opened(MemoryStore(), turnlog.target(recorded.provider, "a-model"))
        cuts = sorted({0, len(items), *(random.randrange(len(items) + 1) for _ in range(3))})
        for first, last in pairwise(cuts):
            session.extend(items[first:last])
        if session.messages() != items:
            wrong.append(recorded.name)
    assert wrong == []


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_empty_conversation_is_empty(name: str) -> None:
    """A program would take the text that a request needs for something that the user said."""
    session = opened(MemoryStore(), turnlog.target(name, "a-model"))
    assert session.messages() == []
    session.extend([provider(name).user_message("Hello")])
    session.rewind(messages=1)
    assert session.messages() == []
    session.extend([provider(name).user_message("Hello again")])
    session.clear()
    assert session.messages() == []


def test_what_was_left_out_for_size_comes_out() -> None:
    """A history that a budget shortens for good would be lost to the program that keeps it there."""
    session = opened(MemoryStore(), CHAT)
    items = [{"role": role, "content": f"{n} " * 200} for n in range(20) for role in ("user", "assistant")]
    session.extend(items[:-1])
    session.compact(keep=1)
    assert len(session.request().body["messages"]) < 10
    assert session.messages() == items[:-1]


def test_another_format_can_be_asked_for() -> None:
    """A program that changes its provider would have to convert its history by hand."""
    session = opened(MemoryStore(), CHAT)
    session.extend([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}])
    assert session.messages(turnlog.target("google", "gemini-2.5-pro")) == [
        {"role": "user", "parts": [{"text": "Hello"}]},
        {"role": "model", "parts": [{"text": "Hi"}]},
    ]
    with pytest.raises(InputError, match="no target"):
        turnlog.open("t", store=":memory:").messages()


# -- take back messages -------------------------------------------------------------------------------


def test_a_result_and_then_its_call_are_taken_back() -> None:
    """Sessions of other frameworks pop one message after another, also out of a tool exchange. As long as the call is
    there, the model must be told that the tool ran."""
    store = MemoryStore()
    session = session_in(store)
    with session.turn("Is it warm?") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        with turn.tool(call) as run:
            run.result("4 degrees")
    log = session.history()
    told = []
    for _ in range(3):
        session.rewind(messages=1)
        assert turnlog.check(session.preview(CHAT).body) == []
        told.append(session.preview(CHAT).body["messages"][-1]["content"])
    assert told == ["The tool finished, but its result was lost.", "Is it warm?", "[No message yet.]"]
    assert session.history()[: len(log)] == log
    for _ in range(3):
        session.undo("rewind")
    assert session.messages(CHAT)[-1]["content"] == "4 degrees"


def test_only_messages_that_are_there_are_taken_back() -> None:
    """A number too large would take back a clearing, and with it show again what the user wanted gone."""
    session = opened(MemoryStore(), CHAT)
    with pytest.raises(InputError, match="messages: the conversation has 0 messages"):
        session.rewind(messages=1)
    session.extend([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
    session.clear()
    session.user("three")
    for wrong in (0, 2, True, "1"):
        with pytest.raises(InputError, match=r"messages: give a number from 1 to 1, not .* has 1 message since it was"):
            session.rewind(messages=wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"rewind\(\): give exactly one of turns=, messages= .* and to="):
        session.rewind(messages=1, turns=1)
    done = session.rewind(messages=1)
    assert (str(done), done.decision.why) == (f"back to record {done.to}: 1 message taken back", "1 message taken back")
