"""Prompt-cache breakpoints and keys of OpenAI's newer models."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judging import errors_of, numbered
from turnlog import Strategy, target
from turnlog.log.messages import Message, ToolCall
from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.providers.protocol import CacheMarks
from turnlog.requests.build import build
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories, sound_histories

NEWER = [target(name, "gpt-5.6-sol") for name in ("openai-chat", "openai-responses")]
EXPLICIT = {"mode": "explicit"}
apis = pytest.mark.parametrize("aim", NEWER, ids=lambda aim: aim.provider)


def opened(aim: Target, name: str = "s", strategy: Strategy | str = "summarise", budget: int = 6_000) -> Session:
    session = Session(store := MemoryStore(), store.create(name))
    session.switch(aim)
    session.configure(budget=budget, strategy=strategy)
    session.system("Be brief. " + "rule " * 1_200)
    session.user("The task. " + "detail " * 50)
    return session


def wire(aim: Target, body: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = body[provider(aim.provider).conversation]
    return found


def marked(aim: Target, body: dict[str, Any]) -> list[int]:
    """The indices of the messages with a breakpoint."""
    return [i for i, message in enumerate(wire(aim, body)) if "prompt_cache_breakpoint" in str(message)]


@pytest.mark.slow
@apis
def test_breakpoints_stay_where_they_were(aim: Target, oracle: Any) -> None:
    """A decision moves everything behind the summary: without breakpoints before it, all of it is written again. A
    breakpoint that wanders is paid for and never read."""
    session = opened(aim)
    places = set()
    for n in range(60):
        made = session.request()
        marks, said = marked(aim, made.body), wire(aim, made.body)
        assert errors_of(oracle, aim, made.body) == []
        assert len(marks) <= 3 and marks[0] == 0 and all(said[i]["role"] != "assistant" for i in marks)
        summary = next((i for i, shown in enumerate(made.view) if shown.treatment == "summarised"), None)
        places.add((summary, *marks))
        session.assistant(f"answer {n} " + "word " * 80)
        session.user(f"go on {n} " + "word " * 200)
    # First nothing but the newest message, which the provider marks itself; then the task; then the summary.
    assert len(session.explain().rulings) > 1
    assert len(places) <= 4 and any(summary in marks for summary, *marks in places if summary is not None)


@apis
def test_the_implicit_breakpoint_is_left_on_and_alone(aim: Target) -> None:
    """It is at the newest message of a user or a tool. One more there would take the place of another."""
    session = opened(aim)
    body = session.request().body
    assert "prompt_cache_options" not in body
    assert marked(aim, body) == [0]
    call = ToolCall("call_1", "read", arguments={})
    session.add(Message("assistant", (call,)))
    session.tool_result(call, "text")
    body = session.request().body
    assert marked(aim, body) == [0, 1] and len(wire(aim, body)) == 4


@apis
def test_the_key_is_the_sessions_and_does_not_tell_its_name(aim: Target) -> None:
    """Without a key such models hardly find what they cached; an id may be a person's name, and it leaves the house."""
    keys = {name: opened(aim, name).request().body["prompt_cache_key"] for name in ("anna.smith", "bert")}
    assert len(set(keys.values())) == 2
    session = opened(aim, "anna.smith")
    session.assistant("Done.")
    session.user("Go on.")
    assert session.request().body["prompt_cache_key"] == keys["anna.smith"]
    assert not any("anna" in key or len(key) > 64 for key in keys.values())


@apis
def test_what_the_user_sets_wins(aim: Target) -> None:
    """Who shares a key between sessions, or places breakpoints, knows why."""
    session = opened(aim)
    assert session.request(aim.with_settings(prompt_cache_key="mine")).body["prompt_cache_key"] == "mine"
    explicit = session.request(aim.with_settings(prompt_cache_options=EXPLICIT)).body
    assert marked(aim, explicit) == [] and explicit["prompt_cache_key"]
    kind = "text" if aim.provider == "openai-chat" else "input_text"
    own = [{"type": kind, "text": "Read this. ", "prompt_cache_breakpoint": EXPLICIT}, {"type": kind, "text": "Why?"}]
    session.extend([{"role": "user", "content": own}])
    session.assistant("So.")
    session.user("And?")
    assert marked(aim, session.request().body) == [2]


@pytest.mark.parametrize(
    "aim",
    [
        target("openai-chat", "gpt-5.5"),
        target("openai-responses", "gpt-5.5"),
        target("openai-chat", "gpt-5.6-sol", base_url="http://localhost:8000/v1"),
        target("openai-chat", "some-local-model"),
    ],
    ids=str,
)
def test_others_are_not_asked_for_what_they_may_not_know(aim: Target) -> None:
    """Older models and other servers may refuse the fields: a refused request costs more than a cache saves."""
    body = opened(aim).request().body
    assert "prompt_cache" not in str(body)


@apis
def test_breakpoints_can_be_switched_off(aim: Target) -> None:
    """A gateway in between may refuse them."""
    body = opened(aim, strategy=Strategy(name="none", cache_marks=False)).request().body
    assert "prompt_cache" not in str(body)


@apis
def test_a_small_request_gets_none(aim: Target) -> None:
    """Nothing of it is cached."""
    session = Session(store := MemoryStore(), store.create("s"))
    session.switch(aim)
    session.user("Hello.")
    assert "prompt_cache" not in str(session.request().body)


@apis
@given(
    history=st.one_of(damaged_histories(), sound_histories()),
    places=st.lists(st.integers(-1, 40), max_size=6, unique=True).map(sorted),
)
def test_marks_change_no_word(aim: Target, oracle: Any, history: History, places: list[int]) -> None:
    """Whatever the log holds, and wherever the marks are wanted: a request with them is valid, has no more than the
    provider writes, and says the same."""
    made = build(plan(Configuration(), aim), numbered(history.messages), history.blobs.__getitem__)
    mark = provider(aim.provider).mark_cache
    assert mark is not None
    body = mark(made.body, CacheMarks(tuple(places), "key"))
    assert errors_of(oracle, aim, body) == errors_of(oracle, aim, made.body)
    assert str(body).count("'prompt_cache_breakpoint'") <= 3
    again, parsed = provider(aim.provider).parse(body), provider(aim.provider).parse(made.body)
    assert [_bare(message) for message in again.messages] == [_bare(message) for message in parsed.messages]


def _bare(message: Message) -> Message:
    """A message without what says how it was spelled."""
    parts = []
    for part in message.parts:
        inner = {"parts": tuple(replace(one, form=None) for one in part.parts)} if hasattr(part, "parts") else {}
        parts.append(replace(part, **inner, **({"form": None} if hasattr(part, "form") else {})))
    return replace(message, parts=tuple(parts), form=None)
