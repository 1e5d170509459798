"""Messages as compact text for a summarizer: entries with a title (record number, speaker, kind) and a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import Media, Message, Opaque, Part, Text, ToolCall, ToolResult, compact_json, text_of
from ..view.types import Shown, starts_turn

Voice = Literal["user", "assistant", "system", "tool", "notes"]
"""The author of an entry; `notes` are from the previous summary, or name the messages that stay beside the next one."""

STAYING = "stays beside your notes"
"""The title of the entry that names the messages which stay."""

_TITLE_CHARACTERS = 120

# Messages that stay beside a summary are named with their first words: those of the user say what the task is, the next
# ones how the work went on. The others are counted.
_OWN, _NEXT = 12, 4  # texts of the user, the first and the newest; other texts, the first after the summarised messages
_OWN_CHARACTERS, _OTHER_CHARACTERS, _ORDERS_CHARACTERS = 200, 80, 1_000
_LONE_SURROGATE = lazy_pattern("[\ud800-\udfff]")  # no HTTP client can send one


class TranscriptEntry(Struct, frozen=True):
    """An entry of a transcript: `title` has the record numbers, the speaker and the kind; `text` is what was said."""

    title: str
    text: str
    voice: Voice


def entries_of(messages: Iterable[Shown]) -> list[TranscriptEntry]:
    """A transcript of `messages`, oldest first. Reasoning is left out; media are replaced by their names."""
    return [entry for shown in messages for entry in _entries(shown)]


def earlier_notes(previous: str) -> list[TranscriptEntry]:
    """The previous summary as an entry; [] if there is none."""
    return [TranscriptEntry("earlier notes", _sendable(previous), "notes")] if previous else []


def staying_of(kept: Iterable[Shown], last: int, *, own: bool = False) -> list[TranscriptEntry]:
    """The messages that stay beside a summary of the records up to `last`, as one entry that names them; [] if there
    are none. With `own`, only the texts of the user."""
    lines: list[tuple[str, str, int]] = []  # what it is, the line, its record
    for shown in kept:
        record = shown.records[0] if shown.records else 0
        if shown.treatment == "noted":
            text = clip(_sendable(text_of(shown.message)), _ORDERS_CHARACTERS)
            lines.append(("orders", f"the user's orders: {text}", record))
            continue
        for entry in filter(has_content, _entries(shown)):
            if entry.voice == "user" and not shown.stands_in:
                lines.append(("own", f"{entry.title}: {clip(entry.text, _OWN_CHARACTERS)}", record))
            elif not own:
                lines.append(("other", f"{entry.title}: {clip(entry.text, _OTHER_CHARACTERS)}", record))
    users = [i for i, line in enumerate(lines) if line[0] == "own"]
    following = [i for i, line in enumerate(lines) if line[0] == "other" and line[2] > last]
    named = {*users[:1], *users[1:][1 - _OWN :], *following[:_NEXT]}
    named.update(i for i, line in enumerate(lines) if line[0] == "orders")
    told: list[str] = []
    for is_named, run in groupby(range(len(lines)), named.__contains__):
        indices = list(run)
        if is_named:
            told += [lines[i][1] for i in indices]
        else:
            first, end = lines[indices[0]][2], lines[indices[-1]][2]
            told.append(f"[... {len(indices)} more, #{first} to #{end} ...]")
    return [TranscriptEntry(STAYING, "\n".join(told), "notes")] if told else []


def has_content(entry: TranscriptEntry) -> bool:
    """Whether an entry says anything. The title of a call or a result does: which tool, how it ended."""
    return entry.voice == "tool" or bool(entry.text.strip())


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
