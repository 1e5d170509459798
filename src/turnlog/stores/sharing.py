"""One store object for all sessions of this process that are opened by the same path.

Each SQLite file costs its process three descriptors and 200 kB, which a server with a thousand open sessions would pay
a thousand times.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from msgspec import Struct

from ..log.store import Store
from .durability import Durability
from .places import local_path, open_store
from .wrapper import StoreWrapper

if TYPE_CHECKING:
    from .encrypted.keys import KeySource

_Key = tuple[str, str, int]
"""The path of a store as it was given and from where, how durable its appends are, and the process."""


class _Opened(Struct):
    """A store that is open, what its file or folder was then (device and number), and how many use it."""

    store: Store
    identity: tuple[int, int] | None
    users: int = 0


_opened: dict[_Key, _Opened] = {}
_lock = RLock()  # a share may be garbage-collected while the thread has it


class SharedStore(StoreWrapper):
    """The share of one user in a store; the store is closed when the last share is closed or garbage-collected."""

    def __init__(self, key: _Key, opened: _Opened) -> None:
        super().__init__(opened.store)
        self._leave = weakref.finalize(self, _leave, key, opened)
        self._leave.atexit = False

    def close(self) -> None:
        """Give the share up. A second call does nothing."""
        self._leave()


def _leave(key: _Key, opened: _Opened) -> None:
    with _lock:
        opened.users -= 1
        if opened.users:
            return
        if _opened.get(key) is opened:
            del _opened[key]
    opened.store.close()


def shared_store(place: str | Path, *, durability: Durability, key: KeySource | None) -> Store:
    """As `open_store`; a local store without a key is one object for all who open it here, until its file or folder is
    replaced by another. Each user closes what it got."""
    path = local_path(place) if key is None else None
    if path is None:
        return open_store(place, durability=durability, key=key)
    shared = (os.path.abspath(path), f"{durability} {place}", os.getpid())
    if (share := _share(shared, path)) is not None:
        return share
    store = open_store(place, durability=durability)  # without the lock: it may have to wait for others
    with _lock:
        opened = _opened.get(shared)
        if opened is None or opened.identity != _identity(path):
            opened = _opened[shared] = _Opened(store, _identity(path))
    share = _share(shared, path) or SharedStore(shared, _Opened(store, None, 1))
    if share.store is not store:  # somebody was faster
        store.close()
    return share


def _share(key: _Key, path: Path) -> SharedStore | None:
    """A share in the store at a path, if it is open and the path still leads to it."""
    with _lock:
        opened = _opened.get(key)
        if opened is None or opened.identity is None or opened.identity != _identity(path):
            return None
        opened.users += 1
    return SharedStore(key, opened)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _after_fork() -> None:
    """A fork uses none of its parent's stores, and a lock that another thread of the parent had would stay locked."""
    global _lock
    _lock = RLock()
    _opened.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
