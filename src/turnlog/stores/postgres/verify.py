"""Verifies a PostgreSQL store: derives again everything that can be derived, and compares it."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.store import Problem
from ..blobs import BlobCheck
from ..records import blob_names, damage_in, numbered, row_kind
from ..segments import Segment
from ..session_rows import CHAIN_START, COLUMNS, SessionRow, chain, seal
from .rows import checksum_at, count_messages, find, row_of, segments_of
from .schema import Db, to_column

_BATCH_ROWS = 500
_ROWS = """select n, kind, checksum, record from turnlog_records where log = %s and n between %s and %s
    order by n limit %s"""
_STRAYS = "select n from turnlog_records where log = %s and (n <= %s or n > %s) order by n"
_OWNERLESS = """select distinct log from turnlog_records
    where not exists (select 1 from turnlog_sessions where no = log) order by log"""


def verify(db: Db, session_id: str | None) -> list[Problem]:
    """The damage in the whole store; or in one session and the blobs it needs. Raises SessionNotFound."""
    check = _Check(db)
    if session_id is not None:
        find(db, session_id)
    where, values = ("", ()) if session_id is None else ("where id = %s", (session_id,))
    rows = db.execute(f"select {COLUMNS}, seal from turnlog_sessions {where} order by no", values, binary=True)
    problems: list[Problem] = []
    for found in rows.fetchall():
        problems += check.session(row_of(found[:-1]), found[-1], whole=session_id is not None)
    if session_id is None:
        for (no,) in db.execute(_OWNERLESS):
            problems.append(Problem("", 0, f"there are records of session number {no}, but no such session"))
    return problems if session_id is not None else [*problems, *check.blobs.rest()]


class _Check:
    """One verification of a store."""

    def __init__(self, db: Db) -> None:
        self._db = db
        self.blobs = BlobCheck((name for (name,) in db.execute("select name from turnlog_blobs")), self._blob)

    def session(self, row: SessionRow, stored_seal: bytes, *, whole: bool) -> Iterator[Problem]:
        """Check one session: its own records, or with `whole` also those that it shares."""
        name = row.id or ""
        if seal(row) != stored_seal:
            yield Problem(name, 0, f"the row of session number {row.no} does not match its checksum")
        try:
            segments = segments_of(self._db, row)
            shared = [] if whole else [segment for segment in segments if segment.key != row.no]
            head = CHAIN_START if whole else checksum_at(self._db, segments, row.parent_records)
        except CorruptRecord as error:
            yield Problem(name, error.record or 0, str(error))
            return
        messages = count_messages(self._db, shared)
        for segment in segments[len(shared) :]:
            head, more = yield from self._records(name, segment, head)
            messages += more
        if head != row.head:
            yield Problem(name, row.records, "the checksum of the last record differs from the one in the session row")
        if messages != row.messages:
            yield Problem(name, 0, f"there are {messages} messages, but the session row counts {row.messages}")
        for (n,) in self._db.execute(_STRAYS, (row.no, row.parent_records, row.records)):
            yield Problem(
                name, n, f"this record lies outside the session's own records {row.parent_records + 1} to {row.records}"
            )

    def _records(self, name: str, segment: Segment, head: bytes) -> Generator[Problem, None, tuple[bytes, int]]:
        """Check the records of a segment after the checksum `head`. Returns the last checksum and the number of
        messages."""
        previous: bytes | None = head
        expected, messages = segment.first, 0
        while rows := self._db.execute(
            _ROWS, (segment.key, expected, segment.last, _BATCH_ROWS), binary=True
        ).fetchall():
            for n, kind, stored, raw in rows:
                if n != expected:
                    yield _gap(name, expected, n - 1)
                    previous = None
                expected = n + 1
                if previous is not None and chain(previous, raw) != stored:
                    damage: str | None = "it does not match its checksum"
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
        if to_column(row_kind(record.body)) != kind:
            return f"its kind is {row_kind(record.body)!r}, but the column says {kind!r}"
        return None

    def _blob(self, name: str) -> bytes | None:
        found = self._db.execute("select data from turnlog_blobs where name = %s", (name,), binary=True).fetchone()
        return None if found is None else bytes(found[0])


def _gap(name: str, first: int, last: int) -> Problem:
    return Problem(name, first, "it is missing" if first == last else f"records {first} to {last} are missing")
