"""`BaseStore`: all methods of a store, built on eight methods. A new store writes these eight, and overrides others
where it can be faster.

The eight methods work on *logs*. Each session has its own log, with the records that were appended to it; a fork's log
refers to the log with the records before. When a session is deleted, its log stays as long as forks read it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from time import time_ns

from msgspec import Struct
from msgspec.structs import replace

from .._platform.given import flag_given
from ..errors import CorruptRecord, SessionNotFound, StoreKeyError
from ..log.bills import Bills, usage_by_model
from ..log.codec import decode_record
from ..log.messages import sha256_hex
from ..log.records import Record
from ..log.store import (
    SWEEP_GRACE_SECONDS,
    Draft,
    Held,
    Hit,
    Inventory,
    Packed,
    Problem,
    SessionFacts,
    SessionInfo,
    Store,
    StoredPiece,
    Swept,
    check_parent,
    check_session_id,
    folded_id,
    utc_now,
)
from .billing import billed_once
from .blobs import BlobCheck, Put, is_blob_name, named, unused, whole_blob
from .damaged import damage_of_rows, decoded, past_damage
from .labels import KnownLabels, where_given
from .leases import FolderLocks, Lease, LocalLocks, unowned
from .records import (
    Segment,
    check_expected,
    check_free,
    check_unchanged,
    fork_point,
    is_said,
    no_session,
    no_such_record,
    number_drafts,
    of_any,
    segments_of_log,
    storable,
    unshared,
)
from .search import Search, scan

# -- key slot --------------------------------------------------------------------------------------
#
# The lock of an encrypted store on disk: the store's data key, encrypted with the user's key.


class KeySlot(ABC):
    """The place where a store keeps its lock; `place` names the store. `opened_by_key`: the store was opened with a
    key."""

    def __init__(self, place: object, *, opened_by_key: bool) -> None:
        self._place = place
        self._opened_by_key = opened_by_key

    @abstractmethod
    def read(self) -> bytes | None:
        """The lock; None if the store is not encrypted."""

    @abstractmethod
    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        """Replace the lock `was` by `lock`; False if another lock is there by now. The first lock (`was` is None)
        requires an empty store; otherwise raises StoreKeyError."""

    def check(self) -> None:
        """Raises StoreKeyError if the store is encrypted but was opened without a key, so that nothing in it can be
        read."""
        if not self._opened_by_key and self.read() is not None:
            raise StoreKeyError(
                f"{self._place} is encrypted: open it with open_store(path, key=...), on the command line with --key "
                "WHERE or TURNLOG_KEY; nothing was read"
            )

    def _not_empty(self) -> StoreKeyError:
        return StoreKeyError(
            f"{self._place} contains sessions or files that are not encrypted: open it without a key, or copy it into "
            "a new, encrypted store with `turnlog copy`"
        )


_BATCH = 128
"""How many records are fetched at a time."""


class Log(Struct, frozen=True):
    """The log of a session without its records.

    `key` identifies the log; newer logs have larger keys. `info` is the session as it is listed; if the session was
    deleted and forks still read its records, the id is empty. Records `info.parent_records + 1` to `info.records` are
    in this log, the records before them in the log `base` and the logs below it. `kept`: the session is protected from
    `turnlog gc`.
    """

    key: int
    info: SessionInfo
    base: int = 0
    kept: bool = False


class BaseStore(Store):
    """All methods of a store, built on the eight methods `_logs` to `_remove_blobs`.

    Threads may share a store: every change is made under `_lock`. A store that several processes use must also lock out
    other processes, with its own `_lock`, and override `hold` and `lease`. Its `close` must release what it has open.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holds: LocalLocks | FolderLocks = LocalLocks()
        self._labels = KnownLabels()

    # -- what a new store writes -----------------------------------------------------------------

    def _logs(self) -> Iterable[Log]:
        """Every log, in any order."""
        raise NotImplementedError

    def _save(self, log: Log, rows: Mapping[int, bytes]) -> None:
        """Create a log, or replace what is stored about it, and write these encoded records by number: all or
        nothing."""
        raise NotImplementedError

    def _rows(self, key: int, first: int, last: int) -> Sequence[bytes]:
        """The records `first` to `last` of a log, in order; fewer if some are missing."""
        raise NotImplementedError

    def _cut(self, key: int, after: int) -> None:
        """Delete the records of a log after number `after`; with 0, the whole log."""
        raise NotImplementedError

    def _save_blob(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`, put at the present time. A blob with that name is replaced."""
        raise NotImplementedError

    def _blob(self, name: str) -> bytes | None:
        """The blob with that name; None if there is none."""
        raise NotImplementedError

    def _blobs(self) -> Mapping[str, Put]:
        """Every blob by name: when it was put, and its size."""
        raise NotImplementedError

    def _remove_blobs(self, names: Iterable[str]) -> None:
        """Delete these blobs; names without a blob are ignored."""
        raise NotImplementedError

    # -- records ---------------------------------------------------------------------------------

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        with self._lock:
            log = self._find(session_id)
            check_expected(session_id, expected, log.info.records)
            records = number_drafts(drafts, after=log.info.records)
            if records:
                new_messages = sum(is_said(record.body) for record in records)
                info = replace(
                    log.info,
                    updated=max(log.info.updated, records[-1].time),  # a clock may be set back
                    records=records[-1].n,
                    messages=log.info.messages + new_messages,
                )
                self._save(replace(log, info=info), {record.n: record.raw or b"" for record in records})
        return records

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        log = self._find(session_id)
        last = log.info.records if last is None else min(last, log.info.records)
        return self._records(log, self._segments(log), max(first, 1), last, reverse=reverse)

    def _records(
        self, log: Log, segments: Sequence[Segment], first: int, last: int, *, reverse: bool = False
    ) -> Iterator[Record]:
        for key, begin, end in reversed(segments) if reverse else segments:
            numbers = range(max(first, begin), min(last, end) + 1)
            numbers = numbers[::-1] if reverse else numbers
            for start in range(0, len(numbers), _BATCH):
                some = numbers[start : start + _BATCH]
                rows = self._rows(key, min(some), max(some))
                if len(rows) < len(some):
                    self._find(log.info.id)  # deleted meanwhile?
                    raise CorruptRecord(f"record {min(some) + len(rows)} of session {log.info.id!r} is missing")
                yield from map(decode_record, reversed(rows) if reverse else rows)

    def readable(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record | Problem]:
        return past_damage(self, self._mended, session_id, first, last, reverse=reverse)

    def _mended(self, session_id: str, first: int, last: int) -> Iterable[Record | Problem]:
        """The records `first` to `last` of a damaged session, with a Problem for each damaged one."""
        for key, begin, end in self._segments(self._find(session_id)):
            for n in range(max(first, begin), min(last, end) + 1):
                rows = self._rows(key, n, n)
                yield decoded(session_id, n, rows[0]) if rows else Problem(session_id, n, "it is missing")

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        return filter(of_any(kinds), self.read(session_id, first=first, reverse=reverse))

    def usage(self, session_id: str) -> Bills:
        return usage_by_model(self.of_kinds(session_id, ("usage",)))

    def usages(self) -> dict[str, Bills]:
        return billed_once(self.sessions(), lambda session_id: self.of_kinds(session_id, ("usage",)))

    # -- sessions --------------------------------------------------------------------------------

    def _find(self, session_id: str) -> Log:
        """The log of a session. Raises SessionNotFound."""
        for log in self._logs():
            if log.info.id == session_id != "":
                return log
        folded = folded_id(session_id) if isinstance(session_id, str) else ""
        near = (log.info.id for log in self._logs() if folded_id(log.info.id) == folded)
        raise no_session(session_id, next(near, None))

    def _living(self) -> list[Log]:
        """The logs of all sessions that were not deleted, oldest first."""
        return sorted((log for log in self._logs() if log.info.id), key=lambda log: log.key)

    def _segments(self, log: Log, *, last: int | None = None) -> list[Segment]:
        """The segments with the records of a session up to number `last`. Raises CorruptRecord."""
        bases = {each.key: (each.info.parent_records, each.base) for each in self._logs()} if log.base else {}
        end = log.info.records if last is None else last
        return segments_of_log(log.key, log.info.parent_records, log.base, end, bases.get)

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        check_session_id(session_id)
        check_parent(session_id, parent)
        time = created or utc_now()
        with self._lock:
            return self._make(SessionInfo(session_id, storable(title), time, time, 0, 0, parent), 0)

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        check_session_id(new_id)
        with self._lock:
            log = self._find(session_id)
            shared = fork_point(session_id, log.info.records, at)
            segments, time = self._segments(log, last=shared), utc_now()
            messages = sum(is_said(record.body) for record in self._records(log, segments, 1, shared))
            info = SessionInfo(new_id, storable(title), time, time, shared, messages, session_id, shared)
            return self._make(info, segments[-1].key if segments else 0)

    def _make(self, info: SessionInfo, base: int) -> SessionInfo:
        logs = list(self._logs())
        for log in logs:
            check_free(info.id, log.info.id)
        self._save(Log(max([time_ns(), *(log.key + 1 for log in logs)]), info, base), {})
        return info

    def info(self, session_id: str) -> SessionInfo:
        return self._find(session_id).info

    def sessions(self, *, limit: int | None = None, where: Mapping[str, str] | None = None) -> list[SessionInfo]:
        asked = where_given(where)
        logs = sorted(self._living(), key=lambda log: (log.info.updated, log.key), reverse=True)
        if asked:
            keys = set(self._labels.matching(self, [(log.key, log.info) for log in logs], asked))
            logs = [log for log in logs if log.key in keys]
        return [log.info for log in logs[:limit]]

    def facts(self) -> dict[str, SessionFacts]:
        logs = {log.key: log.info for log in self._living()}
        return {logs[key].id: facts for key, facts in self._labels.facts(self, logs.items()).items()}

    def rename(self, session_id: str, title: str) -> None:
        with self._lock:
            log = self._find(session_id)
            self._save(replace(log, info=replace(log.info, title=storable(title))), {})

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        with self._lock:
            self._save(replace(self._find(session_id), kept=kept), {})

    def hold(self, session_id: str, *, alone: bool = False) -> Held | None:
        return self._holds.take(session_id, alone=alone)

    def lease(self, session_id: str, *, shared: bool = False, wait: float = 0.0) -> Lease:
        return self._holds.lease(session_id, shared=shared, wait=wait)

    def delete(self, session_id: str, *, expected: int | None = None, missing_ok: bool = False) -> None:
        flag_given("missing_ok", missing_ok)
        try:
            with unowned(self, session_id):
                self._delete(session_id, expected)
        except SessionNotFound:
            if not missing_ok:
                raise

    def _delete(self, session_id: str, expected: int | None) -> None:
        with self._lock:
            log = self._find(session_id)
            check_expected(session_id, expected, log.info.records)
            self._save(replace(log, info=replace(log.info, id="", title="", parent=""), kept=False), {})
            self._prune(log.key)

    def _prune(self, key: int) -> None:
        """Delete what no fork needs of a deleted session's log, and of the deleted sessions' logs below it."""
        logs = {log.key: log for log in self._logs()}
        while key and not logs[key].info.id:
            log = logs.pop(key)
            needed = max((other.info.parent_records for other in logs.values() if other.base == key), default=0)
            if needed:
                self._save(replace(log, info=replace(log.info, records=needed)), {})
            self._cut(key, needed)
            key = 0 if needed else log.base

    # -- blobs -----------------------------------------------------------------------------------

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        name = name or sha256_hex(data)
        with self._lock:
            self._save_blob(name, bytes(data))
        return name

    def get_blob(self, sha256: str) -> bytes:
        return whole_blob(sha256, self._blob(sha256) if is_blob_name(sha256) else None, "this store")

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        with self._lock:
            names, swept = unused(self._blobs(), chain.from_iterable(map(self._own_rows, self._logs())), grace)
            self._remove_blobs(names)
        return swept

    def _own_rows(self, log: Log) -> Sequence[bytes]:
        return self._rows(log.key, log.info.parent_records + 1, log.info.records)

    # -- the whole store -------------------------------------------------------------------------

    @property
    def encrypted(self) -> bool:
        return False

    def inventory(self) -> Inventory:
        with self._lock:
            blobs = {name: put.size for name, put in self._blobs().items()}
            readers: dict[int, set[str]] = {}
            for log in self._living():
                for segment in self._segments(log):
                    readers.setdefault(segment.key, set()).add(log.info.id)
            pieces = []
            for log in self._logs():
                rows = self._own_rows(log)
                names = set[str]().union(*(named(raw, blobs) for raw in rows))
                read_by = frozenset(readers.get(log.key, ()))
                pieces.append(StoredPiece(log.info.id, read_by, sum(map(len, rows)), frozenset(names)))
            protected = frozenset(log.info.id for log in self._logs() if log.kept)
        return Inventory(tuple(pieces), blobs, protected, self._holds.taken())

    def used(self) -> int:
        records = sum(len(raw) for log in self._logs() for raw in self._own_rows(log))
        return records + sum(put.size for put in self._blobs().values())

    def reclaim(self) -> None:
        """See `Store.reclaim`. Does nothing, for stores that free space at once."""

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        """See `Store.pack`. Nothing is compressed."""
        self.rewrite(session_id, instead or {}, was=was)
        return Packed(0, 0, 0)

    def unpacked(self) -> frozenset[str]:
        return frozenset()

    def search(
        self,
        query: str,
        *,
        session: str | None = None,
        role: str | None = None,
        tool: str | None = None,
        since: str | None = None,
        until: str | None = None,
        where: Mapping[str, str] | None = None,
        limit: int | None = 50,
    ) -> list[Hit]:
        return self._search(Search(query, session, role, tool, since, until, limit, where))

    def _search(self, search: Search) -> list[Hit]:
        """The hits of a search. Reads every record that could match; no index is needed."""
        among = search.among
        if among is None and search.where:
            among = {info.id for info in self.sessions(where=search.where)}
        if search.session is not None:
            self.info(search.session)
            begins = {search.session: 1} if among is None or search.session in among else {}
        else:
            begins = unshared(each for each in self._searchable() if among is None or each[0] in among)
        return scan(search, reversed(begins.items()), self.readable)

    def _searchable(self) -> Iterator[tuple[str, list[Segment]]]:
        """All sessions and their segments, oldest first, without sessions that are too damaged to read."""
        for log in self._living():
            with suppress(CorruptRecord, SessionNotFound):
                yield log.info.id, self._segments(log)

    def verify(self, session_id: str | None = None) -> list[Problem]:
        logs = sorted(self._logs(), key=lambda log: log.key) if session_id is None else [self._find(session_id)]
        blobs = BlobCheck(self._blobs(), self._blob)
        problems: list[Problem] = []
        for log in logs:
            segments = [Segment(log.key, log.info.parent_records + 1, log.info.records)]
            for segment in segments if session_id is None else self._segments(log):
                problems += damage_of_rows(log.info.id, segment, self._rows, blobs)
        return problems if session_id is not None else [*problems, *blobs.rest()]

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        with self._lock:
            log = self._find(session_id)
            check_unchanged(self.read, session_id, was)
            for n, raw in records.items():
                if not 1 <= n <= log.info.records or decode_record(raw).n != n:
                    raise no_such_record(session_id, n)
            logs = {each.key: each for each in self._logs()}
            for key, first, last in self._segments(log):
                changed = {n: raw for n, raw in records.items() if first <= n <= last}
                self._save(logs[key], changed)
            self._labels.clear()
            self._remove_blobs(filter(is_blob_name, blobs))

    def close(self) -> None:
        """See `Store.close`. Does nothing, for stores that have nothing open."""
