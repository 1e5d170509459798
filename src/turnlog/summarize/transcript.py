"""Messages as compact text for a summarizer: entries with a title (record number, speaker, kind) and a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
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


_SHARE: dict[Voice, int] = {"tool": 1, "assistant": 3, "system": 6, "user": 12, "notes": 12}
"""How many times longer than a tool's text a text may be before it is cut. The numbers are a judgement: tools write
most and matter least, the user's texts are the task, and notes are short already."""

_GAPS = 3
"""The places where entries may be left out: before the task, after it, at the end."""

_LEAST = 24
"""Tokens. A shorter text of a tool says nothing: leave out the oldest entries instead."""


def excerpt(text: str, tokens: int, count: Callable[[str], int]) -> str:
    """`text`, or as much of its head and tail as fits into `tokens`, with a marker between them.

    Empty if not even the marker fits.
    """
    size = count(text)
    if size <= tokens:
        return text
    keep = len(text) * tokens // size
    while keep:
        head = (keep + 1) // 2
        tail = keep - head
        cut = f"{text[:head]} [... {len(text) - keep:,} characters left out ...] {text[len(text) - tail :]}"
        if count(cut) <= tokens:
            return cut
        keep = keep * 3 // 4
    cut = f"[... {len(text):,} characters left out ...]"
    return cut if count(cut) <= tokens else ""


def fitted(
    entries: Sequence[TranscriptEntry], tokens: int, count: Callable[[str], int], title: int
) -> list[TranscriptEntry]:
    """The entries, cut so that texts and titles take at most `tokens`. Each title takes `title` tokens besides its own.

    Empty if there is room for earlier notes only.
    """
    sizes = [count(entry.text) for entry in entries]
    heads = [count(entry.title) + title for entry in entries]
    reserve = _GAPS * (title + _LEAST)
    kept_indices = _kept(entries, sizes, heads, tokens - reserve)
    whole = len(kept_indices) == len(entries)
    if not whole and all(entries[i].voice == "notes" for i in kept_indices):
        return []
    room = tokens - sum(heads[i] for i in kept_indices) - (0 if whole else reserve)
    level = _level([(sizes[i], _SHARE[entries[i].voice]) for i in kept_indices], room)
    fitted_entries: list[TranscriptEntry] = []
    following = 0
    for i in kept_indices:
        fitted_entries += _gap(entries[following:i])
        entry, allowed = entries[i], level * _SHARE[entries[i].voice]
        text = entry.text if sizes[i] <= allowed else excerpt(entry.text, allowed, count)
        fitted_entries.append(TranscriptEntry(entry.title, text, entry.voice))
        following = i + 1
    return fitted_entries + _gap(entries[following:])


def _gap(entries: Sequence[TranscriptEntry]) -> list[TranscriptEntry]:
    """An entry that says that `entries` are left out; [] if there are none."""
    if not entries:
        return []
    first, last = (entry.title.split()[0] for entry in (entries[0], entries[-1]))
    return [TranscriptEntry("left out", f"[... {len(entries)} entries left out, {first} to {last} ...]", "system")]


def _kept(entries: Sequence[TranscriptEntry], sizes: list[int], heads: list[int], tokens: int) -> list[int]:
    """The indices of the entries that stay: all; or the notes, the user's first entry, and as many of the newest as fit
    if they are cut."""
    least = [
        min(size, _LEAST * _SHARE[entry.voice]) + head for entry, size, head in zip(entries, sizes, heads, strict=True)
    ]
    if sum(least) <= tokens:
        return list(range(len(entries)))
    task = next((i for i, entry in enumerate(entries) if entry.voice == "user"), None)
    first = [i for i, entry in enumerate(entries) if i == task or entry.voice == "notes"]
    newest = [i for i in range(len(entries) - 1, -1, -1) if i not in first]
    indices: list[int] = []
    for i in (*first, *newest):
        if least[i] <= tokens:
            indices.append(i)
            tokens -= least[i]
        elif i not in first:
            break
    return sorted(indices)


def _level(sizes: list[tuple[int, int]], room: int) -> int:
    """The most tokens per share with which everything fits into `room`."""
    low, high = 0, max((size for size, _ in sizes), default=0)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle * share) for size, share in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return low
