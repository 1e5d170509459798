"""A store without a disk: for tests, and for sessions that nobody will want again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import time

from msgspec import Struct
from msgspec.structs import replace

from ..errors import BlobMissing, Conflict, InputError, SessionExists, SessionIdError, SessionNotFound, StoreError
from ..log.bills import Bills, usage_by_model
from ..log.codec import decode_record
from ..log.messages import sha256_hex
from ..log.records import Record
from ..log.store import (
    SWEEP_GRACE_SECONDS,
    Draft,
    Hit,
    Inventory,
    Packed,
    Piece,
    Problem,
    SessionInfo,
    Swept,
    check_parent,
    check_session_id,
    is_landmark,
    utc_now,
)
from .blob_gc import unused
from .blobs import Put, named
from .drafts import blob_names, fork_point, is_said, kind_finder, kind_of, number_drafts
from .locks import Hold
from .scan import Search, Source, scan
from .totals import usages_one_by_one

_ALONE = -1
"""Holders of a session that one has alone."""


class _Log(Struct):
    info: SessionInfo
    order: int
    records: list[bytes]


class MemoryStore:
    """Logs in this process's memory, gone with it. Threads may share it.

    Records are kept as bytes, as on a disk: what a caller changes later does not reach them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, _Log] = {}
        self._closed = False
        self._made = 0
        self._blobs: dict[str, bytes] = {}
        self._puts: dict[str, Put] = {}
        self._kept: set[str] = set()
        self._holders: Counter[str] = Counter()
        self._let_go = threading.Condition()

    @property
    def _logs(self) -> dict[str, _Log]:
        self._check_open()
        return self._found

    def _check_open(self) -> None:
        """Raises StoreError once the store is closed: what it held is gone, and nobody is to look for it."""
        if self._closed:
            raise StoreError("the store in memory is closed")

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`."""
        with self._lock:
            log = self._find(session_id)
            last = log.info.records
            if expected is not None and expected != last:
                raise Conflict(session_id, expected=expected, actual=last)
            records = number_drafts(drafts, after=last)
            if records:
                info = replace(
                    log.info,
                    updated=records[-1].time,
                    records=records[-1].n,
                    messages=log.info.messages + _messages(records),
                )
                # In the place of what Ctrl-C may have left of another append.
                log.records[last:] = [_own(record.raw or b"") for record in records]
                log.info = info
        return records

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """See `RecordStore.read`. Ends at the record that was the last when it was called."""
        with self._lock:
            log = self._find(session_id)
            end = log.info.records if last is None else min(last, log.info.records)
        numbers = range(max(first, 1), end + 1)
        return (decode_record(log.records[n - 1]) for n in (reversed(numbers) if reverse else numbers))

    def landmarks(self, session_id: str, *, known: Collection[int] = ()) -> Iterator[Record]:
        """See `RecordStore.landmarks`."""
        return (record for record in self.read(session_id) if is_landmark(record) and record.n not in known)

    def usage(self, session_id: str) -> Bills:
        """See `RecordStore.usage`."""
        return usage_by_model(self.read(session_id))

    def of_kinds(self, session_id: str, kinds: Collection[str], *, first: int = 1) -> Iterator[Record]:
        """See `RecordStore.of_kinds`."""
        may_be = kind_finder(kinds)
        with self._lock:
            log = self._find(session_id)
            found = [raw for raw in log.records[max(first, 1) - 1 : log.info.records] if may_be(raw)]
        return (record for record in map(decode_record, found) if kind_of(record.body) in kinds)

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        """See `SessionIndex.create`."""
        time = created or utc_now()
        with self._lock:
            self._check_free(session_id)
            check_parent(session_id, parent)
            return self._add(SessionInfo(session_id, title, time, time, 0, 0, parent), [])

    def info(self, session_id: str) -> SessionInfo:
        """See `SessionIndex.info`."""
        with self._lock:
            return self._find(session_id).info

    def sessions(self, *, limit: int | None = None) -> list[SessionInfo]:
        """See `SessionIndex.sessions`."""
        with self._lock:
            logs = sorted(self._logs.values(), key=lambda log: (log.info.updated, log.order), reverse=True)
            return [log.info for log in logs[:limit]]

    def usages(self) -> dict[str, Bills]:
        """See `SessionIndex.usages`. Reads every log."""
        return usages_one_by_one(self)

    def rename(self, session_id: str, title: str) -> None:
        """See `SessionIndex.rename`."""
        with self._lock:
            log = self._find(session_id)
            log.info = replace(log.info, title=title)

    def delete(self, session_id: str, *, expected: int | None = None) -> None:
        """See `SessionIndex.delete`."""
        with self._lock:
            log = self._find(session_id)
            if expected is not None and expected != log.info.records:
                raise Conflict(session_id, expected=expected, actual=log.info.records)
            del self._logs[session_id.lower()]
            self._kept.discard(session_id)

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """See `SessionIndex.fork`. The records' bytes are shared."""
        time = utc_now()
        with self._lock:
            log = self._find(session_id)
            shared = fork_point(session_id, log.info.records, at)
            self._check_free(new_id)
            kept = log.records[:shared]
            messages = _messages(decode_record(raw) for raw in kept)
            return self._add(SessionInfo(new_id, title, time, time, shared, messages, session_id, shared), kept)

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """See `BlobStore.put_blob`. `name` is that of sealed bytes."""
        name = name or sha256_hex(data)
        with self._lock:
            self._check_open()
            self._blobs.setdefault(name, bytes(data))
            self._puts[name] = Put(time(), len(data))
        return name

    def get_blob(self, sha256: str) -> bytes:
        """See `BlobStore.get_blob`."""
        with self._lock:
            self._check_open()
            if sha256 not in self._blobs:
                raise BlobMissing(f"there is no blob {sha256!r} in this store")
            return self._blobs[sha256]

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """See `BlobStore.sweep`."""
        with self._lock:
            names, swept = unused(self._puts, (raw for log in self._logs.values() for raw in log.records), grace)
            for name in names:
                del self._blobs[name], self._puts[name]
        return swept

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        """See `Retained.keep`."""
        with self._lock:
            self._find(session_id)
            (self._kept.add if kept else self._kept.discard)(session_id)

    def hold(self, session_id: str, *, alone: bool = False) -> Hold | None:
        """See `Retained.hold`. No other process can have it open."""
        check_session_id(session_id)
        with self._let_go:
            if alone and self._holders[session_id]:
                return None
            self._let_go.wait_for(lambda: self._holders[session_id] != _ALONE)
            self._holders[session_id] = _ALONE if alone else self._holders[session_id] + 1
        return Hold(partial(self._release, session_id, alone))

    def _release(self, session_id: str, alone: bool) -> None:
        with self._let_go:
            self._holders[session_id] = 0 if alone else self._holders[session_id] - 1
            self._let_go.notify_all()

    def inventory(self) -> Inventory:
        """See `Retained.inventory`. Forks share the bytes themselves: that is how it is told who reads them."""
        readers: dict[int, set[str]] = {}
        owners: dict[int, str] = {}
        held: dict[int, bytes] = {}
        with self._lock:
            for log in self._logs.values():
                for n, raw in enumerate(log.records, 1):
                    held[id(raw)] = raw
                    readers.setdefault(id(raw), set()).add(log.info.id)
                    if n > log.info.parent_records:
                        owners[id(raw)] = log.info.id
            blobs = {name: put.size for name, put in self._puts.items()}
            kept = frozenset(self._kept)
        pieces = (
            Piece(owners.get(at, ""), frozenset(readers[at]), len(raw), frozenset(named(raw, blobs)))
            for at, raw in held.items()
        )
        in_use = frozenset(name for name, holders in self._holders.items() if holders)
        return Inventory(tuple(pieces), blobs, kept, in_use)

    def used(self) -> int:
        """See `Retained.used`: in memory."""
        with self._lock:
            records = {id(raw): len(raw) for log in self._logs.values() for raw in log.records}
            return sum(records.values()) + sum(put.size for put in self._puts.values())

    def reclaim(self) -> None:
        """See `Retained.reclaim`. Memory is the interpreter's matter."""

    def search(
        self,
        query: str,
        *,
        session: str | None = None,
        role: str | None = None,
        tool: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = 50,
    ) -> list[Hit]:
        """See `Searchable.search`. Reads all that it searches."""
        search = Search(query, role=role, tool=tool, since=since, until=until)
        with self._lock:
            logs = sorted(self._logs.values(), key=lambda log: log.order) if session is None else [self._find(session)]
            sources, searched = [], set[int]()
            for log in logs:  # what an older session has is searched there: forks share the bytes themselves
                begin = next((n for n, raw in enumerate(log.records, 1) if id(raw) not in searched), 0)
                if begin:
                    searched.update(map(id, log.records))
                    sources.append(self._source(log.info.id, begin))
        return scan(search, reversed(sources), limit)

    def _source(self, session_id: str, begin: int) -> Source:
        return Source(session_id, begin, lambda first: self.read(session_id, first=first))

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        """See `Store.rewrite`. Raises Conflict unless the records `was` still have these bytes."""
        with self._lock:
            log = self._find(session_id)
            if any(log.records[n - 1] != raw for n, raw in (was or {}).items()):
                raise Conflict(session_id, expected=log.info.records, actual=log.info.records)
            for n, raw in records.items():
                if not 1 <= n <= log.info.records or decode_record(raw).n != n:
                    raise InputError(f"session {session_id!r} has no record {n} that these bytes could replace")
            old = {id(log.records[n - 1]): _own(raw) for n, raw in records.items()}
            for other in self._logs.values():  # forks share the bytes themselves
                other.records = [old.get(id(raw), raw) for raw in other.records]
            for name in blobs:
                self._blobs.pop(name, None)
                self._puts.pop(name, None)

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        """See `Packable.pack`. There is no disk to save room on, so nothing is compressed."""
        self.rewrite(session_id, instead or {}, was=was)
        return Packed(0, 0, 0)

    def unpacked(self) -> frozenset[str]:
        """See `Packable.unpacked`."""
        return frozenset()

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """See `Store.verify`. In memory, only blobs that were never put can be missing."""
        with self._lock:
            logs = list(self._logs.values()) if session_id is None else [self._find(session_id)]
        return [
            Problem(log.info.id, record.n, f"it needs blobs that are not there: {', '.join(sorted(missing))}")
            for log in logs
            for record in map(decode_record, tuple(log.records))
            if (missing := blob_names(record) - self._blobs.keys())
        ]

    def close(self) -> None:
        """See `Store.close`. What the store held is let go."""
        with self._lock:
            self._closed = True
            self._found.clear()
            self._blobs.clear()
            self._puts.clear()

    def _find(self, session_id: str) -> _Log:
        log = self._logs.get(session_id.lower())
        if log is None or log.info.id != session_id:
            raise SessionNotFound(f"there is no session {session_id!r}")
        return log

    def _check_free(self, session_id: str) -> None:
        found = self._logs.get(check_session_id(session_id).lower())
        if found is None:
            return
        if found.info.id == session_id:
            raise SessionExists(f"there is a session {session_id!r} already")
        raise SessionIdError(f"session id {session_id!r} differs from {found.info.id!r} by case only; take another")

    def _add(self, info: SessionInfo, records: list[bytes]) -> SessionInfo:
        self._made += 1
        self._logs[info.id.lower()] = _Log(info, self._made, records)
        return info


def _messages(records: Iterable[Record]) -> int:
    return sum(is_said(record.body) for record in records)


def _own(raw: bytes) -> bytes:
    """The same bytes as an object that no other log has: that two of them share a record is told by that. A record
    that is copied out of another log brings that log's."""
    return bytes(bytearray(raw))
