"""Rewrites records of a PostgreSQL store.

Everything that was derived from the old bytes is derived again: the checksums from the first changed record on, in this
session and in all sessions forked from it, and the sessions' rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from ...errors import CorruptRecord, StoreError
from ...log.codec import decode_record
from ...log.records import Body
from ...log.store import SWEEP_GRACE_SECONDS, Inventory, Problem, StoredPiece, Swept
from ..blobs import BlobCheck, Put, named, unused
from ..records import CHAIN_START, COLUMNS, Segment, SessionRow, chain, no_such_record, row_kind, seal
from ..row_reading import CheckedRow, RowCheck, row_damage
from .database import Database
from .rows import checksum_at, count_messages, find, measure, row_of, segments_of, write
from .schema import Db, to_column

# -- verifies a PostgreSQL store: derives again everything that can be derived, and compares it ----

_ROWS_AS_STORED = """select n, kind, checksum, record from turnlog_records where log = %s and n between %s and %s
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
        row = row_of(found[:-1])
        problems += row_damage(row, found[-1])
        problems += check.session(row, whole=session_id is not None)
    if session_id is None:
        for (no,) in db.execute(_OWNERLESS):
            problems.append(Problem("", 0, f"there are records of session number {no}, but no such session"))
    return problems if session_id is not None else [*problems, *check.blobs.rest()]


class _Check(RowCheck):
    """One verification of a store."""

    def __init__(self, db: Db) -> None:
        self._db = db
        self.blobs = BlobCheck((name for (name,) in db.execute("select name from turnlog_blobs")), self._blob)

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
        first = segment.first
        while rows := self._db.execute(
            _ROWS_AS_STORED, (segment.key, first, segment.last, _BATCH_ROWS), binary=True
        ).fetchall():
            for n, kind, stored, raw in rows:
                yield n, kind, stored, raw, True
            first = rows[-1][0] + 1

    def strays(self, row: SessionRow) -> Iterator[int]:
        """See `RowCheck`."""
        for (n,) in self._db.execute(_STRAYS, (row.no, row.parent_records, row.records)):
            yield n

    def kind(self, body: Body) -> str:
        """See `RowCheck`."""
        return to_column(row_kind(body))

    def _blob(self, name: str) -> bytes | None:
        found = self._db.execute("select data from turnlog_blobs where name = %s", (name,), binary=True).fetchone()
        return None if found is None else bytes(found[0])


# -- the inventory and size of a PostgreSQL store, and sweeping its blobs --------------------------

_BATCH_ROWS = 500
_RECORDS = """select log, n, record from turnlog_records where (log, n) > (%s, %s)
    order by log, n limit %s"""
_BLOBS = """select name, extract(epoch from clock_timestamp())::double precision - put_at, octet_length(data)
    from turnlog_blobs"""
_REMOVE = """delete from turnlog_blobs
    where name = any(%s) and put_at <= extract(epoch from clock_timestamp()) - %s::double precision
    returning octet_length(data)"""


def blobs_of(db: Db) -> dict[str, Put]:
    """Every blob. Its age is by the server's clock, which all machines share."""
    now = time.time()
    return {name: Put(now - age, size) for name, age, size in db.execute(_BLOBS, binary=True)}


def records_of(db: Db) -> Iterator[tuple[int, int, bytes]]:
    """The session number, number and bytes of every record."""
    log, n = -1, 0
    while rows := db.execute(_RECORDS, (log, n, _BATCH_ROWS), binary=True).fetchall():
        for log, n, raw in rows:
            yield log, n, raw


def sweep(db: Db, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
    """See `Store.sweep`. A blob that is put again meanwhile is young again, and stays."""
    names, swept = unused(blobs_of(db), (raw for _, _, raw in records_of(db)), grace)
    gone = [size for (size,) in db.execute(_REMOVE, (sorted(names), grace), binary=True)] if names else []
    return Swept(len(gone), sum(gone), swept.recent + len(names) - len(gone))


def inventory(db: Db, in_use: frozenset[str]) -> Inventory:
    """See `Store.inventory`. Reads all records."""
    rows = [row_of(found) for found in db.execute(f"select {COLUMNS} from turnlog_sessions order by no", binary=True)]
    blobs = {name: put.size for name, put in blobs_of(db).items()}
    sizes = {row.no: 0 for row in rows}
    names: dict[int, set[str]] = {row.no: set() for row in rows}
    for no, _, raw in records_of(db):
        sizes[no] = sizes.get(no, 0) + len(raw)
        names.setdefault(no, set()).update(named(raw, blobs))
    readers: dict[int, set[str]] = {row.no: set() for row in rows}
    for row in rows:
        for segment in segments_of(db, row) if row.id is not None else ():
            readers[segment.key].add(row.id or "")
    kept = frozenset(name for (name,) in db.execute("select id from turnlog_sessions where id is not null and kept"))
    pieces = (
        StoredPiece(row.id or "", frozenset(readers[row.no]), sizes[row.no], frozenset(names[row.no])) for row in rows
    )
    return Inventory(tuple(pieces), blobs, kept, in_use)


def used_bytes(db: Db) -> int:
    """The bytes of all records and blobs, as they were given: those on disk are fewer, as the server compresses."""
    found = db.execute(
        """select (select coalesce(sum(size), 0) from turnlog_sessions)::bigint
            + (select coalesce(sum(octet_length(data)), 0) from turnlog_blobs)::bigint"""
    ).fetchone()
    return 0 if found is None else int(found[0])


_ROWS = "select n, checksum, record from turnlog_records where log = %s and n between %s and %s order by n"
_UPDATE = "update turnlog_records set kind = %s, checksum = %s, record = %s where log = %s and n = %s"
_OWNED = """select bool_and(pg_has_role(relowner, 'usage')) from pg_class
    where oid in ('turnlog_records'::regclass, 'turnlog_blobs'::regclass, 'turnlog_labels'::regclass)"""
_HOLD_TEXT = "turnlog_records, turnlog_blobs, turnlog_labels"
_CHECKSUM = "update turnlog_records set checksum = %s where log = %s and n = %s"

Pairs = Mapping[int, tuple[bytes, bytes]]
"""The old and the new checksum of records, by number."""


def rewrite(db: Db, session_id: str, records: Mapping[int, bytes], blobs: Sequence[str]) -> None:
    """See `Store.rewrite`. Must be called inside a transaction and be followed by `compact`. Nobody writes to the store
    meanwhile."""
    db.execute("lock table turnlog_sessions in share row exclusive mode")
    segments = segments_of(db, find(db, session_id))
    changes: dict[int, dict[int, bytes]] = {}
    for n, raw in records.items():
        if decode_record(raw).n != n:
            raise no_such_record(session_id, n)
        changes.setdefault(_owner(segments, n, session_id), {})[n] = raw
    moved: dict[int, Pairs] = {}
    # A session shares records only with older ones, which come earlier in this order.
    for values in db.execute(f"select {COLUMNS}, seal from turnlog_sessions order by no", binary=True).fetchall():
        at = row_of(values[:-1])
        if at.no in changes or at.base in moved:
            if seal(at) != values[-1]:
                raise CorruptRecord(f"the session row of {at.id!r} does not match its records; run `turnlog verify`")
            moved[at.no] = _rechain(db, at, changes.get(at.no, {}), moved)
    for no in changes:
        measure(db, no)
    db.execute("delete from turnlog_blobs where name = any(%s)", (list(blobs),))
    db.execute("delete from turnlog_labels")


def compact(database: Database) -> None:
    """Write the tables anew, without the old bytes. Raises StoreError, which says that the records are rewritten."""

    def vacuum(db: Db) -> None:
        if db.execute(_OWNED).fetchone() != (True,):  # the server would only warn
            raise StoreError("only the owner of the tables may do that")
        db.execute(f"vacuum (full) {_HOLD_TEXT}")

    try:
        database.read(vacuum)
    except StoreError as error:
        raise StoreError(
            f"{database.address}: the records are rewritten, but old bytes are left in the tables' files ({error}); "
            f"run `vacuum full {_HOLD_TEXT}` there as their owner"
        ) from error


def _owner(segments: Sequence[Segment], n: int, session_id: str) -> int:
    for segment in segments:
        if segment.first <= n <= segment.last:
            return int(segment.key)
    raise no_such_record(session_id, n)


def _rechain(db: Db, row: SessionRow, changes: Mapping[int, bytes], moved: Mapping[int, Pairs]) -> Pairs:
    """Write the changed records and all checksums of a session's own records.

    Raises CorruptRecord if an old checksum is wrong, because a new one would hide the damage.
    """
    old, new = _before(db, row, moved)
    pairs = {row.parent_records: (old, new)}
    for n, stored, kept in db.execute(_ROWS, (row.no, row.parent_records + 1, row.records), binary=True).fetchall():
        if chain(old, kept) != stored:
            raise CorruptRecord(
                f"record {n} of session {row.id!r} does not match its checksum; run `turnlog verify`", record=n
            )
        raw = changes.get(n, kept)
        old, new = stored, chain(new, raw)
        if n in changes:
            db.execute(_UPDATE, (to_column(row_kind(decode_record(raw).body)), new, raw, row.no, n))
        elif new != old:
            db.execute(_CHECKSUM, (new, row.no, n))
        pairs[n] = old, new
    if old != row.head:
        raise CorruptRecord(
            f"the last records of session {row.id!r} are missing; run `turnlog verify`", record=row.records
        )
    write(db, row._replace(head=new))
    return pairs


def _before(db: Db, row: SessionRow, moved: Mapping[int, Pairs]) -> tuple[bytes, bytes]:
    """The checksum before a session's own records, old and new."""
    if row.base is None:
        return CHAIN_START, CHAIN_START
    if row.base in moved:
        return moved[row.base][row.parent_records]
    before = checksum_at(db, [Segment(row.base, 1, row.parent_records)], row.parent_records)
    return before, before
