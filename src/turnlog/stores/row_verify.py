"""Verifies the rows of a database: derives again what can be derived from records, and compares it.

A store brings the queries; what is compared, and how damage is told, is the same for all databases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator

from ..errors import CorruptRecord
from ..log.codec import decode_record
from ..log.records import Body
from ..log.store import Problem
from .blobs import BlobCheck
from .records import blob_names, damage_in, numbered
from .segments import Segment
from .session_rows import CHAIN_START, SessionRow, chain, seal

CheckedRow = tuple[int, str, bytes | None, bytes, bool]
"""A record's number, kind, checksum (None if it is not one) and bytes, and whether the columns have their types."""


class RowCheck(ABC):
    """One verification of a store. `blobs` checks those that records need."""

    blobs: BlobCheck

    @abstractmethod
    def segments(self, row: SessionRow) -> list[Segment]:
        """The segments of a session. Raises CorruptRecord."""

    @abstractmethod
    def checksum_at(self, segments: list[Segment], n: int) -> bytes:
        """The checksum of record `n`. Raises CorruptRecord."""

    @abstractmethod
    def messages(self, segments: list[Segment]) -> int:
        """The number of messages in these segments."""

    @abstractmethod
    def rows(self, segment: Segment) -> Iterable[CheckedRow]:
        """The records of a segment that are there, in order."""

    @abstractmethod
    def strays(self, row: SessionRow) -> Iterable[int]:
        """The records of a session's log that are not the session's own."""

    @abstractmethod
    def kind(self, body: Body) -> str:
        """The kind that the row of a record says."""

    def session(self, row: SessionRow, *, whole: bool) -> Iterator[Problem]:
        """Check one session: its own records, or with `whole` also those that it shares."""
        name = str(row.id or "")
        try:
            segments = self.segments(row)
            shared = [] if whole else [segment for segment in segments if segment.key != row.no]
            head = CHAIN_START if whole else self.checksum_at(segments, row.parent_records)
        except CorruptRecord as error:
            yield Problem(name, error.record or 0, str(error))
            return
        messages = self.messages(shared)
        for segment in segments[len(shared) :]:
            head, more = yield from self._records(name, segment, head)
            messages += more
        if head != row.head:
            yield Problem(name, row.records, "the checksum of the last record differs from the one in the session row")
        if messages != row.messages:
            yield Problem(name, 0, f"there are {messages} messages, but the session row counts {row.messages}")
        own = f"{row.parent_records + 1} to {row.records}"
        for n in self.strays(row):
            yield Problem(name, n, f"this record lies outside the session's own records {own}")

    def _records(self, name: str, segment: Segment, head: bytes) -> Generator[Problem, None, tuple[bytes, int]]:
        """Check the records of a segment after the checksum `head`. Returns the last checksum and the number of
        messages."""
        previous: bytes | None = head
        expected, messages = segment.first, 0
        for n, kind, stored, raw, typed in self.rows(segment):
            if n != expected:
                yield _gap(name, expected, n - 1)
                previous = None
            expected = n + 1
            if not typed:
                damage: str | None = "its columns are of the wrong type"
            elif previous is not None and chain(previous, raw) != stored:
                damage = "it does not match its checksum"
            else:
                damage = self._content(n, kind, raw)
            if damage:
                yield Problem(name, n, damage)
            else:
                yield from self.blobs.problems(name, n, blob_names(decode_record(raw)))
            messages += kind in ("message", "partial", "system")
            previous = stored
        if expected <= segment.last:
            yield _gap(name, expected, segment.last)
        return previous or b"", messages

    def _content(self, n: int, kind: str, raw: bytes) -> str | None:
        try:
            record = numbered(n, raw)
        except CorruptRecord as error:
            return damage_in(error, n)
        own = self.kind(record.body)
        return None if own == kind else f"it is of kind {own!r}, but its row has the kind {kind!r}"


def row_damage(row: SessionRow, stored_seal: bytes) -> list[Problem]:
    """A Problem if the row of a session does not match its checksum."""
    said = f"the row of session number {row.no} does not match its checksum"
    return [] if seal(row) == stored_seal else [Problem(str(row.id or ""), 0, said)]


def _gap(name: str, first: int, last: int) -> Problem:
    return Problem(name, first, "it is missing" if first == last else f"records {first} to {last} are missing")
