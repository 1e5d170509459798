"""Folders and files that only their owner can read, and what an append to them survives."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from .._platform.files import CAN_REPLACE_OPEN, open_handle
from ..errors import InputError, StoreError

Durability = Literal["normal", "full"]
"""What an append survives once it has returned: with `normal` a killed process, with `full` also a power cut.

After a power cut, `normal` may have lost the newest records, but never a record before one that is left.
"""


def check_durability(given: Any) -> None:
    """Raises InputError unless `given` is a Durability."""
    if given not in ("normal", "full"):
        raise InputError(f"durability: {given!r} is neither 'normal' nor 'full'")


@contextmanager
def refusals(path: Path, *, missing: bool = False) -> Iterator[None]:
    """Turns errors of the operating system, such as a full disk or a folder without write permission, into StoreErrors
    that name `path`. FileNotFoundError passes, unless `missing`, so that callers can handle it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not missing:
            raise
        raise StoreError(f"{error.filename or path}: {error.strerror or error}{advice(error)}") from error


_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})

FREE_SOME = "; free some space on this disk, then try again"
"""What to do if the disk is full."""

_FILES_OF_DATABASE = 4  # itself, its log, the index of the log, its folder


def is_full(error: BaseException | None) -> bool:
    """Whether an error of the operating system means that the disk, or the user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in _NO_SPACE


def advice(error: OSError) -> str:
    """Advice on an error of the operating system; empty if its own text is enough."""
    if isinstance(error, PermissionError) and not CAN_REPLACE_OPEN:
        return "; Windows replaces and removes no file that somebody has open: close its readers, then try again"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "; close sessions and files, or allow more: `ulimit -n 4096` in the shell that starts the program"
    return FREE_SOME if is_full(error) else ""


def out_of_files() -> str:
    """The advice if this process can open no more than a file or two, which are too few for a database; else ""."""
    handles: list[int] = []
    try:
        handles += (os.open(os.devnull, os.O_RDONLY) for _ in range(_FILES_OF_DATABASE))
    except OSError as error:
        return advice(error)
    finally:
        for handle in handles:
            os.close(handle)
    return ""


def make_private(path: Path) -> None:
    """Create a folder and its missing parents, readable only by their owner. An existing folder is not changed.
    (`mkdir` with `parents` would make the parents readable by everybody.)"""
    missing = [path]
    while not missing[-1].exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write these bytes to a file that only its owner can read. If that fails, the old file stays as it was."""
    # A name of its own for each write: threads share a process id, and so do the first processes of two containers.
    temporary = path.with_name(f"{path.name}.{int.from_bytes(os.urandom(8))}.tmp")
    handle = open_handle(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        left = memoryview(data)
        while left:  # one write takes at most 2 GB, and less if the disk is nearly full
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{path} cannot be written: {error.strerror}{advice(error)}") from error
    finally:
        os.close(handle)
    try:
        os.replace(temporary, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}{advice(error)}") from error
    with suppress(OSError):  # Windows opens no folders
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
