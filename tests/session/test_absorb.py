"""Bodies of a program that keeps its conversation itself: what is new is recorded once, what it changed is a decision,
and requests say what the body said."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import turnlog
from draws import examples
from keeping_programs import MODELS, STEPS, Program
from turnlog.log.messages import text_of
from turnlog.log.records import Decision, MessageRecord
from turnlog.providers import provider
from turnlog.runners import ScriptedRunner
from turnlog.session.session import Session


@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=examples(25, 5_000))
@given(steps=st.lists(st.sampled_from(STEPS), max_size=14))
def test_requests_say_what_the_bodies_said(name: str, steps: list[str]) -> None:
    """A message that is lost, doubled, out of place, or of a past that the program has taken back."""
    program = Program(name)
    for step in steps:
        program.step(step)
    program.step("say")
    assert program.session.log.validate() == []
    program.session.close()


def test_only_what_is_new_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long conversation that is read whole at each request: every turn costs more than the one before."""
    program, read = Program("openai-chat"), list[int]()
    chat = provider("openai-chat")

    def parse(body: Any) -> Any:
        read.append(len(body["messages"]))
        return chat.parse(body)

    counting = structs.replace(chat, parse=parse)
    monkeypatch.setattr("turnlog.session.absorbing.provider", lambda name: counting)
    for _ in range(20):
        program.step("say")
    assert (max(read[2:]), sum(read)) == (
        2,
        2 + 19 * 2,
    )


def test_retries_and_restarts_record_nothing_twice() -> None:
    """A program that sends the same body again, or is started again: its question stands in the log twice."""
    program = Program("openai-chat")
    program.step("work")
    program.step("say")
    before = texts(program.session)
    for step in ("restart", "say", "restart"):
        program.step(step)
    assert texts(program.session) == [*before, "Question 4", "Answer 4"]
    program.history.append({"role": "user", "content": "Once?"})
    for _ in range(3):
        program.session.absorb(program.body())
    assert texts(program.session) == [*before, "Question 4", "Answer 4", "Once?"]


def test_system_text_of_the_session_stays() -> None:
    """A session with instructions of its own under a program that has none: an edit of the program takes them away."""
    with turnlog.open(
        "s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"), system="Be kind."
    ) as session:
        history = [{"role": "user", "content": f"Question {n}"} for n in range(4)]
        for kept in (history, history[1:], history[2:]):
            request = session.absorb({"model": "gpt-4o", "messages": kept})
            assert request.body["messages"] == [{"role": "system", "content": "Be kind."}, *kept]


def test_what_the_program_left_out_is_a_decision_of_its_own() -> None:
    """Who reads the log does not learn that the program dropped turns, or takes it for a compaction of turnlog."""
    program = Program("anthropic")
    for step in ("say", "say", "say", "trim", "say"):
        program.step(step)
    decisions = [record.body for record in program.session.history() if isinstance(record.body, Decision)]
    assert [(decision.action, decision.why, decision.detail["by"]) for decision in decisions] == [
        ("compact", "the program left out 2 messages", "program")
    ]
    assert texts(program.session)[:2] == ["Be brief.", "Question 1"]  # the log has all of it


def test_secrets_are_compared_as_they_are_kept() -> None:
    """A message with a key is another one on record, so that each request records it anew."""
    program = Program("openai-chat")
    program.session.close()
    program.session = turnlog.open("s", store=program.store, settings=turnlog.Settings(redact=True, budget=0))
    secret = "sk-proj-" + "a1B2c3D4" * 6
    program.history.append({"role": "user", "content": f"My key is {secret}."})
    program.ask("Noted.")
    program.session.close()
    program.session = turnlog.open("s", store=program.store, settings=turnlog.Settings(redact=True, budget=0))
    program.history.append({"role": "user", "content": "And now?"})
    program.session.absorb(program.body())
    said_texts = texts(program.session)
    assert (len(said_texts), said_texts[-1]) == (4, "And now?")


def test_a_budget_holds_and_the_prefix_with_it() -> None:
    """A framework that sends everything: its requests grow past the budget, or begin otherwise each time."""
    program = Program("openai-chat")
    program.session.close()
    program.session = turnlog.open(
        "t", store=program.store, target=turnlog.target("openai-chat", "gpt-4o"), budget=1_200
    )
    sent: list[list[Any]] = []
    for number in range(40):
        program.history.append({"role": "user", "content": f"Question {number} " + "word " * 40})
        request = program.session.absorb(program.body())
        assert request.tokens <= 1_200
        sent.append(request.body["messages"])
        asyncio.run(program.session.areceive(ScriptedRunner([f"Answer {number}"]).stream(request), request))
        program.history.append({"role": "assistant", "content": f"Answer {number}"})
    moved = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(sent))
    decisions = [record for record in program.session.history() if isinstance(record.body, Decision)]
    assert 0 < moved <= len(decisions) < 20


def texts(session: Session) -> list[str]:
    """The text of each message on record."""
    messages = (record.body.message for record in session.history() if isinstance(record.body, MessageRecord))
    return [text_of(message) for message in messages]


@pytest.mark.parametrize("name", MODELS)
def test_a_body_may_say_that_there_are_no_tools(name: str) -> None:
    """openai-agents sends an empty list of tools, and its requests would not be on record."""
    hello = {"model": MODELS[name], "messages": [{"role": "user", "content": "Hello"}]}
    if name != "openai-chat":
        hello = turnlog.convert(hello, "openai-chat", to=name, model=MODELS[name]).body
    session = Program(name).session
    session.absorb({**hello, "tools": []}, turnlog.target(name, MODELS[name]))
    assert session.message_count == 1
    assert session.configuration.tools == ()
