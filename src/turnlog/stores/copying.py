"""Copies a whole store into another: to encrypt it, to decrypt it, or to change its kind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from ..errors import BlobMissing, InputError, SessionNotFound
from ..log.records import Record
from ..log.store import Draft, SessionInfo, Store
from .blobs import names_in

_BATCH = 500


def copy_store(source: Store, target: Store) -> int:
    """Copy the records that `target` does not have from `source`; returns how many were copied.

    Records keep their bytes, numbers and times; sessions protected from gc (`turnlog keep`) stay protected; forks still
    share records with their parents. Only the time at which a fork was made becomes the time of the copy. A copy that
    was interrupted continues where it stopped. Raises InputError if a session in the target has other records than the
    same session in the source.
    """
    copied = sum(_copy(source, target, info) for info in _parents_first(source))
    for name in sorted(source.inventory().kept):  # last, as the inventory of a damaged store raises an error
        with suppress(SessionNotFound):  # created since
            target.keep(name)
    return copied


def _parents_first(source: Store) -> Iterator[SessionInfo]:
    infos = {info.id: info for info in reversed(source.sessions())}
    done: set[str] = set()
    for info in infos.values():
        line: dict[str, SessionInfo] = {}
        # A session that was deleted and forked back from its own fork is the parent of its parent.
        while info.id not in done and info.id not in line:
            line[info.id] = info
            info = infos.get(info.parent, info) if info.parent_records else info
        done.update(line)
        yield from reversed(line.values())


def _copy(source: Store, target: Store, info: SessionInfo) -> int:
    copied = _found(target, info.id)
    if copied is None:
        if info.parent_records and _has_what_is_shared(source, target, info):
            copied = target.fork(info.parent, info.id, at=info.parent_records, title=info.title)
        else:
            copied = target.create(info.id, title=info.title, created=info.created, parent=info.parent)
    if copied.records and _last(target, info.id, copied.records) != _last(source, info.id, copied.records):
        raise InputError(f"session {info.id!r} already exists in the target, with other records; copy into a new store")
    records = source.read(info.id, first=copied.records + 1, last=info.records)
    while batch := list(islice(records, _BATCH)):
        for record in batch:
            _copy_blobs(source, target, record)
        target.append(info.id, [Draft(record.body, record.time, record.raw, record.redacted) for record in batch])
    return max(info.records - copied.records, 0)


def _found(store: Store, session_id: str) -> SessionInfo | None:
    with suppress(SessionNotFound):
        return store.info(session_id)
    return None


def _has_what_is_shared(source: Store, target: Store, fork: SessionInfo) -> bool:
    """Whether the target's session with the id of a fork's parent really has the shared records. The parent may have
    been deleted, and another session created with its id."""
    parent, last = _found(target, fork.parent), fork.parent_records
    if parent is None or parent.records < last:
        return False
    both = zip(source.read(fork.id, last=last), target.read(fork.parent, last=last), strict=True)
    return all(one.raw == other.raw for one, other in both)


def _copy_blobs(source: Store, target: Store, record: Record) -> None:
    for name in set(map(bytes.decode, names_in(record.raw or b""))):
        try:
            target.put_blob(source.get_blob(name))
        except BlobMissing:
            continue  # another hash, or a blob that was missing before


def _last(store: Store, session_id: str, n: int) -> bytes | None:
    return next((record.raw for record in store.read(session_id, first=n, last=n)), None)
