"""Reading past damage: the records that can be read, and a `Problem` for each one that cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from ..errors import CorruptRecord, StoreError
from ..log.records import Record
from ..log.store import Problem, Store
from .blobs import BlobCheck
from .records import Segment, blob_names, damage_in, damaged_session, numbered

WHOLE = "what is stored with it is damaged; the record itself is whole"
"""The text of a Problem that concerns only a checksum or a line break."""


class StoredEntry(NamedTuple):
    """What is stored in the place of record `n`: its bytes `raw` and its checksum `sum`, each None if missing. `digest`
    computes the checksum from that of the record before."""

    n: int
    raw: bytes | None = None
    sum: bytes | None = None
    digest: Callable[[bytes], bytes] = bytes


def judged(
    session_id: str, entries: Sequence[StoredEntry], before: bytes | None, after: bytes | None = None
) -> Iterator[Record | Problem]:
    """The records of `entries`, which are in order, and a Problem for each damaged one. `before` is the checksum of the
    record before the first, `after` that of the last, each None if it is not known from elsewhere.

    Checksums form a chain, so the next record shows whether a record or its checksum changed. If only the checksum did,
    the record is reported and returned. A record after a lost checksum cannot be checked; it counts as intact if it can
    be decoded and has the right number.
    """

    def proves(i: int, total: bytes | None) -> bool:
        """Whether the entry after entry `i` confirms that the checksum of `i` is `total`."""
        if total is None or i + 1 == len(entries):
            return total is not None and total == after
        following = entries[i + 1]
        return following.raw is not None and following.digest(total) == following.sum

    for i, entry in enumerate(entries):
        computed_sum = None if before is None or entry.raw is None else entry.digest(before)
        is_last = i + 1 == len(entries) and after is not None
        if computed_sum is not None and (
            computed_sum != entry.sum if proves(i, computed_sum) else computed_sum == entry.sum and is_last
        ):
            yield Problem(session_id, entry.n, WHOLE)
            entry = entry._replace(sum=computed_sum)
        if entry.raw is None or computed_sum not in (None, entry.sum):
            what = "it cannot be read" if entry.raw is None else "it does not match its checksum"
            yield Problem(session_id, entry.n, what)
            before = entry.sum if proves(i, entry.sum) else None
            continue
        before = entry.sum
        yield decoded(session_id, entry.n, entry.raw)


def decoded(session_id: str, n: int, raw: bytes) -> Record | Problem:
    """Record `n` decoded from its bytes, or the Problem with them."""
    try:
        return numbered(n, raw)
    except CorruptRecord as error:
        return Problem(session_id, n, damage_in(error, n))


def damage_of_rows(
    session_id: str, segment: Segment, rows: Callable[[int, int, int], Sequence[bytes]], blobs: BlobCheck
) -> Iterator[Problem]:
    """The problems of records that have no checksums, and of the blobs that they need. `rows` returns the records of a
    log between two numbers, fewer if some are missing."""
    numbers = range(segment.first, segment.last + 1)
    held = rows(*segment)
    each = ([raw] for raw in held) if len(held) == len(numbers) else (rows(segment.key, n, n) for n in numbers)
    for n, stored in zip(numbers, each, strict=True):
        record = decoded(session_id, n, stored[0]) if stored else Problem(session_id, n, "it is missing")
        if isinstance(record, Problem):
            yield record
        else:
            yield from blobs.problems(session_id, n, blob_names(record))


def past_damage(
    store: Store,
    mended: Callable[[str, int, int], Iterable[Record | Problem]],
    session_id: str,
    first: int,
    last: int | None,
    *,
    reverse: bool,
) -> Iterator[Record | Problem]:
    """See `Store.readable`: the records of `store.read` until the first damaged one; from there `mended(first, last)`
    gives the rest."""
    first, last = max(first, 1), store.info(session_id).records if last is None else last
    try:
        for record in store.read(session_id, first=first, last=last, reverse=reverse):
            if reverse:
                last = record.n - 1
            else:
                first = record.n + 1
            yield record
        return
    except CorruptRecord:
        pass
    rest = mended(session_id, first, last)
    yield from reversed([*rest]) if reverse else rest


def refusal(store: Store, session_id: str, error: CorruptRecord) -> CorruptRecord:
    """The error for opening a damaged session, which names the first damaged record. `error` may name a later record,
    which could not be checked because of it."""
    with suppress(StoreError):
        problems = (item for item in store.readable(session_id) if isinstance(item, Problem))
        if (first := next(problems, None)) is not None:
            error = CorruptRecord(f"record {first.record}: {first.what}", record=first.record)
    return damaged_session(session_id, error)


def number_of(item: Record | Problem) -> int:
    """The number of a record, or of the record that a problem is about."""
    return item.record if isinstance(item, Problem) else item.n
