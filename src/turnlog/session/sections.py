"""The system prompt in sections as a log has it: the newest record of its sections, and the messages that show them."""

from __future__ import annotations

from collections.abc import Iterable

from ..log.prompt import PromptRecord
from ..log.records import MessageRecord, Record
from ..log.store import RecordStore


class Sections:
    """The sections of one session. `record` is the newest record of them, None if there is none; `of` is the section of
    each message that shows one, by record number."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self.record: PromptRecord | None = None
        self.of: dict[int, str] = {}
        self._store = store
        self._id = session_id
        self._read = 0

    def load(self, records: Iterable[Record], last: int) -> None:
        """Take in a log of `last` records, of which these are at hand."""
        newer = self._store.of_kinds(self._id, ("prompt",), first=self._read + 1, reverse=True)
        for record in newer:
            if isinstance(record.body, PromptRecord):
                self.record = record.body
                break
        self._read, self.of = last, {}
        for record in records:
            self.take(record)

    def take(self, record: Record) -> None:
        """Take in a record."""
        if isinstance(record.body, MessageRecord) and record.body.section:
            self.of[record.n] = record.body.section
        elif isinstance(record.body, PromptRecord):
            self.record = record.body
