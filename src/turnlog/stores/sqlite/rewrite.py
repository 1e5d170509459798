"""Rewrites records of an SQLite store so that its files contain nothing of their old content.

Everything derived from the old bytes is derived again: the checksums from the first changed record on, in this session
and in all its forks; the sessions' rows; and the indexes of words and labels, which are emptied, and filled by the next
search.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from ...errors import CorruptRecord, InputError, StoreError
from ...log.codec import decode_record
from ..records import CHAIN_START, COLUMNS, Segment, SessionRow, chain, row_kind, seal
from . import labels
from .database import Database
from .index import reset
from .packs import held, unpack
from .rows import find, write
from .schema import SEARCH_VERSION, record_id, version_of
from .segments import segments_of

_ROWS = f"""select id & 0xffffffff, checksum, {held()} from records
    where id between ? and ? order by id"""
_UPDATE = "update records set kind = ?, checksum = ?, record = cast(? as text) where id = ?"
_CHECKSUM = "update records set checksum = ? where id = ?"


def rewrite(db: sqlite3.Connection, session_id: str, records: Mapping[int, bytes], blobs: Sequence[str]) -> None:
    """See `Store.rewrite`. Must be called inside a transaction and be followed by `compact`."""
    row = find(db, session_id)
    segments = segments_of(db, row)
    changes: dict[int, dict[int, bytes]] = {}
    for n, raw in records.items():
        if decode_record(raw).n != n:
            raise InputError(f"the bytes given for record {n} encode another record")
        changes.setdefault(_owner(segments, n, session_id), {})[n] = raw
    db.execute("pragma secure_delete = on")
    moved: dict[int, dict[int, tuple[bytes, bytes]]] = {}
    # A session shares records only with older ones, which come earlier in this order.
    for values in db.execute(f"select {COLUMNS}, seal from sessions order by no").fetchall():
        session_row = SessionRow(*values[:-1])
        if session_row.no in changes or session_row.base in moved:
            if seal(session_row) != values[-1]:
                raise CorruptRecord(
                    f"the session row of {session_row.id!r} does not match its records; run `turnlog verify`"
                )
            if session_row.no in changes:
                unpack(db, session_row.no)  # a pack would keep the old content
            moved[session_row.no] = _rechain(db, session_row, changes.get(session_row.no, {}), moved)
    db.executemany("delete from blobs where sha256 = ?", [(name,) for name in blobs])
    if version_of(db) >= SEARCH_VERSION:
        reset(db)
    labels.reset(db)


def compact(database: Database) -> None:
    """Rewrite the whole file without the content of its free pages, and empty the write-ahead log.

    Raises StoreError if others are using the file, so that the log cannot be emptied.
    """
    database.fold_log()
    with database.reading() as db:
        db.execute("vacuum")
    database.fold_log()
    log = database.path.with_name(database.path.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            f"{database.path}: the records are rewritten, but others are reading the store, so that old bytes are "
            "left in its write-ahead log; close them and run `turnlog scrub` again"
        )


def _owner(segments: Sequence[Segment], n: int, session_id: str) -> int:
    for segment in segments:
        if segment.first <= n <= segment.last:
            return int(segment.key)
    raise InputError(f"session {session_id!r} has no record {n} to rewrite")


def _rechain(
    db: sqlite3.Connection,
    row: SessionRow,
    changes: Mapping[int, bytes],
    moved: Mapping[int, Mapping[int, tuple[bytes, bytes]]],
) -> dict[int, tuple[bytes, bytes]]:
    """Write the changed records and all checksums of a session's own records. Returns the old and new checksum by
    number.

    Raises CorruptRecord if an old checksum is wrong, because a new one would hide the damage.
    """
    old, new = _before(db, row, moved)
    pairs = {row.parent_records: (old, new)}
    bounds = record_id(row.no, row.parent_records + 1), record_id(row.no, row.records)
    for n, stored, old_raw in db.execute(_ROWS, bounds).fetchall():
        if chain(old, old_raw) != stored:
            raise CorruptRecord(
                f"record {n} of session {row.id!r} does not match its checksum; run `turnlog verify`", record=n
            )
        raw = changes.get(n, old_raw)
        old, new = stored, chain(new, raw)
        if n in changes:
            db.execute(_UPDATE, (row_kind(decode_record(raw).body), new, raw, record_id(row.no, n)))
        elif new != old:
            db.execute(_CHECKSUM, (new, record_id(row.no, n)))
        pairs[n] = old, new
    if old != row.head:
        raise CorruptRecord(
            f"the last records of session {row.id!r} are missing; run `turnlog verify`", record=row.records
        )
    write(db, row._replace(head=new))
    return pairs


def _before(
    db: sqlite3.Connection, row: SessionRow, moved: Mapping[int, Mapping[int, tuple[bytes, bytes]]]
) -> tuple[bytes, bytes]:
    """The checksum before a session's own records, old and new."""
    if row.base is None:
        return CHAIN_START, CHAIN_START
    if row.base in moved:
        return moved[row.base][row.parent_records]
    checksum_row = db.execute(
        "select checksum from records where id = ?", (record_id(row.base, row.parent_records),)
    ).fetchone()
    if checksum_row is None:
        raise CorruptRecord(f"record {row.parent_records} of session {row.id!r} is missing", record=row.parent_records)
    return bytes(checksum_row[0]), bytes(checksum_row[0])
