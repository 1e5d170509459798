"""Servers of models behind an HTTP client, in this process: they answer in each provider's format, as they are told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import httpx2

from turnlog.log.messages import ToolCall

__all__ = ["PATHS", "ModelServer", "answer_in", "events_of"]

PATHS = {
    "openai-chat": "https://api.openai.com/v1/chat/completions",
    "openai-responses": "https://api.openai.com/v1/responses",
    "anthropic": "https://api.anthropic.com/v1/messages",
    "google": "https://generativelanguage.googleapis.com/v1beta/models/{model}:generateContent",
    "google-interactions": "https://generativelanguage.googleapis.com/v1beta/interactions",
}
"""Where the bodies of each provider are sent."""


def answer_in(provider: str, answer: Sequence[str | ToolCall], number: int) -> dict[str, Any]:
    """A whole answer in the format of a provider, which bills 10 tokens and 2."""
    text = " ".join(part for part in answer if isinstance(part, str))
    calls = [part for part in answer if isinstance(part, ToolCall)]
    match provider:
        case "openai-chat":
            tool_calls = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "{}"}}
                for call in calls
            ]
            message = {"role": "assistant", "content": text, **({"tool_calls": tool_calls} if calls else {})}
            choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
            usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
            return {"id": f"c{number}", "object": "chat.completion", "choices": [choice], "usage": usage}
        case "openai-responses":
            content = [{"type": "output_text", "text": text, "annotations": []}]
            output: list[Any] = [{"type": "message", "id": f"m{number}", "role": "assistant", "content": content}]
            output += [
                {"type": "function_call", "id": f"f{i}", "call_id": call.id, "name": call.name, "arguments": "{}"}
                for i, call in enumerate(calls)
            ]
            usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
            kind = {"object": "response", "status": "completed"}
            return {"id": f"r{number}", **kind, "output": output, "usage": usage}
        case "anthropic":
            blocks: list[Any] = [{"type": "text", "text": text}]
            blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": {}} for call in calls]
            kind = {"type": "message", "role": "assistant", "stop_reason": "tool_use" if calls else "end_turn"}
            return {"id": f"a{number}", **kind, "content": blocks, "usage": {"input_tokens": 10, "output_tokens": 2}}
        case "google":
            parts: list[Any] = [{"text": text}]
            parts += [{"functionCall": {"id": call.id, "name": call.name, "args": {}}} for call in calls]
            candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
            return {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 2}}
        case _:
            steps: list[Any] = [{"type": "model_output", "content": [{"type": "text", "text": text}]}]
            steps += [{"type": "function_call", "id": call.id, "name": call.name, "arguments": {}} for call in calls]
            status = "requires_action" if calls else "completed"
            usage = {"total_input_tokens": 10, "total_output_tokens": 2}
            return {"id": f"i{number}", "object": "interaction", "status": status, "steps": steps, "usage": usage}


def events_of(text: str, number: int) -> list[bytes]:
    """A streamed answer of Chat Completions, in as many pieces as it has words."""
    same = {"id": f"c{number}", "object": "chat.completion.chunk", "model": "gpt-4o"}
    chunks = [
        {**same, "choices": [{"index": 0, "delta": {"role": "assistant", "content": word}}]}
        for word in text.replace(" ", " \0").split("\0")
    ]
    chunks.append({**same, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    chunks.append({**same, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}})
    return [*(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]


Pieces = list[bytes | BaseException]


class _Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """Pieces that come one by one; an exception is raised in its place."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            await asyncio.sleep(0)
            if isinstance(piece, BaseException):
                raise piece
            yield piece


class ModelServer(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Answers each request with what `reply` returns: status, headers and pieces of a body. Keeps what came."""

    def __init__(self, reply: Callable[[httpx2.Request], tuple[int, dict[str, str], Pieces]]) -> None:
        self._reply = reply
        self.requests: list[httpx2.Request] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request."""
        request.read()
        self.requests.append(request)
        status, headers, pieces = self._reply(request)
        return httpx2.Response(status, headers=headers, stream=_Body(pieces))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The response to a request."""
        await request.aread()
        await asyncio.sleep(0)
        return self.handle_request(request)
