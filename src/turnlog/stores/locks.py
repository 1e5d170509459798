"""The sessions in use, known to all processes: a locked file for each session, removed when nobody uses it.

The operating system releases a lock when its process ends, however it ends. A file that a killed process leaves is not
locked, and therefore means nothing.
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

from .._platform.files import open_handle
from .._platform.lazy import lazy_pattern
from ..errors import StoreError, StoreGone
from ..log.store import check_session_id, file_name, is_plain_id
from .folders import advice

try:
    import fcntl
except ImportError:  # Windows: it is not known which sessions are in use, and `taken` returns None
    fcntl = None  # type: ignore[assignment]

_TRIES = 100
"""How often to retry when the folder is removed while a file is created in it. After so many failures, other processes
cannot be the cause."""

_CODED = lazy_pattern(r"[a-z0-9._-]{0,40}\+[0-9a-f]{32}")
"""The names of files for ids that are no file names themselves."""

_ALONE = -1
"""The number of holders that stands for a single holder with `alone`."""


class Hold:
    """A lock that marks a session as in use, until it is closed or garbage-collected."""

    def __init__(self, release: Callable[[], object] = lambda: None) -> None:
        self._release = weakref.finalize(self, release)

    def close(self) -> None:
        """Release the lock. A second call does nothing."""
        self._release()


class LocalHolds:
    """Holds that are known only in this process."""

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
        """The sessions in use, by `file_name`."""
        return frozenset(file_name(name) for name, holders in self._holders.items() if holders)

    def clear(self) -> None:
        """As `HoldFolder.clear`. Does nothing, as nothing is on disk."""

    def leave(self) -> None:
        """As `HoldFolder.leave`. Does nothing."""


class HoldFolder:
    """A folder with the lock files, named by session id. The folder stays until a store is closed and the folder is
    empty: creating and removing a folder takes a millisecond or two, creating and removing a file in it at most a tenth
    of one."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only

    def take(self, session_id: str, *, alone: bool = False) -> Hold | None:
        """Hold a session together with others, or `alone`: then None if others hold it. Waits while another process
        holds it alone. If `read_only`, no file is created, and others do not see the hold.

        Raises StoreError if no file can be created, SessionIdError for an id that no session can have.
        """
        check_session_id(session_id)
        return Hold() if self._read_only else self._take(file_name(session_id), alone=alone)

    def _take(self, name: str, *, alone: bool) -> Hold | None:
        if fcntl is None:
            return Hold()
        path = self._path / name
        while True:
            handle = self.opened(path)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError:  # a disk without locks: it is not known which sessions are in use, and `taken` returns None
                os.close(handle)
                return Hold()
            if is_at(handle, path):
                return Hold(partial(_unlock, path, handle, os.getpid()))
            os.close(handle)  # removed while we waited

    def opened(self, path: Path) -> int:
        """The file of a session, opened; the file and the folder are created if missing. Raises StoreError."""
        for _ in range(_TRIES):
            try:
                return open_handle(path, os.O_RDWR | os.O_CREAT, follow=False)
            except FileNotFoundError:  # there is no folder yet, or it was removed just now
                self._make()
            except OSError as error:
                if path.is_symlink():
                    raise StoreError(f"{path} is a link, not a file created by turnlog; remove it") from error
                raise StoreError(f"{path} cannot be created: {error.strerror}{advice(error)}") from error
        raise StoreError(f"{path} cannot be created: its folder is removed again and again")

    def _make(self) -> None:
        """Create the folder, but not its parent, which existed when the store was opened. Another process may create
        the folder at the same time, and remove it again before it is examined here."""
        try:
            os.mkdir(self._path, 0o700)
        except OSError as error:
            if isinstance(error, FileNotFoundError):
                raise StoreGone(
                    f"{self._path.parent} was deleted or moved while the store in it was open: move it back to go on, "
                    "or open the store again"
                ) from error
            with suppress(FileNotFoundError):
                if not isinstance(error, FileExistsError) or not S_ISDIR(os.lstat(self._path).st_mode):
                    raise StoreError(f"{self._path} cannot be created: {error.strerror}{advice(error)}") from error

    def _names(self) -> list[str]:
        """The names in the folder that can be session ids. Desktops and editors put other files into any folder."""
        with suppress(FileNotFoundError):
            return [name for name in os.listdir(self._path) if _is_id(name)]
        return []

    def taken(self) -> frozenset[str] | None:
        """The sessions in use; None if the system cannot tell."""
        if fcntl is None:
            return None
        names_in_use = set()
        for name in self._names():
            try:
                handle = open_handle(self._path / name, os.O_RDONLY)
            except FileNotFoundError:
                continue
            except OSError:  # perhaps another user's: better to keep a session than to delete one in use
                names_in_use.add(name)
                continue
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                fcntl.flock(handle, fcntl.LOCK_UN)
            except BlockingIOError:
                names_in_use.add(name)
            except OSError:
                return None
            finally:
                os.close(handle)
        return frozenset(names_in_use)

    def clear(self) -> None:
        """Remove files left by killed processes, and the folder if it is then empty. Files that turnlog did not create
        stay."""
        for name in self._names():
            with suppress(StoreError):  # a folder or a link: not a lock
                hold = self._take(name, alone=True)
                if hold is not None:
                    hold.close()
        self.leave()

    def leave(self) -> None:
        """Remove the folder if it is empty. A process that is about to create a file in it creates the folder again."""
        with suppress(OSError):  # not empty, or not there
            self._path.rmdir()


def _is_id(name: str) -> bool:
    return is_plain_id(name) or _CODED.fullmatch(name) is not None


def is_at(handle: int, path: Path) -> bool:
    """Whether an open file is still the one at `path`."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False


def _unlock(path: Path, handle: int, process: int) -> None:
    """Unlock; the last holder removes the file. A forked child shares its parent's lock and must not release it."""
    if os.getpid() == process and fcntl is not None:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(handle, path):
                path.unlink()
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)
