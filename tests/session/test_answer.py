"""How an answer says that it ended, and what calls without JSON give."""

from __future__ import annotations

from typing import Any, get_args

import pytest

import turnlog
from turnlog.errors import InputError
from turnlog.log.messages import Message
from turnlog.log.records import ToolStarted
from turnlog.providers import PROVIDERS
from turnlog.providers.protocol import Stop
from turnlog.session import Answer, InvalidArguments


def chat(reason: str, message: dict[str, Any]) -> dict[str, Any]:
    """A Chat Completions response."""
    return {"id": "r", "model": "m", "choices": [{"index": 0, "finish_reason": reason, "message": message}]}


def chat_call(arguments: Any) -> dict[str, Any]:
    """A message with one call."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def claude(reason: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    """A response of the Messages API."""
    return {
        "id": "r",
        "model": "m",
        "role": "assistant",
        "type": "message",
        "content": [*blocks],
        "stop_reason": reason,
    }


def responses(status: str, *content: dict[str, Any], reason: str = "") -> dict[str, Any]:
    """A response of the Responses API."""
    output = [{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [*content]}]
    details = {"incomplete_details": {"reason": reason}} if reason else {}
    return {"id": "r", "model": "m", "object": "response", "status": status, "output": output, **details}


def gemini(reason: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """A generateContent response."""
    return {"candidates": [{"index": 0, "finishReason": reason, "content": {"role": "model", "parts": [*parts]}}]}


def interaction(status: str, *steps: dict[str, Any]) -> dict[str, Any]:
    """An interaction."""
    return {"id": "r", "model": "m", "status": status, "steps": [*steps]}


SAID = {"role": "assistant", "content": "Half of it"}
TEXT = {"type": "text", "text": "Half of it"}
OUT = {"type": "output_text", "text": "Half of it", "annotations": []}
STEP = {"type": "model_output", "content": [TEXT]}
ENDS: list[tuple[str, dict[str, Any], Stop]] = [
    ("openai-chat", chat("stop", SAID), "end"),
    ("openai-chat", chat("tool_calls", chat_call('{"path":"a"}')), "tool_calls"),
    ("openai-chat", chat("stop", chat_call('{"path":"a"}')), "tool_calls"),
    ("openai-chat", chat("length", SAID), "length"),
    ("openai-chat", chat("length", chat_call('{"path":"a')), "length"),
    ("openai-chat", chat("stop", {"role": "assistant", "content": None, "refusal": "No."}), "refusal"),
    ("openai-chat", chat("content_filter", SAID), "filtered"),
    ("openai-chat", chat("content_filtered", SAID), "filtered"),
    ("openai-chat", chat("max_output_tokens", SAID), "length"),
    ("openai-chat", chat("error", SAID), "interrupted"),
    ("anthropic", claude("end_turn", TEXT), "end"),
    ("anthropic", claude("stop_sequence", TEXT), "end"),
    ("anthropic", claude("tool_use", {"type": "tool_use", "id": "t", "name": "read", "input": {}}), "tool_calls"),
    ("anthropic", claude("max_tokens", TEXT), "length"),
    ("anthropic", claude("model_context_window_exceeded", TEXT), "length"),
    ("anthropic", claude("pause_turn", TEXT), "length"),
    ("anthropic", claude("refusal", TEXT), "refusal"),
    ("openai-responses", responses("completed", OUT), "end"),
    ("openai-responses", responses("completed", {"type": "refusal", "refusal": "No."}), "refusal"),
    ("openai-responses", responses("incomplete", OUT, reason="max_output_tokens"), "length"),
    ("openai-responses", responses("incomplete", OUT, reason="content_filter"), "filtered"),
    ("openai-responses", responses("failed", OUT), "interrupted"),
    ("google", gemini("STOP", {"text": "Half of it"}), "end"),
    ("google", gemini("STOP", {"functionCall": {"name": "read", "args": {}}}), "tool_calls"),
    ("google", gemini("MAX_TOKENS", {"text": "Half of it"}), "length"),
    ("google", gemini("SAFETY"), "filtered"),
    ("google", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, "filtered"),
    ("google", gemini("MALFORMED_FUNCTION_CALL"), "interrupted"),
    ("google-interactions", interaction("completed", STEP), "end"),
    ("google-interactions", interaction("incomplete", STEP), "length"),
    ("google-interactions", interaction("failed", STEP), "interrupted"),
]


def received(provider: str, response: dict[str, Any]) -> Answer:
    """The answer, as a session of that provider receives it."""
    with turnlog.open("one", store=":memory:", target=turnlog.target(provider, "m")) as session:
        session.user("Go on.")
        return session.receive(response)


@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
@pytest.mark.parametrize(("provider", "response", "stop"), ENDS, ids=lambda one: one if isinstance(one, str) else "")
def test_an_answer_says_how_it_ended(provider: str, response: dict[str, Any], stop: Stop) -> None:
    """A provider's own word for an end that reaches the program, or is taken for another end, breaks this."""
    assert received(provider, response).stop == stop


def test_every_provider_uses_the_same_words() -> None:
    """A word for the end of an answer that is not in the documented list breaks this."""
    words = {stop for speaker in PROVIDERS.values() for stop in speaker.stops.values()}
    assert words <= set(get_args(Stop))
    assert {stop for _, _, stop in ENDS} == set(get_args(Stop))


@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ('{"path": "a"', "delimiter"),
        ('{"x": 1}{"x": 2}', "Extra data"),
        ('{}{"x":', "Extra data"),
        ('{"n": NaN}', "NaN"),
        ('{"n": 1e999}', "too large"),
        ("[" * 150 + "]" * 150, "levels"),
    ],
)
def test_arguments_that_are_no_json_say_so(raw: str, reason: str) -> None:
    """A tool that is called with None, or with another text than the model wrote, breaks this."""
    [call] = received("openai-chat", chat("tool_calls", chat_call(raw))).tool_calls
    assert isinstance(call.arguments, InvalidArguments) and not call.arguments
    assert call.arguments.raw == raw == call.raw_arguments and reason in call.arguments.reason
    with pytest.raises(InputError, match="no JSON"):
        call.arguments["path"]
    with pytest.raises(InputError, match="no JSON"):
        dict(**call.arguments)


@pytest.mark.parametrize(
    ("wrote", "meant"),
    [
        ("", {}),
        (" ", {}),
        (None, {}),
        ("null", {}),
        ("[]", {}),
        ('""', {}),
        ('"{}"', {}),
        ("{}{}", {}),
        ('"{\\"path\\": \\"a\\"}"', {"path": "a"}),
        ('{}{"path": "a"}', {"path": "a"}),
        ('{"path": "a"}\n{"path":"a"}', {"path": "a"}),
        ({"path": "a"}, {"path": "a"}),
    ],
)
@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
def test_arguments_that_mean_one_object_are_that_object(wrote: Any, meant: Any) -> None:
    """Tools of servers that imitate OpenAI did not run: no arguments as an empty text, JSON in JSON, an object twice.
    What the server wrote has to stay on record, and to be sent back."""
    said = chat_call(wrote)
    with turnlog.open("one", store=":memory:", target=turnlog.target("openai-chat", "m")) as session:
        session.user("Go on.")
        [call] = session.receive(chat("tool_calls", said)).tool_calls
        assert call.arguments == meant
        recorded = session.history()[2].message
        assert recorded == PROVIDERS["openai-chat"].parse_response(chat("tool_calls", said)).message
        session.tool_started(call)
        session.tool_result(call, "done")
        assert session.log.unfinished() == []
        assert session.add(Message("assistant", (call,))).message == recorded or isinstance(wrote, dict)


@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
def test_a_result_is_of_the_call_that_it_names_among_several_with_one_id() -> None:
    """A result of a call without arguments was given to a later call of the same tool, if ids are not unique."""
    with turnlog.open("one", store=":memory:", target=turnlog.target("openai-chat", "m")) as session:
        session.user("Go on.")
        [first] = session.receive(chat("tool_calls", chat_call(""))).tool_calls
        session.receive(chat("tool_calls", chat_call('{"path": "a"}')))
        assert session.tool_started(first).body == ToolStarted("c1", 3, "read")


@pytest.mark.filterwarnings("ignore::turnlog.models.UnknownModelWarning")
def test_a_call_without_json_can_be_used_and_recorded_again() -> None:
    """A call that cannot be started, answered or put on record as `tool_calls` gives it breaks this."""
    with turnlog.open("one", store=":memory:", target=turnlog.target("openai-chat", "m")) as session:
        session.user("Go on.")
        [call] = session.receive(chat("tool_calls", chat_call('{"path": "a"'))).tool_calls
        session.tool_started(call)
        session.tool_result(call, str(call.arguments), outcome="failed")
        again = session.add(Message("assistant", (call,)))
        assert again.message == session.history()[2].message
        assert session.extend([Message("assistant", (call,))])[0].message == again.message
