"""Appends to a session with one statement, and so one round trip, as long as nobody else appends.

The row of each session last written is remembered with its seal. The statement advances the row only if the row still
has that seal, which proves as much as reading it first, and inserts the records only if the row was advanced. If others
have appended, the row is read and locked first, so that others wait for it; this goes on until nobody else has appended
in between.

An append whose connection is lost may have happened or not. It is sent again: if it happened, the row has another seal
by now, and the records on disk have its checksums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

from ...errors import StoreError
from ...log.records import Record
from ...log.store import Draft
from ..records import MESSAGES, SessionRow, chain, check_expected, damaged_row, number_drafts, row_kind, seal
from .database import Database
from .rows import find_sealed
from .schema import Db, to_column

# A null fence: this process has no lease of the session, so it need not be its owner.
_ADVANCE = """with advanced as (
        update turnlog_sessions
        set records = %b, messages = %b, head = %b, updated = %b, seal = %b, size = size + %b
        where no = %b and seal = %b and (%b::bigint is null or owner = %b) returning no
    )
    insert into turnlog_records (log, n, kind, checksum, record)
    select advanced.no, added.* from advanced, unnest(%b::bigint[], %b::text[], %b::bytea[], %b::bytea[]) as added"""
_CHECKSUM = "select checksum from turnlog_records where log = %s and n = %s"
_REMEMBERED = 64


class _Step(NamedTuple):
    """An append that is ready: its records, the row before and after, and the values of the statement."""

    records: tuple[Record, ...]
    row: SessionRow
    seal: bytes
    values: tuple[object, ...]


class Appender:
    """Appends, one thread at a time. `fence` returns the mark that the owner of a session set, None if this process has
    no lease of it, and raises StoreError if the lease was lost. `lost` makes the error for a session that another
    process took."""

    def __init__(
        self, database: Database, fence: Callable[[str], int | None], lost: Callable[[str], StoreError]
    ) -> None:
        self._database = database
        self._fence = fence
        self._lost = lost
        self._rows: dict[str, tuple[SessionRow, bytes]] = {}
        self._crowded: set[str] = set()

    def append(self, session_id: str, drafts: Sequence[Draft], expected: int | None) -> tuple[Record, ...]:
        """See `RecordStore.append`. Raises CorruptRecord if the session's row is damaged."""
        fence = self._fence(session_id)
        remembered = self._rows.pop(session_id, None)
        is_next = remembered is not None and drafts and (expected is None or expected == remembered[0].records)
        if remembered is not None and is_next and session_id not in self._crowded:
            step = _step(*remembered, drafts, fence)
            sent: list[Db] = []

            def advance(db: Db) -> bool:
                sent.append(db)
                return _advanced(db, step) or (len(sent) > 1 and _is_there(db, step))

            with self._unknown(session_id, sent):
                if self._database.read(advance):
                    return self._done(session_id, step)
            self._crowded.add(session_id)
        return self._append_locked(session_id, drafts, expected, fence, remembered)

    def _append_locked(
        self,
        session_id: str,
        drafts: Sequence[Draft],
        expected: int | None,
        fence: int | None,
        remembered: tuple[SessionRow, bytes] | None,
    ) -> tuple[Record, ...]:
        """Lock the row, read it, and append after it."""
        ready: list[_Step] = []  # by an attempt whose commit may have been lost

        def advance(db: Db) -> tuple[_Step, psycopg.Cursor[Any] | None] | None:
            if ready and _is_there(db, ready[-1]):
                return ready[-1], None
            row, old_seal, owner = find_sealed(db, session_id, "for update")
            if seal(row) != old_seal:
                raise damaged_row(session_id)
            if remembered is not None and old_seal == remembered[1]:
                self._crowded.discard(session_id)
            if fence is not None and owner != fence:
                raise self._lost(session_id)
            check_expected(session_id, expected, row.records)
            if not drafts:
                return None
            ready.append(_step(row, old_seal, drafts, fence))
            return ready[-1], db.execute(_ADVANCE, ready[-1].values)  # sent together with the commit

        try:
            with self._unknown(session_id, ready):
                done = self._database.write(advance, repeatable=True, piped=True)
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.errors.UniqueViolation):
                raise damaged_row(session_id) from error
            raise
        if done is None:
            return ()
        step, sent = done
        if sent is not None and not sent.rowcount:
            raise damaged_row(session_id)
        return self._done(session_id, step)

    @contextmanager
    def _unknown(self, session_id: str, sent: Sequence[object]) -> Iterator[None]:
        """Raises an error that says so if the connection is lost after an append was `sent`."""
        try:
            yield
        except StoreError as error:
            if sent and self._database.is_lost:
                raise StoreError(
                    f"{error}; the server was lost during an append to session {session_id!r}, which may have happened:"
                    " look at the end of the session before you append it again"
                ) from error
            raise

    def _done(self, session_id: str, step: _Step) -> tuple[Record, ...]:
        if len(self._rows) >= _REMEMBERED:
            self._rows.clear()
        self._rows[session_id] = step.row, step.seal
        return step.records


def _step(row: SessionRow, old_seal: bytes, drafts: Sequence[Draft], fence: int | None) -> _Step:
    records = number_drafts(drafts, after=row.records)
    head, messages = row.head, row.messages
    numbers, kinds, checksums, raws = [], [], [], []
    for record in records:
        raw, kind = record.raw or b"", row_kind(record.body)
        head = chain(head, raw)
        messages += kind in MESSAGES
        numbers.append(record.n)
        kinds.append(to_column(kind))
        checksums.append(head)
        raws.append(raw)
    updated = max(row.updated, records[-1].time)  # a clock may be set back
    new = row._replace(records=records[-1].n, messages=messages, head=head, updated=updated)
    new_seal, size = seal(new), sum(map(len, raws))
    changed = (new.records, messages, head, to_column(updated), new_seal, size)
    values = (*changed, row.no, old_seal, fence, fence, numbers, kinds, checksums, raws)
    return _Step(records, new, new_seal, values)


def _advanced(db: Db, step: _Step) -> bool:
    """Whether the row was unchanged and the records are inserted. Raises CorruptRecord if one of their numbers is
    taken."""
    try:
        return db.execute(_ADVANCE, step.values).rowcount > 0
    except psycopg.errors.UniqueViolation as error:
        raise damaged_row(step.row.id) from error


def _is_there(db: Db, step: _Step) -> bool:
    """Whether the records of a step are on disk: the checksum of the last is unique to them."""
    row = db.execute(_CHECKSUM, (step.row.no, step.row.records), binary=True).fetchone()
    return row is not None and row[0] == step.row.head
