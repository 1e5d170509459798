"""Verifies an SQLite store: derives again everything that can be derived, and compares it.

Two kinds of damage are not found: damage to bytes without meaning (free space, header fields that SQLite ignores), and
damage to a write-ahead log before it is moved into the file, because SQLite takes it for the end of the log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from typing import Any

from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.store import Problem
from ..blobs import BlobCheck, BlobFolder
from ..records import blob_names, damage_in, kind_of, numbered, row_kind
from ..segments import Segment
from ..session_rows import CHAIN_START, COLUMNS, SessionRow, chain, seal
from .damaged import mended
from .packs import held
from .schema import SEARCH_VERSION, SYSTEM_VERSION, record_id, table_definitions, upgrade, version_of
from .segments import checksum_at, count_messages, segments_of

_MAX_INTEGRITY_ROWS = 100


def verify_store(db: sqlite3.Connection, files: BlobFolder, session_id: str | None) -> list[Problem]:
    """The damage in the whole store; or in one session and the blobs it needs."""
    db.text_factory = _text
    db.execute("begin")
    problems: list[Problem] = []
    check = _Check(db, files, problems)
    if session_id is None:
        check.run(_verify_file(db))
    check.run(check.find_blobs())
    check.run(check.sessions(session_id))
    if session_id is None:
        check.run(_verify_owners(db))
        check.run(_verify_index(db))
        check.run(check.blobs.rest())
    return problems


def _text(value: bytes) -> str:
    """Text as stored, damaged or not. Two different byte strings never give the same text."""
    return value.decode("utf-8", "surrogateescape")


class _Check:
    """One verification of a store: collects problems."""

    def __init__(self, db: sqlite3.Connection, files: BlobFolder, problems: list[Problem]) -> None:
        self._db = db
        self._files = files
        self._problems = problems
        self.blobs = BlobCheck((), self._blob)
        self._kind = row_kind if version_of(db) >= SYSTEM_VERSION else kind_of

    def run(self, found: Iterable[Problem]) -> None:
        """Collect the problems that a check finds. If SQLite raises an error in the middle, that is a problem, too."""
        try:
            self._problems.extend(found)
        except (sqlite3.Error, UnicodeError) as error:  # UnicodeError: damaged text
            self._problems.append(Problem("", 0, f"sqlite: {error}"))

    def find_blobs(self) -> Iterator[Problem]:
        known = {str(name) for (name,) in self._db.execute("select sha256 from blobs")}
        self.blobs = BlobCheck(known.union(self._files.names()), self._blob)
        yield from ()

    def sessions(self, session_id: str | None) -> Iterator[Problem]:
        wanted = "" if session_id is None else "where id = ?"
        rows = self._db.execute(
            f"select {COLUMNS}, seal from sessions {wanted} order by no", () if session_id is None else (session_id,)
        )
        for *values, stored_seal in rows:
            row, whole = SessionRow(*values), session_id is not None
            try:
                self._problems.extend(self._session(row, stored_seal, whole=whole))
            except (sqlite3.Error, UnicodeError) as error:
                self.run(self._one_by_one(row, error, whole=whole))
        yield from ()

    def _one_by_one(self, row: SessionRow, error: Exception, *, whole: bool) -> Iterator[Problem]:
        """Check the records of a session one by one, because a damaged page of the file ends reading them together."""
        name, known = str(row.id or ""), {(one.session, one.record) for one in self._problems}
        found = False
        for one in mended(self._db, row, 1 if whole else row.parent_records + 1, row.records):
            found = found or isinstance(one, Problem)
            if isinstance(one, Problem):
                yield from [one] if (name, one.record) not in known else []
            elif (name, one.n) not in known:
                yield from self.blobs.problems(name, one.n, blob_names(one))
        if not found:
            yield Problem(name, 0, f"sqlite: {error}")

    def _session(self, row: SessionRow, stored_seal: bytes, *, whole: bool) -> Iterator[Problem]:
        """Check one session: its own records, or with `whole` also those that it shares."""
        name = str(row.id or "")
        if seal(row) != stored_seal:
            yield Problem(name, 0, f"the row of session number {row.no} does not match its checksum")
        if not _has_numbers(row):
            return
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
        yield from self._strays(name, row)

    def _strays(self, name: str, row: SessionRow) -> Iterator[Problem]:
        strays = self._db.execute(
            "select id & 0xffffffff from records where id between ? and ? or id between ? and ?",
            (
                record_id(row.no, 0),
                record_id(row.no, row.parent_records),
                record_id(row.no, row.records + 1),
                record_id(row.no, 0xFFFFFFFF),
            ),
        )
        for (n,) in strays:
            yield Problem(
                name, n, f"this record lies outside the session's own records {row.parent_records + 1} to {row.records}"
            )

    def _records(self, name: str, segment: Segment, head: bytes) -> Generator[Problem, None, tuple[bytes, int]]:
        """Check the records of a segment after the checksum `head`. Returns the last checksum and the number of
        messages."""
        previous: bytes | None = head
        expected, messages = segment.first, 0
        rows = self._db.execute(
            f"select id & 0xffffffff, kind, checksum, typeof(record), {held()} from records "
            "where id between ? and ? order by id",
            (record_id(segment.key, segment.first), record_id(segment.key, segment.last)),
        )
        for n, kind, stored, sort, raw in rows:
            if n != expected:
                yield _gap(name, expected, n - 1)
                previous = None
            expected = n + 1
            damage = None
            if sort not in ("text", "blob") or not isinstance(stored, bytes):
                damage = "its columns are of the wrong type"
            elif previous is not None and chain(previous, raw) != stored:
                damage = "it does not match its checksum"
            else:
                damage = self._content(n, kind, raw)
            if damage:
                yield Problem(name, n, damage)
            else:
                yield from self.blobs.problems(name, n, blob_names(decode_record(raw)))
            messages += kind in ("message", "partial", "system")
            previous = stored if isinstance(stored, bytes) else None
        if expected <= segment.last:
            yield _gap(name, expected, segment.last)
        return previous or b"", messages

    def _content(self, n: int, kind: str, raw: bytes) -> str | None:
        try:
            record = numbered(n, raw)
        except CorruptRecord as error:
            return damage_in(error, n)
        if self._kind(record.body) != kind:
            return f"it is of kind {self._kind(record.body)!r}, but its row has the kind {kind!r}"
        return None

    def _blob(self, name: str) -> bytes | None:
        """The bytes of a blob; None if there are none that can be read."""
        with suppress(sqlite3.DatabaseError):  # a damaged page of the file
            found = self._db.execute("select typeof(data), cast(data as blob) from blobs where sha256 = ?", (name,))
            with closing(found):
                sort, data = found.fetchone() or ("blob", self._files.get(name))
            return data if sort == "blob" else None
        return None


def _verify_file(db: sqlite3.Connection) -> Iterator[Problem]:
    """Check the file with SQLite, and compare its tables with those that this version creates."""
    for (message,) in db.execute(f"pragma integrity_check({_MAX_INTEGRITY_ROWS})"):
        if message != "ok":
            yield Problem("", 0, f"sqlite: {message}")
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        upgrade(model, "", to=version_of(db))  # a store opened read-only may have an older version
        if _definitions(db) != _definitions(model):
            yield Problem("", 0, "the tables are not defined as this version defines them")


def _definitions(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The expected tables. Those of an older search index are ignored: nothing uses them, and the upgrade drops
    them."""
    old = version_of(db) < SEARCH_VERSION
    return [each for each in table_definitions(db) if not (old and each[1].startswith("search"))]


def _verify_owners(db: sqlite3.Connection) -> Iterator[Problem]:
    """Find records of sessions that do not exist. Reads one record of each session."""
    found = db.execute("select min(id) from records").fetchone()[0]
    while found is not None:
        no = found >> 32
        if db.execute("select 1 from sessions where no = ?", (no,)).fetchone() is None:
            yield Problem("", 0, f"there are records of session number {no}, but no such session")
        found = db.execute("select min(id) from records where id >= ?", (record_id(no + 1, 0),)).fetchone()[0]


def _verify_index(db: sqlite3.Connection) -> Iterator[Problem]:
    """Check how far each session is indexed. The content of the index is derived, and a search can build it again."""
    if version_of(db) < SEARCH_VERSION:
        return
    for no, records in db.execute("select no, records from searched"):
        found = db.execute("select parent_records, records from sessions where no = ?", (no,)).fetchone()
        if found is None or not found[0] <= records <= found[1]:
            yield Problem("", 0, f"the search index has records of session number {no} that do not exist")


def _has_numbers(row: SessionRow) -> bool:
    numbers = (row.no, row.records, row.messages, row.parent_records, row.base or 0)
    return all(isinstance(number, int) and 0 <= number <= 0xFFFFFFFF for number in numbers)


def _gap(name: str, first: int, last: int) -> Problem:
    return Problem(name, first, "it is missing" if first == last else f"records {first} to {last} are missing")
