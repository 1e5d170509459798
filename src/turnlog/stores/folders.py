"""Folders and files that only their owner can look into."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import StoreError


@contextmanager
def refusals(path: Path, *, missing: bool = False) -> Iterator[None]:
    """What the system refuses is a StoreError that names `path`: a full disk, a folder that may not be written to.
    That there is no such file stays FileNotFoundError, for those who ask, unless `missing`."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not missing:
            raise
        raise StoreError(f"{error.filename or path}: {error.strerror or error}") from error


def make_private(path: Path) -> None:
    """Make a folder, and those above it that are missing, for its owner alone. One that is there stays
    as it is. (`mkdir` with `parents` would give those above the mode that everybody can read.)"""
    missing = [path]
    while not missing[-1].exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """A file with these bytes, or the one that was there; only its owner can read it."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        left = memoryview(data)
        while left:  # a system writes 2 GB at a time, and less where the disk is nearly full
            left = left[os.write(handle, left) :]
        os.fsync(handle)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        os.close(handle)
    try:
        os.replace(temporary, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from error
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
