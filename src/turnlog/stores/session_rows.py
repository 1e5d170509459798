"""The row of a session in a database, and the checksums that protect rows.

Checksums form a chain: the checksum of a record is the SHA-256 of the previous checksum and the record's bytes, and the
last one is stored in the session's row as `head`. So a record that is changed, replaced, moved or lost is detected.
`seal` is the checksum of the session's row itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ..errors import CorruptRecord
from ..log.store import SessionInfo
from .records import damaged_session, storable
from .segments import Segment

_SHA256 = hashlib.sha256()  # copying it takes a third of the time of a new one
_encode = msgspec.json.Encoder().encode

CHAIN_START = bytes(32)
"""The checksum before record 1."""


class SessionRow(NamedTuple):
    """A row of the table of sessions, without its seal. The session `base` owns record number `parent_records`."""

    no: int
    id: str | None
    title: str
    created: str
    updated: str
    records: int
    messages: int
    head: bytes
    parent: str
    parent_records: int
    base: int | None

    def info(self) -> SessionInfo:
        """The session as it is listed."""
        return SessionInfo(
            id=self.id or "",
            title=self.title,
            created=self.created,
            updated=self.updated,
            records=self.records,
            messages=self.messages,
            parent=self.parent,
            parent_records=self.parent_records,
        )


COLUMNS = ", ".join(SessionRow._fields)


def new_row(
    session_id: str,
    title: str,
    time: str,
    parent: str,
    *,
    shared: int = 0,
    messages: int = 0,
    head: bytes = CHAIN_START,
    segments: Sequence[Segment] = (),
) -> SessionRow:
    """The row of a session that is made at `time`. A fork has `shared` records with so many `messages`, in these
    `segments`, and `head` is the checksum of the last of them."""
    base = int(segments[-1].key) if segments else None
    return SessionRow(0, session_id, storable(title), time, time, shared, messages, head, parent, shared, base)


def seal(row: SessionRow) -> bytes:
    """The checksum of a session row."""
    digest = _SHA256.copy()
    digest.update(_encode(row))
    return digest.digest()


def chain(previous: bytes, raw: bytes) -> bytes:
    """The checksum of a record with the bytes `raw`; `previous` is the checksum before it."""
    digest = _SHA256.copy()
    digest.update(previous)
    digest.update(raw)
    return digest.digest()


def damaged_row(session_id: str | None) -> CorruptRecord:
    """The error for a row that differs from what was written."""
    error = CorruptRecord(f"the session row of {session_id!r} does not match its records")
    return damaged_session(session_id or "", error)
