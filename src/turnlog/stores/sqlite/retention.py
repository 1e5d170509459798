"""The inventory and size of an SQLite store, sweeping its blobs, and giving back free space."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from ...errors import CorruptRecord
from ...log.store import Inventory, StoredPiece, Swept
from ..blobs import BlobFolder, Put, named, unused
from ..records import COLUMNS, SessionRow
from .database import Database
from .packs import held
from .schema import KEPT_VERSION, version_of
from .segments import segments_of

_FREED_PAGES = 1_000


_INCREMENTAL = 2


_ROOTS = "select count(*) from sqlite_master where rootpage > 0"  # each takes one page


_BLOBS = "select sha256, put_at, length(data) from blobs"


_KEPT = "select id from sessions where id is not null and no in (select no from kept)"


def blobs_of(db: sqlite3.Connection, files: BlobFolder) -> dict[str, Put]:
    """Every blob, whether in the database or in a file."""
    return {**{name: Put(put_at, size) for name, put_at, size in db.execute(_BLOBS)}, **files.puts()}


def sweep(db: sqlite3.Connection, files: BlobFolder, grace: float) -> Swept:
    """See `Store.sweep`. Must be called inside a transaction, so that nobody puts blobs or appends meanwhile."""
    names, swept = unused(blobs_of(db, files), (raw for _, raw in _records_of(db)), grace)
    db.execute("pragma secure_delete = on")
    db.executemany("delete from blobs where sha256 = ?", [(name,) for name in names])
    files.remove(names)
    return swept


def inventory(db: sqlite3.Connection, files: BlobFolder, in_use: frozenset[str] | None) -> Inventory:
    """See `Store.inventory`. Reads all records."""
    rows = [SessionRow(*values) for values in db.execute(f"select {COLUMNS} from sessions order by no")]
    blobs = {name: put.size for name, put in blobs_of(db, files).items()}
    sizes = {row.no: 0 for row in rows}
    names: dict[int, set[str]] = {row.no: set() for row in rows}
    for no, raw in _records_of(db):
        sizes[no] = sizes.get(no, 0) + len(raw)
        names.setdefault(no, set()).update(named(raw, blobs))
    readers: dict[int, set[str]] = {row.no: set() for row in rows}
    for row in rows:
        for segment in segments_of(db, row) if row.id is not None else ():
            readers[segment.key].add(row.id or "")
    base = db.execute(_ROOTS).fetchone()[0] * db.execute("pragma page_size").fetchone()[0]
    protected = {name for (name,) in db.execute(_KEPT)} if version_of(db) >= KEPT_VERSION else set()
    pieces = (
        StoredPiece(row.id or "", frozenset(readers[row.no]), sizes[row.no], frozenset(names[row.no])) for row in rows
    )
    return Inventory(tuple(pieces), blobs, frozenset(protected), in_use, base)


def used_bytes(db: sqlite3.Connection) -> int:
    """The bytes of the file, without free pages and without the write-ahead log."""
    pages, free, size = (
        db.execute(f"pragma {what}").fetchone()[0] for what in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def reclaim(database: Database) -> None:
    """Give free pages back to the disk by an incremental vacuum, a thousand pages at a time. A store made by an old
    turnlog is rewritten as a whole, once; that needs as much free space on the disk as the file has bytes."""
    with database.reading() as db:
        free = db.execute("pragma freelist_count").fetchone()[0]
        if free and db.execute("pragma auto_vacuum").fetchone()[0] != _INCREMENTAL:
            db.execute(f"pragma auto_vacuum = {_INCREMENTAL}")
            db.execute("vacuum")
            free = 0
    for done in range(0, free, _FREED_PAGES):
        with database.writing() as db:
            for _ in range(min(_FREED_PAGES, free - done)):
                db.execute("pragma incremental_vacuum(1)")  # Python runs only one step of a statement without rows
    database.fold_log()


def _records_of(db: sqlite3.Connection) -> Iterator[tuple[int, bytes]]:
    """The session number and the bytes of every record, packed or not, damaged or not.

    Raises CorruptRecord for a damaged pack, because the blobs that its records need are not known.
    """
    for no, raw in db.execute(f"select id >> 32, {held()} from records"):
        if not raw:
            raise CorruptRecord(
                f"a packed record of session number {no} cannot be read, so its media are not known; `turnlog verify` "
                "names it"
            )
        yield no, raw
