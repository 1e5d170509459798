"""Large media as files of a folder, each named by the hex SHA-256 of its bytes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

__all__ = ["BlobFolder", "Put", "is_blob_name"]

_NAME = re.compile(r"[0-9a-f]{64}")


def is_blob_name(name: str) -> bool:
    """Whether `name` is a hex SHA-256: anything else could be a path out of the folder."""
    return _NAME.fullmatch(name) is not None


class Put(NamedTuple):
    """When a blob was last put, in seconds since 1970, and its size in bytes."""

    at: float
    size: int


class BlobFolder:
    """A folder of blobs. It is made when the first one is put into it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`: whole and on disk, or not at all. Heals a damaged file.

        What is there already is made as young as what is new. Not to be done during a `remove`.
        """
        if self.get(name) == data:
            os.utime(self._path / name)
            return
        self._path.mkdir(mode=0o700, exist_ok=True)
        import tempfile  # 10 ms of import, which only media in files need

        handle, temporary = tempfile.mkstemp(dir=self._path, prefix="tmp-")  # mode 0600
        try:
            with open(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path / name)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        self._sync_folder()

    def get(self, name: str) -> bytes | None:
        """The bytes under `name`, unchecked; None if there are none."""
        try:
            return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self) -> Iterator[str]:
        """Every blob's name, sorted. What a killed writer left half done is none."""
        if self._path.is_dir():
            yield from sorted(filter(is_blob_name, os.listdir(self._path)))

    def puts(self) -> dict[str, Put]:
        """When each blob was last put, in seconds since 1970, and its size in bytes."""
        found = {}
        for name in self.names():
            with suppress(FileNotFoundError):
                held = (self._path / name).stat()
                found[name] = Put(held.st_mtime, held.st_size)
        return found

    def remove(self, names: Iterable[str]) -> None:
        """Remove those of `names` that are there."""
        for name in names:
            (self._path / name).unlink(missing_ok=True)

    def _sync_folder(self) -> None:
        """Make the rename last, where folders can be synced (not on Windows)."""
        with suppress(OSError):
            folder = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
