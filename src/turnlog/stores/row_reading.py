"""Reads records from the rows of a database in batches, and checks each against the chain of checksums.

Each store has its own queries; what is read, in which order, and what counts as damage is the same for all databases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from typing import ClassVar

from ..errors import CorruptRecord, SessionNotFound
from ..log.codec import decode_record
from ..log.records import Body, Record
from ..log.store import Problem
from .blobs import BlobCheck
from .records import (
    CHAIN_START,
    MESSAGES,
    Segment,
    SessionRow,
    blob_names,
    chain,
    damage_in,
    damaged_row,
    damaged_session,
    numbered,
    seal,
)

Row = tuple[int, bytes, bytes, bytes | None]
"""A record's number, its checksum, its bytes, and the checksum before it; None if there is no record before it."""


class RowReader(ABC):
    """Reads while others write. Raises CorruptRecord, and SessionNotFound if the session is deleted meanwhile.

    The first batch has `first_rows` rows, or `first_of_kinds`, as often only the newest few are needed; each next batch
    is `growth` times as large, up to `most_rows`. `whole_batches`: a batch with fewer rows of some kinds than asked for
    is the last.
    """

    first_rows: ClassVar[int]
    first_of_kinds: ClassVar[int]
    most_rows: ClassVar[int]
    growth: ClassVar[int]
    whole_batches: ClassVar[bool]

    @abstractmethod
    def batch(
        self, key: int, low: int, high: int, *, reverse: bool, kinds: Collection[str] | None, size: int
    ) -> Sequence[Row]:
        """Up to `size` records of a log from `low` to `high`, all or of these kinds. Between two batches, the database
        is free for others."""

    @abstractmethod
    def checksum_before(self, segments: list[Segment], n: int) -> bytes:
        """The checksum of the record before record `n`."""

    @abstractmethod
    def is_there(self, row: SessionRow) -> bool:
        """Whether the session still exists."""

    @abstractmethod
    def now(self, session_id: str) -> tuple[SessionRow, list[Segment]]:
        """The session as it is now."""

    def read(
        self,
        row: SessionRow,
        segments: list[Segment],
        first: int,
        last: int,
        *,
        reverse: bool,
        kinds: Collection[str] | None = None,
    ) -> Iterator[Record]:
        """The records `first` to `last` of a session; with `kinds`, only those of these kinds."""
        while True:
            try:
                for record in self._once(row, segments, first, last, reverse, kinds):
                    if reverse:
                        last = record.n - 1
                    else:
                        first = record.n + 1
                    yield record
                return
            except CorruptRecord as error:
                row, segments = self._rewritten(row, error)

    def _once(
        self,
        row: SessionRow,
        segments: list[Segment],
        first: int,
        last: int,
        reverse: bool,
        kinds: Collection[str] | None,
    ) -> Iterator[Record]:
        size = self.first_rows if kinds is None else self.first_of_kinds
        for key, begin, end in segments[:: -1 if reverse else 1] if kinds is None or kinds else ():
            low, high = max(first, begin), min(last, end)
            while low <= high:
                batch = self.batch(key, low, high, reverse=reverse, kinds=kinds, size=size)
                for n, stored, raw, before in batch:
                    if kinds is None and n != (high if reverse else low):
                        self._missing(row, high if reverse else low)
                    if n == begin:  # the checksum before it is in another log
                        before = self.checksum_before(segments, n)
                    elif before is None:
                        self._missing(row, n - 1)
                    if n == row.records and stored != row.head:
                        raise damaged_row(row.id)
                    yield _checked(n, before or b"", stored, raw)
                    low, high = (low, n - 1) if reverse else (n + 1, high)
                if not batch or (kinds is not None and self.whole_batches and len(batch) < size):
                    if kinds is None:
                        self._missing(row, high if reverse else low)
                    break
                size = min(size * self.growth, self.most_rows)

    def _rewritten(self, row: SessionRow, error: CorruptRecord) -> tuple[SessionRow, list[Segment]]:
        """The session as it is now, if its checksums have changed: the record that looked damaged was then rewritten
        while it was read. Otherwise raises `error`, with the session's id."""
        current_row, segments = self.now(row.id or "")
        if current_row.no != row.no or current_row == row:
            raise damaged_session(row.id or "", error) from error
        return current_row, segments

    def _missing(self, row: SessionRow, n: int) -> None:
        if not self.is_there(row):
            raise SessionNotFound(f"session {row.id!r} was deleted while it was being read")
        raise CorruptRecord(f"record {n} of session {row.id!r} is missing", record=n)


def _checked(n: int, previous: bytes, stored: bytes, raw: bytes) -> Record:
    if chain(previous, raw) != stored:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    return numbered(n, raw)


# -- row verify ------------------------------------------------------------------------------------
#
# Verifies the rows of a database: derives again what can be derived from records, and compares it.
#
# A store brings the queries; what is compared, and how damage is told, is the same for all databases.

CheckedRow = tuple[int, str, bytes | None, bytes, bool]
"""A record's number, kind, checksum (None if it is not one) and bytes, and whether the columns have their types."""


class RowCheck(ABC):
    """One verification of a store. `blobs` checks the blobs that records need."""

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
        """The kind in the row of a record."""

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
            head, segment_messages = yield from self._records(name, segment, head)
            messages += segment_messages
        if head != row.head:
            yield Problem(name, row.records, "the checksum of the last record differs from the one in the session row")
        if messages != row.messages:
            yield Problem(name, 0, f"there are {messages} messages, but the session row counts {row.messages}")
        own_range = f"{row.parent_records + 1} to {row.records}"
        for n in self.strays(row):
            yield Problem(name, n, f"this record lies outside the session's own records {own_range}")

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
            messages += kind in MESSAGES
            previous = stored
        if expected <= segment.last:
            yield _gap(name, expected, segment.last)
        return previous or b"", messages

    def _content(self, n: int, kind: str, raw: bytes) -> str | None:
        try:
            record = numbered(n, raw)
        except CorruptRecord as error:
            return damage_in(error, n)
        record_kind = self.kind(record.body)
        return None if record_kind == kind else f"it is of kind {record_kind!r}, but its row has the kind {kind!r}"


def row_damage(row: SessionRow, stored_seal: bytes) -> list[Problem]:
    """A Problem if the row of a session does not match its checksum."""
    damage = f"the row of session number {row.no} does not match its checksum"
    return [] if seal(row) == stored_seal else [Problem(str(row.id or ""), 0, damage)]


def _gap(name: str, first: int, last: int) -> Problem:
    return Problem(name, first, "it is missing" if first == last else f"records {first} to {last} are missing")
