"""Messages in the shape of an API, read by that API's parser; unreadable parts become notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..errors import FormatError
from ..log.messages import Message, Opaque, Part
from ..providers.protocol import Provider
from .drafting import Drafting


def parse(provider: Provider, body: Mapping[str, Any], log: Drafting) -> tuple[Message, ...]:
    """The messages of a request body, with their media stored as blobs of `log`; empty if the body cannot be read."""
    try:
        parsed = provider.parse(body)
    except FormatError:
        return ()
    log.blobs.update(parsed.blobs)
    return parsed.messages


def read_message(
    provider: Provider,
    wire: Mapping[str, Any],
    log: Drafting,
    line: int = 0,
    *,
    opaque: bool = True,
    lines: Sequence[int] = (),
) -> Message | None:
    """The message `wire`, with its media stored as blobs of `log`; None if no part of it can be read.

    A content block that cannot be read becomes a warning on `line` (or its own of `lines`) and a note; the other blocks
    are kept. With `opaque=False`, the same happens to a block that only the provider itself understands: if the agent
    never writes such blocks, the file is damaged.
    """
    holder, key = ("contents", "parts") if "parts" in wire else ("messages", "content")  # Google's API, the others
    messages = parse(provider, {holder: [wire]}, log)
    content = wire.get(key)
    if messages:
        message = messages[0]
    elif isinstance(content, list):
        singles = [(block, parse(provider, {holder: [{**wire, key: [block]}]}, log)) for block in content]
        for index, (block, single) in enumerate(singles):
            if not single:
                log.unreadable(lines[index] if lines else line, "a content block", block)
        read = [single[0] for _, single in singles if single]
        if not read:
            return None
        message = replace(read[0], parts=tuple(part for single in read for part in single.parts))
    else:
        log.unreadable(line, "a message", wire, "entry")
        return None
    return message if opaque else _without_opaque(message, log, line)


def _without_opaque(message: Message, log: Drafting, line: int) -> Message:
    parts: list[Part] = []
    for part in message.parts:
        if isinstance(part, Opaque):
            log.unreadable(line, "a content block", part.data)
        else:
            parts.append(part)
    return message if len(parts) == len(message.parts) else replace(message, parts=tuple(parts))


def with_thinking(message: Message, provider: Provider, blocks: Any, log: Drafting) -> Message | None:
    """The answer with its thinking put first; the agent stored the thinking as `blocks` of that provider. None if the
    blocks cannot be read."""
    if message.role != "assistant" or not isinstance(blocks, list) or not blocks:
        return None
    parsed = parse(provider, {"messages": [{"role": "assistant", "content": blocks}]}, log)
    return replace(message, parts=(*parsed[0].parts, *message.parts)) if parsed else None
