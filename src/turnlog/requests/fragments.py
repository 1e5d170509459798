"""The JSON of a request in parts: what stands around the conversation, and its messages with their commas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..view.types import Edit


def around(request: dict[str, Any], key: str) -> tuple[bytes, bytes]:
    """The JSON of a request up to the messages that stand under `key`, and behind them."""
    names = list(request)
    at = names.index(key) if key in names else len(names)
    before = msgspec.json.encode({name: request[name] for name in names[:at]})[1:-1]
    behind = msgspec.json.encode({name: request[name] for name in names[at + 1 :]})[1:-1]
    opening = b"{" + before + (b"," if before else b"") + b'"' + key.encode() + b'":['
    return opening, b"]" + (b"," if behind else b"") + behind + b"}"


def encoded(messages: list[Any]) -> bytes:
    """The JSON of messages without brackets around them."""
    return msgspec.json.encode(messages)[1:-1]


def joined(first: bytes, between: Sequence[bytes], last: bytes) -> list[bytes]:
    """The JSON of wire messages with commas where they belong; `between` has one ahead of each."""
    joined = [first, *between] if first else list(between[1:])
    return [*joined, b"," if joined and last else b"", last]


def is_within(edit: Edit, key: str) -> bool:
    """Whether an edit concerns a message in the list at `key` of a request."""
    return edit.path.startswith(f"{key}[")


def moved(edit: Edit, key: str, by: int) -> Edit:
    """An edit of a message in the list at `key`, for the message `by` places further on."""
    index, _, rest = edit.path.removeprefix(f"{key}[").partition("]")
    return msgspec.structs.replace(edit, path=f"{key}[{int(index) + by}]{rest}")
