"""The index of labels in an SQLite store. It is filled when somebody asks for labels, never during an append.

The table `labelled` has, for each session, its labels as of a record, with the checksum of that record. An entry counts
as long as the session still has that checksum there and no newer note. So records that an older version of turnlog
appends or rewrites meanwhile are noticed, although it does not know the table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress

from ...errors import CorruptRecord
from ...log.store import Problem, RecordStore
from ..labels import KnownLabels, decoded_labels, encoded_labels, has_labels, labels_of
from ..session_rows import COLUMNS, SessionRow
from .database import Database
from .schema import INDEXED, LABELS_VERSION, RARE, version_of

_BATCH = 200

_SUM = """case when entry.records = s.records then s.head when entry.records = 0 then zeroblob(32) else (
        select checksum from records
        where id = (case when entry.records > s.parent_records then s.no else s.base end) << 32 | entry.records
    ) end"""
_NEWER = f"""exists (select 1 from records {INDEXED} where kind = 'note' {RARE}
        and id between s.no << 32 | (entry.records + 1) and s.no << 32 | s.records)"""
_COLUMNS = ", ".join(f"s.{name}" for name in COLUMNS.split(", "))
_BEHIND = f"""select {_COLUMNS} from sessions as s left join labelled as entry on entry.no = s.no
    where s.id is not null and (entry.no is null or entry.records > s.records or entry.head is not {_SUM}
        or (entry.records < s.records and {_NEWER})) order by s.no limit ?"""
_ALL = f"select {COLUMNS} from sessions where id is not null order by no limit ?"
_ENTRIES = "select no, labels from labelled where no in (select no from sessions where id is not null)"
_NOTE = "insert or replace into labelled (no, records, head, labels) values (?, ?, ?, ?)"


def note_labels(database: Database, store: RecordStore) -> None:
    """Note the labels of all sessions that have other ones now. Those that cannot be read are left out. Several
    processes may do so at once."""
    unreadable = 0
    while True:
        with database.reading() as db:
            if len(_behind(db, unreadable + 1)) <= unreadable:
                return
        with database.writing() as db:
            unreadable = 0
            rows = _behind(db, _BATCH)
            for row in rows:
                try:
                    labels = encoded_labels(labels_of(store, row.id or ""))
                except CorruptRecord:
                    unreadable += 1
                else:
                    db.execute(_NOTE, (row.no, row.records, row.head, labels))
        if unreadable == len(rows) or len(rows) < _BATCH:
            return


def numbers(db: sqlite3.Connection, store: RecordStore, known: KnownLabels, where: Mapping[str, str]) -> list[int]:
    """The numbers of the sessions with these labels. Those that the index does not have, as in a store that is open for
    reading only, are read."""
    rest = {row.no: row.info() for row in _behind(db, -1)}
    found = set(known.matching(store, rest.items(), where))
    if version_of(db) >= LABELS_VERSION:
        for no, labels in db.execute(_ENTRIES):
            if no not in rest and _has(labels, where):
                found.add(no)
    return sorted(found)


def reset(db: sqlite3.Connection) -> None:
    """Empty the index; the next question for labels fills it again."""
    if version_of(db) >= LABELS_VERSION:
        db.execute("delete from labelled")


def renew_if_wrong(db: sqlite3.Connection, store: RecordStore) -> list[Problem]:
    """Compare the index with the notes. If they differ, empty it."""
    behind = {row.no for row in _behind(db, -1)}
    for no, labels in db.execute(_ENTRIES).fetchall():
        name = db.execute("select id from sessions where no = ?", (no,)).fetchone()[0]
        if no not in behind and labels != encoded_labels(labels_of(store, name)):
            reset(db)
            what = f"the index of labels was damaged (session {name!r}); the next question for labels builds it again"
            return [Problem("", 0, what)]
    return []


def _behind(db: sqlite3.Connection, limit: int) -> list[SessionRow]:
    """The sessions whose labels the index does not have; -1: no limit."""
    rows = db.execute(_BEHIND if version_of(db) >= LABELS_VERSION else _ALL, (limit,))
    return list(map(SessionRow._make, rows.fetchall()))


def _has(labels: str, where: Mapping[str, str]) -> bool:
    with suppress(ValueError):  # damaged
        return has_labels(decoded_labels(labels), where)
    return False
