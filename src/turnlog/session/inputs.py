"""What callers hand to a session: content, messages, targets and settings, checked and converted."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .._platform.given import text_given
from .._platform.stdlib import difflib
from ..errors import FormatError, InputError
from ..log.arguments import meant_arguments
from ..log.messages import (
    ARGUMENTS_DEPTH,
    Media,
    Message,
    Opaque,
    Outcome,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Unknown,
    extra_keys,
    media_kind,
    parse_arguments,
    sha256_hex,
    unchanged,
)
from ..log.records import Configuration
from ..models.target import Target, check_settings, not_settings
from ..providers import PROVIDERS, provider
from ..providers.protocol import Parsed, Provider
from ..providers.sdk_objects import plain_body

# -- arguments -------------------------------------------------------------------------------------
#
# Arguments of tool calls that are no JSON: a value in their place that says so.


class InvalidArguments(Struct, frozen=True):
    """The `arguments` of a call in `Answer.tool_calls` if the model did not write JSON: the `raw` text that it wrote,
    and the `reason` why that is not JSON. The object counts as false; looking up a key in it raises an InputError with
    the reason."""

    raw: str
    reason: str

    def __bool__(self) -> bool:
        return False

    def __str__(self) -> str:
        return f"the model wrote arguments that are no JSON ({self.reason}): {self.raw:.200}"

    def __getitem__(self, key: str) -> Any:
        raise InputError(
            f"{self}; record this text as the result of the call (outcome 'failed'): the model then repairs it"
        )

    def keys(self) -> Any:
        """Raises InputError, as `arguments["key"]` and `**arguments` do."""
        return self["keys"]


def to_run(call: ToolCall) -> ToolCall:
    """A call of an answer as a program gets it: with the object that the server meant, whatever it wrote, and with
    InvalidArguments for a text that means none."""
    if call.kind != "function" or isinstance(call.arguments, (dict, InvalidArguments)):
        return call
    meant = meant_arguments(call)
    if meant is not None:
        return replace(call, arguments=meant, raw=call.raw_arguments)
    if call.arguments is not None or call.raw is None:
        return call
    return replace(call, arguments=InvalidArguments(call.raw, _reason(call.raw)))


def as_recorded(part: Part) -> Part:
    """A part as it is recorded: a call with what the server wrote, and the outcome in the words of the log."""
    if isinstance(part, ToolResult) and str(part.outcome) == "cancelled":
        return replace(part, outcome="canceled")
    if isinstance(part, ToolCall) and isinstance(part.arguments, InvalidArguments):
        return replace(part, arguments=None)
    if isinstance(part, ToolCall) and part.raw is not None and isinstance(part.arguments, dict):
        written, raw = parse_arguments(part.raw)
        wrote = replace(part, arguments=written, raw=raw)
        return part if isinstance(written, dict) or meant_arguments(wrote) != part.arguments else wrote
    return part


def _reason(raw: str) -> str:
    """Why a text is not taken for JSON."""
    try:
        json.loads(raw, parse_constant=_refuse)
    except ValueError as error:  # also a number of more digits than Python reads
        return str(error)
    except RecursionError:
        pass
    else:
        if raw.count("{") + raw.count("[") <= ARGUMENTS_DEPTH:
            return "a number in it is too large for JSON"
    return f"it is nested more than {ARGUMENTS_DEPTH} levels deep"


def _refuse(name: str) -> Any:
    raise ValueError(f"JSON has no {name}")


Content = str | Part | Sequence[str | Part]
"""The content of a message as callers give it: text, a part, or several."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""The words of `Outcome`."""

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


def outcome_given(outcome: str) -> Outcome:
    """How a call ended, in the word that is recorded: `cancelled` is taken for `canceled`. Raises InputError for any
    other word."""
    if outcome == "cancelled":
        return "canceled"
    for allowed in OUTCOMES:
        if outcome == allowed:
            return allowed
    raise InputError(f"outcome must be one of {', '.join(OUTCOMES)}, not {outcome!r:.100}")


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
    for anything else, FormatError if they cannot be read, or if another provider reads more of one of them."""
    several = isinstance(messages, Iterable) and not isinstance(messages, (Message, Mapping, str))
    given = list(messages) if several else []
    if several and all(isinstance(message, Message) for message in given):
        return Parsed(messages=tuple(map(message_given, given)), configuration=Configuration())
    what = "messages must be a list, of turnlog.Message or in a provider's format (`body['messages']`)"
    if not several or any(isinstance(message, (Message, str, int, float, NoneType)) for message in given):
        raise InputError(f"{what}, not {messages!r:.200}")
    speaker = provider(target().provider)
    try:
        body = plain_body({speaker.conversation: given})
    except FormatError as error:
        raise FormatError(f"{what}; {error}") from error
    return _read(body, speaker)


def _read(body: Mapping[str, Any], speaker: Provider) -> Parsed:
    """The messages of a body as its provider reads them. Raises FormatError, which names the target to pass, if one of
    them is in another provider's format: a part that the provider cannot read would never be sent."""
    wires = body[speaker.conversation]
    try:
        parsed = speaker.parse(body)
    except FormatError as error:
        if (formats := _other_formats(wires, speaker)) is None:
            raise
        message = str(error).removeprefix(f"{error.path}: ")
        raise FormatError(f"{message}; {formats[1]}", path=error.path) from error
    if any(_is_doubtful(message) for message in parsed.messages):
        if (formats := _other_formats(wires, speaker)) is not None:
            raise FormatError(formats[1], path=f"{speaker.conversation}[{formats[0]}]")
        _check_content(wires, speaker)
    return parsed


def _is_doubtful(message: Message) -> bool:
    """Whether a message may hold content that its provider did not read: another one may read it."""
    if not message.parts or any(key not in _ENVELOPE for key in extra_keys(message.form)):
        return True
    return any(_worth(part) < _LEAST.get(type(part), 2) for part in message.parts)


def _check_content(wires: Sequence[Any], speaker: Provider) -> None:
    """Raises FormatError for a message whose content is in a place that no provider reads: the model would get an empty
    message."""
    for i, wire in enumerate(wires):
        messages = speaker.parse({speaker.conversation: [wire]}).messages
        if not isinstance(wire, dict) or any(_worth(part) for message in messages for part in message.parts):
            continue
        parts = [part for message in messages for part in message.parts]
        unread = [key for message in messages for key in extra_keys(message.form) if key not in _ENVELOPE]
        if parts and all(isinstance(part, Opaque) and _is_of_no_kind(part) for part in parts):
            wrong = "its parts have no `type`"
        elif unread and not parts and "content" not in wire:  # a message without content has the key all the same
            wrong = f"it has no `content`, and {speaker.name} does not read {', '.join(unread)}"
        else:
            continue
        raise FormatError(
            f"nothing of this message can be read: {wrong}; use user(text) or assistant(text) for text, or pass the "
            "target whose format it is",
            path=f"{speaker.conversation}[{i}]",
        )


def _is_of_no_kind(part: Opaque) -> bool:
    """Whether a part names its kind by its only key, as Bedrock's blocks do (`{"text": ...}`), and its provider reads
    another key."""
    return (
        isinstance(part.data, dict) and len(part.data) == 1 and "type" not in part.data and part.kind not in part.data
    )


def _other_formats(wires: Sequence[Any], speaker: Provider) -> tuple[int, str] | None:
    """The index of the first message of which other providers read more than `speaker` does, and which target to pass
    instead; None if there is none."""
    others = [other for other in PROVIDERS.values() if other is not speaker]
    for i, wire in enumerate(wires):
        own_value = _value([wire], speaker)
        values = {other.name: _value([wire], other) for other in others}
        best = max(values.values())
        if best[0] > max(own_value[0], 0):
            whole = {name: _value(wires, PROVIDERS[name]) for name, value in values.items() if value == best}
            first, *equal = (name for name, value in whole.items() if value == max(whole.values()))
            also = f" (or of {', '.join(equal)})" if equal else ""
            return i, f"this is a message in the format of {first}{also}: pass target=turnlog.target({first!r}, MODEL)"
        if own_value[0] < 1 and isinstance(wire, Mapping) and (half := _half_read(wire, speaker, others)) is not None:
            return i, half
    return None


def _half_read(wire: Any, speaker: Provider, others: Sequence[Provider]) -> str | None:
    """What is wrong with a message if `speaker` reads nothing of it, and another provider only the key that holds its
    content; None if there is no such provider."""
    for other in others:
        key, error = _error_in(wire, other)
        if key in wire and key != "role" and _value([{**wire, key: "x"}], speaker)[0] < 1:
            return (
                f"this looks like a message in the format of {other.name}, but {error}: mend it, and pass "
                f"target=turnlog.target({other.name!r}, MODEL)"
            )
    return None


def _error_in(wire: Any, speaker: Provider) -> tuple[str, str]:
    """The key of a message in which its provider meets something unreadable, and the error; both empty if there is
    none."""
    try:
        speaker.parse({speaker.conversation: [wire]})
    except FormatError as error:
        inside = error.path.removeprefix(f"{speaker.conversation}[0]")
        return inside.removeprefix(".").split("[")[0].split(".")[0], str(error).replace(error.path, inside[1:], 1)
    return "", ""


def _value(wires: Sequence[Any], speaker: Provider) -> tuple[int, int]:
    """How much of some messages a provider reads, and minus the number of keys that it does not know; (-1, 0) if it
    cannot read them."""
    try:
        messages = speaker.parse({speaker.conversation: list(wires)}).messages
    except FormatError:
        return -1, 0
    parts = [part for message in messages for part in message.parts]
    unknown = sum(len(extra_keys(getattr(holder, "form", None))) for holder in (*messages, *parts))
    known_parts = sum(isinstance(part, Opaque) and speaker.knows(part) for part in parts)
    if speaker.knows(Opaque(speaker.name, "", {})):  # it sends whatever it is given: that it does says nothing
        known_parts = 0
    return sum(_worth(part) for part in parts) + known_parts, -unknown


def _worth(part: Part) -> int:
    """How much of a part was read: nothing of one that was kept whole, more of a call or result that has its id."""
    match part:
        case Text(text=text):
            return 2 if text.strip() else 0
        case ToolCall(id=call_id, arguments=arguments):  # text in place of arguments is how another API has them
            return 3 if call_id and not isinstance(arguments, str) else 2
        case ToolResult(call_id=call_id, parts=parts):
            return (3 if call_id else 2) + sum(_worth(inner) for inner in parts)
        case Opaque() | Unknown():
            return 0
    return 2


_ENVELOPE = frozenset({"id", "status", "type"})
"""Keys of a message that contain nothing for a model, whether or not a provider knows them."""

_LEAST: dict[type, int] = {ToolCall: 3, ToolResult: 3}
"""The worth of a part of this type that was read whole."""


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
        near = difflib.get_close_matches(name, _ARGUMENTS, 1, 0.75)
        if near:
            raise InputError(f"{name!r} is no setting of a request: did you mean {near[0]!r}?")
        if not target.compatible:
            other = "if another server has it, name that: turnlog.target(..., base_url=URL)"
            raise InputError(f"{name!r} is no setting of {speaker.name}: {_meant(name, speaker)} ({other})")


_ARGUMENTS = ("tools", "budget", "strategy")


def _meant(name: str, speaker: Provider) -> str:
    """A hint for a wrong name: where a setting of that name belongs, or a name that is spelled nearly the same."""
    settings = speaker.settings - not_settings().keys()
    common = {**{setting: (setting,) for setting in settings}, **speaker.setting_paths}
    near = difflib.get_close_matches(name, common, 1, 0.7)
    if not near:
        return f"there are {', '.join(sorted(settings))}"
    key, *inner = common[near[0]]
    return f"did you mean {key}={{{inner[0]!r}: ...}}?" if inner else f"did you mean {key!r}?"


def media_of(data: bytes, mime: str, name: str = "") -> Media:
    """A media part for these bytes; the caller puts the bytes into a store."""
    if not isinstance(data, bytes) or not isinstance(mime, str):
        raise InputError("media is given as bytes and a MIME type, e.g. media(data, 'image/png')")
    name = text_given("name", name)
    return Media(media_kind(mime), mime=mime, sha256=sha256_hex(data), size=len(data), name=name)
