"""Drafts to numbered, encoded records: the same for every store."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from typing import get_args

from ..codec import decode_record, encode_record
from ..content import compact_json, media_parts
from ..errors import InputError
from ..log import Draft, utc_now
from ..records import Body, FileChange, MessageRecord, Record, UnknownRecord

__all__ = ["blob_names", "holds_any", "kind_finder", "kind_of", "number_drafts", "row_kind"]


def number_drafts(drafts: Sequence[Draft], *, after: int) -> tuple[Record, ...]:
    """`drafts` as the records that follow number `after`, each with its bytes in `raw`.

    Raises InputError if a draft holds what no JSON can.
    """
    now, records = utc_now(), []
    for n, draft in enumerate(drafts, after + 1):
        copied = None if draft.raw is None else _copied(draft.raw, n)
        if copied is None:
            time, body = draft.time or now, draft.body
            try:
                raw = encode_record(Record(n, time, body, redacted=draft.redacted))
                copied = Record(n, time, body, raw, draft.redacted)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                raise InputError(
                    f"the {kind_of(body)} record to be number {n} cannot be written as JSON: {error}"
                ) from error
        records.append(copied)
    return tuple(records)


def _copied(raw: bytes, n: int) -> Record | None:
    """The record that `raw` encodes, as number `n`; None if it has to be encoded anew."""
    copied = decode_record(raw)
    if copied.n == n:
        return copied
    if not isinstance(copied.body, UnknownRecord):
        return None
    # Only the bytes say what it is, so they are kept but for the number.
    return decode_record(json.dumps({**json.loads(raw), "n": n}, separators=(",", ":")).encode("ascii"))


_KINDS = {kind: str(kind.__struct_config__.tag) for kind in get_args(Body)}


def kind_of(body: Body) -> str:
    """The word by which a record's kind goes."""
    return body.name if isinstance(body, UnknownRecord) else _KINDS[type(body)]


def kind_finder(kinds: Collection[str]) -> Callable[[bytes], bool]:
    """Tells from the bytes of a record alone that it is of none of these kinds; if it may be, decode it."""
    return holds_any([compact_json(kind).encode() for kind in kinds])


def holds_any(words: Sequence[bytes]) -> Callable[[bytes], bool]:
    """Tells whether bytes hold one of these words. A plain loop: a whole log goes through it before its next request,
    and `any` takes three times as long."""

    def found(raw: bytes) -> bool:
        for word in words:  # noqa: SIM110
            if word in raw:
                return True
        return False

    return found


def row_kind(body: Body) -> str:
    """The word that stands beside a record in an index of kinds: system text is told apart."""
    if isinstance(body, MessageRecord) and body.message.role == "system":
        return "system"
    return kind_of(body)


def blob_names(record: Record) -> frozenset[str]:
    """The hashes of the blobs that a record needs."""
    names = set()
    if record.message is not None:
        names = {part.sha256 for part in media_parts(record.message)}
    elif isinstance(record.body, FileChange):
        names = {record.body.before, record.body.after, record.body.patch}
    return frozenset(names - {""})
