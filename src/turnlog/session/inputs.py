"""What callers hand to a session: content, messages, targets and settings, checked and converted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType
from typing import Any

import msgspec

from ..errors import FormatError, InputError
from ..log.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    media_kind,
    sha256_hex,
    unchanged,
)
from ..log.records import Configuration
from ..models.target import NOT_SETTINGS, Target, check_settings
from ..providers import provider
from ..providers.protocol import Parsed, Provider
from ..providers.sdk_objects import plain_body
from .arguments import as_recorded

Content = str | Part | Sequence[str | Part]
"""What a message is given as: text, a part, or several."""

_PARTS = (Text, Media, Reasoning, ToolCall, ToolResult, Opaque)


def parts_of(content: Content) -> tuple[Part, ...]:
    """Content as parts of a message. Raises InputError if it is neither text nor a part."""
    if isinstance(content, str):
        return (Text(content),)
    if isinstance(content, _PARTS):
        return (content,)
    if isinstance(content, (list, tuple)):
        parts = tuple(
            Text(item) if isinstance(item, str) else item for item in content if item != "" or len(content) == 1
        )
        wrong = [part for part in parts if not isinstance(part, _PARTS)]
        if not wrong:
            return parts
        content = wrong[0]
    raise InputError(
        f"content is text, a part or a list of them, not {type(content).__name__}: use turnlog.Text, "
        "session.media(data, mime), ...; `add` takes a whole Message, `receive` a provider's answer"
    )


def message_given(message: Message) -> Message:
    """`message`, if it is a turnlog.Message, with the arguments of its calls as they are recorded; else InputError."""
    if isinstance(message, Message):
        parts = tuple(map(as_recorded, message.parts)) if isinstance(message.parts, (tuple, list)) else message.parts
        same = not isinstance(parts, tuple) or unchanged(parts, message.parts)
        return message if same else msgspec.structs.replace(message, parts=parts)
    what = "use user(text) or assistant(text) for text, and extend([message]) for a message in a provider's format"
    raise InputError(f"add() takes a turnlog.Message, not {type(message).__name__}; {what}")


def messages_of(messages: Iterable[Any], target: Callable[[], Target]) -> Parsed:
    """Several messages: turnlog.Message objects, or messages in the format of the target's provider. Raises InputError
    for anything else, FormatError if they cannot be read."""
    several = isinstance(messages, Iterable) and not isinstance(messages, (Message, Mapping, str))
    found = list(messages) if several else []
    if several and all(isinstance(message, Message) for message in found):
        return Parsed(messages=tuple(map(message_given, found)), configuration=Configuration())
    what = "messages must be a list, of turnlog.Message or in a provider's format (`body['messages']`)"
    if not several or any(isinstance(one, (Message, str, int, float, NoneType)) for one in found):
        raise InputError(f"{what}, not {messages!r:.200}")
    speaker = provider(target().provider)
    try:
        body = plain_body({speaker.conversation: found})
    except FormatError as error:
        raise FormatError(f"{what}; {error}") from error
    return speaker.parse(body)


def target_given(target: Target) -> Target:
    """`target`, if it is a Target; raises InputError otherwise, and for a setting that its provider does not have."""
    if not isinstance(target, Target):
        raise InputError(f"target must be what turnlog.target(PROVIDER, MODEL) returns, not {type(target).__name__}")
    if target.settings:
        settings_given(target.settings, target)
    return target


def settings_given(settings: Collection[str], target: Target, held: Collection[str] = ()) -> None:
    """Raises InputError for names that are not settings of the target's provider, or that are arguments of
    `Session.configure`. Names in `held` are on record already and allowed; a compatible server may have settings of its
    own."""
    check_settings(settings)
    speaker = provider(target.provider)
    for name in settings:
        if name in speaker.settings or name in held:
            continue
        near = get_close_matches(name, _ARGUMENTS, 1, 0.75)
        if near:
            raise InputError(f"{name!r} is no setting of a request: did you mean {near[0]!r}?")
        if not target.compatible:
            other = "if another server has it, name that: turnlog.target(..., base_url=URL)"
            raise InputError(f"{name!r} is no setting of {speaker.name}: {_meant(name, speaker)} ({other})")


_ARGUMENTS = ("tools", "budget", "strategy")


def _meant(name: str, speaker: Provider) -> str:
    """A hint for a wrong name: where a setting of that name belongs, or a name that is spelled nearly the same."""
    common = {**{one: (one,) for one in speaker.settings - NOT_SETTINGS}, **speaker.setting_paths}
    near = get_close_matches(name, common, 1, 0.7)
    if not near:
        return f"there are {', '.join(sorted(speaker.settings - NOT_SETTINGS))}"
    key, *inner = common[near[0]]
    return f"did you mean {key}={{{inner[0]!r}: ...}}?" if inner else f"did you mean {key!r}?"


def media_of(data: bytes, mime: str, name: str = "") -> Media:
    """The media part of these bytes, which have to be put into a store."""
    if not isinstance(data, bytes) or not isinstance(mime, str):
        raise InputError("media is given as bytes and a MIME type, e.g. media(data, 'image/png')")
    return Media(media_kind(mime), mime=mime, sha256=sha256_hex(data), size=len(data), name=name)
