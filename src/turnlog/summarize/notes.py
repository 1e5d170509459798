"""What a digest makes of each text, remembered from one digest to the next: most of a conversation was there before."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec
from msgspec import Struct

from ..log.messages import Message, Text, ToolCall, ToolResult
from ..view.program_prefaces import is_of_program
from ..view.types import Shown
from .events import error_of, tasks_of
from .file_edits import changes_of
from .identifiers import Vocabulary
from .instructions import decisions_of, gives_orders, line_of
from .reading import Note, Said, clip, laid_out, read, spelled, texts_of
from .speakers import REFUSED, refusal_of

_REMEMBERED = 20_000  # messages: of so many notes are kept, at most, that no digest was made of


class _Entry(Struct, gc=False):
    """The notes of a message, made looking at `limit` characters of each text, the longest of which has `longest`."""

    notes: tuple[Note, ...]
    limit: int
    longest: int

    def holds(self, limit: int) -> bool:
        return limit == self.limit or self.longest <= min(limit, self.limit)


class Memory:
    """A cache for Digest: notes of the messages of the last digest and of those read ahead of the next one, and which
    words matter. It changes no result."""

    def __init__(self) -> None:
        self.entries: dict[bytes, _Entry] = {}
        self.vocabulary = Vocabulary()

    def read_ahead(self, messages: Iterable[Shown]) -> None:
        """Read messages that the next digest will be of, so that this need not be done all at once."""
        reader = Reader(self)
        reader.read(messages)
        if len(self.entries) > _REMEMBERED:  # no digest was made for long
            self.entries = {}
            self.vocabulary.forget(())
        self.entries.update(reader.entries)


class Reader:
    """Reads the messages of one digest."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self.entries: dict[bytes, _Entry] = {}
        self.vocabulary = memory.vocabulary

    def read(self, messages: Iterable[Shown]) -> list[Said]:
        """What was said, with notes."""
        return read(messages, self._notes)

    def close(self, names: Iterable[str]) -> None:
        """Remember what was read, and these identifiers; let go of what was remembered before."""
        for entry in self.entries.values():
            for note in entry.notes:
                note.text = ""
        self._memory.entries = self.entries
        self.vocabulary.forget(names)

    def _notes(self, message: Message, limit: int) -> tuple[Note, ...]:
        key = _key(message)
        entry = self.entries.get(key) or self._memory.entries.get(key)
        if entry is None or not entry.holds(limit):
            parts = [(part, spelled(part)) for part in texts_of(message)]
            notes = tuple(self._note(part, text, message.role == "user", limit) for part, text in parts)
            entry = _Entry(notes, limit, max((len(text) for _, text in parts), default=0))
        if key:
            self.entries[key] = entry
        return entry.notes

    def _note(self, part: Text | ToolCall | ToolResult, text: str, user: bool, limit: int) -> Note:
        text = laid_out(part, text, limit)
        note = Note(words=tuple(self.vocabulary.words(text)), text=text)
        if isinstance(part, ToolCall):
            note.brief = clip(text, 120)
            note.named = tuple(self.vocabulary.words(note.brief))
            note.changes = tuple(changes_of(part, text))
            note.tasks = tasks_of(part)
        elif isinstance(part, ToolResult):
            refusal = refusal_of(text)
            note.error = REFUSED if refusal is not None else error_of(text, part.outcome)
            note.line = line_of(refusal) if refusal else ""
            note.orders = bool(refusal)
        elif user:
            note.line = "" if is_of_program(text) else line_of(text)
            note.orders = gives_orders(note.line)
        else:
            note.line = clip(text[-600:], 240)
            note.decisions = decisions_of(text)
        return note


def _key(message: Message) -> bytes:
    """What a message is remembered by; nothing if it cannot be spelled."""
    try:
        return blake2b(msgspec.msgpack.encode(message), digest_size=16).digest()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""
