"""What a session counts of a request beyond what `turnlog.count` says of its body, told from the body alone.

A session counts messages one by one. Two things are less in a whole body: reasoning and signatures, which stop counting
once their turn is over, and results of calls made at once, which OpenAI's chat models are sent as one list. A body that
goes without thinking until a tool loop closes lacks what thinking takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.models.target import Target
from turnlog.providers import provider
from turnlog.tokens.counters import count_at_once, counter_for, joins_results
from turnlog.tokens.protocol import Counter, last_turn

__all__ = ["THINKING", "beyond"]

THINKING = 29
"""Tokens that Claude's prompt has more with thinking enabled."""

_WORD = Message("user", (Text("so"),))


def beyond(body: dict[str, Any], aim: Target) -> int:
    """The tokens by which a session's count of this request is larger than that of its body."""
    counter = counter_for(aim.provider, aim.model)
    parsed = provider(aim.provider).parse(body)

    def count(*messages: Message) -> int:
        return counter.messages(messages, parsed.blob).tokens

    earlier = parsed.messages[: last_turn(parsed.messages)]
    over = sum(count(message) + count(_WORD) - count(message, _WORD) for message in earlier)
    goes_without = body.get("thinking", {}).get("type") in (None, "disabled")
    over += THINKING if "thinking" in aim.settings and goes_without else 0
    return over + sum(_brackets(results, counter) for results in _lists(parsed.messages, counter))


def _lists(messages: Sequence[Message], counter: Counter) -> Iterator[list[ToolResult]]:
    """The results of calls made at once, where they are counted as one list."""
    calls, results = 0, list[ToolResult]()
    for message in (*messages, Message("assistant", ())) if joins_results(counter) else ():
        found = [part for part in message.parts if isinstance(part, ToolResult)]
        if message.role == "assistant":
            yield results if calls > 1 else []
            calls, results = sum(isinstance(part, ToolCall) for part in message.parts), []
        results += found


def _brackets(results: Sequence[ToolResult], counter: Counter) -> int:
    each = sum(count_at_once(Message("user", (result,)), counter).tokens for result in results)
    return each - count_at_once(Message("user", tuple(results)), counter).tokens if results else 0
