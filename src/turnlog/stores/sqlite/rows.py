"""The rows of the table `sessions` in an SQLite store: finds, inserts, changes (with their seal) and deletes them."""

from __future__ import annotations

import sqlite3

from ...log.store import SessionInfo
from ..records import COLUMNS, SessionRow, check_free, damaged_row, no_session, seal, storable
from .index import forget
from .packs import drop_packs, unpack
from .schema import record_id
from .segments import checksum_at, count_messages, segments_of

_FIND = f"select {COLUMNS}, seal from sessions where id = ?"
_UPDATE = "update sessions set title = ?, updated = ?, records = ?, messages = ?, head = ?, seal = ? where no = ?"


def find(db: sqlite3.Connection, session_id: str) -> SessionRow:
    """The row of a session. Raises SessionNotFound."""
    return find_sealed(db, session_id)[0]


def find_sealed(db: sqlite3.Connection, session_id: str) -> tuple[SessionRow, bytes]:
    """The row of a session, and the seal stored with it. Raises SessionNotFound."""
    values = db.execute(_FIND, (storable(session_id),)).fetchone()
    if values is None or values[1] != session_id:
        raise no_session(session_id, None if values is None else values[1])
    return SessionRow(*values[:-1]), values[-1]


def intact(db: sqlite3.Connection, session_id: str) -> SessionRow:
    """The row, checked before it is written again, as writing a damaged row would hide the damage. Raises
    CorruptRecord."""
    row, stored_seal = find_sealed(db, session_id)
    if seal(row) != stored_seal:
        raise damaged_row(session_id)
    return row


def check_free_in(db: sqlite3.Connection, session_id: str) -> None:
    """Raises SessionExists or SessionIdError unless a session with this id can be created."""
    row = db.execute("select id from sessions where id = ?", (session_id,)).fetchone()
    if row is not None:
        check_free(session_id, row[0])


def insert(db: sqlite3.Connection, row: SessionRow) -> SessionInfo:
    """Insert a new row; SQLite assigns its `no`."""
    marks = ", ".join("?" for _ in SessionRow._fields[1:])
    names = ", ".join(SessionRow._fields[1:])
    cursor = db.execute(f"insert into sessions ({names}, seal) values ({marks}, x'')", row[1:])
    row = row._replace(no=cursor.lastrowid or 0)
    db.execute("update sessions set seal = ? where no = ?", (seal(row), row.no))
    return row.info()


def write(db: sqlite3.Connection, row: SessionRow) -> None:
    """Write the columns of a row that can change, and its seal."""
    db.execute(_UPDATE, (row.title, row.updated, row.records, row.messages, row.head, seal(row), row.no))


def take_away(db: sqlite3.Connection, row: SessionRow) -> None:
    """Delete a session, and its records that no fork needs."""
    db.execute("pragma secure_delete = on")
    db.execute("update sessions set id = null, parent = '' where no = ?", (row.no,))
    db.execute("delete from kept where no = ?", (row.no,))
    db.execute("delete from labelled where no = ?", (row.no,))
    write(db, row._replace(id=None, title="", parent=""))
    _prune(db, row.no)


def _prune(db: sqlite3.Connection, no: int | None) -> None:
    """Remove what no fork needs of the deleted session `no`, and of the deleted sessions that it was forked from."""
    while no is not None:
        row = SessionRow(*db.execute(f"select {COLUMNS} from sessions where no = ?", (no,)).fetchone())
        needed = db.execute("select max(parent_records) from sessions where base = ?", (no,)).fetchone()[0]
        if row.id is not None:
            return
        keep = row.parent_records if needed is None else needed
        forget(db, row, keep + 1)
        if needed is None:
            drop_packs(db, no)
        else:
            unpack(db, no, last=keep, whole=False)
        db.execute("delete from records where id between ? and ?", (record_id(no, keep + 1), record_id(no, 0xFFFFFFFF)))
        if needed is not None:
            segments = segments_of(db, row, last=needed)
            head, messages = checksum_at(db, segments, needed), count_messages(db, segments)
            write(db, row._replace(records=needed, messages=messages, head=head))
            return
        db.execute("delete from sessions where no = ?", (no,))
        no = row.base
