"""The built-in model: it answers requests in every format, streamed, and sessions record what it says."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import turnlog
from answering import heard, received
from turnlog.errors import InputError, RunnerFailed
from turnlog.log.messages import Reasoning, ToolCall
from turnlog.models.target import Target, target
from turnlog.providers import PROVIDERS
from turnlog.runners import DEMO_MODEL, BlockingRunner, RunnerEvent, ScriptedRunner
from turnlog.stores import MemoryStore

TARGETS = [target(provider, DEMO_MODEL) for provider in PROVIDERS]
LOOK = {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}


def opened(aim: Target) -> turnlog.Session:
    """A session with a tool and a question."""
    session = turnlog.open("demo", target=aim, store=MemoryStore(), tools=[LOOK])
    session.user("What is there?")
    return session


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.provider)
def test_it_says_what_the_script_says(aim: Target) -> None:
    """Text, reasoning, calls or the bill lost on the way to the record."""
    script: Any = [
        [Reasoning(aim.provider, "I look twice."), "Let me see. 🙂", ToolCall("", "look", {"at": [1, None]})]
    ]
    session = opened(aim)
    answer = received(session, ScriptedRunner(script))
    assert (answer.text, answer.complete, answer.stop) == ("Let me see. 🙂", True, "tool_calls")
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("look", {"at": [1, None]})]
    reasoning = [part for part in answer.message.parts if isinstance(part, Reasoning)]
    assert ["".join((part.text, *part.summary)) for part in reasoning] == ["I look twice."]
    assert answer.usage is not None and answer.usage.input == opened(aim).request().tokens
    found = heard(opened(aim), ScriptedRunner(script))
    kinds = [event.kind for event in found]
    assert kinds[-3:] == ["tool_call", "usage", "done"] and found[-1].stop == "tool_calls"
    assert "".join(event.text for event in found if event.kind == "text") == answer.text
    assert "".join(event.text for event in found if event.kind == "reasoning") == "I look twice."
    assert kinds.count("text") > 1, "it came in one piece"


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.provider)
def test_it_answers_from_the_request_and_calls_declared_tools(aim: Target) -> None:
    """A demonstration that needs a script, or calls a tool that is not there, fails here."""
    session = opened(aim)
    runner = ScriptedRunner()
    assert received(session, runner).text == "You said: What is there?"
    session.user('Do it.\nCALL look {"at": "it"}\nCALL other {}')
    answer = received(session, runner)
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("look", {"at": "it"})]
    session.tool_result(answer.tool_calls[0], "a door")
    assert received(session, runner).text == "look says: a door"


def test_the_same_request_gets_the_same_chunks() -> None:
    """Chance or a clock in the built-in model, which would make tests of agents flicker, fails here."""

    async def chunks() -> list[Any]:
        return [chunk async for chunk in ScriptedRunner().stream(opened(TARGETS[0]).request())]

    assert asyncio.run(chunks()) == asyncio.run(chunks())


def test_an_error_of_the_script_is_an_event_and_is_raised_when_recorded() -> None:
    """An error that a stream swallows, or that leaves no last event, fails here."""
    error = RunnerFailed("demo", "no power", status=500)
    session = opened(TARGETS[2])
    [event] = heard(session, ScriptedRunner([error]))
    assert event.kind == "error" and event.error is error and "no power" in event.text
    with pytest.raises(RunnerFailed):
        received(session, ScriptedRunner([error]))
    session.user("Again.")
    assert received(session, ScriptedRunner()).text == "You said: Again."


def test_a_script_is_checked() -> None:
    """A script that is one text would be taken letter by letter: it is refused."""
    with pytest.raises(InputError):
        ScriptedRunner("hello")


def test_a_script_may_be_a_function_of_the_request() -> None:
    """Somebody who scripts by what was asked gets the request."""
    runner = ScriptedRunner([lambda request: f"{len(request.view)} messages"])
    assert received(opened(TARGETS[0]), runner).text == "1 messages"


def test_streams_can_be_iterated_without_an_event_loop() -> None:
    """A program without asyncio gets the same answer, also from inside a running event loop."""
    session = opened(TARGETS[1])
    with BlockingRunner(ScriptedRunner(["one two", "three"])) as runner:
        request = session.request()
        assert session.receive(runner.stream(request), request).text == "one two"
        session.user("More.")

        async def inside() -> list[RunnerEvent]:
            return list(runner.events(session.request()))

        assert [event.kind for event in asyncio.run(inside())] == ["text", "usage", "done"]


def test_a_blocking_stream_that_is_left_is_closed() -> None:
    """A stream that goes on in its thread after nobody reads it any more fails here."""
    closed = []

    class Slow(ScriptedRunner):
        async def stream(self, request: turnlog.Request) -> Any:
            try:
                async for chunk in super().stream(request):
                    yield chunk
            finally:
                closed.append(True)

    with BlockingRunner(Slow(["one two three"])) as runner:
        stream = runner.stream(opened(TARGETS[0]).request())
        next(iter(stream))
        stream.close()  # type: ignore[attr-defined]
    assert closed == [True]


def test_the_demo_model_costs_nothing_and_is_known() -> None:
    """A warning about an unknown model, or an unknown price, for the model that is part of turnlog fails here."""
    session = opened(TARGETS[0])
    received(session, ScriptedRunner())
    assert TARGETS[0].known and session.cost.total == 0
