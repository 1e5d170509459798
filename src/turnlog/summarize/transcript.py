"""Messages as compact text for a summarizer: entries with a title (record number, speaker, kind) and a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from ..log.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult, compact_json
from ..view.types import Shown, starts_turn

Voice = Literal["user", "assistant", "system", "tool", "notes"]
"""The author of an entry; `notes` are from the previous summary."""

_TITLE_CHARACTERS = 120
_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")  # no HTTP client can send one


class TranscriptEntry(Struct, frozen=True):
    """An entry of a transcript: `title` has the record numbers, the speaker and the kind; `text` is what was said."""

    title: str
    text: str
    voice: Voice


def entries_of(messages: Iterable[Shown]) -> list[TranscriptEntry]:
    """A transcript of `messages`, oldest first. Reasoning is left out; media are replaced by their names."""
    return [entry for shown in messages for entry in _entries(shown)]


def notes_of(previous: str) -> list[TranscriptEntry]:
    """The previous summary as an entry; [] if there is none."""
    return [TranscriptEntry("earlier notes", _sendable(previous), "notes")] if previous else []


def requests_of(messages: Iterable[Shown]) -> list[TranscriptEntry]:
    """The user's requests, and nothing that was answered."""
    return [entry for shown in messages if starts_turn(shown) for entry in _entries(shown) if entry.voice == "user"]


def _entries(shown: Shown) -> Iterator[TranscriptEntry]:
    numbers = _numbers(shown)
    for part in shown.message.parts:
        entry = _entry(part, shown.message, numbers)
        if entry is not None:
            yield entry


def _entry(part: Part, message: Message, numbers: str) -> TranscriptEntry | None:
    match part:
        case Text() | Media():
            return TranscriptEntry(f"{numbers} {message.role}", _said(part), message.role)
        case ToolCall(name=name):
            return TranscriptEntry(_title(f"{numbers} calls {name}"), _sendable(part.raw_arguments), "tool")
        case ToolResult(name=name, outcome=outcome, parts=parts):
            text = "\n".join(filter(None, map(_said, parts)))
            return TranscriptEntry(_title(f"{numbers} result of {name}, {outcome}"), text, "tool")
        case Opaque(kind=kind):
            return TranscriptEntry(_title(f"{numbers} {message.role}, {kind}"), _said(part), "tool")
        case _:
            return None


def _said(part: object) -> str:
    """The text of a part; the name of media; "" for parts that a summarizer cannot read."""
    match part:
        case Text(text=text):
            return _sendable(text)
        case Media(kind=kind, mime=mime, name=name, url=url):
            place = name or (url if not url.startswith("data:") else "")
            return _sendable(f"[{' '.join(filter(None, (kind, mime, place)))}]")
        case Opaque(data=data):
            return _sendable(compact_json(data))
        case _:
            return ""


def _numbers(shown: Shown) -> str:
    if not shown.records:
        return "#?"
    first, last = shown.records[0], shown.records[-1]
    return f"#{first}" if first == last else f"#{first} to #{last}"


def _title(text: str) -> str:
    """A title on one line, even if the name of a tool has several."""
    return " ".join(_sendable(text).split())[:_TITLE_CHARACTERS]


def _sendable(text: str) -> str:
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)
