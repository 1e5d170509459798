"""Drafts of a log that is being imported, and what importers need to fill it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ..log.messages import Message, ToolCall, ToolResult, sha256_hex
from ..log.records import Body, MessageRecord, Note, SessionOpened
from ..log.store import Draft
from ..redaction import cut_title
from .file_changes import ChangedFiles
from .protocol import Damage


def as_utc(value: Any) -> str:
    """A time as records hold it (UTC, ISO 8601, milliseconds), or "" if `value` is none.

    Takes ISO 8601 text (taken as UTC where it names no zone) and seconds or milliseconds since 1970.
    """
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        else:
            return ""
    except (ValueError, OverflowError, OSError):
        return ""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Drafting:
    """Collects the drafts of one session. `add` returns the record number a draft will have."""

    def __init__(self, file: str, warnings: list[Damage] | None = None) -> None:
        self.file = file
        self.drafts: list[Draft] = []
        self.blobs: dict[str, bytes] = {}
        self.warnings: list[Damage] = [] if warnings is None else warnings
        self.files = ChangedFiles(self.add, self.blob, self.blobs)
        self._time = ""
        self._calls: dict[str, tuple[int, str]] = {}
        self._is_opened = False
        self._context: dict[str, dict[str, Any]] = {}
        self._echoes: dict[tuple[str, str], str] = {}

    @property
    def last(self) -> int:
        """The number of the last record so far."""
        return len(self.drafts)

    def at(self, time: Any) -> None:
        """Records added from here on happened at `time`; no time leaves it as it is."""
        self._time = as_utc(time) or self._time

    def add(self, body: Body) -> int:
        """Append a record and return its number."""
        self.drafts.append(Draft(body, self._time))
        number = len(self.drafts)
        if isinstance(body, MessageRecord):
            for part in body.message.parts:
                if isinstance(part, ToolCall):
                    self._calls[part.id] = (number, part.name)
        return number

    def blob(self, data: bytes) -> str:
        """Keep bytes; returns their name."""
        name = sha256_hex(data)
        self.blobs[name] = data
        return name

    def call_record(self, call_id: str) -> int:
        """The record of the latest call of that id, 0 if there was none."""
        return self._calls.get(call_id, (0, ""))[0]

    def call_name(self, call_id: str) -> str:
        """The tool that the latest call of that id named, "" if there was none."""
        return self._calls.get(call_id, (0, ""))[1]

    def warn(self, line: int, message: str) -> None:
        """Report damage on a line (0: the whole file)."""
        self.warnings.append(Damage(self.file, line, message))

    def opened(self, said: Any, sources: Mapping[str, str]) -> None:
        """Keep from where the session was opened, once, where the transcript says so in a word of `sources`."""
        source = sources.get(said) if isinstance(said, str) else None
        if source and not self._is_opened:
            self._is_opened = True
            self.add(SessionOpened(source))

    def note(self, topic: str, data: Any, text: str = "") -> int:
        """Keep something that is no conversation."""
        return self.add(Note(topic=topic, text=text, data=data))

    def note_changes(self, topic: str, values: Mapping[str, Any]) -> None:
        """Keep those of `values` that differ from the last ones noted under that topic."""
        known = self._context.setdefault(topic, {})
        changed = {key: value for key, value in values.items() if key not in known or known[key] != value}
        if changed:
            known.update(changed)
            self.note(topic, changed)

    def echo(self, topic: str, key: str) -> None:
        """What stands here repeats under `key` a message, which may come after it."""
        self._echoes[self._time, topic] = key

    @property
    def echoes(self) -> dict[tuple[str, str], str]:
        """See `Imported.echoes`. Those from before the first known time have that one, as in `finished`."""
        return {(time or self._first, topic): key for (time, topic), key in self._echoes.items()}

    @property
    def _first(self) -> str:
        return next((draft.time for draft in self.drafts if draft.time), "")

    def finished(self) -> tuple[Draft, ...]:
        """The drafts. Records from before the first known time get that time: imports are
        deterministic, and an empty time would become the store's clock."""
        first = self._first
        return tuple(draft if draft.time else Draft(draft.body, first) for draft in self.drafts)


def result_text(parts: Iterable[Any]) -> str:
    """The text of a tool result's parts, or of a message's results, joined by newlines."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, ToolResult):
            texts.append(result_text(part.parts))
        elif isinstance(getattr(part, "text", None), str):
            texts.append(part.text)
    return "\n".join(texts)


def title_from(message: Message | str) -> str:
    """A title from what a user wrote: its first line that is no markup, at most 80 characters."""
    text = message if isinstance(message, str) else result_text(message.parts)
    for line in text.splitlines():
        plain = line.strip().lstrip("#").strip()
        if plain and not plain.startswith("<"):
            return cut_title(plain)
    return ""


_REPEAT = 40
"""Texts shorter than this are kept wherever they stand: leaving them out saves nothing."""
_BASE64 = re.compile(r"[A-Za-z0-9+/\r\n]{512,}={0,2}\Z")


def is_empty(value: Any) -> bool:
    """Whether a value says nothing: null, false, or an empty text, list or object."""
    return value is None or value is False or (isinstance(value, (str, list, dict)) and not value)


def without_repeats(value: Any, known: Sequence[str], blobs: Mapping[str, bytes]) -> Any:
    """`value` without long texts that stand in `known` word for word, base64 of known blobs (their
    hash instead), and what says nothing. None if nothing is left."""
    if isinstance(value, str):
        if len(value) >= _REPEAT and any(value in text or value.strip() in text for text in known):
            return None
        return _blob_reference(value, blobs)
    if isinstance(value, dict):
        kept = {key: without_repeats(item, known, blobs) for key, item in value.items()}
        kept = {key: item for key, item in kept.items() if not is_empty(item)}
        return None if not kept or kept.keys() == {"type"} else kept
    if isinstance(value, list):
        items = [without_repeats(item, known, blobs) for item in value]
        return [item for item in items if item is not None] or None
    return value


def _blob_reference(text: str, blobs: Mapping[str, bytes]) -> Any:
    if len(text) < 512 or not _BASE64.match(text):
        return text
    try:
        name = sha256_hex(base64.b64decode(text))
    except (binascii.Error, ValueError):
        return text
    return {"sha256": name} if name in blobs else text
