"""The index of labels in a PostgreSQL store. It is filled when somebody asks for labels, never during an append.

The table `turnlog_labels` has, for each session, its labels as of a record, with the checksum of that record. An entry
counts as long as the session still has that checksum there and no newer note. So records that an older version of
turnlog appends or rewrites meanwhile are noticed, although it does not know the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ...errors import CorruptRecord, SessionNotFound
from ...log.store import Problem, RecordStore
from ..labels import KnownLabels, decoded_labels, encoded_labels, has_labels, labels_of
from ..session_rows import COLUMNS, SessionRow
from .database import Database
from .rows import row_of
from .schema import LABELS_VERSION, Db

_BATCH = 200

_SUM = """case when entry.records = s.records then s.head
        when entry.records = 0 then decode(repeat('00', 32), 'hex') else (
            select checksum from turnlog_records where n = entry.records
            and log = case when entry.records > s.parent_records then s.no else s.base end
        ) end"""
_NEWER = "exists (select 1 from turnlog_records where log = s.no and kind = 'note' and n > entry.records)"
_COLUMNS = ", ".join(f"s.{name}" for name in COLUMNS.split(", "))
_BEHIND = f"""select {_COLUMNS} from turnlog_sessions as s left join turnlog_labels as entry on entry.no = s.no
    where s.id is not null and (entry.no is null or entry.records > s.records
        or entry.head is distinct from {_SUM} or (entry.records < s.records and {_NEWER}))
    order by s.no limit %s"""
_ALL = f"select {COLUMNS} from turnlog_sessions where id is not null order by no limit %s"
_FOUND = """select no from turnlog_labels
    where labels = any(%s) and no in (select no from turnlog_sessions where id is not null)"""
_ENTRIES = """select entry.no, id, labels from turnlog_labels as entry join turnlog_sessions as s on s.no = entry.no
    where id is not null order by entry.no"""
_NOTE = """insert into turnlog_labels (no, records, head, labels) values (%s, %s, %s, %s)
    on conflict (no) do update set records = excluded.records, head = excluded.head, labels = excluded.labels"""


def note_labels(database: Database, store: RecordStore) -> None:
    """Note the labels of all sessions that have other ones now. Those that cannot be read are left out. Several
    processes may do so at once."""
    unreadable = 0
    while len(rows := database.read(partial(_behind, limit=unreadable + _BATCH))) > unreadable:
        noted = []
        for row in rows:
            try:
                noted.append((row.no, row.records, row.head, encoded_labels(labels_of(store, row.id or ""))))
            except (CorruptRecord, SessionNotFound):
                continue
        if not noted:
            return
        unreadable = len(rows) - len(noted)
        database.write(partial(_note, entries=noted), repeatable=True)


def numbers(db: Db, store: RecordStore, known: KnownLabels, where: Mapping[str, str]) -> list[int]:
    """The numbers of the sessions with these labels. Those that the index does not have, as in a store that is open for
    reading only, are read."""
    rest = {row.no: row.info() for row in _behind(db, None)}
    found = set(known.matching(store, rest.items(), where))
    if _has_index(db):
        kept = [labels for (labels,) in db.execute("select distinct labels from turnlog_labels")]
        asked = [labels for labels in kept if has_labels(decoded_labels(labels), where)]
        found |= {no for (no,) in db.execute(_FOUND, (asked,))} - rest.keys()
    return sorted(found)


def renew_if_wrong(db: Db, store: RecordStore) -> list[Problem]:
    """Compare the index with the notes. If they differ, empty it."""
    behind = {row.no for row in _behind(db, None)}
    for no, name, labels in db.execute(_ENTRIES).fetchall():
        if no not in behind and labels != encoded_labels(labels_of(store, name)):
            db.execute("delete from turnlog_labels")
            what = f"the index of labels was damaged (session {name!r}); the next question for labels builds it again"
            return [Problem("", 0, what)]
    return []


def _behind(db: Db, limit: int | None) -> list[SessionRow]:
    """The sessions whose labels the index does not have; None: no limit."""
    return list(map(row_of, db.execute(_BEHIND if _has_index(db) else _ALL, (limit,), binary=True).fetchall()))


def _note(db: Db, entries: Sequence[tuple[int, int, bytes, str]]) -> None:
    db.cursor().executemany(_NOTE, entries)


def _has_index(db: Db) -> bool:
    found = db.execute("select version from turnlog_version").fetchone()
    return found is not None and int(found[0]) >= LABELS_VERSION
