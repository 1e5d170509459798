"""The default store: one SQLite file, with large media in a folder beside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import starmap
from pathlib import Path

from ..codec import decode_record
from ..content import sha256_hex
from ..errors import (
    BlobMissing,
    Conflict,
    CorruptRecord,
    InputError,
    SessionExists,
    SessionIdError,
    SessionNotFound,
)
from ..log import Draft, Problem, SessionInfo, check_session_id, utc_now
from ..records import Record
from .blobs import BlobFolder, is_blob_name
from .database import Database, Durability
from .drafts import kind_of, number_drafts
from .schema import CHAIN_START, COLUMNS, SessionRow, chain, record_id, seal
from .segments import Segment, checksum_at, count_messages, segments_of
from .sqlite_verify import verify_store

__all__ = ["BLOB_FILE_BYTES", "SqliteStore"]

BLOB_FILE_BYTES = 64 * 1024
"""Blobs of this size and more are files. SQLite is faster than files below 50 to 100 kB."""

_BATCH_ROWS = 128
_BATCH_BYTES = 1 << 20

_INSERT = "insert into records (id, kind, checksum, record) values (?, ?, ?, cast(? as text))"
_FIND = f"select {COLUMNS}, seal from sessions where id = ?"
_LIST = """select id, title, created, updated, records, messages, parent, parent_records
    from sessions where id is not null order by updated desc, no desc limit ?"""
_UPDATE = "update sessions set title = ?, updated = ?, records = ?, messages = ?, head = ?, seal = ? where no = ?"
# The casts make bytes of what damage turned into something else.
_ROWS = """select id & 0xffffffff, coalesce(cast(checksum as blob), x''), coalesce(cast(record as blob), x'')
    from records where id between ? and ? order by id"""


class SqliteStore:
    """Logs in one SQLite file at `path`; it and its folder are made if they are not there.

    `durability` says what an append survives (see `Durability`). With `read_only` nothing is
    created or changed. Threads may share a store, and processes a file.

    What is deleted is overwritten in the file, which keeps its size. Blobs are never deleted.
    """

    def __init__(self, path: str | Path, *, durability: Durability = "normal", read_only: bool = False) -> None:
        if durability not in ("normal", "full"):
            raise InputError(f"durability: {durability!r} is neither 'normal' nor 'full'")
        self.path = Path(path).absolute()
        self._files = BlobFolder(self.path.with_name(self.path.name + "-blobs"))
        self._database = Database(self.path, durability=durability, read_only=read_only)

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`. Raises CorruptRecord where the session's row is damaged."""
        with self._database.writing() as db:
            row = _intact(db, session_id)
            if expected is not None and expected != row.records:
                raise Conflict(session_id, expected=expected, actual=row.records)
            records = number_drafts(drafts, after=row.records)
            if not records:
                return ()
            head, messages, rows = row.head, row.messages, []
            for record in records:
                raw = record.raw or b""
                head = chain(head, raw)
                messages += record.message is not None
                rows.append((record_id(row.no, record.n), kind_of(record.body), head, raw))
            try:
                db.executemany(_INSERT, rows)
            except sqlite3.IntegrityError as error:
                raise _damaged_row(session_id) from error
            last = records[-1]
            _write(db, row._replace(updated=last.time, records=last.n, messages=messages, head=head))
        return records

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """See `RecordStore.read`. Ends at the record that was the last when it was called."""
        with self._database.reading() as db:
            row = _find(db, session_id)
            segments = segments_of(db, row)
        first = max(first, 1)
        last = row.records if last is None else min(last, row.records)
        if first > last:
            return iter(())
        return self._backwards(row, segments, first, last) if reverse else self._forwards(row, segments, first, last)

    def create(self, session_id: str, *, title: str = "", created: str = "") -> SessionInfo:
        """See `SessionIndex.create`."""
        check_session_id(session_id)
        time = created or utc_now()
        with self._database.writing() as db:
            _check_free(db, session_id)
            return _insert(
                db,
                SessionRow(
                    no=0,
                    id=session_id,
                    title=_storable(title),
                    created=time,
                    updated=time,
                    records=0,
                    messages=0,
                    head=CHAIN_START,
                    parent="",
                    parent_records=0,
                    base=None,
                ),
            )

    def info(self, session_id: str) -> SessionInfo:
        """See `SessionIndex.info`."""
        with self._database.reading() as db:
            return _find(db, session_id).info()

    def sessions(self, *, limit: int | None = None) -> list[SessionInfo]:
        """See `SessionIndex.sessions`."""
        with self._database.reading() as db:
            return list(starmap(SessionInfo, db.execute(_LIST, (-1 if limit is None else limit,))))

    def rename(self, session_id: str, title: str) -> None:
        """See `SessionIndex.rename`."""
        with self._database.writing() as db:
            _write(db, _intact(db, session_id)._replace(title=_storable(title)))

    def delete(self, session_id: str) -> None:
        """See `SessionIndex.delete`. Records that forks need stay until those are deleted."""
        with self._database.writing() as db:
            row = _find(db, session_id)
            db.execute("pragma secure_delete = on")
            db.execute("update sessions set id = null, parent = '' where no = ?", (row.no,))
            _write(db, row._replace(id=None, title="", parent=""))
            _prune(db, row.no)
        self._database.fold_log()

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """See `SessionIndex.fork`. Nothing is copied: the new session points at the records."""
        check_session_id(new_id)
        with self._database.writing() as db:
            row = _find(db, session_id)
            _check_free(db, new_id)
            shared = row.records if at is None else at
            if not 0 <= shared <= row.records:
                raise InputError(f"at: session {session_id!r} has records 1 to {row.records}, not {at}")
            segments = segments_of(db, row, last=shared)
            time = utc_now()
            return _insert(
                db,
                SessionRow(
                    no=0,
                    id=new_id,
                    title=_storable(title),
                    created=time,
                    updated=time,
                    records=shared,
                    messages=count_messages(db, segments),
                    head=checksum_at(db, segments, shared),
                    parent=session_id,
                    parent_records=shared,
                    base=segments[-1].no if segments else None,
                ),
            )

    def put_blob(self, data: bytes) -> str:
        """See `BlobStore.put_blob`. A damaged blob is healed."""
        name = sha256_hex(data)
        if len(data) >= BLOB_FILE_BYTES:
            self._database.check_writable()
            self._files.put(name, data)
            return name
        with self._database.writing() as db:
            kept = db.execute("select cast(data as blob) from blobs where sha256 = ?", (name,)).fetchone()
            if kept is None or kept[0] != data:
                db.execute("insert or replace into blobs (sha256, data) values (?, ?)", (name, data))
        return name

    def get_blob(self, sha256: str) -> bytes:
        """See `BlobStore.get_blob`."""
        with self._database.reading() as db:
            kept = db.execute("select cast(data as blob) from blobs where sha256 = ?", (sha256,)).fetchone()
        data = kept[0] if kept else self._files.get(sha256) if is_blob_name(sha256) else None
        if data is None:
            raise BlobMissing(f"there is no blob {sha256!r} in {self.path}")
        if sha256_hex(data) != sha256:
            raise CorruptRecord(f"the bytes of blob {sha256} are damaged in {self.path}")
        return bytes(data)

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """See `Store.verify`. Reads what is on disk, also where this store has it in memory."""
        with self._database.reading() as db:
            if session_id is not None:
                _find(db, session_id)
        with self._database.fresh() as db:
            return verify_store(db, self._files, session_id)

    def close(self) -> None:
        """See `Store.close`."""
        self._database.close()

    def _forwards(self, row: SessionRow, segments: list[Segment], first: int, last: int) -> Iterator[Record]:
        with self._database.reading() as db:
            checksum = checksum_at(db, segments, first - 1)
        for n, stored, raw in self._rows(row, segments, first, last):
            yield _checked(n, checksum, stored, raw)
            checksum = stored
        if last == row.records and checksum != row.head:
            raise _damaged_row(row.id)

    def _backwards(self, row: SessionRow, segments: list[Segment], first: int, last: int) -> Iterator[Record]:
        # A record is checked against the checksum before its own, so each waits for the next row.
        waiting: tuple[int, bytes, bytes] | None = None
        for n, stored, raw in self._rows(row, segments, max(first - 1, 1), last, reverse=True):
            if n == row.records and stored != row.head:
                raise _damaged_row(row.id)
            if waiting is not None:
                yield _checked(waiting[0], stored, *waiting[1:])
            waiting = (n, stored, raw)
        if first == 1 and waiting is not None:
            yield _checked(waiting[0], CHAIN_START, *waiting[1:])

    def _rows(
        self, row: SessionRow, segments: list[Segment], first: int, last: int, *, reverse: bool = False
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """Number, checksum and bytes of each record, fetched in batches: neither the lock nor a
        snapshot of the database is held between two of them."""
        for segment in reversed(segments) if reverse else segments:
            low, high = max(first, segment.first), min(last, segment.last)
            while low <= high:
                batch = self._batch(segment.no, low, high, reverse)
                for n, stored, raw in batch:
                    if n != (high if reverse else low):
                        break
                    yield n, stored, raw
                    if reverse:
                        high -= 1
                    else:
                        low += 1
                else:
                    if batch:
                        continue
                self._missing(row, high if reverse else low)

    def _batch(self, no: int, low: int, high: int, reverse: bool) -> list[tuple[int, bytes, bytes]]:
        batch, size = [], 0
        with self._database.reading() as db:
            rows = db.execute(_ROWS + " desc" if reverse else _ROWS, (record_id(no, low), record_id(no, high)))
            for found in rows:
                batch.append(found)
                size += len(found[2])
                if len(batch) == _BATCH_ROWS or size > _BATCH_BYTES:
                    break
            rows.close()
        return batch

    def _missing(self, row: SessionRow, n: int) -> None:
        with self._database.reading() as db:
            if db.execute("select 1 from sessions where no = ? and id = ?", (row.no, row.id)).fetchone() is None:
                raise SessionNotFound(f"session {row.id!r} was deleted while it was being read")
        raise CorruptRecord(f"record {n} of session {row.id!r} is missing", record=n)


def _find(db: sqlite3.Connection, session_id: str) -> SessionRow:
    return _find_sealed(db, session_id)[0]


def _find_sealed(db: sqlite3.Connection, session_id: str) -> tuple[SessionRow, bytes]:
    found = db.execute(_FIND, (_storable(session_id),)).fetchone()
    if found is None or found[1] != session_id:
        raise SessionNotFound(f"there is no session {session_id!r}")
    return SessionRow(*found[:-1]), found[-1]


def _intact(db: sqlite3.Connection, session_id: str) -> SessionRow:
    """The row, to be written again: doing so with a damaged one would hide the damage."""
    row, stored_seal = _find_sealed(db, session_id)
    if seal(row) != stored_seal:
        raise _damaged_row(session_id)
    return row


def _check_free(db: sqlite3.Connection, session_id: str) -> None:
    found = db.execute("select id from sessions where id = ?", (session_id,)).fetchone()
    if found is None:
        return
    if found[0] == session_id:
        raise SessionExists(f"there is a session {session_id!r} already")
    raise SessionIdError(f"session id {session_id!r} differs from {found[0]!r} by case only; take another")


def _insert(db: sqlite3.Connection, row: SessionRow) -> SessionInfo:
    marks = ", ".join("?" for _ in SessionRow._fields[1:])
    names = ", ".join(SessionRow._fields[1:])
    made = db.execute(f"insert into sessions ({names}, seal) values ({marks}, x'')", row[1:])
    row = row._replace(no=made.lastrowid or 0)
    db.execute("update sessions set seal = ? where no = ?", (seal(row), row.no))
    return row.info()


def _write(db: sqlite3.Connection, row: SessionRow) -> None:
    db.execute(_UPDATE, (row.title, row.updated, row.records, row.messages, row.head, seal(row), row.no))


def _prune(db: sqlite3.Connection, no: int | None) -> None:
    """Remove what no fork needs of the deleted session `no`, and of deleted ones that it came from."""
    while no is not None:
        row = SessionRow(*db.execute(f"select {COLUMNS} from sessions where no = ?", (no,)).fetchone())
        needed = db.execute("select max(parent_records) from sessions where base = ?", (no,)).fetchone()[0]
        if row.id is not None:
            return
        keep = row.parent_records if needed is None else needed
        db.execute("delete from records where id between ? and ?", (record_id(no, keep + 1), record_id(no, 0xFFFFFFFF)))
        if needed is not None:
            segments = segments_of(db, row, last=needed)
            head, messages = checksum_at(db, segments, needed), count_messages(db, segments)
            _write(db, row._replace(records=needed, messages=messages, head=head))
            return
        db.execute("delete from sessions where no = ?", (no,))
        no = row.base


def _checked(n: int, previous: bytes, stored: bytes, raw: bytes) -> Record:
    if chain(previous, raw) != stored:
        raise CorruptRecord(f"record {n} does not match its checksum", record=n)
    try:
        record = decode_record(raw)
    except CorruptRecord as error:
        raise CorruptRecord(f"record {n} cannot be read: {error}", record=n) from error
    if record.n != n:
        raise CorruptRecord(f"record {n} says that it is number {record.n}", record=n)
    return record


def _damaged_row(session_id: str | None) -> CorruptRecord:
    return CorruptRecord(
        f"the session row of {session_id!r} does not match its records; fork the session at its last good record"
    )


def _storable(text: str) -> str:
    """`text` without lone surrogates, which SQLite cannot hold. For labels, never for content."""
    return text.encode("utf-8", "replace").decode("utf-8")
