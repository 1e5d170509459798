"""Reads records from the rows of a database in batches, and checks each against the chain of checksums.

A store brings the queries; what is read, in which order, and what counts as damage is the same for all databases.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from typing import ClassVar

from ..errors import CorruptRecord, SessionNotFound
from ..log.records import Record
from .records import damaged_session, numbered
from .segments import Segment
from .session_rows import SessionRow, chain, damaged_row

Row = tuple[int, bytes, bytes, bytes | None]
"""A record's number, its checksum, its bytes, and the checksum before it; None if there is no record before it."""


class RowReader(ABC):
    """Reads while others write. Raises CorruptRecord, and SessionNotFound if the session is deleted meanwhile.

    The first batch has `first_rows` rows, or `first_of_kinds`, as often only the newest few are needed; each next one
    is `growth` times as large, up to `most_rows`. `whole_batches`: fewer rows of some kinds than asked for mean that
    there are no more.
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
        """Up to `size` records of a log from `low` to `high`, or of these kinds among them. Between two batches, the
        database is free for others."""

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
        """The session now, if its checksums have changed: then the record that looked damaged was rewritten while it
        was read. Otherwise raises `error`, with the session's id."""
        now, segments = self.now(row.id or "")
        if now.no != row.no or now == row:
            raise damaged_session(row.id or "", error) from error
        return now, segments

    def _missing(self, row: SessionRow, n: int) -> None:
        if not self.is_there(row):
            raise SessionNotFound(f"session {row.id!r} was deleted while it was being read")
        raise CorruptRecord(f"record {n} of session {row.id!r} is missing", record=n)


def _checked(n: int, previous: bytes, stored: bytes, raw: bytes) -> Record:
    if chain(previous, raw) != stored:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    return numbered(n, raw)
