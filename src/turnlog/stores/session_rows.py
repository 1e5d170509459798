"""The row of a session in a database, and the checksums that protect rows.

Checksums form a chain: the checksum of a record is the SHA-256 of the previous checksum and the record's bytes, and the
last one is stored in the session's row as `head`. So a record that is changed, replaced, moved or lost is detected.
`seal` is the checksum of the session's row itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..errors import CorruptRecord
from ..log.store import SessionInfo
from .records import damaged_session, storable

# -- which logs contain the records of a session: its own, and those of the sessions that it wa ----

Key = TypeVar("Key", int, str)


class Segment(NamedTuple):
    """Records `first` to `last` of a session, which are in the log `key`."""

    key: Any
    first: int
    last: int


def segments_of_log(
    key: Key, shared: int, base: Key | None, end: int, find: Callable[[Key], tuple[int, Key | None] | None]
) -> list[Segment]:
    """The segments with the records 1 to `end` of a session, none of them empty.

    The session's own log is `key`; its first `shared` records are in the log `base` and the logs below it. `find`
    returns `shared` and `base` of another log, None if there is no such log. Raises CorruptRecord.
    """
    segments = []
    while True:
        if shared < end:
            segments.append(Segment(key, shared + 1, end))
        if not base:
            return segments[::-1]
        end = min(end, shared)
        found = find(base)
        if found is None:
            raise CorruptRecord(
                f"record {shared} is missing: the session that this one was forked from is no longer in the store "
                f"(internal log {base})",
                record=shared,
            )
        # Each log must begin after the one below it; otherwise this loop might never end.
        if found[0] >= shared:
            raise CorruptRecord(
                f"record {shared} is missing: the session that this one was forked from does not have it (internal log "
                f"{base})",
                record=shared,
            )
        key, (shared, base) = base, found


def unshared(sessions: Iterable[tuple[str, Sequence[Segment]]]) -> dict[str, int]:
    """The sessions to read, and the first record to read in each, so that a record shared by several is read once.

    `sessions` must be in order, oldest first, each with its segments.
    """
    seen: dict[Any, int] = {}
    begins = {}
    for session, segments in sessions:
        begin, end = 1, 0
        for segment in segments:
            key, end = segment.key, segment.last
            begin = max(begin, min(seen.get(key, 0), end) + 1)
            seen[key] = max(seen.get(key, 0), end)
        if begin <= end:
            begins[session] = begin
    return begins


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
