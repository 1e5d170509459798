"""The search index of an SQLite store. It is filled in batches when somebody searches, never during an append.

The index (FTS5, without the texts) is derived from the records. The table `searched` contains, for each session, the
last of its own records that is indexed. Removing a record from such an index requires the same texts that were put in;
they can be derived again, because the earlier records are unchanged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from ...errors import CorruptRecord
from ...log.codec import decode_record
from ...log.messages import ToolResult
from ...log.records import Record, ToolFinished
from ...log.store import Problem
from ..records import COLUMNS, SessionRow, chain
from ..words import SearchEntry, ToolNames, entry_of, indexed
from .database import Database
from .packs import held
from .schema import record_id
from .segments import checksum_at, segments_of
from .times import note_times

_BATCH_ROWS = 200
_BATCH_BYTES = 1 << 20

_PENDING = """select s.no, coalesce(t.records, s.parent_records) from sessions s left join searched t on t.no = s.no
    where s.records > coalesce(t.records, s.parent_records) order by s.no limit 1"""
_ROWS = f"select id & 0xffffffff, {held()} from records where id between ? and ? order by id"
_PUT = "insert into search (rowid, word, role, tools) values (?, ?, ?, ?)"
_TAKE = "insert into search (search, rowid, word, role, tools) values ('delete', ?, ?, ?, ?)"
_REACHED = "insert or replace into searched (no, records) values (?, ?)"
_SHORTER = "update searched set records = ? where no = ?"


class _Batch(NamedTuple):
    """The index rows for records `after + 1` to `last` of session number `no`, and the ids and times of the records."""

    no: int
    after: int
    last: int
    rows: list[tuple[int, str, str, str]]
    times: list[tuple[int, str]]


def is_behind(db: sqlite3.Connection) -> bool:
    """Whether there are records that are not indexed yet."""
    return db.execute(_PENDING).fetchone() is not None


def catch_up(database: Database) -> None:
    """Index all records. Several processes may do so at once: each batch is written only once."""
    names: dict[int, ToolNames] = {}
    while True:
        with database.reading() as db:
            batch = _next_batch(db, names)
        if batch is None:
            return
        with database.writing() as db:
            if db.execute(_PENDING).fetchone() == (batch.no, batch.after):
                db.executemany(_PUT, batch.rows)
                note_times(db, batch.times)
                db.execute(_REACHED, (batch.no, batch.last))
            else:  # another process was faster
                names.clear()


def forget(db: sqlite3.Connection, row: SessionRow, first: int) -> None:
    """Remove the records from `first` on of session `row.no` from the index, before they are deleted.

    The index is then rewritten as a whole, because until then it still contains their words. If a record is damaged,
    its indexed texts are unknown, and the whole index is emptied; also if the index is damaged.
    """
    indexed = db.execute("select records from searched where no = ?", (row.no,)).fetchone()
    if indexed is None:
        return
    try:
        taken = [
            (record_id(row.no, record.n), *_columns(entry))
            for record, entry in _entries(db, row, indexed[0])
            if record.n >= first and entry.text
        ]
        db.executemany(_TAKE, taken)
        if taken:
            db.execute("insert into search (search) values ('optimize')")
    except (CorruptRecord, sqlite3.DatabaseError):
        reset(db)
        return
    if first > row.parent_records + 1:
        db.execute(_SHORTER, (min(indexed[0], first - 1), row.no))
    else:
        db.execute("delete from searched where no = ?", (row.no,))


def reset(db: sqlite3.Connection) -> None:
    """Empty the index; the next search fills it again."""
    try:
        db.execute("insert into search (search) values ('delete-all')")
    except sqlite3.DatabaseError:
        # Not even the beginning of the index can be read: write the two rows of an empty index, its
        # averages and its structure (fts5_index.c: FTS5_AVERAGES_ROWID, FTS5_STRUCTURE_ROWID).
        db.execute("delete from search_idx")
        db.execute("delete from search_data")
        db.executemany("insert into search_data (id, block) values (?, ?)", [(1, b""), (10, bytes(7))])
    db.execute("delete from searched")
    db.execute("delete from searched_times")


def renew_if_damaged(db: sqlite3.Connection) -> list[Problem]:
    """Check whether the index is consistent. If not, empty it; the next search fills it again."""
    try:
        db.execute("insert into search (search) values ('integrity-check')")
    except sqlite3.DatabaseError as error:
        reset(db)
        return [Problem("", 0, f"the search index was damaged ({error}); the next search builds it again")]
    return []


def word_for(name: str) -> str:
    """A name as a single word of the index, whatever characters it contains."""
    return "x" + name.encode("utf-8", "surrogatepass").hex()


def _columns(entry: SearchEntry) -> tuple[str, str, str]:
    text = entry.text.encode("utf-8", "replace").decode("utf-8")  # SQLite cannot store lone surrogates
    return indexed(text), word_for(entry.role), " ".join(map(word_for, entry.tools))


def _entries(db: sqlite3.Connection, row: SessionRow, last: int) -> Iterator[tuple[Record, SearchEntry]]:
    """The index entries of a session's own records up to `last`. Raises CorruptRecord."""
    names = ToolNames()
    segments = segments_of(db, row, last=last)
    checksum = checksum_at(db, segments, 0)
    for segment in segments:
        ids = record_id(segment.key, segment.first), record_id(segment.key, segment.last)
        for stored, raw in db.execute(
            f"select checksum, {held()} from records where id between ? and ? order by id", ids
        ).fetchall():
            checksum = chain(checksum, raw)
            if checksum != stored:
                raise CorruptRecord(f"a record of session {row.id!r} does not match its checksum")
            record = decode_record(raw)
            entry = entry_of(record, names)
            if segment.key == row.no:
                yield record, entry


def _next_batch(db: sqlite3.Connection, names: dict[int, ToolNames]) -> _Batch | None:
    pending = db.execute(_PENDING).fetchone()
    if pending is None:
        return None
    no, after = pending
    row = SessionRow(*db.execute(f"select {COLUMNS} from sessions where no = ?", (no,)).fetchone())
    records, last, size = [], after, 0
    rows = db.execute(_ROWS, (record_id(no, after + 1), record_id(no, row.records)))
    for last, raw in rows:
        size += len(raw)
        record = _readable(raw)
        if record is not None and record.n == last:
            records.append(record)
        if last - after >= _BATCH_ROWS or size >= _BATCH_BYTES:
            break
    else:
        last = row.records
    rows.close()
    tool_names = names.get(no)
    if tool_names is None:
        names.clear()
        tool_names = names[no] = _names_before(db, row, after, records)
    entries = [(record_id(no, record.n), entry_of(record, tool_names)) for record in records]
    times = [(record_id(no, record.n), record.time) for record in records]
    return _Batch(no, after, last, [(key, *_columns(entry)) for key, entry in entries if entry.text], times)


def _readable(raw: bytes) -> Record | None:
    """The record; None if it is damaged. `verify` and reading report the damage."""
    try:
        return decode_record(raw)
    except CorruptRecord:
        return None


def _names_before(db: sqlite3.Connection, row: SessionRow, after: int, records: list[Record]) -> ToolNames:
    """The tool names of calls up to record `after`, for the results in `records` that need them."""
    names, batch_names = ToolNames(), ToolNames()
    wanted = set()
    for record in records:
        wanted |= {call_id for call_id in _nameless(record) if not batch_names.name(call_id)}
        batch_names.learn(record)
    for segment in reversed(segments_of(db, row, last=after)) if wanted else ():
        rows = db.execute(
            _ROWS + " desc", (record_id(segment.key, segment.first), record_id(segment.key, segment.last))
        )
        for _, raw in rows:
            earlier = _readable(raw)
            if earlier is not None:
                wanted -= names.learn(earlier, only=wanted)
            if not wanted:
                rows.close()
                return names
    return names


def _nameless(record: Record) -> Iterator[str]:
    """The ids of calls whose tool names must be looked up for a record."""
    if isinstance(record.body, ToolFinished):
        yield record.body.call_id
    for part in record.message.parts if record.message else ():
        if isinstance(part, ToolResult) and not part.name:
            yield part.call_id
