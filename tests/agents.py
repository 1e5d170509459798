"""What a model answers, in the shortest form that a session takes: for tests that live turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

import turnlog
from turnlog.models.makers import default_model
from turnlog.models.target import Target
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

__all__ = ["CHAT", "aim_of", "chunks", "says", "session_in"]

CHAT = turnlog.target("openai-chat", "gpt-4o")


def aim_of(provider: str, model: str | None) -> Target:
    """The target of a body; of one without a model, what a usual model takes, and no model's name."""
    aim = turnlog.target(provider, model or default_model(provider))
    return aim if model else msgspec.structs.replace(aim, model="")


def says(text: str = "", *calls: str, name: str = "weather", bill: int = 100) -> dict[str, Any]:
    """A whole response of OpenAI Chat: a text, and calls of `name` with these ids."""
    wanted = [{"id": c, "type": "function", "function": {"name": name, "arguments": '{"city":"Oslo"}'}} for c in calls]
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if wanted:
        message["tool_calls"] = wanted
    choice = {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
    usage = {"prompt_tokens": bill, "completion_tokens": 10}
    return {"id": "chatcmpl-1", "model": "gpt-4o-2024-08-06", "choices": [choice], "usage": usage}


def chunks(*texts: str) -> Iterator[dict[str, Any]]:
    """A streamed response of texts, which does not come to its end."""
    for text in texts:
        yield {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]}


def session_in(store: MemoryStore, name: str = "s", *, shared: bool = False) -> Session:
    """A session of a store, opened as a user would, for OpenAI Chat."""
    return turnlog.open(name, target=CHAT, store=store, shared=shared)
