"""One message as a target's requests hold it, so far as that does not depend on its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ..log.messages import Media, Message, Part, Text, ToolCall, ToolResult, shown_apart, unchanged
from .repair.clean import clean, is_blank, sendable_name
from .repair.repair import as_users
from .rules import Rules
from .types import Shown

Known = Callable[[Sequence[Shown]], Sequence[Shown]]
"""Messages with media as their bytes have it, and without what the provider would not know."""


def as_sent(shown: Shown, rules: Rules, *, leading: bool = True, known: Known = list) -> Message | None:
    """The message as the provider takes it, None if nothing of it; itself if that is all of it. System text that does
    not stand at the beginning (`leading`) is taken to be shown as a user's, if that may be."""
    kept, _, _ = clean(known([shown]), rules)
    message = kept[0].message if kept else None
    if message is not None and message.role == "system" and not leading and rules.system != "inline":
        return as_users(message)
    return None if message is None else as_spelled(message, rules)


def as_spelled(message: Message, rules: Rules) -> Message:
    """A repaired message with the parts that a request spells as others; itself if it has none."""
    parts = tuple(_part(part, rules) for part in message.parts)
    same = unchanged(parts, message.parts)
    return message if same else msgspec.structs.replace(message, parts=parts)


def _part(part: Part, rules: Rules) -> Part:
    """A call with free text as providers take it that know none: as an argument. A failed result with the text that it
    has to have."""
    if isinstance(part, ToolCall) and part.kind == "custom" and "custom" not in rules.call_kinds:
        return msgspec.structs.replace(part, arguments={"input": part.raw_arguments}, raw=None, kind="function")
    if isinstance(part, ToolResult) and _has_to_speak(part, rules):
        return msgspec.structs.replace(part, parts=(*part.parts, Text(rules.failed_says)))
    return part


def _has_to_speak(result: ToolResult, rules: Rules) -> bool:
    if result.outcome == "ok" or not rules.failed_says:
        return False
    return not any(isinstance(part, Text) and part.text for part in result.parts)


def is_plain(message: Message, rules: Rules) -> bool:
    """Whether it is plain without trying that `as_sent` leaves the size of a message as it is. Of system text it never
    is. Lone surrogates count as what takes their place."""
    if message.role == "system":
        return False
    for part in message.parts:
        if isinstance(part, Text):
            if not part.text or part.text.isspace():
                return False
        elif isinstance(part, ToolCall):
            if part.kind != "function" or message.role != "assistant":
                return False
            if not isinstance(part.arguments, dict):
                return False
            if part.signature or sendable_name(part.name, rules) != part.name:
                return False
        elif not isinstance(part, ToolResult) or message.role != "user" or not _is_text(part):
            return False
        elif _has_to_speak(part, rules):
            return False
    return bool(message.parts)


def _is_text(result: ToolResult) -> bool:
    return all(isinstance(part, Text) for part in result.parts)


def apart(message: Message, rules: Rules) -> list[Message]:
    """The messages that a user's message with results is sent as. They are several where each result has to be a
    message of its own, or where something else stands ahead of a result and may not; else it is itself."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    led = rules.results != "adjacent" or all(isinstance(part, ToolResult) for part in message.parts[: len(results)])
    if message.role != "user" or not results or (led and not rules.results_apart):
        return [message]
    others = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if rules.results_apart:
        media = tuple(part for result in results for part in _beside(result))
        groups = [(_bare(result),) for result in results] + ([media] if media else [])
    else:
        groups = [tuple(results)]
    if others and (rules.blank_text or not is_blank(others)):
        groups.append(others)
    return [message] if groups == [message.parts] else [Message(message.role, group) for group in groups]


def _beside(result: ToolResult) -> tuple[Part, ...]:
    """The media of a result where they are shown behind it, with the words ahead of them."""
    media = tuple(part for part in result.parts if isinstance(part, Media))
    return (Text(shown_apart(result)[0]), *media) if media else ()


def _bare(result: ToolResult) -> ToolResult:
    """A result without its media, and with the words in their place if it says nothing else."""
    left = tuple(part for part in result.parts if not isinstance(part, Media))
    if len(left) == len(result.parts):
        return result
    return msgspec.structs.replace(result, parts=left or (Text(shown_apart(result)[1]),))
