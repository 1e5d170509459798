"""The default store: one SQLite file, and a folder beside it for large media."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, starmap
from pathlib import Path
from time import time

from ..._platform.paths import from_here, from_home
from ...errors import BlobMissing, CorruptRecord, InputError, StoreError, StoreKeyError
from ...log.bills import Bills
from ...log.codec import decode_record
from ...log.messages import sha256_hex
from ...log.records import Record
from ...log.store import (
    SWEEP_GRACE_SECONDS,
    Draft,
    Hit,
    Inventory,
    Packed,
    Problem,
    SessionFacts,
    SessionInfo,
    Swept,
    check_parent,
    check_session_id,
    utc_now,
)
from ..base import BaseStore, KeySlot
from ..billing import billed_once
from ..blobs import BlobFolder, is_blob_name, whole_blob
from ..folders import Durability, check_durability
from ..labels import KnownLabels, has_labels, where_given
from ..leases import FolderLocks
from ..records import (
    COLUMNS,
    MESSAGES,
    Segment,
    SessionRow,
    chain,
    check_expected,
    check_unchanged,
    damaged_row,
    fork_point,
    new_row,
    number_drafts,
    of_any,
    row_kind,
    seal,
    storable,
)
from ..search import Search
from .damaged import mended
from .database import Database
from .index import catch_up, is_behind, renew_if_damaged
from .labels import facts_by_number, renew_if_wrong
from .packs import held, pack
from .reading import Reader
from .retention import inventory, reclaim, sweep, used_bytes
from .rewrite import compact, rewrite
from .rows import check_free_in, find, insert, intact, take_away, write
from .schema import LOCK_VERSION, RARE, SEARCH_VERSION, version_of
from .search import find_hits
from .segments import checksum_at, count_messages, segments_of
from .verify import verify_store

# -- append ----------------------------------------------------------------------------------------
#
# Appends to an SQLite store, at almost the cost of a bare insert.
#
# A session's row is cached after an append. The next append changes the row on disk only if its seal is still the
# cached one; that proves as much as reading the whole row and costs nothing extra.

_INSERT = "insert into records (id, kind, checksum, record) values (?, ?, ?, cast(? as text))"
_ADVANCE = "update sessions set records = ?, messages = ?, head = ?, seal = ?{} where no = ? and seal = ?"
_ADVANCE_IN_TIME = _ADVANCE.format(", updated = ?")  # an indexed column, so it is not written if the time is the same
_ADVANCE_IN_PLACE = _ADVANCE.format("")
_REMEMBERED = 64


class Appender:
    """Appends inside transactions that the caller begins and ends, one at a time."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[SessionRow, bytes]] = {}

    def append(
        self, db: sqlite3.Connection, session_id: str, drafts: Sequence[Draft], expected: int | None
    ) -> tuple[Record, ...]:
        """See `RecordStore.append`. Raises CorruptRecord if the session's row is damaged."""
        remembered = self._rows.pop(session_id, None)
        if remembered is not None and drafts and (expected is None or expected == remembered[0].records):
            records = self._write(db, *remembered, drafts)
            if records is not None:
                return records
        row = intact(db, session_id)
        check_expected(session_id, expected, row.records)
        return (self._write(db, row, seal(row), drafts) or ()) if drafts else ()

    def _write(
        self, db: sqlite3.Connection, row: SessionRow, old_seal: bytes, drafts: Sequence[Draft]
    ) -> tuple[Record, ...] | None:
        """Write `drafts` after the state in `row`. None, with nothing written, if the row on disk has changed."""
        no, session_id, title, created, before, last, messages, head, parent, parent_records, base = row
        records = number_drafts(drafts, after=last)
        rows = []
        for record in records:
            raw, kind = record.raw or b"", row_kind(record.body)
            head = chain(head, raw)
            messages += kind in MESSAGES
            # SQLite takes ASCII text without a copy, but copies bytes once more.
            rows.append((no << 32 | record.n, kind, head, raw.decode() if raw.isascii() else raw))
        last, updated = records[-1].n, max(before, records[-1].time)  # a clock may be set back
        row = SessionRow(no, session_id, title, created, updated, last, messages, head, parent, parent_records, base)
        new_seal = seal(row)
        write = db.cursor().execute  # `db.execute` would make a cursor for each statement
        if updated == before:
            changed = write(_ADVANCE_IN_PLACE, (last, messages, head, new_seal, no, old_seal))
        else:
            changed = write(_ADVANCE_IN_TIME, (last, messages, head, new_seal, updated, no, old_seal))
        if changed.rowcount != 1:
            return None
        try:
            for values in rows:
                write(_INSERT, values)
        except sqlite3.IntegrityError as error:
            raise damaged_row(session_id) from error
        if len(self._rows) >= _REMEMBERED:
            self._rows.clear()
        self._rows[session_id or ""] = (row, new_seal)
        return records


# -- usage -----------------------------------------------------------------------------------------
#
# The usage records of all sessions in an SQLite store.

_ALL = f"select id >> 32, id & 0xffffffff, {held()} from records where kind = 'usage' {RARE} order by id"


def read_usages(db: sqlite3.Connection) -> dict[str, list[Record]]:
    """The usage records in every session's own log, in one pass. As in a listing, checksums are not checked. Raises
    CorruptRecord for bytes that are not a record."""
    names = dict(db.execute("select no, id from sessions where id is not null"))
    return {
        names[no]: list(_decoded(names[no], rows))
        for no, rows in groupby(db.execute(_ALL), key=lambda row: row[0])
        if no in names
    }


def _decoded(name: str, rows: Iterator[tuple[int, int, bytes]]) -> Iterator[Record]:
    for _, n, raw in rows:
        try:
            yield decode_record(raw or b"")
        except CorruptRecord as error:
            raise CorruptRecord(f"record {n} of session {name!r} cannot be read: {error}", record=n) from error


# -- key slot --------------------------------------------------------------------------------------
#
# The lock of an encrypted SQLite store, in a row of its own table.


class SqliteKeySlot(KeySlot):
    """The lock of an SQLite store."""

    def __init__(self, database: Database, *, opened_by_key: bool) -> None:
        super().__init__(database.path, opened_by_key=opened_by_key)
        self._database = database

    def read(self) -> bytes | None:
        with self._database.reading() as db:
            return None if version_of(db) < LOCK_VERSION else _lock_in(db)

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        with self._database.writing() as db:
            if _lock_in(db) != was:
                return False
            if was is None and any(db.execute(f"select 1 from {table}").fetchone() for table in ("sessions", "blobs")):
                raise self._not_empty()
            db.execute("pragma secure_delete = on")
            db.execute("insert or replace into locks (no, lock) values (1, ?)", (lock.decode(),))
        self._database.fold_log()
        return True


def _lock_in(db: sqlite3.Connection) -> bytes | None:
    row = db.execute("select lock from locks").fetchone()
    return None if row is None else str(row[0]).encode()


BLOB_FILE_BYTES = 64 * 1024
"""Blobs of this size or more are files. Below 50 to 100 kB, SQLite is faster than files."""

_LIST = """select id, title, created, updated, records, messages, parent, parent_records
    from sessions where id is not null {} order by updated desc, no desc"""
_AMONG = "and no in (select value from json_each(?))"
_NAMED = "select no from sessions where id in (select value from json_each(?))"

_UNPACKED = """select sessions.id from sessions join records on records.id = sessions.no << 32 | sessions.records
    where sessions.id is not null and sessions.records > sessions.parent_records and typeof(record) = 'text'"""


class SqliteStore(BaseStore):
    """Logs in one SQLite file at `path`; the file and its folder are created if they do not exist.

    `durability` is what an append survives (see `Durability`). With `read_only` nothing is created or changed. Threads
    may share a store, and processes a file. `sealed`: the store is wrapped in a SealedStore; without it, an encrypted
    store is refused. Raises StoreKeyError, NewerStore, StoreError.

    Deleted records are overwritten in the file, which keeps its size until `reclaim`. Blobs stay until `sweep`.
    """

    def __init__(
        self, path: str | Path, *, durability: Durability = "normal", read_only: bool = False, sealed: bool = False
    ) -> None:
        check_durability(durability)
        self.path = from_here(from_home(path))
        real = Path(os.path.realpath(self.path))  # SQLite's side files are beside the target of a link, too
        if not real.name:
            raise InputError(f"store: {str(path)!r} is not allowed; allowed: the name of a file")
        self._holds = FolderLocks(real.with_name(f"{real.name}-open"), read_only=read_only)
        self._files = BlobFolder(real.with_name(real.name + "-blobs"))
        self._appender = Appender()
        self._indexed: tuple[int, int, int] | None = None
        self._labels = KnownLabels()
        self._asked: tuple[tuple[int, int, int], Mapping[str, str], list[int]] = (0, 0, 0), {}, []
        self._database = Database(real, durability=durability, read_only=read_only)
        self._reader = Reader(self._database)
        self.key_slot = SqliteKeySlot(self._database, opened_by_key=sealed)
        try:
            self.key_slot.check()
        except StoreKeyError:
            self._database.close()
            raise

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `Store.append`. Raises CorruptRecord if the session's row is damaged."""
        with self._database.writing() as db:
            return self._appender.append(db, session_id, drafts, expected)

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """See `Store.read`. Records appended after the call are not read."""
        first = max(first, 1)
        with self._database.reading() as db:
            row = find(db, session_id)
            last = row.records if last is None else min(last, row.records)
            if first > last:  # true before nearly every request, as nobody else appends
                return iter(())
            segments = segments_of(db, row)
        return self._reader.read(row, segments, first, last, reverse=reverse)

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """See `Store.of_kinds`. Rare kinds are found by an index, others by the column `kind`."""
        with self._database.reading() as db:
            row = find(db, session_id)
            segments = segments_of(db, row)
        records = self._reader.read(row, segments, max(first, 1), row.records, reverse=reverse, kinds=kinds)
        return filter(of_any(kinds), records)

    def _mended(self, session_id: str, first: int, last: int) -> list[Record | Problem]:
        with self._database.reading() as db:
            return list(mended(db, find(db, session_id), first, last))

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        check_session_id(session_id)
        check_parent(session_id, parent)
        time = created or utc_now()
        with self._database.writing() as db:
            self.key_slot.check()  # the store may have been encrypted since it was opened
            check_free_in(db, session_id)
            return insert(db, new_row(session_id, title, time, parent))

    def info(self, session_id: str) -> SessionInfo:
        with self._database.reading() as db:
            return find(db, session_id).info()

    def sessions(self, *, limit: int | None = None, where: Mapping[str, str] | None = None) -> list[SessionInfo]:
        asked = where_given(where)
        among = self._with_labels(asked) if asked else None
        query, values = _LIST.format(_AMONG if asked else ""), [] if among is None else [str(among)]
        with self._database.reading() as db:
            # `limit -1` would sort in another way and take twice as long.
            rows = db.execute(query, values) if limit is None else db.execute(f"{query} limit ?", (*values, limit))
            return list(starmap(SessionInfo, rows))

    def _with_labels(self, where: Mapping[str, str]) -> list[int]:
        """The numbers of the sessions with these labels; cached until something is written."""
        with self._database.reading() as db:
            state = self._state(db)  # first, so that labels set in between are noticed the next time
        if self._asked[:2] == (state, where):
            return self._asked[2]
        facts = facts_by_number(self._database, self, self._labels)
        matching = sorted(no for no, known in facts.items() if has_labels(known.labels, where))
        self._asked = state, dict(where), matching
        return matching

    def facts(self) -> dict[str, SessionFacts]:
        facts = facts_by_number(self._database, self, self._labels)
        with self._database.reading() as db:
            names = dict(db.execute("select no, id from sessions where id is not null"))
        return {names[no]: known for no, known in facts.items() if no in names}

    def usages(self) -> dict[str, Bills]:
        with self._database.reading() as db:
            usage_records = read_usages(db)
            forks = {
                name for (name,) in db.execute("select id from sessions where id is not null and base is not null")
            }
        return billed_once(
            self.sessions(),
            lambda name: self.of_kinds(name, ("usage",)) if name in forks else usage_records.get(name, ()),
        )

    def rename(self, session_id: str, title: str) -> None:
        with self._database.writing() as db:
            write(db, intact(db, session_id)._replace(title=storable(title)))

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """See `Store.fork`. Nothing is copied: the new session refers to the records."""
        check_session_id(new_id)
        with self._database.writing() as db:
            row = find(db, session_id)
            shared = fork_point(session_id, row.records, at)
            check_free_in(db, new_id)
            segments = segments_of(db, row, last=shared)
            messages, head = count_messages(db, segments), checksum_at(db, segments, shared)
            new = new_row(
                new_id, title, utc_now(), session_id, shared=shared, messages=messages, head=head, segments=segments
            )
            return insert(db, new)

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """See `Store.put_blob`. Replaces a damaged blob."""
        name = name or sha256_hex(data)
        with self._database.writing() as db:  # for files, too: no sweep may run at the same time
            if len(data) >= BLOB_FILE_BYTES:
                self._files.put(name, data)
                return name
            stored = db.execute("select cast(data as blob) from blobs where sha256 = ?", (name,)).fetchone()
            if stored is None or stored[0] != data:
                db.execute(
                    "insert or replace into blobs (sha256, data, put_at) values (?, ?, ?)", (name, data, int(time()))
                )
            else:
                db.execute("update blobs set put_at = ? where sha256 = ?", (int(time()), name))
        return name

    def get_blob(self, sha256: str) -> bytes:
        try:
            with self._database.reading() as db:
                stored = db.execute("select cast(data as blob) from blobs where sha256 = ?", (sha256,)).fetchone()
        except CorruptRecord as error:  # a page of the file
            raise BlobMissing(f"blob {sha256} cannot be read: {error}") from error
        data = stored[0] if stored else self._files.get(sha256) if is_blob_name(sha256) else None
        return whole_blob(sha256, data, self.path)

    def _search(self, search: Search) -> list[Hit]:
        """The hits of a search. New records are indexed first, which takes about 0.1 ms for each. If that is
        impossible, as in a store that is open for reading only, every record is read."""
        among = self._with_labels(search.where) if search.where else None
        with self._database.reading() as db:
            row = None if search.session is None else find(db, search.session)
            if search.among is not None:
                among = [no for (no,) in db.execute(_NAMED, (json.dumps([*search.among]),))]
            behind = self._index_is_behind(db)
        if behind and self._database.read_only:
            return super()._search(search)
        if behind:
            try:
                catch_up(self._database)
            except StoreError:  # the disk is full, or others keep writing: every record can still be read
                return super()._search(search)
        with self._database.reading() as db:
            try:
                return find_hits(db, search, row, among)
            except sqlite3.DatabaseError:
                pass  # the index is damaged; if the records are damaged as well, reading reports it
        return super()._search(search)

    def _index_is_behind(self, db: sqlite3.Connection) -> bool:
        """Whether there are records that are not indexed yet; cached until something is written."""
        state = self._state(db)  # first, so that records appended in between are noticed the next time
        if self._indexed == state:
            return False
        if version_of(db) < SEARCH_VERSION or is_behind(db):
            return True
        self._indexed = state
        return False

    def _state(self, db: sqlite3.Connection) -> tuple[int, int, int]:
        """A value that changes when anything is written, by this connection or another. All counters start when the
        store is opened."""
        changed_by_others = int(db.execute("pragma data_version").fetchone()[0])
        return self._database.connections, db.total_changes, changed_by_others

    def _searchable(self) -> Iterator[tuple[str, list[Segment]]]:
        with self._database.reading() as db:
            rows = db.execute(f"select {COLUMNS} from sessions where id is not null order by no").fetchall()
            for row in map(SessionRow._make, rows):
                with suppress(CorruptRecord):  # reading the session reports it
                    yield row.id or "", segments_of(db, row)

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        """See `Store.rewrite`. Needs as much free space on the disk as the file has bytes."""
        with self._database.writing() as db:
            check_unchanged(self.read, session_id, was)
            rewrite(db, session_id, records, blobs)
            self._labels.clear()
        with self._database.writing():  # after the commit; nobody may put one of them meanwhile
            self._files.remove(filter(is_blob_name, blobs))
        compact(self._database)

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        """See `Store.pack`."""
        with self._database.writing() as db:
            check_unchanged(self.read, session_id, was)
            if instead:
                rewrite(db, session_id, instead, ())
                self._labels.clear()
            return pack(db, intact(db, session_id))

    def unpacked(self) -> frozenset[str]:
        """See `Store.unpacked`. In a packed session, the newest records may be uncompressed."""
        with self._database.reading() as db:
            return frozenset(session_id for (session_id,) in db.execute(_UNPACKED))

    def _delete(self, session_id: str, expected: int | None) -> None:
        with self._database.writing() as db:
            row = find(db, session_id)
            check_expected(session_id, expected, row.records)
            take_away(db, row)
        self._database.fold_log()

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        with self._database.writing() as db:
            no = find(db, session_id).no
            db.execute("insert or ignore into kept values (?)" if kept else "delete from kept where no = ?", (no,))

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """See `Store.sweep`. Reads all records, and prevents writing meanwhile."""
        with self._database.writing() as db:
            swept = sweep(db, self._files, grace)
        if swept.removed:
            self._database.fold_log()
        return swept

    def inventory(self) -> Inventory:
        with self._database.reading() as db:
            return inventory(db, self._files, self._holds.taken())

    def used(self) -> int:
        with self._database.reading() as db:
            return used_bytes(db) + sum(put.size for put in self._files.puts().values())

    def reclaim(self) -> None:
        self._database.check_writable()
        self._holds.clear()
        reclaim(self._database)

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """See `Store.verify`. Reads from disk, even what this store has in memory."""
        try:
            with self._database.reading() as db:
                if session_id is not None:
                    find(db, session_id)
            with self._database.fresh() as db:
                problems = verify_store(db, self._files, session_id)
        except CorruptRecord as error:
            return [Problem(session_id or "", 0, f"sqlite: {error.__cause__ or error}")]
        if session_id is None and not problems and not self._database.read_only:
            with self._database.writing() as db:
                problems += renew_if_damaged(db) + renew_if_wrong(db, self)
        return problems

    def close(self) -> None:
        if not self._database.read_only:
            self._holds.leave()
        self._database.close()
