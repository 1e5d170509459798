"""What the sessions of an SQLite store were billed, from the usage records alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import groupby

from ...errors import CorruptRecord
from ...log.bills import Bills, usage_by_model
from ...log.codec import decode_record
from ...log.records import Record
from ..segments import Segment
from .packs import held
from .schema import COLUMNS, USAGE, SessionRow, chain, record_id
from .segments import checksum_at, segments_of

# A record is checked against the checksum before its own; the first of a segment has it elsewhere.
_CHECKED = f"""select r.id & 0xffffffff, r.checksum, {held("r.record")}, before.checksum
    from records r left join records before on before.id = r.id - 1
    where r.{USAGE} and r.id between ? and ? order by r.id"""
_ALL = f"select id >> 32, id & 0xffffffff, {held()} from records where {USAGE} order by id"
_FORKS = f"select {COLUMNS} from sessions where id is not null and base is not null"


def read_usage(db: sqlite3.Connection, segments: list[Segment]) -> Bills:
    """What the records of `segments` say. Raises CorruptRecord."""
    return usage_by_model(_checked(db, segments))


def read_usages(db: sqlite3.Connection) -> dict[str, Bills]:
    """The same for every session that was billed anything, by id, in one pass over the store's usage
    records. As a listing does, it takes the rows at their word. Raises CorruptRecord for one that is no
    record."""
    names = dict(db.execute("select no, id from sessions where id is not null"))
    found = {
        names[no]: usage_by_model(_decoded(names[no], rows))
        for no, rows in groupby(db.execute(_ALL), key=lambda row: row[0])
        if no in names
    }
    for row in map(SessionRow._make, db.execute(_FORKS).fetchall()):
        bills = read_usage(db, segments_of(db, row))
        if bills and row.id is not None:
            found[row.id] = bills
    return found


def _checked(db: sqlite3.Connection, segments: list[Segment]) -> Iterator[Record]:
    for at in segments:
        ids = record_id(at.key, at.first), record_id(at.key, at.last)
        for n, stored, raw, before in db.execute(_CHECKED, ids):
            if n == at.first:
                before = checksum_at(db, segments, n - 1)
            if before is None or chain(before, raw or b"") != stored:
                raise CorruptRecord(f"record {n} does not match its checksum", record=n)
            yield decode_record(raw)


def _decoded(name: str, rows: Iterator[tuple[int, int, bytes]]) -> Iterator[Record]:
    for _, n, raw in rows:
        try:
            yield decode_record(raw or b"")
        except CorruptRecord as error:
            raise CorruptRecord(f"record {n} of session {name!r} cannot be read: {error}", record=n) from error
