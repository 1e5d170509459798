"""Large media as files of a folder, each named by the hex SHA-256 of its bytes."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["BlobFolder", "is_blob_name"]

_NAME = re.compile(r"[0-9a-f]{64}")


def is_blob_name(name: str) -> bool:
    """Whether `name` is a hex SHA-256: anything else could be a path out of the folder."""
    return _NAME.fullmatch(name) is not None


class BlobFolder:
    """A folder of blobs. It is made when the first one is put into it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`: whole and on disk, or not at all. Heals a damaged file."""
        if self.get(name) == data:
            return
        self._path.mkdir(mode=0o700, exist_ok=True)
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

    def _sync_folder(self) -> None:
        """Make the rename last, where folders can be synced (not on Windows)."""
        with suppress(OSError):
            folder = os.open(self._path, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
