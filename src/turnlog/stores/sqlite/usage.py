"""The usage records of all sessions in an SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby

from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.records import Record
from .packs import held
from .schema import RARE

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
