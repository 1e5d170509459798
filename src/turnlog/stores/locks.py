"""Which sessions are in use, known between processes: a locked file for each, gone when nobody uses it.

The system lets go of a lock when its process ends, however it ends: what a killed process leaves is a file that
nobody has locked, and stands for nothing.
"""

from __future__ import annotations

import os
import weakref
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from stat import S_ISDIR
from threading import Condition

from ..errors import SessionIdError, StoreError
from ..log.store import check_session_id
from .folders import make_private

try:
    import fcntl
except ImportError:  # Windows: nobody can tell; `taken` says so
    fcntl = None  # type: ignore[assignment]

_TRIES = 100
"""How often a folder may be taken away while a file is made in it: more often nobody else is the reason."""


_ALONE = -1
"""Holders of a session that one has alone."""


class Hold:
    """That a session is in use: until this is closed, or nobody refers to it any more."""

    def __init__(self, release: Callable[[], object] = lambda: None) -> None:
        self._release = weakref.finalize(self, release)

    def close(self) -> None:
        """Let go. A second time does nothing."""
        self._release()


class LocalHolds:
    """Holds that this process alone knows of."""

    def __init__(self) -> None:
        self._holders: Counter[str] = Counter()
        self._changed = Condition()

    def take(self, session_id: str, *, alone: bool = False) -> Hold | None:
        """As `HoldFolder.take`."""
        check_session_id(session_id)
        with self._changed:
            if alone and self._holders[session_id]:
                return None
            self._changed.wait_for(lambda: self._holders[session_id] != _ALONE)
            self._holders[session_id] = _ALONE if alone else self._holders[session_id] + 1
        return Hold(partial(self._release, session_id, alone))

    def _release(self, session_id: str, alone: bool) -> None:
        with self._changed:
            self._holders[session_id] = 0 if alone else self._holders[session_id] - 1
            self._changed.notify_all()

    def taken(self) -> frozenset[str]:
        """The sessions that somebody holds."""
        return frozenset(name for name, holders in self._holders.items() if holders)


class HoldFolder:
    """The files by session id. Their folder stays until a store is closed and it is empty: to make and remove a folder
    takes a millisecond or two, to make a file in it and remove that a tenth of one at most."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def take(self, session_id: str, *, alone: bool = False) -> Hold | None:
        """Hold a session together with others; or `alone`, None if another holds it. Waits for one who is alone.

        Raises StoreError if no file can be made, SessionIdError for an id that no session can have.
        """
        check_session_id(session_id)
        if fcntl is None:
            return Hold()
        path = self._path / session_id
        while True:
            handle = self._opened(path)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError:  # a disk without locks: nobody can tell, as `taken` says
                os.close(handle)
                return Hold()
            if _is_at(handle, path):
                return Hold(partial(_let_go, path, handle, os.getpid()))
            os.close(handle)  # taken away while we waited

    def _opened(self, path: Path) -> int:
        """The file of a session, made if it is not there, and the folder with it. Raises StoreError."""
        for _ in range(_TRIES):
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:  # there is no folder yet, or it was taken away just now
                self._make()
            except OSError as error:
                if path.is_symlink():
                    raise StoreError(f"{path} is a link, and no file of turnlog's; take it away") from error
                raise StoreError(f"{path} cannot be made: {error.strerror}") from error
        raise StoreError(f"{path} cannot be made: its folder is taken away again and again")

    def _make(self) -> None:
        """Make the folder. Another may make it just now, and take it away again before it is looked at."""
        try:
            make_private(self._path)
        except OSError as error:
            with suppress(FileNotFoundError):
                if not isinstance(error, FileExistsError) or not S_ISDIR(os.lstat(self._path).st_mode):
                    raise StoreError(f"{self._path} cannot be made: {error.strerror}") from error

    def _names(self) -> list[str]:
        """What in the folder may be a session's: a desktop or an editor puts files into any folder."""
        with suppress(FileNotFoundError):
            return [name for name in os.listdir(self._path) if _is_id(name)]
        return []

    def taken(self) -> frozenset[str] | None:
        """The sessions that somebody holds; None if that cannot be told here."""
        if fcntl is None:
            return None
        found = set()
        for name in self._names():
            try:
                handle = os.open(self._path / name, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            except OSError:  # another user's, perhaps: better to spare a session than to delete one in use
                found.add(name)
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(handle, fcntl.LOCK_UN)
            except BlockingIOError:
                found.add(name)
            except OSError:
                return None
            finally:
                os.close(handle)
        return frozenset(found)

    def clear(self) -> None:
        """Take away what killed processes left, and the folder if nothing is in it. What is not turnlog's stays."""
        for name in self._names():
            with suppress(StoreError):  # a folder or a link: nobody's hold
                hold = self.take(name, alone=True)
                if hold is not None:
                    hold.close()
        self.leave()

    def leave(self) -> None:
        """Take the folder away if nothing is in it. Whoever is about to make a file in it makes it again."""
        with suppress(OSError):  # not empty, or not there
            self._path.rmdir()


def _is_id(name: str) -> bool:
    try:
        check_session_id(name)
    except SessionIdError:
        return False
    return True


def _is_at(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _let_go(path: Path, handle: int, process: int) -> None:
    """Unlock; the last one takes the file away. A forked child shares the lock of its parent and leaves it alone."""
    if os.getpid() == process and fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(handle, path):
                path.unlink()
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
