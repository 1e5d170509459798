"""Copies a whole store into another: to encrypt it, to decrypt it, or to change its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice

from ..errors import BlobMissing, CorruptRecord, InputError, SessionNotFound
from ..log.codec import decode_record
from ..log.store import Problem, SessionInfo, Store
from .blobs import names_in
from .places import store_given
from .records import blob_names
from .salvaging import drafts_past_damage, is_stand_in

_BATCH = 500


def _ignore(problem: Problem) -> None:
    """Ignore the damage: `verify` finds it in the source, and notes in the copy name it."""


def copy_store(source: Store, target: Store, *, tell: Callable[[Problem], object] = _ignore) -> int:
    """Copy the records that `target` lacks from `source`, and return how many were copied. `tell` is called with each
    problem; a note takes the place of each record that cannot be read, as in `salvage`. Blobs that are missing or
    damaged are not copied; requests show a line of text in their place.

    Records keep their bytes, numbers and times; sessions protected from gc (`turnlog keep`) stay protected; forks still
    share records with their parents. Only the creation time of a fork becomes the time of the copy. An interrupted copy
    continues where it stopped. Raises InputError if a session in the target has other records than the same session in
    the source.
    """
    store_given(source, "source", opened=True)
    store_given(target, "target", opened=True)
    copied = 0
    for info in _parents_first(source):
        try:
            copied += _copy(source, target, info, tell)
        except CorruptRecord as error:  # of the session as a whole
            tell(Problem(info.id, error.record or 0, f"the session was not copied: {error}"))
    try:
        protected = sorted(source.inventory().kept)
    except CorruptRecord as error:
        tell(Problem("", 0, f"the protection of sessions from gc was not copied: {error}"))
        protected = []
    for name in protected:
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


def _copy(source: Store, target: Store, info: SessionInfo, tell: Callable[[Problem], object]) -> int:
    copied = _found(target, info.id)
    if copied is None:
        if info.parent_records and _has_what_is_shared(source, target, info):
            copied = target.fork(info.parent, info.id, at=info.parent_records, title=info.title)
        else:
            copied = target.create(info.id, title=info.title, created=info.created, parent=info.parent)
    if copied.records and not _is_same(source, target, info.id, copied.records):
        raise InputError(f"session {info.id!r} already exists in the target, with other records; copy into a new store")
    drafts = drafts_past_damage(source, info.id, copied.records + 1, info.records, tell)
    while batch := list(islice(drafts, _BATCH)):
        for draft in batch:
            _copy_blobs(source, target, info.id, draft.raw or b"", tell)
        target.append(info.id, batch)
    return max(info.records - copied.records, 0)


def _found(store: Store, session_id: str) -> SessionInfo | None:
    with suppress(SessionNotFound):
        return store.info(session_id)
    return None


def _has_what_is_shared(source: Store, target: Store, fork: SessionInfo) -> bool:
    """Whether the target's session with the id of the fork's parent has the shared records. The parent may have been
    deleted, and another session created with its id."""
    parent, last = _found(target, fork.parent), fork.parent_records
    if parent is None or parent.records < last:
        return False
    try:
        both = zip(source.read(fork.id, last=last), target.read(fork.parent, last=last), strict=True)
        return all(record.raw == other.raw for record, other in both)
    except CorruptRecord:
        return False


def _copy_blobs(source: Store, target: Store, session_id: str, raw: bytes, tell: Callable[[Problem], object]) -> None:
    """Copy the blobs that a record names. `tell` is called if blobs that it needs are missing or damaged."""
    lost: dict[str, BlobMissing] = {}
    for name in set(map(bytes.decode, names_in(raw))):
        try:
            target.put_blob(source.get_blob(name))
        except BlobMissing as error:
            lost[name] = error
    if not lost:
        return
    record = decode_record(raw)
    if needed := sorted(lost.keys() & blob_names(record)):  # the others are hashes in its text
        what = f"not all of its media was copied: {'; '.join(str(lost[name]) for name in needed)}"
        tell(Problem(session_id, record.n, what, tuple(needed)))


def _is_same(source: Store, target: Store, session_id: str, n: int) -> bool:
    """Whether both stores have the same record `n` of a session; a note may take the place of a damaged one."""
    copied = next(target.read(session_id, first=n, last=n), None)
    originals = [record for record in source.readable(session_id, first=n, last=n) if not isinstance(record, Problem)]
    if copied is None or not originals:
        return copied is not None and is_stand_in(copied)
    return copied.raw == originals[0].raw
