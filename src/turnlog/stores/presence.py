"""Notices that files of an open SQLite store were deleted, moved or replaced.

SQLite goes on writing to files that have lost their names, and nobody finds those records again. The newest records are
in the write-ahead log beside the store's file (`-wal`) until they are moved into it, so both must be there; without the
index of that log (`-shm`), other processes would write to it at the same time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from time import monotonic, time_ns

from .._platform.files import open_handle
from ..errors import StoreGone

_BESIDE = ("-wal", "-shm")
_QUIET_NS = 50_000_000  # systems note times of changes in steps of up to 10 ms
_MOST_SECONDS = 1.0  # for folders further up, and for disks that do not note when a folder was changed


class Presence:
    """The files of one store, by name and as the connection opened them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = str(path)
        self._beside = [f"{path}{ending}" for ending in _BESIDE]
        self._file: tuple[int, int] | None = None
        self._files_beside: list[tuple[int, int] | None] = []
        self._state = (0, 0)
        self._folder: int | None = None
        self._quiet = 0  # when the folder was last changed, in nanoseconds; 0 if that was just now
        self._until = 0.0
        self._is_away = False
        self.is_told = False
        """Whether an error has said that a file is gone, and it is still gone."""

    def opened(self) -> None:
        """Note which files the new connection has open. Raises StoreGone if an earlier connection had other ones."""
        if self._file is None:
            try:
                status = os.stat(self._name)
            except OSError:
                raise self._gone() from None
            self._file, self._state = _id(status), (status.st_mtime_ns, status.st_size)
        self.check(writing=True, beside=False)
        self._files_beside = [_id_at(name) for name in self._beside]
        self._quiet = 0
        if hasattr(os, "O_DIRECTORY"):
            with suppress(OSError):
                self._folder = open_handle(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)

    def closed(self) -> None:
        """Note that the connection is closed."""
        if self._folder is not None:
            os.close(self._folder)
            self._folder = None

    def check_writing(self) -> None:
        """Do the same as `check` before an append, at a fifth of the cost: while the folder is neither changed nor
        renamed, nothing in it was deleted, moved or replaced. If a folder above it is renamed, which moves all files
        together, that is noticed within a second."""
        if self._folder is None:  # on Windows, whose open files nobody can move
            self.check(writing=True)
            return
        changed = os.fstat(self._folder).st_ctime_ns
        if changed == self._quiet and monotonic() < self._until:
            return
        current_time, self._quiet = time_ns(), 0
        self.check(writing=True)
        if changed + _QUIET_NS < current_time:  # or a change that is still to come would have the same time
            self._quiet, self._until = changed, monotonic() + _MOST_SECONDS

    def check(self, *, writing: bool, beside: bool = True) -> None:
        """Raises StoreGone unless the files are those that were opened. Deleted or moved files can still be read, but
        not if another file took their place, as SQLite would read a mixture of both."""
        try:
            status = os.stat(self._name)
        except OSError:
            self._is_away = True
            if writing:
                raise self._gone() from None
            return
        if _id(status) != self._file:
            raise self._told(
                f"{self._name} was replaced by another file while it was open; nothing is read or written here, and "
                "the newest records may be lost with the old file: open the store again"
            )
        state = (status.st_mtime_ns, status.st_size)
        if self._is_away and state != self._state:
            raise self._told(
                f"{self._name} was deleted or moved while it was open; it is back, but not as it was last seen "
                "here, so perhaps others wrote to it: open the store again"
            )
        self._is_away, self._state = False, state
        if writing and beside:
            self._check_beside()
            self.is_told = False

    def _check_beside(self) -> None:
        for n, name in enumerate(self._beside):
            current_id, opened_id = _id_at(name), self._files_beside[n]
            if opened_id is None:
                self._files_beside[n] = current_id
            elif current_id != opened_id:
                raise self._told(
                    f"{name} was deleted or moved while the store was open; nothing more is written: move it back to "
                    f"go on, or close the store, which saves its newest records to {self._path.name}, and open it again"
                )

    def _gone(self) -> StoreGone:
        log = self._beside[0]
        along = ""
        if os.path.exists(log):
            along = f" (the newest records are in {log} as long as it is open: move that file along with it)"
        return self._told(
            f"{self._name} was deleted or moved while it was open; nothing more is written: move it back to go "
            f"on{along}, or export what you need from here, then open the store again"
        )

    def _told(self, text: str) -> StoreGone:
        self.is_told = True
        return StoreGone(text)


def left_alone(path: Path) -> StoreGone | None:
    """The error for a store whose file is missing while its write-ahead log is there: with a new file, SQLite would
    delete the log and the newest records in it. None if there is no such log, or it is empty."""
    log = f"{path}{_BESIDE[0]}"
    try:
        if not os.stat(log).st_size:
            return None
    except OSError:
        return None
    return StoreGone(
        f"{path} is not there, but {log} is, with the newest records of a store that was deleted or moved while it was "
        "open: move the store's file back beside it; or, to begin a new store, delete that file"
    )


def _id(status: os.stat_result) -> tuple[int, int]:
    return status.st_ino, status.st_dev


def _id_at(name: str) -> tuple[int, int] | None:
    try:
        return _id(os.stat(name))
    except OSError:
        return None
