"""Drafts to numbered, encoded records: the same for every store."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ..codec import decode_record, encode_record
from ..content import media_parts
from ..errors import InputError
from ..log import Draft, utc_now
from ..records import Body, FileChange, Record, UnknownRecord

__all__ = ["blob_names", "kind_of", "number_drafts"]


def number_drafts(drafts: Sequence[Draft], *, after: int) -> tuple[Record, ...]:
    """`drafts` as the records that follow number `after`, each with its bytes in `raw`.

    Raises InputError if a draft holds what no JSON can.
    """
    now = utc_now()
    return tuple(_record(draft, n, now) for n, draft in enumerate(drafts, after + 1))


def _record(draft: Draft, n: int, now: str) -> Record:
    if draft.raw is not None:
        copied = decode_record(draft.raw)
        if copied.n == n:
            return copied
        if isinstance(copied.body, UnknownRecord):
            # Only the bytes say what it is, so they are kept but for the number.
            fields = {**json.loads(draft.raw), "n": n}
            return decode_record(json.dumps(fields, separators=(",", ":")).encode("ascii"))
    time = draft.time or now
    try:
        return Record(n, time, draft.body, encode_record(Record(n, time, draft.body)))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"the {kind_of(draft.body)} record to be number {n} cannot be written as JSON: {error}"
        ) from error


def kind_of(body: Body) -> str:
    """The word by which a record's kind goes."""
    return body.name if isinstance(body, UnknownRecord) else str(body.__struct_config__.tag)


def blob_names(record: Record) -> frozenset[str]:
    """The hashes of the blobs that a record needs."""
    names = set()
    if record.message is not None:
        names = {part.sha256 for part in media_parts(record.message)}
    elif isinstance(record.body, FileChange):
        names = {record.body.before, record.body.after}
    return frozenset(names - {""})
