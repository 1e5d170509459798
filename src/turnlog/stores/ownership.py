"""Which files are a store's own, and whether it lies wholly in a folder, whatever links are in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_DEPTH = 2
"""How deep a store of files goes: its folders, and the files in these."""

_BESIDE = ("-wal", "-shm", "-journal", "-lock", "-blobs", "-open")
"""How files and folders beside a store's file end: SQLite's own, and ours."""


def is_part_of(store: Path, path: Path) -> bool:
    """Whether a file at `path` is one of the store's own: its file, one inside its folder, or one beside it."""
    with suppress(OSError):
        if os.path.samefile(store, path):  # in another spelling, where case does not count
            return True
    entry = _entry(path)
    places = {_entry(store), Path(os.path.realpath(store))}
    own = (one for place in places for one in (place, *(place.with_name(place.name + end) for end in _BESIDE)))
    return any(entry.is_relative_to(one) for one in own)


def _entry(path: Path) -> Path:
    """The path without links in its folders: what is put there takes the place of a link."""
    return Path(os.path.realpath(path.absolute().parent)) / path.name


def leads_out(store: Path, folder: Path) -> Path | None:
    """What of a store at this path is a link to a place outside `folder`, if anything: the file or folder itself, one
    inside it, or one of those beside it that begin with its name (`NAME-blobs`, `NAME-open`, SQLite's own). Raises
    OSError for a folder that cannot be listed."""
    top = Path(os.path.realpath(folder))
    real = Path(os.path.realpath(store))
    # A store that is itself a link has files beside the link, and files beside what it is a link to.
    for place in dict.fromkeys((store, real)):
        for path in (place, *_beside(place)):
            if found := _first(path, top, _DEPTH):
                return found
    return None


def _beside(store: Path) -> Iterator[Path]:
    with suppress(FileNotFoundError, NotADirectoryError):  # there is no store yet
        for name in sorted(os.listdir(store.parent)):
            if name.startswith(f"{store.name}-"):
                yield store.parent / name


def _first(path: Path, top: Path, depth: int) -> Path | None:
    """The first place from `path` down that lies outside of `top`, if any."""
    if not Path(os.path.realpath(path)).is_relative_to(top):
        return path
    if not depth:
        return None
    with suppress(NotADirectoryError, FileNotFoundError), os.scandir(path) as entries:
        for entry in entries:  # no look at each of many plain files
            if entry.is_symlink() or entry.is_dir():
                if found := _first(Path(entry.path), top, depth - 1):
                    return found
    return None
