"""One message in an API's own shape, read by that API's parser; what cannot be read stays as a note."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import FormatError
from ..log.messages import Message, Opaque, Part
from ..providers.protocol import Provider
from .drafting import Drafting


def read_message(
    provider: Provider, wire: Mapping[str, Any], log: Drafting, line: int, *, opaque: bool = True
) -> Message | None:
    """The message `wire`, its media kept as blobs of `log`; None if nothing of it can be read.

    A content block that cannot be read becomes a warning on `line` and a note; the others are kept.
    So does, without `opaque`, a block of a kind that only the provider itself understands: for
    agents that write none, so that one is damage.
    """
    whole = _parsed(provider, wire, log)
    if whole is not None:
        return whole if opaque else _without_opaque(whole, log, line)
    content = wire.get("content")
    if not isinstance(content, list):
        _unreadable(wire, log, line)
        return None
    parts: list[Part] = []
    kept: Message | None = None
    for block in content:
        single = _parsed(provider, {**wire, "content": [block]}, log)
        if single is None:
            _unreadable(block, log, line)
        else:
            kept = kept or single
            parts += single.parts
    if kept is None:
        return None
    message = msgspec.structs.replace(kept, parts=tuple(parts))
    return message if opaque else _without_opaque(message, log, line)


def _without_opaque(message: Message, log: Drafting, line: int) -> Message:
    strange = [part for part in message.parts if isinstance(part, Opaque)]
    for part in strange:
        _unreadable(part.data, log, line)
    if not strange:
        return message
    return msgspec.structs.replace(message, parts=tuple(p for p in message.parts if not isinstance(p, Opaque)))


def _parsed(provider: Provider, wire: Mapping[str, Any], log: Drafting) -> Message | None:
    try:
        parsed = provider.parse({"messages": [wire]})
    except FormatError:
        return None
    log.blobs.update(parsed.blobs)
    return parsed.messages[0] if parsed.messages else None


def _unreadable(value: Any, log: Drafting, line: int) -> None:
    log.warn(line, "content that could not be read is kept as a note")
    log.note("unreadable", value)
