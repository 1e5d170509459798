"""Packed sessions of an SQLite store: many records in one compressed frame.

A packed record keeps its row, its kind, and its checksum, which is computed from its original bytes. Its bytes are
replaced by a blob (instead of text), which contains the number of a row in `packs` and the position in its frame.
Queries use the expression `held` for the bytes, wherever they are; so reading, searching, verifying and forking need no
other code for packed records.
"""

from __future__ import annotations

import sqlite3
import struct
from functools import lru_cache

from ...errors import CorruptRecord, StoreError
from ...log.store import Packed
from ..records import SessionRow
from ..zstd import compressed, decompressed, groups, joined, library, parted
from .schema import LOCK_VERSION, record_id, version_of

_POINTER = struct.Struct(">QI")
_REMEMBERED_PACKS = 4
_LOOSE = """select id & 0xffffffff, cast(record as blob) from records
    where id between ? and ? and typeof(record) = 'text' order by id"""
_PACKED = """select id, unpacked(record) from records where id between ? and ? and typeof(record) = 'blob'"""


def held(column: str = "record") -> str:
    """The SQL expression for the bytes of a record. If the record's pack is damaged, it gives no bytes, which match no
    checksum."""
    return f"case typeof({column}) when 'blob' then unpacked({column}) else cast({column} as blob) end"


def lend_packs(db: sqlite3.Connection) -> None:
    """Define the SQL function `unpacked` for a connection."""

    @lru_cache(maxsize=_REMEMBERED_PACKS)
    def records_of(no: int) -> list[bytes]:
        row = db.execute("select cast(data as blob) from packs where no = ?", (no,)).fetchone()
        return [] if row is None else parted(decompressed(row[0]))

    def unpacked(pointer: bytes) -> bytes:
        place: int
        try:
            no, place = _POINTER.unpack(pointer)
            return records_of(no)[place]
        except (struct.error, IndexError, CorruptRecord, OverflowError):
            return b""

    db.create_function("unpacked", 1, unpacked)


def check_packs(db: sqlite3.Connection) -> None:
    """Raises InputError if there are packed sessions, but the package that reads them is not installed."""
    if version_of(db) >= LOCK_VERSION and db.execute("select 1 from packs").fetchone():
        library()


def pack(db: sqlite3.Connection, row: SessionRow) -> Packed:
    """See `Store.pack`. Must be called inside a transaction."""
    before = after = count = 0
    bounds = record_id(row.no, row.parent_records + 1), record_id(row.no, row.records)
    for group in groups(db.execute(_LOOSE, bounds).fetchall()):
        raws = [raw for _, raw in group]
        frame = compressed(joined(raws))
        if parted(decompressed(frame)) != raws:
            raise StoreError(
                f"session {row.id!r} cannot be packed: decompressing gave other bytes; nothing was changed. Please "
                "report this"
            )
        pack_no = db.execute("insert into packs (session, data) values (?, ?)", (row.no, frame)).lastrowid or 0
        ids = record_id(row.no, group[0][0]), record_id(row.no, group[-1][0])
        rows = db.execute("select id, kind, checksum from records where id between ? and ? order by id", ids).fetchall()
        # Deleted and inserted again: rows that are shortened in place leave space that no other table can use.
        db.execute("delete from records where id between ? and ?", ids)
        pointed = [(*values, _POINTER.pack(pack_no, place)) for place, values in enumerate(rows)]
        db.executemany("insert into records (id, kind, checksum, record) values (?, ?, ?, ?)", pointed)
        count, before = count + len(raws), before + sum(map(len, raws))
        after += len(frame) + len(raws) * _POINTER.size
    return Packed(count, before, after)


def unpack(db: sqlite3.Connection, no: int, *, last: int = 0xFFFFFFFF, whole: bool = True) -> None:
    """Put the records of session number `no`, up to `last`, back into their rows, and delete its packs.

    Raises CorruptRecord if one cannot be read; without `whole`, that record stays where it is and remains damaged.
    """
    if version_of(db) < LOCK_VERSION:
        return
    packed_rows = db.execute(_PACKED, (record_id(no, 1), record_id(no, last))).fetchall()
    if whole and not all(raw for _, raw in packed_rows):
        raise CorruptRecord(f"a packed record of session number {no} cannot be read; `turnlog verify` names it")
    loose_rows = [(raw, row_id) for row_id, raw in packed_rows if raw]
    db.executemany("update records set record = cast(? as text) where id = ?", loose_rows)
    drop_packs(db, no)


def drop_packs(db: sqlite3.Connection, no: int) -> None:
    """Delete the packs of session number `no`."""
    if version_of(db) >= LOCK_VERSION:
        db.execute("delete from packs where session = ?", (no,))
