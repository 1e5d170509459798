"""Blobs: large media, named by the hex SHA-256 of their bytes, and a folder with a file for each."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from .._platform.given import text_given
from .._platform.lazy import lazy_pattern
from ..errors import BlobMissing
from ..log.messages import sha256_hex
from ..log.store import Problem, Swept
from .folders import refusals, write_whole

# -- blob gc ---------------------------------------------------------------------------------------
#
# Finds blobs that no record refers to any more.
#
# References are found in the bytes of a record, whatever its kind: a record of a newer version keeps its blobs too. A
# blob that was put recently stays, because the record that needs it may be appended next, perhaps by another process.


def unused(blobs: Mapping[str, Put], records: Iterable[bytes], grace: float) -> tuple[set[str], Swept]:
    """The names of the blobs that may be removed, being old enough and named by none of `records`; and the result to
    report. `records` must be all records of the store."""
    free = {name.encode() for name in blobs}
    if free:
        for raw in records:
            free.difference_update(names_in(raw))
            if not free:
                break
    until = time.time() - grace
    names = {name for name in map(bytes.decode, free) if blobs[name].at <= until}
    return names, Swept(len(names), sum(blobs[name].size for name in names), len(free) - len(names))


_NAME = lazy_pattern(r"[0-9a-f]{64}")


def is_blob_name(name: str) -> bool:
    """Whether `name` is a hex SHA-256. Any other name could be a path that leads out of the folder."""
    return _NAME.fullmatch(text_given("sha256", name)) is not None


_ANYWHERE = lazy_pattern(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

_HALF_DONE = lazy_pattern(r"tmp-|[0-9a-f]{64}\.[0-9]+\.tmp$")
"""The names of files while they are being written; older versions used `tmp-`."""

SEALED_HEAD = b"turnlog-sealed-1\n"
"""The beginning of a blob of an encrypted store. After it come the blob's name and the SHA-256 of the rest, 32 bytes
each."""


def fits(name: str, data: bytes) -> bool:
    """Whether `data` is intact: `name` is its hash or, for a sealed blob, the name in its head, and the hash there is
    right."""
    if data.startswith(SEALED_HEAD):
        name_at, hash_at = len(SEALED_HEAD), len(SEALED_HEAD) + 32
        if data[name_at:hash_at].hex() == name:
            return hashlib.sha256(data[hash_at + 32 :]).digest() == data[hash_at : hash_at + 32]
    return sha256_hex(data) == name


def names_in(raw: bytes) -> list[bytes]:
    """All strings in the bytes of a record that could be names of blobs, whatever the record's kind."""
    return _ANYWHERE.findall(raw)


def named(raw: bytes, blobs: Container[str]) -> set[str]:
    """The names of those `blobs` that a record refers to."""
    return {name for name in map(bytes.decode, names_in(raw)) if name in blobs}


class BlobCheck:
    """Finds the missing and damaged blobs of a store. `names` are those of all blobs; `read` returns the bytes of a
    blob, None if there are none. Each blob is read once."""

    def __init__(self, names: Iterable[str], read: Callable[[str], bytes | None]) -> None:
        self._names = frozenset(names)
        self._read = read
        self._intact: dict[str, bool] = {}

    def problems(self, session: str, n: int, needed: Iterable[str]) -> Iterator[Problem]:
        """The problems of record `n`, which needs these blobs."""
        needed = sorted(needed)
        if missing := [name for name in needed if name not in self._names]:
            what = f"it needs blobs that are not in the store: {', '.join(missing)}"
            yield Problem(session, n, what, tuple(missing))
        if damaged := [name for name in needed if name in self._names and not self._is_intact(name)]:
            what = f"it needs blobs that are damaged: {', '.join(damaged)}"
            yield Problem(session, n, what, tuple(damaged))

    def rest(self) -> Iterator[Problem]:
        """A problem for each damaged blob that no record needed so far."""
        for name in sorted(self._names - self._intact.keys()):
            if not self._is_intact(name):
                what = f"blob {name} is damaged: its bytes do not have the SHA-256 that is its name"
                yield Problem("", 0, what, (name,))

    def _is_intact(self, name: str) -> bool:
        if name not in self._intact:
            data = self._read(name)
            self._intact[name] = data is not None and fits(name, data)
        return self._intact[name]


def whole_blob(name: str, data: bytes | None, place: object) -> bytes:
    """`data`, the bytes of the blob `name` in the store at `place`, if they are intact. Raises BlobMissing."""
    if data is None:
        raise BlobMissing(f"there is no blob {name!r} in {place}")
    if not fits(name, data):
        raise BlobMissing(f"blob {name} in {place} is damaged; restore it from a copy, or give its content again")
    return bytes(data)


class Put(NamedTuple):
    """When a blob was last put, in seconds since 1970, and its size in bytes."""

    at: float
    size: int


class BlobFolder:
    """A folder of blobs, created for the first blob."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def put(self, name: str, data: bytes) -> None:
        """Keep `data` under `name`: whole and on disk, or not at all. Replaces a damaged file.

        A blob that exists already becomes as young as a new one. Must not run at the same time as `remove`. Raises
        StoreError.
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
        """The names of all blobs, sorted. Files left unfinished by killed writers are skipped."""
        yield from filter(is_blob_name, self._listed())

    def puts(self) -> dict[str, Put]:
        """When each blob was last put, in seconds since 1970, and its size in bytes."""
        puts = {}
        for name in self.names():
            with suppress(FileNotFoundError):
                held = (self._path / name).stat()
                puts[name] = Put(held.st_mtime, held.st_size)
        return puts

    def remove(self, names: Iterable[str]) -> None:
        """Remove the blobs with these names, if they exist, and files left unfinished by killed writers. Must not run
        at the same time as `put`."""
        with refusals(self._path):
            for name in (*names, *filter(_HALF_DONE.match, self._listed())):
                (self._path / name).unlink(missing_ok=True)

    def _listed(self) -> list[str]:
        return sorted(os.listdir(self._path)) if self._path.is_dir() else []
