"""A count without any vocabulary, that errs on the high side.

Bytes / 3 over-counts English by a third and code by a little less, and is near the truth for the
densest text met in agents' logs (base64, hex, Chinese: 1.3 to 1.8 characters a token for the newest
tokenizers), which is what a limit needs. Measured in docs/counting.md by bench/counts.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..content import Media, Message, Opaque, Part, Reasoning, Text, Tool, ToolCall, ToolResult, compact_json

__all__ = ["COUNTER", "count_message", "count_tools"]

COUNTER = "bytes/3:1"
"""Name and version, as stored with each count."""

_PER_MESSAGE = 8
_PER_PART = 8
_MEDIA = {"image": 1_600, "document": 3_000, "audio": 2_000, "video": 10_000, "file": 3_000}


def _text(text: str) -> int:
    return -(-len(text.encode("utf-8", "surrogatepass")) // 3)


def _part(part: Part) -> int:
    match part:
        case Text(text=text):
            return _text(text)
        case Media(kind=kind):
            return _MEDIA[kind]
        case Reasoning():
            return _text(part.text) + sum(map(_text, part.summary)) + _text(part.signature) + _text(part.encrypted)
        case ToolCall():
            return _PER_PART + _text(part.name) + _text(part.raw_arguments)
        case ToolResult():
            return _PER_PART + sum(map(_part, part.parts))
        case Opaque():
            return _text(compact_json(part.data))
        case _:
            return 0


def count_message(message: Message) -> int:
    """Tokens of a message, at most a few per cent too low for any text met so far."""
    return _PER_MESSAGE + sum(map(_part, message.parts))


def count_tools(tools: Sequence[Tool]) -> int:
    """Tokens of tool declarations."""
    declared = ((tool.name, tool.description, tool.parameters, tool.data) for tool in tools)
    return sum(_PER_PART + _text(compact_json(item)) for item in declared)
