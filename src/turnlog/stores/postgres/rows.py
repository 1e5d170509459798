"""The rows of the table of sessions in a PostgreSQL store: finds, inserts, changes (with their seal) and deletes
them."""

from __future__ import annotations

from typing import Any

from ...errors import CorruptRecord
from ...log.store import SessionInfo, folded_id
from ..records import (
    CHAIN_START,
    COLUMNS,
    MESSAGES_IN_SQL,
    Segment,
    SessionRow,
    check_free,
    damaged_row,
    no_session,
    seal,
    segments_of_log,
    storable,
)
from .schema import Db, from_column, to_column

_FIND = f"select {COLUMNS}, seal, owner from turnlog_sessions where folded = %s"
_BY_NUMBER = f"select {COLUMNS} from turnlog_sessions where no = %s for update"
_UPDATE = """update turnlog_sessions set title = %s, updated = %s, records = %s, messages = %s, head = %s, seal = %s
    where no = %s"""
_INSERT = f"""insert into turnlog_sessions
    ({", ".join(SessionRow._fields[1:])}, folded, owner, seal) values ({", ".join(["%s"] * 13)})
    on conflict (folded) do nothing returning no"""
_BASES = """with recursive line as (
        select no, parent_records, base from turnlog_sessions where no = %s
        union select lower.no, lower.parent_records, lower.base
        from turnlog_sessions as lower join line on lower.no = line.base
    ) select no, parent_records, base from line"""


def row_of(values: tuple[Any, ...]) -> SessionRow:
    """The SessionRow of these values."""
    no, name, title, created, updated, *rest = values
    return SessionRow(no, name, from_column(title), from_column(created), from_column(updated), *rest)


def find(db: Db, session_id: str) -> SessionRow:
    """The row of a session. Raises SessionNotFound."""
    return find_sealed(db, session_id)[0]


def find_sealed(db: Db, session_id: str, lock: str = "") -> tuple[SessionRow, bytes, int]:
    """The row of a session, its seal, and the mark of its owner. With `lock` (`for update`, `for share`), nobody
    changes it until the transaction ends. Raises SessionNotFound."""
    values = None
    if isinstance(session_id, str) and "\0" not in session_id:
        values = db.execute(f"{_FIND} {lock}", (storable(folded_id(session_id)),), binary=True).fetchone()
    if values is None or values[1] != session_id:
        raise no_session(session_id, None if values is None else values[1])
    return row_of(values[:-2]), values[-2], values[-1]


def intact(db: Db, session_id: str) -> SessionRow:
    """The row, locked and checked before it is written again, as writing a damaged row would hide the damage. Raises
    CorruptRecord."""
    row, stored_seal, _ = find_sealed(db, session_id, "for update")
    if seal(row) != stored_seal:
        raise damaged_row(session_id)
    return row


def insert(db: Db, row: SessionRow, owner: int) -> SessionInfo:
    """Insert a new row; the server assigns its `no`. Raises SessionExists, SessionIdError."""
    session_id = row.id or ""
    columns = (session_id, *map(to_column, row[2:5]), *row[5:], folded_id(session_id), owner, b"")
    inserted = db.execute(_INSERT, columns).fetchone()
    if inserted is None:
        taken = db.execute("select id from turnlog_sessions where folded = %s", (folded_id(session_id),)).fetchone()
        check_free(session_id, session_id if taken is None else taken[0])
        raise AssertionError("unreachable")
    row = row._replace(no=inserted[0])
    db.execute("update turnlog_sessions set seal = %s where no = %s", (seal(row), row.no))
    return row.info()


def write(db: Db, row: SessionRow) -> None:
    """Write the columns of a row that can change, and its seal."""
    columns = (to_column(row.title), to_column(row.updated), row.records, row.messages, row.head, seal(row), row.no)
    db.execute(_UPDATE, columns)


def measure(db: Db, no: int) -> None:
    """Write how many bytes the session's own records have."""
    db.execute(
        """update turnlog_sessions set size = (
            select coalesce(sum(octet_length(record)), 0) from turnlog_records where log = no) where no = %s""",
        (no,),
    )


def take_away(db: Db, row: SessionRow) -> None:
    """Delete a session, and its records that no fork needs."""
    db.execute(
        "update turnlog_sessions set id = null, folded = null, parent = '', kept = false where no = %s", (row.no,)
    )
    db.execute("delete from turnlog_labels where no = %s", (row.no,))
    write(db, row._replace(id=None, title="", parent=""))
    _prune(db, row.no)


def _prune(db: Db, no: int | None) -> None:
    """Remove what no fork needs of the deleted session `no`, and of the deleted sessions that it was forked from."""
    while no is not None:
        # The lock first: whoever deletes that session, or another fork of it, at the same time, is done then.
        values = db.execute(_BY_NUMBER, (no,), binary=True).fetchone()
        if values is None or values[1] is not None:
            return
        row = row_of(values)
        needed = _one(db, "select max(parent_records) from turnlog_sessions where base = %s", no)
        keep = row.parent_records if needed is None else needed
        db.execute("delete from turnlog_records where log = %s and n > %s", (no, keep))
        if needed is not None:
            segments = segments_of(db, row, last=needed)
            head, messages = checksum_at(db, segments, needed), count_messages(db, segments)
            write(db, row._replace(records=needed, messages=messages, head=head))
            measure(db, no)
            return
        db.execute("delete from turnlog_sessions where no = %s", (no,))
        no = row.base


def segments_of(db: Db, row: SessionRow, *, last: int | None = None) -> list[Segment]:
    """The segments with the records 1 to `last` (None: all) of a session. Raises CorruptRecord."""
    lower: dict[int, tuple[int, int | None]] = {}
    if row.base is not None:
        rows = db.execute(_BASES, (row.base,), binary=True).fetchall()
        lower = {no: (parent_records, base) for no, parent_records, base in rows}
    return segments_of_log(row.no, row.parent_records, row.base, row.records if last is None else last, lower.get)


def checksum_at(db: Db, segments: list[Segment], n: int) -> bytes:
    """The checksum of record `n`; for 0, the start of every chain."""
    if n == 0:
        return CHAIN_START
    for key, first, last in segments:
        if first <= n <= last:
            checksum = _one(db, "select checksum from turnlog_records where log = %s and n = %s", key, n)
            if checksum is not None:
                return bytes(checksum)
    raise CorruptRecord(f"record {n} is missing", record=n)


def count_messages(db: Db, segments: list[Segment]) -> int:
    """The number of messages among the records of `segments`."""
    return sum(
        _one(
            db,
            f"""select count(*) from turnlog_records
            where log = %s and n between %s and %s and kind in ({MESSAGES_IN_SQL})""",
            *segment,
        )
        for segment in segments
    )


def _one(db: Db, query: str, *values: Any) -> Any:
    """The only column of the only row; None if there is no row."""
    row = db.execute(query, values, binary=True).fetchone()
    return None if row is None else row[0]
