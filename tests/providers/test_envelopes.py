"""Forms of sound bodies that other programs record: sent as they are, not mended."""

from __future__ import annotations

from typing import Any

import pytest

import turnlog
from turnlog.providers import provider
from turnlog.providers.media_bytes import encode_base64
from turnlog.testing.histories import PIXEL

HELLO = [{"role": "user", "content": "Hello."}]
ASK = [{"role": "user", "parts": [{"text": "Hello."}]}]


def untouched(body: dict[str, Any], name: str = "", model: str = "") -> bool:
    """Whether the body comes back as it was, and `check` finds nothing in it."""
    return turnlog.repair(body, name, model=model).body == body and turnlog.check(body, name, model=model) == []


@pytest.mark.parametrize(
    "envelope",
    [
        {"anthropic_version": "vertex-2023-10-16"},
        {"anthropic_version": "vertex-2023-10-16", "stream": True},
        {"anthropic_version": "bedrock-2023-05-31", "anthropic_beta": ["context-management-2025-06-27"]},
    ],
)
def test_vertex_and_bedrock_name_the_model_in_the_url(envelope: dict[str, Any]) -> None:
    """The body would get a model, which both refuse, and lose the version that both require."""
    body = {**envelope, "max_tokens": 100, "messages": HELLO}
    assert untouched(body)
    assert untouched(body, "anthropic", model="claude-opus-5-5")
    thinking = {**body, "thinking": {"type": "disabled"}}  # judged by the model that the caller names
    assert not untouched(thinking, "anthropic", model="claude-fable-5-1")


def test_the_api_of_anthropic_takes_no_version_in_the_body() -> None:
    """It answers 400: Extra inputs are not permitted."""
    body = {"anthropic_version": "2023-06-01", "model": "claude-opus-5-5", "max_tokens": 100, "messages": HELLO}
    assert "anthropic_version" not in turnlog.repair(body).body
    assert [violation.path for violation in turnlog.check(body)] == ["anthropic_version"]


@pytest.mark.parametrize("model", [None, ""])
def test_a_missing_model_is_told(model: str | None) -> None:
    """A model would be put into the body without a word."""
    body = {"model": model, "max_tokens": 100, "messages": HELLO}
    assert [(violation.kind, violation.path) for violation in turnlog.check(body, "anthropic")] == [
        ("setting", "model")
    ]
    assert turnlog.repair(body, "anthropic").body["model"]


def test_enums_by_their_numbers() -> None:
    """Requests of clients that ask for `enum-encoding=int` would lose their schemas and safety settings."""
    schema = {"type": 6, "properties": {"a": {"type": 1}, "b": {"type": 5, "items": {"type": 3}}}}
    body = {
        "contents": ASK,
        "safetySettings": [{"category": 7, "threshold": 3}],
        "generationConfig": {"responseMimeType": "application/json", "responseSchema": schema},
        "tools": [{"functionDeclarations": [{"name": "look", "parameters": schema}]}],
        "toolConfig": {"functionCallingConfig": {"mode": 2}},
    }
    assert untouched(body, "google", model="gemini-2.5-pro")
    made = turnlog.convert(body, "google", to="openai-chat", model="gpt-4o").body
    assert made["tool_choice"] == "required"
    assert made["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}}},
    }


@pytest.mark.parametrize(
    ("number", "stop"), [(1, "STOP"), (2, "MAX_TOKENS"), (10, "MALFORMED_FUNCTION_CALL"), (99, "99"), ("STOP", "STOP")]
)
def test_finish_reasons_by_their_numbers(number: Any, stop: str) -> None:
    """The answer would be refused, or taken for one that was interrupted."""
    content = {"role": "model", "parts": [{"text": "Hi."}]}
    reply = provider("google").parse_response({"candidates": [{"content": content, "finishReason": number}]})
    assert (reply.stop, reply.complete) == (stop, True)
    assert not provider("google").parse_response({"candidates": [{"content": content, "finishReason": 0}]}).complete


@pytest.mark.parametrize("number", [3, 5])
def test_block_reasons_by_their_numbers(number: int) -> None:
    """A blocked prompt would look like an answer that never came."""
    reply = provider("google").parse_response({"promptFeedback": {"blockReason": number}})
    assert reply.complete and reply.stop.isupper()


@pytest.mark.parametrize("url", ["DATA:image/png;base64,", "Data:image/png;base64,", "data:IMAGE/PNG;BASE64,"])
def test_data_urls_in_capitals(url: str) -> None:
    """The image would be dropped, although the API shows it to the model."""
    url += encode_base64(PIXEL)
    chat = {"type": "image_url", "image_url": {"url": url}}
    bodies = (
        {"model": "gpt-4o", "messages": [{"role": "user", "content": [chat]}]},
        {"model": "gpt-5", "input": [{"role": "user", "content": [{"type": "input_image", "image_url": url}]}]},
    )
    for body in bodies:
        assert untouched(body)
        made = turnlog.convert(body, to="anthropic", model="claude-opus-5-5").body
        assert made["messages"][0]["content"][0]["source"]["media_type"] == "image/png"


@pytest.mark.parametrize("model", ["o3-mini", "o3-mini-2025-01-31"])
def test_o3_mini_takes_stop(model: str) -> None:
    """The setting would be dropped, although the API accepts it."""
    assert untouched({"model": model, "messages": HELLO, "stop": ["END"]})


def test_bytes_under_file_data_are_sent_inline() -> None:
    """A file without an address is refused: file_uri: required field is not set."""
    part = {"fileData": {"mimeType": "image/png", "data": encode_base64(PIXEL)}, "videoMetadata": {"fps": 1}}
    body = {"contents": [{"role": "user", "parts": [{"text": "Look."}, part]}]}
    fixed = turnlog.repair(body, "google", model="gemini-2.5-pro")
    sent = fixed.body["contents"][0]["parts"][1]
    assert sent == {"inlineData": part["fileData"], "videoMetadata": {"fps": 1}}
    assert [edit.kind for edit in fixed.edits] == ["media"]


@pytest.mark.parametrize("kind", ["tool_addition", "tool_removal"])
@pytest.mark.parametrize("beside", [[], [{"type": "text", "text": "From now on."}]], ids=["alone", "beside a text"])
def test_tools_changed_in_mid_conversation_stay(kind: str, beside: list[Any]) -> None:
    """The model would keep calling a tool that is gone, or not know one that was added."""
    block = {"type": kind, "tool": {"type": "tool_reference", "name": "look"}}
    body = {
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}}],
        "messages": [
            *HELLO,
            {"role": "system", "content": [*beside, block]},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "Go on."},
        ],
    }
    assert untouched(body)
