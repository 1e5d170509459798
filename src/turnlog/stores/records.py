"""Drafts become numbered, encoded records, and checks that all stores share."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import get_args

from ..errors import (
    Conflict,
    CorruptRecord,
    InputError,
    SessionExists,
    SessionIdError,
    SessionNotFound,
    text_given,
)
from ..log.codec import decode_record, encode_body
from ..log.messages import compact_json, media_parts
from ..log.records import Body, Decision, FileChange, MessageRecord, Record, SealedRecord, UnknownRecord
from ..log.store import Draft, folded_id, utc_now


def number_drafts(drafts: Sequence[Draft], *, after: int) -> tuple[Record, ...]:
    """`drafts` as the records that follow number `after`, each with its bytes in `raw`.

    Raises InputError if a draft contains a value that JSON cannot represent.
    """
    now, records = utc_now(), []
    for n, draft in enumerate(drafts, after + 1):
        record = None if draft.raw is None else _copied(draft.raw, n)
        if record is None:
            time, body, redacted, live = draft.time or now, draft.body, draft.redacted, draft.live
            try:
                record = Record(n, time, body, encode_body(n, time, body, redacted, live=live), redacted, live)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                raise InputError(f"record {n} ({kind_of(body)}) cannot be written: {error}") from error
        records.append(record)
    return tuple(records)


def _copied(raw: bytes, n: int) -> Record | None:
    """The record that `raw` encodes, with number `n`; None if it has to be encoded again."""
    copied = decode_record(raw)
    if copied.n == n:
        return copied
    if not isinstance(copied.body, UnknownRecord):
        return None
    # The content of an unknown record is only in its bytes, so they are kept except for the number.
    return decode_record(json.dumps({**json.loads(raw), "n": n}, separators=(",", ":")).encode("ascii"))


_SAID = frozenset({"message", "partial", "system"})
_KINDS = {kind: str(kind.__struct_config__.tag) for kind in get_args(Body)}


def kind_of(body: Body) -> str:
    """The word for a record's kind; for a sealed record, the kind of the record inside."""
    if isinstance(body, SealedRecord):
        return "message" if body.of == "system" else body.of
    return body.name if isinstance(body, UnknownRecord) else _KINDS[type(body)]


def of_any(kinds: Collection[str]) -> Callable[[Record], bool]:
    """A function that returns whether a record is of one of these kinds, given as the words of
    `RecordStore.of_kinds`."""
    return lambda record: kind_of(record.body) in kinds or row_kind(record.body) in kinds


def kind_finder(kinds: Collection[str]) -> Callable[[bytes], bool]:
    """A function that looks for these kinds in the bytes of a record. False: the record is of none of them. True: it
    may be, so decode it."""
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
    there = f" (there is {near!r}, which differs from it only by case)" if near else ""
    return SessionNotFound(f"there is no session {session_id!r}{there}")


_REMEDY = "turnlog salvage"


def damaged_session(session_id: str, error: CorruptRecord) -> CorruptRecord:
    """`error` with the session's id and the remedy added, unless its text already names the remedy."""
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
    return row_kind(body) in _SAID


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
    """The number of records that a session with `records` records shares with a fork at number `at` (None: all). Raises
    InputError."""
    shared = records if at is None else at
    if not isinstance(shared, int) or isinstance(shared, bool) or not 0 <= shared <= records:
        raise InputError(f"at: session {session_id!r} has records 1 to {records}, not {at!r}")
    return shared
