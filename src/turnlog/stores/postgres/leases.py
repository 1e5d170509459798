"""Leases known to all machines: advisory locks of the server, on a connection of their own.

The server frees the locks when that connection ends, however it ends: at once if the process dies, within 30 seconds if
its machine does (see `address.py`). A process that lives on without its connection has lost its sessions. It learns
that at its next append, from the broken connection or from the mark in the session's row, which the next owner has
replaced.

Threads of a process share the connection; this module notes which of them has a session.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from selectors import EVENT_READ, DefaultSelector
from typing import Any, TypeVar

import psycopg

from ...errors import SessionBusy, StoreError
from ...log.store import check_session_id, file_name, folded_id
from ..leases import Lease, Owner, patiently
from ..locks import Hold
from .address import IDLE_SECONDS, PROBE_SECONDS, PROBES
from .database import Database, abandon
from .schema import Db

T = TypeVar("T")

_ALONE = -1
"""The number of holders that stands for a single holder with `alone`."""

_PAUSE = 0.02
"""Seconds between two checks whether a session that another process holds alone is free."""

# Marks of owners need not survive a crash of the server, with which all locks end.
_SETTINGS = f"""set synchronous_commit = off; set tcp_keepalives_idle = {IDLE_SECONDS};
    set tcp_keepalives_interval = {PROBE_SECONDS}; set tcp_keepalives_count = {PROBES}"""
_OWNED = """with before as (delete from turnlog_owners where lock = %s and %s),
    marked as (update turnlog_sessions set owner = %s where folded = %s)
    insert into turnlog_owners values (%s, %s, pg_backend_pid(), %s, %s, %s, %s)"""
_OWNER = """select process, host, thread, since from turnlog_owners where lock = %s and backend in
    (select pid from pg_locks where locktype = 'advisory') order by since desc limit 1"""
_SHARED = "select pg_try_advisory_lock_shared(%s), pg_advisory_unlock(%s)"
_LEFT = "with gone as (delete from turnlog_owners where token = %s) select pg_advisory_unlock{}(%s)"
_HELD = """select (classid::bigint << 32) | objid::bigint from pg_locks where locktype = 'advisory' and objsubid = 1
    and granted and database = (select oid from pg_database where datname = current_database())"""


class _Kept:
    """A session that this process has: its owners, and the mark in the session's row (0 if it is shared)."""

    def __init__(self, generation: int, mark: int, *, exclusive: bool) -> None:
        self.generation = generation
        self.mark = mark
        self.exclusive = exclusive
        self.owners: dict[int, Owner] = {}


class ServerLease(Lease):
    """A lease that ends with the connection on which it was taken."""

    def __init__(
        self, session_id: str, *, is_kept: Callable[[], bool], lost: Callable[[], StoreError], **more: Any
    ) -> None:
        super().__init__(session_id, **more)
        self._is_kept = is_kept
        self._lost = lost

    @property
    def is_ours(self) -> bool:
        return super().is_ours and self._is_kept()

    def check(self) -> None:
        """As `Lease.check`; raises StoreError if the connection was lost."""
        super().check()
        if not self._is_kept():
            raise self._lost()


class ServerLocks:
    """The holds and leases of one store in this process. `name` distinguishes the store from others in its
    database."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name
        self._mutex = threading.Lock()
        self._left: deque[Callable[[], object]] = deque()
        self._connection: Db | None = None
        self._generation = 0
        """How many connections were lost. What was taken on an earlier connection is gone."""
        self._kept: dict[str, _Kept] = {}
        self._holders: dict[str, int] = {}
        self._tokens = 0
        _all_locks.add(self)

    # -- holds ---------------------------------------------------------------------------------------

    def take(self, session_id: str, *, alone: bool = False) -> Hold | None:
        """As `HoldFolder.take`."""
        check_session_id(session_id)
        if self._database.read_only:
            return Hold()
        while True:
            hold = self._do(partial(self._try_hold, session_id, alone))
            if hold is not None or alone:
                return hold
            time.sleep(_PAUSE)

    def _try_hold(self, session_id: str, alone: bool) -> Hold | None:
        db = self._connected()
        name, key = folded_id(session_id), self._key("hold", session_id)
        holders = self._holders.get(name, 0)
        if holders == _ALONE or (alone and holders):
            return None
        if not holders and not _first(db, f"select pg_try_advisory_lock{'' if alone else '_shared'}(%s)", key):
            return None
        self._holders[name] = _ALONE if alone else holders + 1
        return Hold(partial(self._soon, partial(self._release, name, key, self._generation), os.getpid()))

    def _release(self, name: str, key: int, generation: int) -> None:
        if generation != self._generation or self._connection is None:
            return
        left = self._holders.pop(name, 0)
        if left > 1:
            self._holders[name] = left - 1
        else:
            _first(self._connection, f"select pg_advisory_unlock{'' if left == _ALONE else '_shared'}(%s)", key)

    def taken(self, db: Db, sessions: Iterable[str]) -> frozenset[str]:
        """Those of these sessions that are in use on any machine, by `file_name`."""
        held = {key for (key,) in db.execute(_HELD, binary=True)}
        return frozenset(file_name(name) for name in sessions if self._key("hold", name) in held)

    # -- leases --------------------------------------------------------------------------------------

    def lease(self, session_id: str, *, shared: bool, wait: float) -> Lease:
        """As `FolderLocks.lease`."""
        check_session_id(session_id)
        if self._database.read_only:
            return Lease(session_id)
        return patiently(partial(self._do, partial(self._attempt, session_id, shared)), session_id, wait)

    def _attempt(self, session_id: str, shared: bool) -> Lease | Owner:
        db = self._connected()
        name, key = folded_id(session_id), self._key("lease", session_id)
        held = self._kept.get(name)
        if held is not None and held.generation == self._generation:
            if held.exclusive or not shared:
                return [*held.owners.values()][-1]
            alone = False
        else:
            alone = bool(_first(db, "select pg_try_advisory_lock(%s)", key))
            if not alone and not (shared and _first(db, "select pg_try_advisory_lock_shared(%s)", key)):
                owner_row = db.execute(_OWNER, (key,)).fetchone()
                return Owner() if owner_row is None else Owner(*owner_row)
            held = _Kept(self._generation, _mark() if alone else 0, exclusive=alone)
            self._kept[name] = held
        token, owner = _mark(), Owner.here()
        held.owners[token] = owner
        leave = partial(self._leave, name, key, held, token)
        try:
            db.execute(_OWNED, (key, alone, held.mark, name, token, key, *owner))
        except BaseException:  # Ctrl-C: nobody else would give it up
            self._left.append(leave)
            raise
        return ServerLease(
            session_id,
            alone=alone,
            release=partial(self._soon, leave, os.getpid()),
            share=partial(self._do, partial(self._let_in, session_id, name, key, held)),
            is_kept=partial(self._has, held),
            lost=partial(self.lost, session_id),
        )

    def _let_in(self, session_id: str, name: str, key: int, held: _Kept) -> None:
        if not self._is_alive() or held.generation != self._generation or self._connection is None:
            raise self.lost(session_id)
        if held.exclusive:
            self._connection.execute("update turnlog_sessions set owner = 0 where folded = %s", (name,))
            self._connection.execute(_SHARED, (key, key))  # the first before the second: nobody comes in between
            held.exclusive, held.mark = False, 0

    def _leave(self, name: str, key: int, held: _Kept, token: int) -> None:
        held.owners.pop(token, None)
        if not held.owners and self._kept.get(name) is held:
            del self._kept[name]
        if held.generation != self._generation or self._connection is None:
            return
        if held.owners:
            self._connection.execute("delete from turnlog_owners where token = %s", (token,))
        else:
            self._connection.execute(_LEFT.format("" if held.exclusive else "_shared"), (token, key))

    def fence(self, session_id: str) -> int | None:
        """The mark that a session's row must have for this process to write; None if this process has no lease of the
        session. Raises StoreError if it lost the lease."""
        held = self._kept.get(folded_id(session_id)) if self._kept else None
        if held is None:
            return None
        if not self._has(held):
            raise self.lost(session_id)
        return held.mark

    def _has(self, held: _Kept) -> bool:
        """Whether this process still has a session, as far as its own machine knows."""
        if self._mutex.acquire(blocking=False):  # otherwise another thread is just using the connection
            try:
                self._is_alive()
            finally:
                self._mutex.release()
            self._clear_up()
        return held.generation == self._generation

    def lost(self, session_id: str) -> StoreError:
        """The error for a session whose lease was lost with the connection."""
        return SessionBusy(
            f"session {session_id!r}: the connection to {self._database.address} that kept it for this process was "
            "lost, so another may have it now; nothing more is written: open it again"
        )

    # -- the connection ------------------------------------------------------------------------------

    def _do(self, work: Callable[[], T]) -> T:
        """Run `work`, which alone uses the connection meanwhile. Raises StoreError."""
        try:
            with self._mutex:
                try:
                    return work()
                except psycopg.Error as error:
                    if self._connection is not None and self._connection.closed:
                        self._drop()
                    raise self._database.error(error) from error
        finally:
            self._clear_up()

    def _soon(self, work: Callable[[], object], process: int) -> None:
        """Run `work` now, or when the thread that has the connection is done with it: garbage collection may release a
        lease at any moment, also in that thread."""
        if os.getpid() == process:
            self._left.append(work)
            self._clear_up()

    def _clear_up(self) -> None:
        while self._left and self._mutex.acquire(blocking=False):
            try:
                while self._left:
                    with suppress(psycopg.Error):  # the connection is lost, and with it the lock
                        self._left.popleft()()
            finally:
                self._mutex.release()

    def _connected(self) -> Db:
        if not self._is_alive():
            self._drop()
            self._connection = db = self._database.connect()
            self._disconnect = weakref.finalize(self, db.close)
            self._disconnect.atexit = False
            db.execute(_SETTINGS)
        assert self._connection is not None
        return self._connection

    def _is_alive(self) -> bool:
        """Whether the connection is open. The server sends nothing on it unless it closes it, so reading tells without
        a round trip."""
        db = self._connection
        if db is None:
            return False
        try:
            with DefaultSelector() as waiting:
                waiting.register(db.fileno(), EVENT_READ)
                if waiting.select(0):
                    db.pgconn.consume_input()
                alive = not db.closed and not waiting.select(0)
        except psycopg.Error:
            alive = False
        if not alive:
            self._drop()
        return alive

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._generation += 1
            self._holders.clear()

    def _key(self, use: str, session_id: str) -> int:
        """The number of an advisory lock: 64 bits of a hash, so that two sessions do not get the same."""
        text = f"{self._name}\0{use}\0{folded_id(session_id)}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)

    def close(self) -> None:
        """Free all locks."""
        with self._mutex:
            self._drop()

    def leave_to_parent(self) -> None:
        """In a fork: leave the locks to the parent (see `Database.leave_to_parent`)."""
        self._mutex = threading.Lock()
        self._left.clear()
        if self._connection is not None:
            abandon(self._connection)
            self._disconnect.detach()
            self._connection = None
        self._generation += 1
        self._kept.clear()
        self._holders.clear()


def _mark() -> int:
    """A random number that no other owner has."""
    return int.from_bytes(os.urandom(8), "big") >> 1 or 1


def _first(db: Db, query: str, key: int) -> Any:
    row = db.execute(query, (key,)).fetchone()
    return None if row is None else row[0]


_all_locks: weakref.WeakSet[ServerLocks] = weakref.WeakSet()


def _in_child() -> None:
    for locks in list(_all_locks):
        locks.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
