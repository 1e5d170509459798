"""Both OpenAI APIs under fire: bodies, answers and streams with random values in random places.

A law holds for whatever JSON comes in: it is read or refused by path; what is read can be sent; what
cannot be sent is named; and nothing is repaired twice.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutants import attempted, mutant

from agents import aim_of
from turnlog.errors import FormatError
from turnlog.models.target import target
from turnlog.providers import provider
from turnlog.requests.standalone import repair, shown_messages

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}, "strict": True}}
]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CHAT: dict[str, Any] = {
    "model": "gpt-5.1",
    "temperature": 0.5,
    "stop": ["end"],
    "stream": True,
    "stream_options": {"include_usage": True},
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "metadata": {"k": "v"},
    "tools": TOOLS,
    "messages": [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
            ],
        },
        {"role": "assistant", "content": "hm", "refusal": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "42"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        {"role": "user", "content": "thanks"},
    ],
}
RESPONSES: dict[str, Any] = {
    "model": "gpt-5.1",
    "instructions": "be brief",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    "tool_choice": "auto",
    "tools": [
        {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
        {"type": "web_search"},
    ],
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "low"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "s"}],
            "encrypted_content": "blob",
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": "{}",
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "42"}]},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "p", "input": "free"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "ok"},
        {"type": "shell_call", "call_id": "call_3", "action": {"commands": ["ls"]}},
        {
            "type": "shell_call_output",
            "call_id": "call_3",
            "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}],
        },
        {"role": "user", "content": "thanks"},
    ],
}
SOUND = {"openai-chat": CHAT, "openai-responses": RESPONSES}

ODD: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "openai-chat": (
        "messages",
        [
            {"role": "assistant", "content": "a", "reasoning_content": "why", "reasoning_details": [{"type": "t"}]},
            {"role": "assistant", "content": None, "function_call": {"name": "g", "arguments": "{}"}},
            {"role": "function", "name": "g", "content": "1"},
            {"role": "function", "name": "nobody", "content": [{"type": "text", "text": "asked"}]},
            {"role": "assistant", "tool_calls": [{"index": 0, "id": None, "type": "?", "function": {"name": "a b"}}]},
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}]},
            {"role": "user", "content": [{"type": "input_text", "text": "habit"}, {"type": "video_url"}]},
            {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:,x", "file_id": "f"}}]},
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}],
            },
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}]},
        ],
    ),
    "openai-responses": (
        "input",
        [
            {"role": "USER", "content": [{"type": "text", "text": "habit"}, {"type": "output_text", "text": "other"}]},
            {"role": "tool", "content": "42"},
            {"role": "assistant", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]},
            {"type": "reasoning", "id": "nobody's", "encrypted_content": "b", "summary": None},
            {"type": "message", "id": "msg_9", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"type": "item_reference", "id": "msg_1"},
            {"type": "function_call", "callId": "x", "name": "f", "arguments": {"a": 1}},
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "a b", "status": "completed", "action": {}},
            {"type": "computer_call", "call_id": "c9", "action": {"type": "wait"}},
            {"type": "tool_search_call", "call_id": "c8", "execution": "client", "arguments": {}},
            {"type": "mcp_call", "id": "mcp_1", "name": "n", "arguments": "{}", "server_label": "s"},
            {"type": "of_tomorrow", "payload": 1},
        ],
    ),
}
"""What is read, and not sent as it is."""

BODIES = {name: {**SOUND[name], key: [*SOUND[name][key], *odd]} for name, (key, odd) in ODD.items()}

ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {
        "id": "c",
        "model": "m",
        "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "a",
                    "annotations": [{"u": 1}],
                    "audio": {"id": "a", "data": "UklGRg==", "transcript": "said"},
                    "reasoning_details": [{"type": "x"}],
                    "tool_calls": [CALL],
                },
            }
        ],
    },
    "openai-responses": {
        "id": "r",
        "status": "completed",
        "model": "m",
        "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 1}},
        "output": [item for item in RESPONSES["input"] if item.get("role") != "user"],
    },
}


def chunks(name: str) -> list[dict[str, Any]]:
    """A stream of the answer."""
    if name == "openai-chat":
        message = ANSWERS[name]["choices"][0]["message"]
        deltas = [{key: value} for key, value in (*message.items(), ("function_call", {"name": "f"}))]
        ends: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": []},
        ]
        return [*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), *ends]
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r", "output": []}}]
    for i, item in enumerate(ANSWERS[name]["output"]):
        events.append({"type": "response.output_item.added", "output_index": i, "item": item})
        events.append({"type": "response.output_text.delta", "output_index": i, "content_index": 0, "delta": "d"})
        events.append({"type": "response.function_call_arguments.delta", "output_index": i, "delta": "{"})
        if i % 2:
            events.append({"type": "response.output_item.done", "output_index": i, "item": item})
    return [*events, {"type": "response.completed", "response": ANSWERS[name]}]


seeds = st.integers(0, 2**32)
names = pytest.mark.parametrize("name", sorted(BODIES))


def read(reader: Callable[..., Any], *args: Any) -> Any:
    """What `reader` makes of something, or None if it refuses it, which it must do by path."""
    result = attempted(lambda: reader(*args))
    assert not isinstance(result, FormatError) or result.path
    return None if isinstance(result, FormatError) else result


def mutated(value: dict[str, Any], seed: int) -> dict[str, Any]:
    """A damaged copy."""
    return mutant(value, random.Random(seed))


def judge(oracle: ModuleType, name: str) -> Callable[[Any], list[str]]:
    """What refuses a body of this API."""
    found: Any = oracle.check_openai_chat if name == "openai-chat" else oracle.check_openai_responses
    return found  # type: ignore[no-any-return]


@names
def test_the_sound_bodies_are_sound(oracle: ModuleType, name: str) -> None:
    """If what is mutated were refused or mended to begin with, the laws below would say little."""
    assert judge(oracle, name)(SOUND[name]) == []
    prepared = repair(SOUND[name], name)
    assert (prepared.body, prepared.edits, prepared.losses) == (SOUND[name], (), ())


@names
@given(seed=seeds)
def test_what_is_read_can_be_sent(oracle: ModuleType, name: str, seed: int) -> None:
    """A crash, a refusal after repair, a silent change, or a repair that is never done: each costs the
    user a session that cannot go on."""
    body = mutated(BODIES[name], seed)
    prepared = read(repair, body, name)
    if prepared is None:
        return
    assert judge(oracle, name)(prepared.body) == []
    assert prepared.body == body or prepared.edits or prepared.losses
    again = repair(prepared.body, name)
    assert (again.body, again.edits) == (prepared.body, ())


@names
@given(seed=seeds)
def test_tidying_takes_whatever_comes(name: str, seed: int) -> None:
    """Settings of a target come past the parser: sanitizing must take them, once, and leave its input alone."""
    body, aim, speaker = mutated(BODIES[name], seed), target(name, "gpt-4o"), provider(name)
    before = copy.deepcopy(body)
    sanitized = speaker.sanitize(body, aim)
    assert body == before
    assert (sanitized.body == body) == (not sanitized.edits)
    again = speaker.sanitize(sanitized.body, aim)
    assert (again.body, again.edits) == (sanitized.body, ())
    speaker.rules(aim, body)
    choice = speaker.tool_choice(body)
    assert choice is None or speaker.tool_choice(speaker.with_tool_choice({}, choice)) == choice


@names
@given(seed=seeds)
def test_what_is_read_is_written_as_it_was(name: str, seed: int) -> None:
    """A damaged body that was changed without a word would hide the damage from `check`."""
    body, speaker = mutated(BODIES[name], seed), provider(name)
    parsed = read(speaker.parse, body)
    if parsed is None:
        return
    aim = aim_of(name, body.get("model"))
    rendered = speaker.render(shown_messages(parsed), parsed.configuration, aim, parsed.blobs.__getitem__)
    assert rendered.body == body or rendered.losses


@names
@given(seed=seeds)
def test_answers_are_read_or_refused(name: str, seed: int) -> None:
    """An answer is paid for: a crash while reading it would lose it without saying why."""
    reply = read(provider(name).parse_response, mutated(ANSWERS[name], seed))
    assert reply is None or reply.complete == (not reply.error)


@names
@given(seed=seeds)
def test_streams_are_read_or_refused(name: str, seed: int) -> None:
    """One odd event must not cost what came before and after it."""
    assembler = provider(name).assembler()
    events = mutated({"events": chunks(name)}, seed).get("events")
    for chunk in events if isinstance(events, list) else ():
        read(assembler.feed, chunk)
    reply = read(assembler.reply)
    assert reply is None or reply.message.role == "assistant"


@names
@pytest.mark.parametrize("depth", [150, 450, 900, 5_000])
def test_deep_arguments_stay_text(name: str, depth: int) -> None:
    """Arguments that a model nested without end must not take the process with them."""
    deep = '{"a":' * depth + "1" + "}" * depth
    if name == "openai-chat":
        calls = [{"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}]
        body = {"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}]}
    else:
        body = {"model": "m", "input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": deep}]}
    request = repair(body, name).body
    assert json.dumps(deep)[1:-1] in json.dumps(request)


@pytest.mark.slow
@names
def test_deep_bodies_are_refused(name: str) -> None:
    """Objects nested without end are a FormatError, not a RecursionError."""
    deep: dict[str, Any] = {}
    for _ in range(50_000):
        deep = {"a": deep}
    call = {"id": "c", "call_id": "c", "name": "f", "type": "function", "function": {"name": "f", "arguments": deep}}
    body = {
        "messages": [{"role": "assistant", "tool_calls": [call]}],
        "input": [{**call, "type": "function_call", "arguments": deep}],
    }
    for taker in (provider(name).parse, lambda body: provider(name).sanitize(body, target(name, "gpt-4o"))):
        with pytest.raises(FormatError):
            taker(body)
