"""The inventory and size of a PostgreSQL store, and sweeping its blobs."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ...log.store import SWEEP_GRACE_SECONDS, Inventory, StoredPiece, Swept
from ..blobs import Put, named, unused
from ..records import COLUMNS
from .rows import row_of, segments_of
from .schema import Db

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
    current_time = time.time()
    return {name: Put(current_time - age, size) for name, age, size in db.execute(_BLOBS, binary=True)}


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
    rows = [row_of(values) for values in db.execute(f"select {COLUMNS} from turnlog_sessions order by no", binary=True)]
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
    protected = frozenset(
        name for (name,) in db.execute("select id from turnlog_sessions where id is not null and kept")
    )
    pieces = (
        StoredPiece(row.id or "", frozenset(readers[row.no]), sizes[row.no], frozenset(names[row.no])) for row in rows
    )
    return Inventory(tuple(pieces), blobs, protected, in_use)


def used_bytes(db: Db) -> int:
    """The bytes of all records and blobs, as they were given: those on disk are fewer, as the server compresses."""
    row = db.execute(
        """select (select coalesce(sum(size), 0) from turnlog_sessions)::bigint
            + (select coalesce(sum(octet_length(data)), 0) from turnlog_blobs)::bigint"""
    ).fetchone()
    return 0 if row is None else int(row[0])
