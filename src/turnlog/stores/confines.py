"""Whether a store lies wholly in a folder, whatever links are in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

__all__ = ["leads_out"]

_DEPTH = 2
"""How deep a store of files goes: its folders, and the files in these."""


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
