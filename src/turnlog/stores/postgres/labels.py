"""The index of labels in a PostgreSQL store. It is filled when somebody asks for labels, never during an append.

The table `turnlog_labels` has, for each session, its labels as of a record, with the checksum of that record. An entry
counts as long as the session still has that checksum there and no newer note. So records that an older version of
turnlog appends or rewrites meanwhile are noticed, although it does not know the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice

from ...errors import StoreError
from ...log.store import Problem, RecordStore
from ..labels import KnownLabels, decoded_labels, encoded_labels, entries_of, has_labels, labels_of
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
    order by s.no"""
_ALL = f"select {COLUMNS} from turnlog_sessions where id is not null order by no"
_FOUND = """select no from turnlog_labels
    where labels = any(%s) and no in (select no from turnlog_sessions where id is not null)"""
_ENTRIES = """select entry.no, id, labels from turnlog_labels as entry join turnlog_sessions as s on s.no = entry.no
    where id is not null order by entry.no"""
_NOTE = """insert into turnlog_labels (no, records, head, labels) values (%s, %s, %s, %s)
    on conflict (no) do update set records = excluded.records, head = excluded.head, labels = excluded.labels"""


def numbers(database: Database, store: RecordStore, known: KnownLabels, where: Mapping[str, str]) -> list[int]:
    """The numbers of the sessions with these labels. The index is brought up to date first; what it still does not
    have, as in a store that is open for reading only, is read."""
    rest = database.read(_behind)
    if rest and not database.read_only:
        with suppress(StoreError):  # the user may only read these tables, or the server is in trouble
            _note(database, store, rest)
        rest = database.read(_behind)
    found = set(known.matching(store, [(row.no, row.info()) for row in rest], where))
    return sorted(found | (database.read(partial(_found, where=where)) - {row.no for row in rest}))


def _found(db: Db, where: Mapping[str, str]) -> set[int]:
    if not _has_index(db):
        return set()
    kept = [labels for (labels,) in db.execute("select distinct labels from turnlog_labels")]
    asked = [labels for labels in kept if has_labels(decoded_labels(labels), where)]
    return {no for (no,) in db.execute(_FOUND, (asked,))}


def _note(database: Database, store: RecordStore, rows: Iterable[SessionRow]) -> None:
    entries = entries_of(store, rows)
    while some := list(islice(entries, _BATCH)):
        database.write(partial(_insert, entries=some), repeatable=True)


def _insert(db: Db, entries: Sequence[tuple[int, int, bytes, str]]) -> None:
    db.cursor().executemany(_NOTE, entries)


def renew_if_wrong(db: Db, store: RecordStore) -> list[Problem]:
    """Compare the index with the notes. If they differ, empty it."""
    behind = {row.no for row in _behind(db)}
    for no, name, labels in db.execute(_ENTRIES).fetchall():
        if no not in behind and labels != encoded_labels(labels_of(store, name)):
            db.execute("delete from turnlog_labels")
            what = f"the index of labels was damaged (session {name!r}); the next question for labels builds it again"
            return [Problem("", 0, what)]
    return []


def _behind(db: Db) -> list[SessionRow]:
    """The sessions whose labels the index does not have."""
    return list(map(row_of, db.execute(_BEHIND if _has_index(db) else _ALL, binary=True).fetchall()))


def _has_index(db: Db) -> bool:
    found = db.execute("select version from turnlog_version").fetchone()
    return found is not None and int(found[0]) >= LABELS_VERSION
