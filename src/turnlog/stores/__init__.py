"""Stores: where logs live. `open_store` takes a path or a URL and returns one."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InputError
from ..log import Store
from .database import Durability
from .files import FilesStore
from .memory import MemoryStore
from .sqlite import SqliteStore

__all__ = ["Durability", "FilesStore", "MemoryStore", "SqliteStore", "default_path", "local_path", "open_store"]

_SQLITE_URL = "sqlite:///"
_FILES_URLS = ("files:///", "files:")


def open_store(path_or_url: str | Path, *, durability: Durability = "normal", read_only: bool = False) -> Store:
    """The store at a path (one SQLite file), at `sqlite:///path`, in a folder of JSON Lines at
    `files:folder` or `files:///folder`, or `:memory:` for none on disk.

    Unless `read_only`, a file and folders that are not there are made, and an older store is
    brought to this version. Raises InputError, NewerStore, StoreError.
    """
    place = str(path_or_url)
    if place == ":memory:":
        return MemoryStore()
    path = local_path(place)
    if path is None:
        raise InputError(f"no store of this kind is known: {place!r}; name a file, {_SQLITE_URL}FILE or files:FOLDER")
    if place.startswith(_FILES_URLS):
        return FilesStore(path, durability=durability, read_only=read_only)
    return SqliteStore(path, durability=durability, read_only=read_only)


def local_path(path_or_url: str) -> Path | None:
    """The file or folder of a store; None for `:memory:` and URLs of no kind that is known.

    Raises InputError if the name is empty.
    """
    place = path_or_url
    for url in (_SQLITE_URL, *_FILES_URLS):
        if place.startswith(url):
            place = place.removeprefix(url)
            break
    else:
        if "://" in place or place == ":memory:":
            return None
    if not place:
        raise InputError("the store has no name; name a file, or a folder after files:")
    return Path(place)


def default_path() -> Path:
    """Where the user's own store is: `turnlog/turnlog.db` in the data folder of the system's custom
    (`XDG_DATA_HOME`, `~/.local/share`, `LOCALAPPDATA` on Windows)."""
    home = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".local" / "share") / "turnlog" / "turnlog.db"
