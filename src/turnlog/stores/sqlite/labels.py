"""The index of labels in an SQLite store. It is filled when somebody asks for labels, never during an append.

The table `labelled` has, for each session, its facts (see `labels.encoded_facts`) at a record, with the checksum of
that record. An entry is valid as long as the session still has that checksum there and no newer note. So records that
an older version of turnlog appends or rewrites meanwhile are noticed, although it does not know the table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from ...errors import CorruptRecord, StoreError
from ...log.store import Problem, RecordStore, SessionFacts
from ..labels import FACTS, KnownLabels, decoded_facts, encoded_facts, entries_of, facts_of
from ..records import COLUMNS, SessionRow
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
        or substr(entry.labels, 1, {len(FACTS)}) <> '{FACTS}'
        or (entry.records < s.records and {_NEWER})) order by s.no"""
_ALL = f"select {COLUMNS} from sessions where id is not null order by no"
_ENTRIES = "select no, labels from labelled where no in (select no from sessions where id is not null)"
_NOTE = "insert or replace into labelled (no, records, head, labels) values (?, ?, ?, ?)"


def facts_by_number(database: Database, store: RecordStore, known_labels: KnownLabels) -> dict[int, SessionFacts]:
    """The facts of each session, by number. The index is brought up to date first; sessions that it still lacks, as in
    a store that is open for reading only, are read."""
    try:
        rest, indexed = _by_index(database, store)
    except CorruptRecord:  # the index is damaged; if the records are damaged as well, reading reports it
        with database.reading() as db:
            rest, indexed = _rows(db, _ALL), {}
    return indexed | known_labels.facts(store, [(row.no, row.info()) for row in rest])


def _by_index(database: Database, store: RecordStore) -> tuple[list[SessionRow], dict[int, SessionFacts]]:
    """The sessions that the index lacks, and the facts of the others, by number."""
    with database.reading() as db:
        if version_of(db) < LABELS_VERSION:
            return _rows(db, _ALL), {}
        rest = _rows(db, _BEHIND)
    if rest and not database.read_only:
        with suppress(StoreError):  # the disk is full, or others keep writing
            _note(database, store, rest)
    with database.reading() as db:
        rest = _rows(db, _BEHIND) if rest else rest
        unknown = {row.no for row in rest}
        entries = db.execute(_ENTRIES).fetchall()
    facts = {}
    for no, text in entries:
        if no not in unknown:
            with suppress(ValueError, LookupError, TypeError, AttributeError):  # damaged
                facts[no] = decoded_facts(text)
    return rest, facts


def _note(database: Database, store: RecordStore, rows: Iterable[SessionRow]) -> None:
    entries = entries_of(store, rows)
    while some := list(islice(entries, _BATCH)):
        with database.writing() as db:
            db.executemany(_NOTE, some)


def reset(db: sqlite3.Connection) -> None:
    """Empty the index; the next question for labels fills it again."""
    if version_of(db) >= LABELS_VERSION:
        db.execute("delete from labelled")


def renew_if_wrong(db: sqlite3.Connection, store: RecordStore) -> list[Problem]:
    """Compare the index with the notes. If they differ, empty it."""
    behind = {row.no for row in _rows(db, _BEHIND)}
    for no, labels in db.execute(_ENTRIES).fetchall():
        name = db.execute("select id from sessions where no = ?", (no,)).fetchone()[0]
        if no not in behind and labels != encoded_facts(facts_of(store, name)):
            reset(db)
            what = f"the index of labels was damaged (session {name!r}); the next question for labels builds it again"
            return [Problem("", 0, what)]
    return []


def _rows(db: sqlite3.Connection, query: str) -> list[SessionRow]:
    return list(map(SessionRow._make, db.execute(query).fetchall()))
