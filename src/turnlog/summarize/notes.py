"""A digest's notes about each text, remembered from one digest to the next, as most texts are in both."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec
from msgspec import Struct

from .._platform.texts import clip
from ..log.messages import Message, Text, ToolCall, ToolResult
from ..view.file_edits import changes_of
from ..view.program_prefaces import is_handover, is_of_program
from ..view.types import Shown
from .events import tasks_of
from .failures import failure_of
from .identifiers import Vocabulary
from .instructions import decisions_of, gives_orders, line_of
from .quotes import sentence_quotes
from .reading import Said, TextFindings, laid_out, read, spelled, texts_of

_REMEMBERED = 20_000  # the most messages read ahead whose notes are kept until a digest is made


class _Entry(Struct, gc=False):
    """The notes about a message, made from `limit` characters of each text; the longest text has `longest`."""

    notes: tuple[TextFindings, ...]
    limit: int
    longest: int

    def holds(self, limit: int) -> bool:
        return limit == self.limit or self.longest <= min(limit, self.limit)


class NoteCache:
    """A cache for Digest: notes about the messages of the last digest and about those read ahead for the next one, and
    which words matter. It changes no result."""

    def __init__(self) -> None:
        self.entries: dict[bytes, _Entry] = {}
        self.vocabulary = Vocabulary()

    def read_ahead(self, messages: Iterable[Shown]) -> None:
        """Read messages of the next digest, so that they need not all be read at once."""
        reader = NoteReader(self)
        reader.read(messages)
        if len(self.entries) > _REMEMBERED:  # no digest was made for a long time
            self.entries = {}
            self.vocabulary.forget(())
        self.entries.update(reader.entries)


class NoteReader:
    """Reads the messages of one digest."""

    def __init__(self, memory: NoteCache) -> None:
        self._memory = memory
        self.entries: dict[bytes, _Entry] = {}
        self.vocabulary = memory.vocabulary

    def read(self, messages: Iterable[Shown]) -> list[Said]:
        """The texts of the messages, with notes."""
        return read(messages, self._notes)

    def close(self, names: Iterable[str]) -> None:
        """Remember the messages read and these identifiers; forget those of earlier digests."""
        for entry in self.entries.values():
            for note in entry.notes:
                note.text = ""
        self._memory.entries = self.entries
        self.vocabulary.forget(names)

    def _notes(self, message: Message, limit: int) -> tuple[TextFindings, ...]:
        key = _key(message)
        entry = self.entries.get(key) or self._memory.entries.get(key)
        if entry is None or not entry.holds(limit):
            parts = [(part, spelled(part)) for part in texts_of(message)]
            notes = tuple(self._note(part, text, message, limit) for part, text in parts)
            entry = _Entry(notes, limit, max((len(text) for _, text in parts), default=0))
        if key:
            self.entries[key] = entry
        return entry.notes

    def _note(self, part: Text | ToolCall | ToolResult, text: str, message: Message, limit: int) -> TextFindings:
        text = laid_out(part, text, limit)
        note = TextFindings(words=tuple(self.vocabulary.words(text)), text=text)
        if isinstance(part, ToolCall):
            note.brief = clip(text, 120)
            note.named = tuple(self.vocabulary.words(note.brief))
            note.changes = tuple(changes_of(part, text))
            note.tasks = tasks_of(part)
        elif isinstance(part, ToolResult):
            note.failure = failure_of(text, part.outcome)
            reason = "" if note.failure is None else note.failure.reason
            note.line = line_of(reason) if reason else ""
            note.orders = bool(reason)
        elif message.role == "user":
            note.line = "" if is_of_program(text) or is_handover(text) else line_of(text)
            # A mail on one line may look typed.
            note.orders = not message.by_program and gives_orders(note.line) and gives_orders(text)
        else:
            note.line = clip(text[-600:], 240)
            note.decisions = decisions_of(text)
            note.sentences = sentence_quotes(text, self.vocabulary)
        return note


def _key(message: Message) -> bytes:
    """The key under which a message is remembered; empty if the message cannot be encoded."""
    try:
        return blake2b(msgspec.msgpack.encode(message), digest_size=16).digest()
    except (ValueError, TypeError, OverflowError, RecursionError):
        return b""
