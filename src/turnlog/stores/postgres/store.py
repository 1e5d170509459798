"""The PostgreSQL store: one database for all sessions, shared by many machines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby, islice

from ...errors import CorruptRecord, StoreError
from ...log.bills import Bills
from ...log.messages import sha256_hex
from ...log.records import Record
from ...log.store import (
    SWEEP_GRACE_SECONDS,
    Draft,
    Held,
    Inventory,
    Packed,
    Problem,
    RecordStore,
    SessionFacts,
    SessionInfo,
    Swept,
    check_parent,
    check_session_id,
    utc_now,
)
from ..base import BaseStore, KeySlot
from ..billing import billed_once
from ..blobs import whole_blob
from ..labels import FACTS, KnownLabels, decoded_facts, encoded_facts, entries_of, facts_of, has_labels, where_given
from ..leases import Lease
from ..records import (
    COLUMNS,
    Segment,
    SessionRow,
    check_expected,
    check_unchanged,
    fork_point,
    new_row,
    numbered,
    of_any,
    storable,
)
from .address import Address
from .append import Appender
from .database import Database
from .leases import ServerLocks
from .reading import Reader, mended
from .retention import inventory, sweep, used_bytes
from .rewrite import compact, rewrite
from .rows import checksum_at, count_messages, find, find_sealed, insert, intact, row_of, segments_of, take_away, write
from .schema import LABELS_VERSION, TABLES, Db, store_name
from .verify import verify

# -- labels ----------------------------------------------------------------------------------------
#
# The index of labels in a PostgreSQL store. It is filled when somebody asks for labels, never during an append.
#
# The table `turnlog_labels` has, for each session, its facts as of a record, with the checksum of that record. An
# entry counts as long as the session still has that checksum there and no newer note. So records that an older
# version of turnlog appends or rewrites meanwhile are noticed, although it does not know the table.

_BATCH = 200

_SUM = """case when entry.records = s.records then s.head
        when entry.records = 0 then decode(repeat('00', 32), 'hex') else (
            select checksum from turnlog_records where n = entry.records
            and log = case when entry.records > s.parent_records then s.no else s.base end
        ) end"""
_NEWER = "exists (select 1 from turnlog_records where log = s.no and kind = 'note' and n > entry.records)"
_COLUMNS = ", ".join(f"s.{name}" for name in COLUMNS.split(", "))
_BEHIND = f"""select {_COLUMNS} from turnlog_sessions as s left join turnlog_labels as entry on entry.no = s.no
    where s.id is not null and (entry.no is null or entry.records > s.records
        or entry.head is distinct from {_SUM} or left(entry.labels, {len(FACTS)}) <> '{FACTS}'
        or (entry.records < s.records and {_NEWER}))
    order by s.no"""
_ALL = f"select {COLUMNS} from turnlog_sessions where id is not null order by no"
_ENTRIES = """select entry.no, id, labels from turnlog_labels as entry join turnlog_sessions as s on s.no = entry.no
    where id is not null order by entry.no"""
_NAMES = "select no, id from turnlog_sessions where id is not null"
_NOTE = """insert into turnlog_labels (no, records, head, labels) values (%s, %s, %s, %s)
    on conflict (no) do update set records = excluded.records, head = excluded.head, labels = excluded.labels"""


def facts_by_number(database: Database, store: RecordStore, known_labels: KnownLabels) -> dict[int, SessionFacts]:
    """The facts of each session, by number. The index is brought up to date first; sessions that it still lacks, as in
    a store that is open for reading only, are read."""
    rest = database.read(_behind)
    if rest and not database.read_only:
        with suppress(StoreError):  # the user may only read these tables, or the server is in trouble
            _note(database, store, rest)
        rest = database.read(_behind)
    known = known_labels.facts(store, [(row.no, row.info()) for row in rest])
    behind = {row.no for row in rest}
    return known | {no: facts for no, facts in database.read(_indexed).items() if no not in behind}


def _indexed(db: Db) -> dict[int, SessionFacts]:
    if not _has_index(db):
        return {}
    facts = {}
    for no, _, text in db.execute(_ENTRIES).fetchall():
        with suppress(ValueError, LookupError, TypeError, AttributeError):  # damaged, or by an older turnlog
            facts[no] = decoded_facts(text)
    return facts


def _note(database: Database, store: RecordStore, rows: Iterable[SessionRow]) -> None:
    entries = entries_of(store, rows)
    while some := list(islice(entries, _BATCH)):
        database.write(partial(_insert, entries=some), repeatable=True)


def _insert(db: Db, entries: Sequence[tuple[int, int, bytes, str]]) -> None:
    db.cursor().executemany(_NOTE, entries)


def renew_if_wrong(db: Db, store: RecordStore) -> list[Problem]:
    """Compare the index with the notes. If they differ, empty it."""
    behind = {row.no for row in _behind(db)}
    for no, name, labels in db.execute(_ENTRIES).fetchall():
        if no not in behind and labels != encoded_facts(facts_of(store, name)):
            db.execute("delete from turnlog_labels")
            what = f"the index of labels was damaged (session {name!r}); the next question for labels builds it again"
            return [Problem("", 0, what)]
    return []


def _behind(db: Db) -> list[SessionRow]:
    """The sessions whose labels the index does not have."""
    return list(map(row_of, db.execute(_BEHIND if _has_index(db) else _ALL, binary=True).fetchall()))


def _has_index(db: Db) -> bool:
    row = db.execute("select version from turnlog_version").fetchone()
    return row is not None and int(row[0]) >= LABELS_VERSION


# -- key slot --------------------------------------------------------------------------------------
#
# The lock of an encrypted PostgreSQL store, in a row of its own table.


class PostgresKeySlot(KeySlot):
    """The lock of a PostgreSQL store."""

    def __init__(self, database: Database, *, opened_by_key: bool) -> None:
        super().__init__(database.address, opened_by_key=opened_by_key)
        self._database = database

    def read(self) -> bytes | None:
        return self._database.read(_lock_in)

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        def change(db: Db) -> bool:
            db.execute("lock table turnlog_keys, turnlog_sessions, turnlog_blobs in share row exclusive mode")
            if (current_lock := _lock_in(db)) != was:
                return current_lock == lock  # written by an attempt whose commit was lost
            tables = ("turnlog_sessions", "turnlog_blobs")
            if was is None and any(db.execute(f"select 1 from {table} limit 1").fetchone() for table in tables):
                raise self._not_empty()
            db.execute(
                "insert into turnlog_keys values (1, %s) on conflict (no) do update set lock = excluded.lock", (lock,)
            )
            return True

        return self._database.write(change, repeatable=True)


def _lock_in(db: Db) -> bytes | None:
    row = db.execute("select lock from turnlog_keys", binary=True).fetchone()
    return None if row is None else bytes(row[0])


_LIST = f"""select {COLUMNS} from turnlog_sessions where id is not null {{}}
    order by updated desc, no desc limit %s"""
_PUT = """insert into turnlog_blobs values (%s, extract(epoch from clock_timestamp()), %s)
    on conflict (name) do update set put_at = excluded.put_at, data = excluded.data"""
_USAGE = """select id, n, record from turnlog_sessions join turnlog_records on log = no
    where id is not null and base is null and kind = 'usage' order by no, n"""
_FORKS = "select id from turnlog_sessions where id is not null and base is not null"


class PostgresStore(BaseStore):
    """Logs in the PostgreSQL database at `url`; the tables are created if they do not exist.

    With `read_only` nothing is created or changed. Threads may share a store; processes and machines share the
    database. `sealed`: the store is wrapped in a SealedStore; without it, an encrypted store is refused. Raises
    InputError if `url` is not that of a database; StoreKeyError, NewerStore, StoreError.
    """

    def __init__(self, url: str, *, read_only: bool = False, sealed: bool = False) -> None:
        self.path = Address(url)
        """The server and the database, to be shown: without the password."""
        self._database = Database(self.path, read_only=read_only)
        try:
            self._locks = ServerLocks(self._database, self._database.read(store_name))
            self.key_slot = PostgresKeySlot(self._database, opened_by_key=sealed)
            self.key_slot.check()
        except StoreError:
            self._database.close()
            raise
        self._labels = KnownLabels()
        self._reader = Reader(self._database)
        self._appender = Appender(self._database, self._locks.fence, self._locks.lost)

    # -- records ---------------------------------------------------------------------------------

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `Store.append`. Raises CorruptRecord if the session's row is damaged, SessionBusy if this process has
        lost its lease of the session."""
        self._database.check_writable()
        with self._database.lock:
            return self._appender.append(session_id, drafts, expected)

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """See `Store.read`. Records appended after the call are not read."""
        row, segments = self._database.read(partial(_with_segments, session_id=session_id))
        last = row.records if last is None else min(last, row.records)
        return self._reader.read(row, segments, max(first, 1), last, reverse=reverse)

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """See `Store.of_kinds`. Kinds are found by an index."""
        row, segments = self._database.read(partial(_with_segments, session_id=session_id))
        records = self._reader.read(row, segments, max(first, 1), row.records, reverse=reverse, kinds=kinds)
        return filter(of_any(kinds), records)

    def _mended(self, session_id: str, first: int, last: int) -> Iterable[Record | Problem]:
        return self._database.read(partial(mended, session_id=session_id, first=first, last=last))

    def usages(self) -> dict[str, Bills]:
        def read(db: Db) -> tuple[list[tuple[str, int, bytes]], list[str]]:
            bills = db.execute(_USAGE, binary=True).fetchall()
            return bills, [name for (name,) in db.execute(_FORKS)]

        rows, forks = self._database.read(read)
        usage_records = {
            name: [numbered(n, raw) for _, n, raw in some] for name, some in groupby(rows, key=lambda row: row[0])
        }
        return billed_once(
            self.sessions(),
            lambda name: self.of_kinds(name, ("usage",)) if name in forks else usage_records.get(name, ()),
        )

    # -- sessions --------------------------------------------------------------------------------

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        check_session_id(session_id)
        check_parent(session_id, parent)
        time = created or utc_now()
        fence = self._locks.fence(session_id) or 0
        row = new_row(session_id, title, time, parent)

        def make(db: Db) -> SessionInfo:
            info = insert(db, row, fence)
            self.key_slot.check()  # the store may have been encrypted since it was opened
            return info

        return self._database.write(make)

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """See `Store.fork`. Nothing is copied: the new session refers to the records."""
        check_session_id(new_id)
        fence = self._locks.fence(new_id) or 0

        def make(db: Db) -> SessionInfo:
            row, _, _ = find_sealed(db, session_id, "for share")  # it is not deleted meanwhile
            shared = fork_point(session_id, row.records, at)
            segments = segments_of(db, row, last=shared)
            messages, head = count_messages(db, segments), checksum_at(db, segments, shared)
            new = new_row(
                new_id, title, utc_now(), session_id, shared=shared, messages=messages, head=head, segments=segments
            )
            return insert(db, new, fence)

        return self._database.write(make)

    def info(self, session_id: str) -> SessionInfo:
        return self._database.read(partial(find, session_id=session_id)).info()

    def sessions(self, *, limit: int | None = None, where: Mapping[str, str] | None = None) -> list[SessionInfo]:
        asked = where_given(where)
        among = self._with_labels(asked) if asked else None
        query = _LIST.format("" if among is None else "and no = any(%s)")
        values = (limit,) if among is None else (among, limit)
        rows = self._database.read(lambda db: db.execute(query, values, binary=True).fetchall())
        return [row_of(each).info() for each in rows]

    def _with_labels(self, where: Mapping[str, str]) -> list[int]:
        """The numbers of the sessions with these labels."""
        facts = facts_by_number(self._database, self, self._labels)
        return sorted(no for no, known in facts.items() if has_labels(known.labels, where))

    def facts(self) -> dict[str, SessionFacts]:
        facts = facts_by_number(self._database, self, self._labels)
        names: dict[int, str] = self._database.read(lambda db: dict(db.execute(_NAMES).fetchall()))
        return {names[no]: known for no, known in facts.items() if no in names}

    def rename(self, session_id: str, title: str) -> None:
        self._database.write(
            lambda db: write(db, intact(db, session_id)._replace(title=storable(title))), repeatable=True
        )

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        def mark(db: Db) -> None:
            db.execute("update turnlog_sessions set kept = %s where no = %s", (kept, find(db, session_id).no))

        self._database.write(mark, repeatable=True)

    def _delete(self, session_id: str, expected: int | None) -> None:
        def remove(db: Db) -> None:
            row, _, _ = find_sealed(db, session_id, "for update")
            check_expected(session_id, expected, row.records)
            take_away(db, row)

        self._database.write(remove)

    def hold(self, session_id: str, *, alone: bool = False) -> Held | None:
        return self._locks.take(session_id, alone=alone)

    def lease(self, session_id: str, *, shared: bool = False, wait: float = 0.0) -> Lease:
        return self._locks.lease(session_id, shared=shared, wait=wait)

    # -- blobs -----------------------------------------------------------------------------------

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """See `Store.put_blob`. Replaces a damaged blob."""
        name = name or sha256_hex(data)

        def put(db: Db) -> None:
            stored = db.execute(
                "select sha256(data) from turnlog_blobs where name = %s for update", (name,), binary=True
            )
            if stored.fetchone() == (bytes.fromhex(sha256_hex(data)),):
                db.execute(
                    "update turnlog_blobs set put_at = extract(epoch from clock_timestamp()) where name = %s", (name,)
                )
            else:
                db.execute(_PUT, (name, bytes(data)))

        self._database.write(put, repeatable=True)
        return name

    def get_blob(self, sha256: str) -> bytes:
        def get(db: Db) -> bytes | None:
            row = db.execute("select data from turnlog_blobs where name = %s", (sha256,), binary=True).fetchone()
            return None if row is None else bytes(row[0])

        return whole_blob(sha256, self._database.read(get), self.path)

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """See `Store.sweep`. Reads all records; other processes do not wait for that."""
        self._database.check_writable()
        return self._database.read(partial(sweep, grace=grace))

    # -- the whole store -------------------------------------------------------------------------

    def inventory(self) -> Inventory:
        def look(db: Db) -> Inventory:
            names = [name for (name,) in db.execute("select id from turnlog_sessions where id is not null")]
            return inventory(db, self._locks.taken(db, names))

        return self._database.snapshot(look)

    def used(self) -> int:
        return self._database.read(used_bytes)

    def reclaim(self) -> None:
        """See `Store.reclaim`. Runs the server's `vacuum`, which returns space to the disk as far as it can."""
        self._database.check_writable()
        self._database.read(lambda db: db.execute(f"vacuum {', '.join(TABLES)}"))

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        """See `Store.pack`. Compresses nothing, as the server compresses long records itself."""
        if instead:
            self._rewrite(session_id, instead, (), was)
        else:
            self.info(session_id)
        return Packed(0, 0, 0)

    def _searchable(self) -> Iterator[tuple[str, list[Segment]]]:
        def read(db: Db) -> list[tuple[str, list[Segment]]]:
            sessions = []
            for values in db.execute(
                f"select {COLUMNS} from turnlog_sessions where id is not null order by no", binary=True
            ):
                row = row_of(values)
                with suppress(CorruptRecord):  # reading the session reports it
                    sessions.append((row.id or "", segments_of(db, row)))
            return sessions

        yield from self._database.read(read)

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        """See `Store.rewrite`. Writes the tables anew, so that no file of theirs has the old bytes; these stay in the
        server's write-ahead log until it is reused. Nobody else uses the tables meanwhile."""
        self._rewrite(session_id, records, blobs, was)
        compact(self._database)

    def _rewrite(
        self, session_id: str, records: Mapping[int, bytes], blobs: Sequence[str], was: Mapping[int, bytes] | None
    ) -> None:
        def change(db: Db) -> None:
            check_unchanged(self.read, session_id, was)
            rewrite(db, session_id, records, blobs)

        self._database.write(change)
        self._labels.clear()

    def verify(self, session_id: str | None = None) -> list[Problem]:
        problems = self._database.snapshot(partial(verify, session_id=session_id))
        if session_id is None and not problems and not self._database.read_only:
            problems += self._database.write(partial(renew_if_wrong, store=self))
        return problems

    def close(self) -> None:
        self._locks.close()
        self._database.close()


def _with_segments(db: Db, session_id: str) -> tuple[SessionRow, list[Segment]]:
    row = find(db, session_id)
    return row, segments_of(db, row)
