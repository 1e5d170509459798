"""Rewrites records of a PostgreSQL store.

Everything derived from the old bytes is derived again: the checksums from the first changed record on, in this session
and in all its forks, and the sessions' rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import CorruptRecord, StoreError
from ...log.codec import decode_record
from ..records import CHAIN_START, COLUMNS, Segment, SessionRow, chain, no_such_record, row_kind, seal
from .database import Database
from .rows import checksum_at, find, measure, row_of, segments_of, write
from .schema import Db, to_column

_ROWS = "select n, checksum, record from turnlog_records where log = %s and n between %s and %s order by n"


_UPDATE = "update turnlog_records set kind = %s, checksum = %s, record = %s where log = %s and n = %s"
_OWNED = """select bool_and(pg_has_role(relowner, 'usage')) from pg_class
    where oid in ('turnlog_records'::regclass, 'turnlog_blobs'::regclass, 'turnlog_labels'::regclass)"""
_HOLD_TEXT = "turnlog_records, turnlog_blobs, turnlog_labels"
_CHECKSUM = "update turnlog_records set checksum = %s where log = %s and n = %s"

Pairs = Mapping[int, tuple[bytes, bytes]]
"""The old and the new checksum of records, by number."""


def rewrite(db: Db, session_id: str, records: Mapping[int, bytes], blobs: Sequence[str]) -> None:
    """See `Store.rewrite`. Must be called inside a transaction and be followed by `compact`. Locks the table of
    sessions, so that nobody writes to the store meanwhile."""
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
        session_row = row_of(values[:-1])
        if session_row.no in changes or session_row.base in moved:
            if seal(session_row) != values[-1]:
                raise CorruptRecord(
                    f"the session row of {session_row.id!r} does not match its records; run `turnlog verify`"
                )
            moved[session_row.no] = _rechain(db, session_row, changes.get(session_row.no, {}), moved)
    for no in changes:
        measure(db, no)
    db.execute("delete from turnlog_blobs where name = any(%s)", (list(blobs),))
    db.execute("delete from turnlog_labels")


def compact(database: Database) -> None:
    """Write the tables anew, without the old bytes. If that fails, raises StoreError, which says that the records are
    rewritten."""

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
    for n, stored, old_raw in db.execute(_ROWS, (row.no, row.parent_records + 1, row.records), binary=True).fetchall():
        if chain(old, old_raw) != stored:
            raise CorruptRecord(
                f"record {n} of session {row.id!r} does not match its checksum; run `turnlog verify`", record=n
            )
        raw = changes.get(n, old_raw)
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
