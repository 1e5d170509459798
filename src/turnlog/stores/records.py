"""Numbers and encodes drafts as records, and makes the checks that all stores share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar, get_args

import msgspec

from .._platform.given import text_given
from .._platform.stdlib import shlex
from ..errors import Conflict, CorruptRecord, InputError, SessionExists, SessionIdError, SessionNotFound
from ..log.codec import decode_record, encode_body
from ..log.messages import compact_json, media_parts
from ..log.records import SHOWN_AS, Body, Decision, FileChange, MessageRecord, Record, SealedRecord, UnknownRecord
from ..log.store import Draft, SessionInfo, folded_id, utc_now

# -- session rows ----------------------------------------------------------------------------------
#
# The row of a session in a database, and the checksums that protect rows.
#
# Checksums form a chain: the checksum of a record is the SHA-256 of the previous checksum and the record's bytes, and
# the last one is stored in the session's row as `head`. So a record that is changed, replaced, moved or lost is
# detected. `seal` is the checksum of the session's row itself.

# -- segments --------------------------------------------------------------------------------------
#
# Which logs contain the records of a session: its own, and those of the sessions that it was forked from.

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
        base_log = find(base)
        if base_log is None:
            raise CorruptRecord(
                f"record {shared} is missing: the session that this one was forked from is no longer in the store "
                f"(internal log {base})",
                record=shared,
            )
        # Each log must begin after the one below it; otherwise this loop might never end.
        if base_log[0] >= shared:
            raise CorruptRecord(
                f"record {shared} is missing: the session that this one was forked from does not have it (internal log "
                f"{base})",
                record=shared,
            )
        key, (shared, base) = base, base_log


def unshared(sessions: Iterable[tuple[str, Sequence[Segment]]]) -> dict[str, int]:
    """The sessions to read and the first record to read in each, so that shared records are read once.

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
        """The session as listings show it."""
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
    """The row of a session that is made at `time`. A fork has the first `shared` records and `messages` in these
    `segments`; `head` is the checksum of the last of them."""
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


def number_drafts(drafts: Sequence[Draft], *, after: int) -> tuple[Record, ...]:
    """`drafts` as the records that follow number `after`, each with its bytes in `raw`.

    Raises InputError if a draft contains a value that JSON cannot represent.
    """
    current_time, records = utc_now(), []
    for n, draft in enumerate(drafts, after + 1):
        record = None if draft.raw is None else _copied(draft.raw, n)
        if record is None:
            time, body, redacted, live = draft.time or current_time, draft.body, draft.redacted, draft.live
            try:
                record = Record(n, time, body, encode_body(n, time, body, redacted, live=live), redacted, live)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                raise InputError(f"record {n} ({kind_of(body)}) cannot be written: {error}") from error
        records.append(record)
    return tuple(records)


def _copied(raw: bytes, n: int) -> Record | None:
    """The record that `raw` encodes, with number `n`; None if it must be encoded again."""
    copied = decode_record(raw)
    if copied.n == n:
        return copied
    if not isinstance(copied.body, UnknownRecord):
        return None
    # The content of an unknown record is only in its bytes, so they are kept except for the number.
    return decode_record(json.dumps({**json.loads(raw), "n": n}, separators=(",", ":")).encode("ascii"))


MESSAGES = frozenset({*SHOWN_AS, "system"})
"""The words of `row_kind` for records with a message."""

MESSAGES_IN_SQL = ", ".join(f"'{word}'" for word in sorted(MESSAGES))
"""The same words as the values of an SQL list."""

_KINDS = {kind: str(kind.__struct_config__.tag) for kind in get_args(Body)}


def kind_of(body: Body) -> str:
    """The word for a record's kind; for a sealed record, the kind of the record inside."""
    if isinstance(body, SealedRecord):
        return "message" if body.of == "system" else body.of
    return body.name if isinstance(body, UnknownRecord) else _KINDS[type(body)]


def of_any(kinds: Collection[str]) -> Callable[[Record], bool]:
    """A function that returns whether a record is of one of these kinds, named as in `RecordStore.of_kinds`."""
    return lambda record: kind_of(record.body) in kinds or row_kind(record.body) in kinds


def kind_finder(kinds: Collection[str]) -> Callable[[bytes], bool]:
    """A function that looks for these kinds in the bytes of a record. False: it is of none of them. True: it may be, so
    decode it."""
    words = [compact_json(kind).encode() for kind in kinds]
    if "message" in kinds:
        words.append(b'"of":"system"')

    def may_be(raw: bytes) -> bool:
        for word in words:  # noqa: SIM110 - runs over whole logs, and `any` takes three times as long
            if word in raw:
                return True
        return False

    return may_be


def row_kind(body: Body) -> str:
    """The word for a record's kind in an index of kinds; messages of system text have their own word, `system`."""
    if type(body) is MessageRecord:
        return "system" if body.message.role == "system" else "message"
    if isinstance(body, (SealedRecord, UnknownRecord)):  # their words may be any text
        return storable(body.of if isinstance(body, SealedRecord) else body.name)
    return kind_of(body)


def numbered(n: int, raw: bytes) -> Record:
    """The record that `raw` encodes, which must have number `n`. Raises CorruptRecord."""
    try:
        record = decode_record(raw)
    except CorruptRecord as error:
        raise CorruptRecord(f"record {n} cannot be read: {error}", record=n) from error
    if record.n != n:
        raise CorruptRecord(f"record {n} has the number {record.n} in its bytes", record=n)
    return record


def damage_in(error: CorruptRecord, n: int) -> str:
    """The text of a `Problem` for an error about record `n`."""
    return f"it {str(error).removeprefix(f'record {n} ')}"


def check_expected(session_id: str, expected: int | None, actual: int) -> None:
    """Raises Conflict if the number of the last record is not `expected` (None: any number is allowed)."""
    if expected is not None and expected != actual:
        raise Conflict(session_id, expected=expected, actual=actual)


def check_free(session_id: str, taken: str) -> None:
    """Raises SessionExists or SessionIdError if a session with the id `taken` prevents a new one with the id
    `session_id`."""
    if taken == session_id:
        raise SessionExists(f"session {session_id!r} already exists")
    if folded_id(taken) == folded_id(session_id):
        raise SessionIdError(f"session id {session_id!r} differs from {taken!r} only by case; choose another")


def no_session(session_id: str, near: str | None = None) -> SessionNotFound:
    """The error for a session that is not there. `near` is the id of one that differs only by case, if there is one."""
    hint = f" (there is {near!r}, which differs from it only by case)" if near else ""
    return SessionNotFound(f"there is no session {session_id!r}{hint}")


_REMEDY = "turnlog salvage"


def damaged_session(session_id: str, error: CorruptRecord) -> CorruptRecord:
    """`error` with the session's id added, and the remedy unless its text names it."""
    if _REMEDY in str(error):
        return error
    named = str(error) if repr(session_id) in str(error) else f"session {session_id!r}: {error}"
    word = shlex.quote(session_id)
    return CorruptRecord(
        f"{named}; `{_REMEDY} {word} NEW` makes a session of all records that can be read, `turnlog verify {word}` "
        "lists the damage; or restore the store from a copy",
        record=error.record,
    )


@contextmanager
def damage_named(session_id: str) -> Iterator[None]:
    """Add the session's id and the remedy to a CorruptRecord."""
    try:
        yield
    except CorruptRecord as error:
        raise damaged_session(session_id, error) from error


def no_such_record(session_id: str, n: int) -> InputError:
    """The error for bytes that cannot replace record `n`."""
    return InputError(f"session {session_id!r} has no record {n}, or the bytes given for it encode another record")


def check_unchanged(read: Callable[..., Iterable[Record]], session_id: str, was: Mapping[int, bytes] | None) -> None:
    """Raises Conflict unless the records in `was` still have these bytes. `read` is the store's method."""
    if not was:
        return
    for record in read(session_id, first=min(was), last=max(was)):
        if record.raw != was.get(record.n, record.raw):
            raise Conflict(session_id, expected=record.n, actual=record.n)


def is_said(body: Body) -> bool:
    """Whether a record counts as a message in `SessionInfo.messages`."""
    return row_kind(body) in MESSAGES


def blob_names(record: Record) -> frozenset[str]:
    """The hashes of the blobs that a record needs."""
    names = set()
    if record.message is not None:
        names = {part.sha256 for part in media_parts(record.message)}
    elif isinstance(record.body, FileChange):
        names = {record.body.before, record.body.after, record.body.patch}
    elif isinstance(record.body, Decision):
        names = {part.sha256 for message in record.body.replacement for part in media_parts(message)}
    return frozenset(names - {""})


def storable(text: str) -> str:
    """`text` without lone surrogates, which not every store accepts. For labels, never for content."""
    return text_given("title", text).encode("utf-8", "replace").decode("utf-8")


def fork_point(session_id: str, records: int, at: int | None) -> int:
    """The number of records that a session with `records` records shares with a fork made at record `at` (None: all).
    Raises InputError."""
    shared = records if at is None else at
    if not isinstance(shared, int) or isinstance(shared, bool) or not 0 <= shared <= records:
        raise InputError(f"at: session {session_id!r} has records 1 to {records}, not {at!r}")
    return shared
