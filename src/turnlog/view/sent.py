"""One message as a target's requests hold it, so far as that does not depend on its neighbours."""

from __future__ import annotations

import msgspec

from ..content import Message, Part, Text, ToolCall, ToolResult
from ..rules import Rules
from .clean import clean, is_blank, sendable_name
from .repair import as_users
from .shown import Shown

__all__ = ["apart", "as_sent", "is_plain"]


def as_sent(shown: Shown, rules: Rules, *, leading: bool = True) -> Message | None:
    """The message as the provider takes it, None if nothing of it; itself if that is all of it. System text that does
    not stand at the beginning (`leading`) is taken to be shown as a user's, if that may be."""
    kept, _, _ = clean([shown], rules)
    message = kept[0].message if kept else None
    if message is not None and message.role == "system" and not leading and rules.system != "inline":
        return as_users(message)
    if message is None or "custom" in rules.call_kinds:
        return message
    parts = tuple(map(_in_json, message.parts))
    same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if same else msgspec.structs.replace(message, parts=parts)


def _in_json(part: Part) -> Part:
    """A call with free text as providers take it that know none: as an argument."""
    if not isinstance(part, ToolCall) or part.kind != "custom":
        return part
    return msgspec.structs.replace(part, arguments={"input": part.raw_arguments}, raw=None, kind="function")


def is_plain(message: Message, rules: Rules) -> bool:
    """Whether it can be told at once that `as_sent` makes nothing of another size of it (lone surrogates count as what
    takes their place); of system text never."""
    if message.role == "system":
        return False
    for part in message.parts:
        if isinstance(part, Text):
            if not part.text or part.text.isspace():
                return False
        elif isinstance(part, ToolCall):
            if part.kind != "function" or message.role != "assistant":
                return False
            if part.raw is not None or not isinstance(part.arguments, dict):
                return False
            if part.signature or sendable_name(part.name, rules) != part.name:
                return False
        elif not isinstance(part, ToolResult) or message.role != "user" or not _is_text(part):
            return False
    return bool(message.parts)


def _is_text(result: ToolResult) -> bool:
    return all(isinstance(part, Text) for part in result.parts)


def apart(message: Message, rules: Rules) -> list[Message]:
    """The messages that a message with results becomes, where each has to stand alone, or where something stands ahead
    of one and nothing may; itself if it is sent as one."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    led = rules.results != "adjacent" or all(isinstance(part, ToolResult) for part in message.parts[: len(results)])
    if message.role != "user" or not results or (led and not rules.results_apart):
        return [message]
    groups = [(result,) for result in results] if rules.results_apart else [tuple(results)]
    others = tuple(part for part in message.parts if not isinstance(part, ToolResult))
    if others and (rules.blank_text or not is_blank(others)):
        return [*(Message(message.role, group) for group in groups), Message(message.role, others)]
    return [Message(message.role, group) for group in groups]
