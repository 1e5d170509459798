"""Leases say who has a session open for work: one owner, or several that share it on purpose.

A lease is a lock of the operating system, which frees it when the owner dies; in memory, an entry in a list. The hold
of `locks.py` is another lock: it says that a session is in use, so that `gc` leaves it.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .._platform.files import open_handle
from .._platform.stdlib import socket
from ..errors import SessionBusy, StoreError
from ..log.store import Held, Leased, Store, check_session_id, file_name, utc_now
from .locks import HoldFolder, LocalHolds, is_at

try:
    import fcntl
except ImportError:  # Windows: it is not known who has a session
    fcntl = None  # type: ignore[assignment]

WAIT = 1.0
"""Seconds to wait for a session or a turn by default."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.002, 0.05
"""Seconds between two attempts to take a lease. The operating system can only wait for a lock without limit or not at
all."""

_LEAST = 0.01
"""The least seconds that an attempt lasts: others that try or give up hold the lock for a moment."""

_ENDING = "+lease"
"""The ending of the name of a lease's file. No id has such a file name, so no hold's file has this name."""

_MOST_BYTES = 4096


class Owner(NamedTuple):
    """The owner of a session: a process on a host, the thread that opened it, and since when (UTC). Unknown fields are
    empty."""

    process: int = 0
    host: str = ""
    thread: str = ""
    since: str = ""

    @classmethod
    def here(cls) -> Owner:
        """The calling thread as an owner."""
        return cls(os.getpid(), socket.gethostname(), threading.current_thread().name, utc_now())


class Lease:
    """The right to write to a session, until it is closed or garbage-collected, or its process ends.

    `alone`: nobody else has the session, so the owner of anything unfinished in it is gone. A lease made without
    arguments belongs to a session that nobody else can find.
    """

    def __init__(
        self,
        session_id: str,
        *,
        alone: bool = True,
        release: Callable[[], object] = lambda: None,
        share: Callable[[], object] = lambda: None,
    ) -> None:
        self.session_id = session_id
        self.alone = alone
        self._process = os.getpid()
        self._release = weakref.finalize(self, release)
        self._share = share

    @property
    def is_ours(self) -> bool:
        """Whether this process may write: the lease is not closed, and was not inherited by a fork."""
        return self._release.alive and os.getpid() == self._process

    def check(self) -> None:
        """Raises SessionBusy in a fork of the process that has the lease, and StoreError if it is closed."""
        if os.getpid() != self._process:
            raise SessionBusy(
                f"session {self.session_id!r} was opened by process {self._process}, of which this one is a fork: it "
                "cannot be used here; open it here once it is closed there, or with read_only=True",
                process=self._process,
            )
        if not self._release.alive:
            raise StoreError(f"session {self.session_id!r} is closed; open it again")

    def share(self) -> None:
        """Let others have the session too, if the lease was taken as shared. Raises SessionBusy if another owner took
        it alone at the same moment."""
        self.alone = False
        self._share()

    def close(self) -> None:
        """Give the lease up. A second call does nothing. In a fork, the lease of the parent stays."""
        self._release()


class ReadLease(Lease):
    """The lease of a session that is open for reading only: no right to write."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, alone=False)

    @property
    def is_ours(self) -> bool:
        return False

    def check(self) -> None:
        """Raises StoreError."""
        raise StoreError(
            f"session {self.session_id!r} is open for reading only; open it without read_only=True to write to it"
        )


class Locks:
    """The hold and the lease of the session that is being opened; `opened` releases them if the rest fails."""

    def __init__(self, store: Store, opened: ExitStack, *, shared: bool, wait: float) -> None:
        self._store = store
        self._shared = shared
        self._wait = wait
        self.hold: Held | None = None
        self.lease: Leased | None = None
        opened.callback(self.release)

    def take(self, session_id: str, *, wait: float | None = None) -> None:
        """Take both, before the session is looked for: `gc` must not come between. Raises SessionBusy."""
        self.hold = self._store.hold(session_id)
        self.lease = self._store.lease(session_id, shared=self._shared, wait=self._wait if wait is None else wait)

    def release(self) -> None:
        """Release what was taken."""
        for lock in (self.lease, self.hold):
            if lock is not None:
                lock.close()


def busy(session_id: str, owner: Owner, *, opens: bool = True) -> SessionBusy:
    """The error for a session that somebody else has. If the caller `opens` the session, it says what else can be
    done."""
    here = (owner.process, owner.host) == (os.getpid(), socket.gethostname())
    who = "this process has it open already" if here else f"process {owner.process} on {owner.host} has it open"
    if not owner.process:
        who = "somebody has it open"
    if owner.thread:
        who += f" (thread {owner.thread}, since {owner.since})"
    advice = "close it there" if here else "wait until it is closed"
    if here and opens:
        advice = "close the earlier session object (session.close(), before a notebook's cell that opens it runs again)"
    if opens:
        advice += "" if here else " (wait=SECONDS)"
        advice += ", open it for reading (read_only=True), or let several write to it on purpose (shared=True, in each "
        advice += "of them)"
    return SessionBusy(f"session {session_id!r} is in use: {who}; {advice}", **owner._asdict())


@contextmanager
def unowned(store: Store, session_id: str) -> Iterator[None]:
    """Keeps others from a session while the block changes it. Raises SessionBusy at once if somebody has it."""
    try:
        lease = store.lease(session_id)
    except SessionBusy as error:
        store.info(session_id)  # on some disks, ids that differ by case have the same lock
        raise busy(session_id, Owner(error.process, error.host, error.thread, error.since), opens=False) from None
    with closing(lease):
        yield


def patiently(attempt: Callable[[], Lease | Owner], session_id: str, wait: float) -> Lease:
    """The lease that `attempt` returns, which is called until `wait` seconds have passed. Raises SessionBusy."""
    end, pause = time.monotonic() + max(wait, _LEAST), _FIRST_PAUSE
    while True:
        outcome = attempt()
        if isinstance(outcome, Lease):
            return outcome
        left = end - time.monotonic()
        if left <= 0:
            raise busy(session_id, outcome)
        time.sleep(min(pause, left))
        pause = min(pause * 2, _LONGEST_PAUSE)


class LocalLocks(LocalHolds):
    """Holds and leases that are known only in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()
        self._owners: dict[str, list[Owner]] = {}
        self._exclusive: set[str] = set()

    def lease(self, session_id: str, *, shared: bool, wait: float) -> Lease:
        """As `FolderLocks.lease`."""
        check_session_id(session_id)
        return patiently(partial(self._attempt, session_id, shared), session_id, wait)

    def _attempt(self, session_id: str, shared: bool) -> Lease | Owner:
        with self._changed:
            if self._process != os.getpid():  # in a fork, which has a copy of the store: nobody has a session in that
                self._process = os.getpid()
                self._owners.clear()
                self._exclusive.clear()
            owners = self._owners.setdefault(session_id, [])
            if owners and (session_id in self._exclusive or not shared):
                return owners[-1]
            owner, alone = Owner.here(), not owners
            owners.append(owner)
            if alone:
                self._exclusive.add(session_id)
        return Lease(
            session_id,
            alone=alone,
            release=partial(self._leave, session_id, owner),
            share=partial(self._let_in, session_id),
        )

    def _let_in(self, session_id: str) -> None:
        with self._changed:
            self._exclusive.discard(session_id)

    def _leave(self, session_id: str, owner: Owner) -> None:
        with self._changed:
            owners = self._owners.get(session_id, [])
            with suppress(ValueError):
                owners.remove(owner)
            if not owners:  # the list stays: garbage collection may run this in the midst of `_attempt`
                self._exclusive.discard(session_id)


class FolderLocks(HoldFolder):
    """Holds and leases as locked files in a folder, known to all processes that use it."""

    def lease(self, session_id: str, *, shared: bool, wait: float) -> Lease:
        """The lease of a session, waited for up to `wait` seconds. With `shared`, others that share may have it too; if
        nobody has it now, the lease is `alone` until `Lease.share`. On a system or disk without such locks, other
        owners are unknown, and the lease is `alone`.

        Raises SessionBusy, StoreError if no file can be created, SessionIdError for an id that no session can have.
        """
        check_session_id(session_id)
        if fcntl is None or self._read_only:
            return Lease(session_id)
        path = self._path / (file_name(session_id) + _ENDING)
        return patiently(partial(self._attempt, session_id, path, shared), session_id, wait)

    def _attempt(self, session_id: str, path: Path, shared: bool) -> Lease | Owner:
        with _forking:  # a fork in between would inherit a file that `_handles` does not know
            handle = self.opened(path)
            alone = _locked(handle, fcntl.LOCK_EX)
            if alone is None:  # a disk without locks
                os.close(handle)
                return Lease(session_id)
            if not alone and not (shared and _locked(handle, fcntl.LOCK_SH)):
                owner = _written(handle)
                os.close(handle)
                return owner
            if not is_at(handle, path):  # removed by its last owner just now
                os.close(handle)
                return Owner()
            _handles.add(handle)
        release = partial(_leave, path, handle, os.getpid())
        try:
            _write(handle, Owner.here())
            return Lease(session_id, alone=alone, release=release, share=partial(_share, handle, session_id))
        except BaseException:  # Ctrl-C: nobody else would give it up
            release()
            raise

    def clear(self) -> None:
        """As `HoldFolder.clear`, for files of leases too."""
        with suppress(FileNotFoundError):
            for name in os.listdir(self._path):
                if name.endswith(_ENDING):
                    with suppress(OSError):
                        _remove(self._path / name)
        super().clear()


def _locked(handle: int, how: int) -> bool | None:
    """Lock a file without waiting; False if others have locked it, None if the disk has no locks."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _share(handle: int, session_id: str) -> None:
    # The system may give the lock to another between letting go and taking it again, as one who shares.
    if not _locked(handle, fcntl.LOCK_SH):
        raise busy(session_id, Owner())


def _leave(path: Path, handle: int, process: int) -> None:
    if os.getpid() != process:  # a fork closed it when it began
        return
    with _forking:
        _handles.discard(handle)
        with suppress(OSError):
            if _locked(handle, fcntl.LOCK_EX) and is_at(handle, path):
                path.unlink()
        os.close(handle)


def _remove(path: Path) -> None:
    """Remove the file of a lease that nobody has, where the system can tell. Raises OSError."""
    if fcntl is None:
        return
    handle = open_handle(path, os.O_RDWR, follow=False)
    try:
        if _locked(handle, fcntl.LOCK_EX) and is_at(handle, path):
            path.unlink()
    finally:
        os.close(handle)


def _write(handle: int, owner: Owner) -> None:
    with suppress(OSError):  # a full disk: the lock counts, the words are for people
        os.ftruncate(handle, os.pwrite(handle, json.dumps(owner).encode(), 0))


def _written(handle: int) -> Owner:
    """The owner written in a lease's file; an unknown one if the file is being written or damaged."""
    try:
        process, host, thread, since = json.loads(os.pread(handle, _MOST_BYTES, 0))
        return Owner(int(process), str(host), str(thread), str(since))
    except (OSError, ValueError, TypeError):
        return Owner()


_handles: set[int] = set()
"""The files of the leases of this process. A fork closes them, as otherwise the locks would outlive their owner."""

_forking = threading.RLock()


def _after_fork() -> None:
    while _handles:
        with suppress(OSError):
            os.close(_handles.pop())
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_forking.acquire, after_in_parent=_forking.release, after_in_child=_after_fork)
