"""Large media as files of a folder, each named by the hex SHA-256 of its bytes."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..errors import BlobMissing, CorruptRecord
from ..log.messages import sha256_hex
from ..log.store import Problem
from .folders import refusals, write_whole

_NAME = re.compile(r"[0-9a-f]{64}")


def is_blob_name(name: str) -> bool:
    """Whether `name` is a hex SHA-256: anything else could be a path out of the folder."""
    return _NAME.fullmatch(name) is not None


_ANYWHERE = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

_HALF_DONE = re.compile(r"tmp-|[0-9a-f]{64}\.[0-9]+\.tmp$")
"""What a file is called while it is written; `tmp-` by older versions."""

SEALED_HEAD = b"turnlog-sealed-1\n"
"""How a blob of an encrypted store begins: then come its name and the SHA-256 of the rest, 32 bytes each."""


def fits(name: str, data: bytes) -> bool:
    """Whether the bytes are those of their name: hashed, or as the head of a sealed blob says."""
    if data.startswith(SEALED_HEAD):
        name_at, hash_at = len(SEALED_HEAD), len(SEALED_HEAD) + 32
        if data[name_at:hash_at].hex() == name:
            return hashlib.sha256(data[hash_at + 32 :]).digest() == data[hash_at : hash_at + 32]
    return sha256_hex(data) == name


def names_in(raw: bytes) -> list[bytes]:
    """What could be the names of blobs in the bytes of a record, whatever its kind."""
    return _ANYWHERE.findall(raw)


def named(raw: bytes, blobs: Container[str]) -> set[str]:
    """Those of `blobs` that a record refers to."""
    return {name for name in map(bytes.decode, names_in(raw)) if name in blobs}


def damaged_blob(name: str) -> Problem:
    """The problem of a blob whose bytes do not have the hash that is its name."""
    return Problem("", 0, f"blob {name} is damaged: its bytes do not have the SHA-256 that is its name")


def whole_blob(name: str, data: bytes | None, place: object) -> bytes:
    """`data`, what the store at `place` has under that name. Raises BlobMissing, CorruptRecord."""
    if data is None:
        raise BlobMissing(f"there is no blob {name!r} in {place}")
    if not fits(name, data):
        raise CorruptRecord(f"blob {name} in {place} is damaged; restore the store from a copy")
    return bytes(data)


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

        What is there already is made as young as what is new. Not to be done during a `remove`. Raises StoreError.
        """
        with refusals(self._path, missing=True):
            if self.get(name) == data:
                os.utime(self._path / name)
            else:
                self._path.mkdir(mode=0o700, exist_ok=True)
                write_whole(self._path / name, data)

    def get(self, name: str) -> bytes | None:
        """The bytes under `name`, unchecked; None if there are none. Raises StoreError."""
        try:
            with refusals(self._path):
                return (self._path / name).read_bytes()
        except FileNotFoundError:
            return None

    def names(self) -> Iterator[str]:
        """Every blob's name, sorted. What a killed writer left half done is none."""
        yield from filter(is_blob_name, self._listed())

    def puts(self) -> dict[str, Put]:
        """When each blob was last put, in seconds since 1970, and its size in bytes."""
        found = {}
        for name in self.names():
            with suppress(FileNotFoundError):
                held = (self._path / name).stat()
                found[name] = Put(held.st_mtime, held.st_size)
        return found

    def remove(self, names: Iterable[str]) -> None:
        """Remove those of `names` that are there, and what killed writers left half done. Not to be done during a
        `put`."""
        with refusals(self._path):
            for name in (*names, *filter(_HALF_DONE.match, self._listed())):
                (self._path / name).unlink(missing_ok=True)

    def _listed(self) -> list[str]:
        return sorted(os.listdir(self._path)) if self._path.is_dir() else []
