"""What each SDK returned, put into the next request as everybody does it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types import Message
from google.genai import types
from google.genai._gaos.types.interactions import Interaction
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from sdk_clients import sdk_client

import turnlog

ASKED = "Is it warm in Oslo?"


def _chat() -> list[Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": message}
    whole = {"id": "c", "created": 1, "object": "chat.completion", "model": "gpt-4o", "choices": [choice]}
    answer = ChatCompletion.model_validate(whole).choices[0].message
    return [{"role": "user", "content": ASKED}, answer, {"role": "tool", "tool_call_id": "call_1", "content": "4"}]


def _anthropic() -> list[Any]:
    call = {"type": "tool_use", "id": "t1", "name": "weather", "input": {"c": None}, "caller": {"type": "direct"}}
    whole = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "text", "text": "I look.", "citations": None}, call],
    }
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "4"}
    answer = {"role": "assistant", "content": Message.model_validate(whole).content}
    return [{"role": "user", "content": ASKED}, answer, {"role": "user", "content": [result]}]


def _responses() -> list[Any]:
    text = {"type": "output_text", "text": "I look.", "annotations": [], "logprobs": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "arguments": "{}"}
    nulls = {"content": None, "encrypted_content": None, "status": None}
    whole = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "tools": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "output": [{"type": "reasoning", "id": "rs_1", "summary": [], **nulls}, said, {**call, "namespace": None}],
    }
    items: list[Any] = [{"role": "user", "content": ASKED}]
    items += Response.model_validate(whole).output
    return [*items, {"type": "function_call_output", "call_id": "call_1", "output": "4"}]


def _google() -> list[Any]:
    called = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": "-_8A"}
    content = {"role": "model", "parts": [{"text": "I look."}, called]}
    whole = types.GenerateContentResponse.model_validate({"candidates": [{"content": content}]})
    assert whole.candidates is not None
    result = types.Part.from_function_response(name="weather", response={"output": "4"})
    asked = types.Content(role="user", parts=[types.Part(text=ASKED)])
    return [asked, whole.candidates[0].content, types.Content(role="user", parts=[result])]


def _steps() -> list[Any]:
    call = {"type": "function_call", "id": "call_1", "name": "weather", "arguments": {"city": None}}
    said = {"type": "model_output", "content": [{"type": "text", "text": "I look.", "annotations": None}]}
    thought = {"type": "thought", "signature": "-_8A", "summary": None}
    whole = {"id": "v1_x", "status": "requires_action", "steps": [thought, said, call]}
    steps: list[Any] = [{"type": "user_input", "content": [{"type": "text", "text": ASKED}]}]
    steps += Interaction.model_validate(whole).steps or []
    return [*steps, {"type": "function_result", "call_id": "call_1", "result": "4"}]


WEATHER = {"name": "weather"}
BODIES: dict[str, Callable[[], dict[str, Any]]] = {
    "openai-chat": lambda: {"model": "gpt-4o", "messages": _chat()},
    "openai-responses": lambda: {"model": "gpt-5", "input": _responses()},
    "anthropic": lambda: {
        "model": "claude-sonnet-4-6",
        "max_tokens": 100,
        "messages": _anthropic(),
        "tools": [{**WEATHER, "input_schema": {"type": "object"}}],
    },
    "google-interactions": lambda: {
        "model": "gemini-2.5-pro",
        "store": False,
        "input": _steps(),
        "tools": [{"type": "function", **WEATHER}],
    },
    "google": lambda: {"contents": _google(), "tools": [{"functionDeclarations": [WEATHER]}]},
}


@pytest.mark.parametrize("provider", BODIES)
def test_what_an_sdk_returned_may_stand_in_the_next_request(provider: str, fake_server: Callable[..., Any]) -> None:
    """The first thing that everybody writes would be refused, or told to be full of mistakes; a request with the
    objects left in it could neither be kept nor sent otherwise."""
    body = BODIES[provider]()
    assert turnlog.check(body, provider) == []
    made = turnlog.repair(body, provider)
    assert (made.edits, made.losses) == ((), ())
    assert turnlog.count(body).tokens == turnlog.count(json.loads(json.dumps(made.body))).tokens > 0
    assert turnlog.fit(body).body == turnlog.Fitter().fit(body).body == made.body
    for other in BODIES:
        assert turnlog.check(turnlog.convert(body, to=other).body, other) == []
    server = fake_server()
    sdk_client(provider, server.url).send(made.body, "gemini-2.5-pro")
    assert [(one.status, one.errors) for one in server.requests] == [(200, [])]


def test_objects_whose_class_says_who_speaks_keep_their_speaker() -> None:
    """Google's `ModelContent` has its role from its class alone: what the model said would be taken for the user's."""
    said: list[Any] = [types.UserContent(ASKED), types.ModelContent("No."), types.UserContent("And in Rome?")]
    roles = [("user", ASKED), ("model", "No."), ("user", "And in Rome?")]
    body = {"contents": [{"role": role, "parts": [{"text": text}]} for role, text in roles]}
    made = turnlog.repair({"contents": said}, "google")
    assert (made.body, made.edits, made.losses) == (body, (), ())
    aim = turnlog.target("google", "gemini-2.5-pro")
    with turnlog.open("s", target=aim, store=":memory:") as session:
        session.extend(said)
        assert session.request().body["contents"] == body["contents"]
