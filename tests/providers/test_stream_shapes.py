"""Servers that do not stream: a whole answer, or an error in any shape, where the chunks of a stream are expected."""

from __future__ import annotations

from typing import Any

import pytest
from sound import ANSWERS, STREAMS

from turnlog.errors import FormatError
from turnlog.providers import PROVIDERS, provider
from turnlog.providers.error_bodies import error_chunk

WHOLE = {
    **ANSWERS,
    "google-interactions": {
        "id": "i",
        "model": "gemini-3-pro",
        "status": "requires_action",
        "steps": [
            {"type": "thought", "signature": "AAAA", "summary": [{"type": "text", "text": "Hm."}]},
            {"type": "model_output", "content": [{"type": "text", "text": "a"}]},
            {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}},
        ],
        "usage": {"total_input_tokens": 1, "total_output_tokens": 2},
    },
}
ERRORS: dict[str, dict[str, Any]] = {
    "wrapped": {"error": {"message": "slow down", "code": 429}},
    "text": {"error": "slow down"},
    "message": {"message": "slow down", "code": 429},
    "OpenAI's without its wrapper": {"message": "slow down", "type": "rate_limit_error", "param": None, "code": None},
    "vLLM": {"object": "error", "message": "slow down", "type": "TooManyRequests", "code": 429},
    "FastAPI": {"detail": "slow down"},
    "FastAPI's validation": {"detail": [{"loc": ["body"], "msg": "slow down", "type": "value_error"}]},
    "type": {"type": "error", "message": "slow down"},
    "Anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "slow down"}},
    "event type": {"event_type": "error", "message": "slow down"},
    "status": {"status": "error", "message": "slow down"},
    "error_msg": {"error_code": 17, "error_msg": "slow down"},
    "Bedrock": {"throttlingException": {"message": "slow down"}},
    "AWS": {"Message": "slow down"},
    "Cloudflare": {"success": False, "errors": [{"code": 1, "message": "slow down"}], "messages": [], "result": None},
    "errors": {"errors": ["slow down"]},
    "exception": {"exception": "slow down"},
}
names = pytest.mark.parametrize("name", PROVIDERS)


@names
def test_a_whole_answer_as_the_only_chunk_is_read_as_one(name: str) -> None:
    """A server that cannot stream answers a streamed request with one body: the answer would be empty."""
    assembler = provider(name).assembler()
    assembler.feed(WHOLE[name])
    whole, read = provider(name).parse_response(WHOLE[name]), assembler.reply()
    assert read.message.parts
    assert read == whole


@names
@pytest.mark.parametrize("shape", ERRORS)
def test_an_error_is_told_whatever_its_shape(name: str, shape: str) -> None:
    """Without a key `error`, a chunk was no part of an answer and nothing else: the answer ended for no reason."""
    assembler = provider(name).assembler()
    assembler.feed(ERRORS[shape])
    reply = assembler.reply()
    assert not reply.complete
    assert "slow down" in reply.error
    with pytest.raises(FormatError, match=r"this is an error, not an answer: .*slow down"):
        provider(name).parse_response(ERRORS[shape])


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("shape", ERRORS)
def test_an_error_within_an_answer_leaves_what_came_before_it(name: str, shape: str) -> None:
    """What had been said would be lost, or count as a whole answer."""
    assembler, until = provider(name).assembler(), provider(name).assembler()
    for chunk in STREAMS[name][:3]:
        assembler.feed(chunk)
        until.feed(chunk)
    assembler.feed(ERRORS[shape])
    assert assembler.reply().message == until.reply().message
    assert "slow down" in assembler.reply().error


@pytest.mark.parametrize(
    "chunk",
    [
        {"error": True, "message": "slow down"},
        {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "slow down"}},  # MiniMax
        {"title": "Too many", "status": 429, "detail": "slow down", "type": "about:blank"},  # RFC 9457
    ],
)
def test_an_error_of_a_server_like_openai_is_told(chunk: dict[str, Any]) -> None:
    """The answer ended for no reason, and was asked for again whatever the error said."""
    assembler = provider("openai-chat").assembler()
    assembler.feed(chunk)
    assert assembler.reply().error.endswith("slow down")


def test_no_chunk_of_a_sound_stream_is_an_error() -> None:
    """A word in an answer, such as `message`, would break it off."""
    chunks = [(chunk, provider(name).answer_keys) for name, stream in STREAMS.items() for chunk in stream]
    assert [chunk for chunk, keys in chunks if error_chunk(chunk, keys)] == []
    assert error_chunk({"object": "chat.completion.chunk", "message": "waiting"}) == ""
    assert error_chunk({"message": {"role": "assistant", "content": "Ollama's own format"}}) == ""
    assert error_chunk({"choices": [], "message": "in the queue"}, ("choices",)) == ""
    assert error_chunk({"choices": [], "base_resp": {"status_code": 0, "status_msg": "success"}}, ("choices",)) == ""
