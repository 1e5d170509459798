"""check, repair and convert on plain provider dicts."""

from __future__ import annotations

from typing import Any

import pytest

import turnlog
from turnlog.errors import InputError, UnknownProvider
from turnlog.oneshot import detect

BROKEN: dict[str, Any] = {
    "model": "gpt-4o",
    "messages": [
        {"role": "user", "content": "Weather in Oslo?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
            ],
        },
        {"role": "user", "content": "Well?"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
    ],
}
ANSWER = {
    "role": "tool",
    "tool_call_id": "call_1",
    "content": "No result of this call is on record. It may have run; check before repeating it.",
}


def test_check_names_what_is_wrong_and_where() -> None:
    """A violation that names no message cannot be mended by hand."""
    assert [(found.kind, found.messages) for found in turnlog.check(BROKEN, "openai-chat")] == [("unanswered", (2,))]


def test_repair_does_what_check_found_and_no_more() -> None:
    """Anything else changed would be a surprise in somebody's request."""
    messages = BROKEN["messages"]
    expected = {**BROKEN, "messages": [*messages[:2], ANSWER, messages[2]]}
    repaired = turnlog.repair(BROKEN, "openai-chat")
    assert repaired.request == expected
    assert turnlog.check(repaired.request, "openai-chat") == []
    assert turnlog.repair(repaired.request, "openai-chat").request == repaired.request


def test_convert_carries_settings_and_says_what_it_cannot() -> None:
    """A silently dropped seed or limit changes what the model does."""
    body = {
        **BROKEN,
        "temperature": 0.5,
        "max_completion_tokens": 100,
        "stop": ["END"],
        "seed": 7,
        "tool_choice": "required",
    }
    converted = turnlog.convert(body, to="anthropic", model="claude-sonnet-4-5")
    kept = {
        key: converted.request[key] for key in ("model", "max_tokens", "temperature", "stop_sequences", "tool_choice")
    }
    assert kept == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 100,
        "temperature": 0.5,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any"},
    }
    assert "seed is a setting of openai-chat only" in [loss.detail for loss in converted.losses]


@pytest.mark.parametrize("to", ["openai-responses", "anthropic", "google"])
def test_there_and_back_the_conversation_is_the_same(to: str) -> None:
    """Text, calls, arguments, results and their order survive a change of provider."""
    there = turnlog.convert(turnlog.repair(BROKEN, "openai-chat").request, to=to)
    back = turnlog.convert(there.request, to="openai-chat", model="gpt-4o", source=to)
    expected = turnlog.repair(BROKEN, "openai-chat").request["messages"]
    said = [
        (m["role"], m["content"], [c["function"]["name"] for c in m.get("tool_calls", [])])
        for m in back.request["messages"]
    ]
    assert said == [
        (m["role"], m["content"], [c["function"]["name"] for c in m.get("tool_calls", [])]) for m in expected
    ]


@pytest.mark.parametrize(
    ("body", "provider"),
    [
        ({"contents": []}, "google"),
        ({"input": "hello"}, "openai-responses"),
        ({"messages": [], "system": "x"}, "anthropic"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}]}, "anthropic"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]}, "openai-chat"),
        ({"messages": [{"role": "user", "content": "hi"}], "model": "claude-haiku-4-5"}, "anthropic"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "openai-chat"),
    ],
)
def test_a_body_says_whose_it_is(body: dict[str, Any], provider: str) -> None:
    """A body read as another provider's loses its tool blocks."""
    assert detect(body) == provider


def test_what_is_no_body_is_refused_by_name() -> None:
    """An unknown provider or shape must not be guessed at."""
    with pytest.raises(InputError, match="neither 'messages' nor 'input' nor 'contents'"):
        turnlog.convert({"prompt": "x"}, to="google")
    with pytest.raises(UnknownProvider, match="use one of openai-chat"):
        turnlog.check({}, "mistral")
