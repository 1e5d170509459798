"""Appends to an SQLite store, at almost the cost of a bare insert.

A session's row is cached after an append. The next append changes the row on disk only if its seal is still the cached
one; that proves as much as reading the whole row and costs nothing extra.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ...log.records import Record
from ...log.store import Draft
from ..records import check_expected, number_drafts, row_kind
from ..session_rows import SessionRow, chain, damaged_row, seal
from .rows import intact

_INSERT = "insert into records (id, kind, checksum, record) values (?, ?, ?, cast(? as text))"
_ADVANCE = "update sessions set records = ?, messages = ?, head = ?, seal = ?{} where no = ? and seal = ?"
_ADVANCE_IN_TIME = _ADVANCE.format(", updated = ?")  # an indexed column, so it is not written if the time is the same
_ADVANCE_IN_PLACE = _ADVANCE.format("")
_MESSAGES = frozenset({"message", "partial", "system"})
_REMEMBERED = 64


class Appender:
    """Appends inside transactions that the caller begins and ends, one at a time."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[SessionRow, bytes]] = {}

    def append(
        self, db: sqlite3.Connection, session_id: str, drafts: Sequence[Draft], expected: int | None
    ) -> tuple[Record, ...]:
        """See `RecordStore.append`. Raises CorruptRecord if the session's row is damaged."""
        remembered = self._rows.pop(session_id, None)
        if remembered is not None and drafts and (expected is None or expected == remembered[0].records):
            records = self._write(db, *remembered, drafts)
            if records is not None:
                return records
        row = intact(db, session_id)
        check_expected(session_id, expected, row.records)
        return (self._write(db, row, seal(row), drafts) or ()) if drafts else ()

    def _write(
        self, db: sqlite3.Connection, row: SessionRow, old_seal: bytes, drafts: Sequence[Draft]
    ) -> tuple[Record, ...] | None:
        """Write `drafts` after the state in `row`. None, with nothing written, if the row on disk has changed."""
        no, session_id, title, created, before, last, messages, head, parent, parent_records, base = row
        records = number_drafts(drafts, after=last)
        rows = []
        for record in records:
            raw, kind = record.raw or b"", row_kind(record.body)
            head = chain(head, raw)
            messages += kind in _MESSAGES
            # SQLite takes ASCII text without a copy, but copies bytes once more.
            rows.append((no << 32 | record.n, kind, head, raw.decode() if raw.isascii() else raw))
        last, updated = records[-1].n, max(before, records[-1].time)  # a clock may be set back
        row = SessionRow(no, session_id, title, created, updated, last, messages, head, parent, parent_records, base)
        new_seal = seal(row)
        write = db.cursor().execute  # `db.execute` would make a cursor for each statement
        if updated == before:
            changed = write(_ADVANCE_IN_PLACE, (last, messages, head, new_seal, no, old_seal))
        else:
            changed = write(_ADVANCE_IN_TIME, (last, messages, head, new_seal, updated, no, old_seal))
        if changed.rowcount != 1:
            return None
        try:
            for values in rows:
                write(_INSERT, values)
        except sqlite3.IntegrityError as error:
            raise damaged_row(session_id) from error
        if len(self._rows) >= _REMEMBERED:
            self._rows.clear()
        self._rows[session_id or ""] = (row, new_seal)
        return records
