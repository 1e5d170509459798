"""Verifies an SQLite store: derives again everything that can be derived, and compares it.

Two kinds of damage are not found: damage to bytes without meaning (free space, header fields that SQLite ignores), and
damage to a write-ahead log before it is moved into the file, because SQLite takes it for the end of the log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from typing import Any

from ...log.records import Body
from ...log.store import Problem
from ..blobs import BlobCheck, BlobFolder
from ..records import COLUMNS, Segment, SessionRow, blob_names, kind_of, row_kind
from ..row_reading import CheckedRow, RowCheck, row_damage
from .damaged import mended
from .packs import held
from .schema import SEARCH_VERSION, SYSTEM_VERSION, record_id, table_definitions, upgrade, version_of
from .segments import checksum_at, count_messages, segments_of

_MAX_INTEGRITY_ROWS = 100
_ROWS = f"""select id & 0xffffffff, kind, checksum, typeof(record), {held()} from records
    where id between ? and ? order by id"""
_STRAYS = "select id & 0xffffffff from records where id between ? and ? or id between ? and ?"


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


class _Check(RowCheck):
    """One verification of a store: collects problems."""

    def __init__(self, db: sqlite3.Connection, files: BlobFolder, problems: list[Problem]) -> None:
        self._db = db
        self._files = files
        self._problems = problems
        self.blobs = BlobCheck((), self._blob)
        self._kind = row_kind if version_of(db) >= SYSTEM_VERSION else kind_of

    def run(self, problems: Iterable[Problem]) -> None:
        """Collect the problems that a check finds. If SQLite raises an error in the middle, that is a problem, too."""
        try:
            self._problems.extend(problems)
        except (sqlite3.Error, UnicodeError) as error:  # UnicodeError: damaged text
            self._problems.append(Problem("", 0, f"sqlite: {error}"))

    def find_blobs(self) -> Iterator[Problem]:
        names = {str(name) for (name,) in self._db.execute("select sha256 from blobs")}
        self.blobs = BlobCheck(names.union(self._files.names()), self._blob)
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
        """Check the records of a session one by one, because a damaged page of the file stops reading them together."""
        name, reported = str(row.id or ""), {(problem.session, problem.record) for problem in self._problems}
        has_problem = False
        for item in mended(self._db, row, 1 if whole else row.parent_records + 1, row.records):
            has_problem = has_problem or isinstance(item, Problem)
            if isinstance(item, Problem):
                yield from [item] if (name, item.record) not in reported else []
            elif (name, item.n) not in reported:
                yield from self.blobs.problems(name, item.n, blob_names(item))
        if not has_problem:
            yield Problem(name, 0, f"sqlite: {error}")

    def _session(self, row: SessionRow, stored_seal: bytes, *, whole: bool) -> Iterator[Problem]:
        yield from row_damage(row, stored_seal)
        if _has_numbers(row):
            yield from self.session(row, whole=whole)

    def segments(self, row: SessionRow) -> list[Segment]:
        """See `RowCheck`."""
        return segments_of(self._db, row)

    def checksum_at(self, segments: list[Segment], n: int) -> bytes:
        """See `RowCheck`."""
        return checksum_at(self._db, segments, n)

    def messages(self, segments: list[Segment]) -> int:
        """See `RowCheck`."""
        return count_messages(self._db, segments)

    def rows(self, segment: Segment) -> Iterator[CheckedRow]:
        """See `RowCheck`."""
        rows = self._db.execute(_ROWS, (record_id(segment.key, segment.first), record_id(segment.key, segment.last)))
        for n, kind, stored, sort, raw in rows:
            checksum = stored if isinstance(stored, bytes) else None
            yield n, kind, checksum, raw, sort in ("text", "blob") and checksum is not None

    def strays(self, row: SessionRow) -> Iterator[int]:
        """See `RowCheck`."""
        before = record_id(row.no, 0), record_id(row.no, row.parent_records)
        behind = record_id(row.no, row.records + 1), record_id(row.no, 0xFFFFFFFF)
        for (n,) in self._db.execute(_STRAYS, (*before, *behind)):
            yield n

    def kind(self, body: Body) -> str:
        """See `RowCheck`."""
        return self._kind(body)

    def _blob(self, name: str) -> bytes | None:
        """The bytes of a blob; None if it is missing or unreadable."""
        with suppress(sqlite3.DatabaseError):  # a damaged page of the file
            cursor = self._db.execute("select typeof(data), cast(data as blob) from blobs where sha256 = ?", (name,))
            with closing(cursor):
                sort, data = cursor.fetchone() or ("blob", self._files.get(name))
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
    first_id = db.execute("select min(id) from records").fetchone()[0]
    while first_id is not None:
        no = first_id >> 32
        if db.execute("select 1 from sessions where no = ?", (no,)).fetchone() is None:
            yield Problem("", 0, f"there are records of session number {no}, but no such session")
        first_id = db.execute("select min(id) from records where id >= ?", (record_id(no + 1, 0),)).fetchone()[0]


def _verify_index(db: sqlite3.Connection) -> Iterator[Problem]:
    """Check how far each session is indexed. The content of the index is derived, and a search can build it again."""
    if version_of(db) < SEARCH_VERSION:
        return
    for no, records in db.execute("select no, records from searched"):
        session_row = db.execute("select parent_records, records from sessions where no = ?", (no,)).fetchone()
        if session_row is None or not session_row[0] <= records <= session_row[1]:
            yield Problem("", 0, f"the search index has records of session number {no} that do not exist")


def _has_numbers(row: SessionRow) -> bool:
    numbers = (row.no, row.records, row.messages, row.parent_records, row.base or 0)
    return all(isinstance(number, int) and 0 <= number <= 0xFFFFFFFF for number in numbers)
