"""Finds the files that belong to a store, and whether the store is wholly inside a folder, even with links in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_DEPTH = 2
"""How many levels of folders a store of files has: its folders, and the files in them."""


_BESIDE = ("-wal", "-shm", "-journal", "-lock", "-blobs", "-open")
"""The endings of names of files and folders beside a store's file, which SQLite and turnlog create."""


def is_part_of(store: Path, path: Path) -> bool:
    """Whether a file at `path` belongs to the store: its file, a file inside its folder, or one beside it."""
    with suppress(OSError):
        if os.path.samefile(store, path):  # may be spelled differently, if the file system ignores case
            return True
    entry = _entry(path)
    places = {_entry(store), Path(os.path.realpath(store))}
    store_paths = (
        store_path
        for place in places
        for store_path in (place, *(place.with_name(place.name + end) for end in _BESIDE))
    )
    return any(entry.is_relative_to(store_path) for store_path in store_paths)


def _entry(path: Path) -> Path:
    """The path with the links in its folders resolved. The last component is left, as it may itself be a link."""
    return Path(os.path.realpath(path.absolute().parent)) / path.name


def leads_out(store: Path, folder: Path) -> Path | None:
    """The first part of a store that is a link to a place outside `folder`; None if there is none. Parts are the file
    or folder itself, anything inside it, and the files beside it whose names begin with its name (`NAME-blobs`,
    `NAME-open`, SQLite's own). Raises OSError for a folder that cannot be listed."""
    top = Path(os.path.realpath(folder))
    real = Path(os.path.realpath(store))
    # If the store is itself a link, it has files beside the link, and files beside the target of the link.
    for place in dict.fromkeys((store, real)):
        for path in (place, *_beside(place)):
            if link := _first(path, top, _DEPTH):
                return link
    return None


def _beside(store: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError, NotADirectoryError):  # there is no store yet
        for name in sorted(os.listdir(store.parent)):
            if name.startswith(f"{store.name}-"):
                yield store.parent / name


def _first(path: Path, top: Path, depth: int) -> Path | None:
    """The first path, from `path` down, that lies outside `top`; None if there is none."""
    if not Path(os.path.realpath(path)).is_relative_to(top):
        return path
    if not depth:
        return None
    with suppress(NotADirectoryError, FileNotFoundError), os.scandir(path) as entries:
        for entry in entries:  # there may be many plain files, which need no check
            if entry.is_symlink() or entry.is_dir():
                if outside_path := _first(Path(entry.path), top, depth - 1):
                    return outside_path
    return None
