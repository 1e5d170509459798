"""Typed answers with the real SDKs against a server: nothing is refused, and the schema arrives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from sdk_runners import sdk_runner

import turnlog

Start = Callable[..., Any]
OSLO = {"name": "Oslo", "people": 7}


class City(msgspec.Struct):
    """A city."""

    name: str
    people: int = 3


FORMATS = (
    turnlog.target("openai-chat", "gpt-4o"),
    turnlog.target("openai-responses", "gpt-5"),
    turnlog.target("anthropic", "claude-sonnet-4-6"),
    turnlog.target("google", "gemini-3-pro"),
    turnlog.target("google-interactions", "gemini-3-pro"),
)
TOOLS = (turnlog.target("openai-chat", "gpt-4"), turnlog.target("anthropic", "claude-3-opus"))


@pytest.mark.parametrize("aim", FORMATS, ids=str)
def test_an_sdk_takes_what_asks_for_an_answer(aim: turnlog.Target, fake_server: Start) -> None:
    """An SDK that knows the setting by another name, or drops it: the model answers in prose."""
    right = msgspec.json.encode(OSLO).decode()
    server = fake_server([{"text": "It is Oslo."}, {"text": right}])
    with turnlog.open("s", store=":memory:", target=aim) as session:
        result = turnlog.run(session, "Which city?", sdk_runner(server.url), output=City)
        assert (result.output, result.steps) == (City("Oslo", 7), 2)
    assert server.rejections() == []
    assert all('"people"' in msgspec.json.encode(request.body).decode() for request in server.requests)


@pytest.mark.parametrize("aim", TOOLS, ids=str)
def test_a_tool_takes_the_answer_of_an_older_model(aim: turnlog.Target, fake_server: Start) -> None:
    """A call that an SDK streams and nobody takes for the answer."""
    call = {"name": "answer", "args": OSLO}
    server = fake_server([{"text": "It is Oslo."}, {"tool_calls": [call]}, {"text": "Gladly."}])
    with turnlog.open("s", store=":memory:", target=aim) as session:
        result = turnlog.run(session, "Which city?", sdk_runner(server.url), output=City)
        assert (result.output, result.steps) == (City("Oslo", 7), 2)
        assert turnlog.run(session, "Thanks.", sdk_runner(server.url)).text == "Gladly."
    assert server.rejections() == []
