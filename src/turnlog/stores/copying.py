"""A whole store into another: how one becomes encrypted, or stops being it, or changes its kind."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..errors import BlobMissing, CorruptRecord, InputError
from ..log import Draft, SessionInfo, Store
from ..records import Record
from .blobs import names_in

__all__ = ["copy_store"]

_BATCH = 500


def copy_store(source: Store, target: Store) -> int:
    """Copy what `target` does not have of `source`; how many records that were.

    Records keep their bytes, numbers and times, and forks go on sharing what they share; only the day on which a
    fork was made becomes that of the copy. Sessions that `gc` leaves alone are left alone there, too. What was
    interrupted goes on where it stopped. Raises InputError where a session of the target says something else than that
    of the source.
    """
    kept = _kept(source)
    return sum(_copy(source, target, info, kept=info.id in kept) for info in _parents_first(source))


def _kept(source: Store) -> frozenset[str]:
    """The sessions of a store that are marked to be kept; none where damage hides it, as reading them will say."""
    try:
        return source.inventory().kept
    except CorruptRecord:
        return frozenset()


def _parents_first(source: Store) -> Iterator[SessionInfo]:
    infos = {info.id: info for info in reversed(source.sessions())}
    done: set[str] = set()
    for info in infos.values():
        line = [info]
        while line[-1].parent_records and line[-1].parent in infos and line[-1].parent not in done:
            line.append(infos[line[-1].parent])
        for each in reversed(line):
            if each.id not in done:
                done.add(each.id)
                yield each


def _copy(source: Store, target: Store, info: SessionInfo, *, kept: bool) -> int:
    there = {held.id: held for held in target.sessions()}
    copied = there.get(info.id)
    is_new = copied is None
    if copied is None:
        parent = there.get(info.parent)
        if info.parent_records and parent is not None and parent.records >= info.parent_records:
            copied = target.fork(info.parent, info.id, at=info.parent_records, title=info.title)
        else:
            copied = target.create(info.id, title=info.title, created=info.created, parent=info.parent)
    if copied.records and _last(target, info.id, copied.records) != _last(source, info.id, copied.records):
        raise InputError(f"session {info.id!r} is there already and says something else; copy into a new store")
    if kept and (is_new or copied.records < info.records):  # what is there as a whole may have been let go since
        target.keep(info.id)
    records = source.read(info.id, first=copied.records + 1, last=info.records)
    while batch := list(islice(records, _BATCH)):
        for record in batch:
            _copy_blobs(source, target, record)
        target.append(info.id, [Draft(record.body, record.time, record.raw, record.redacted) for record in batch])
    return max(info.records - copied.records, 0)


def _copy_blobs(source: Store, target: Store, record: Record) -> None:
    for name in set(map(bytes.decode, names_in(record.raw or b""))):
        try:
            target.put_blob(source.get_blob(name))
        except BlobMissing:
            continue  # another hash, or a blob that was missing before


def _last(store: Store, session_id: str, n: int) -> bytes | None:
    return next((record.raw for record in store.read(session_id, first=n, last=n)), None)
