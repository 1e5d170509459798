"""Stores: where logs live. `open_store` takes a path or a URL and returns one."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import InputError
from ..log import Store
from .database import Durability
from .memory import MemoryStore
from .sqlite import SqliteStore

__all__ = ["Durability", "MemoryStore", "SqliteStore", "default_path", "open_store"]

_SQLITE_URL = "sqlite:///"


def open_store(path_or_url: str | Path, *, durability: Durability = "normal", read_only: bool = False) -> Store:
    """The store at a path (one SQLite file), at `sqlite:///path`, or `:memory:` for none on disk.

    Unless `read_only`, a file and folders that are not there are made, and an older store is
    brought to this version. Raises InputError, NewerStore, StoreError.
    """
    place = str(path_or_url)
    if place == ":memory:":
        return MemoryStore()
    if place.startswith(_SQLITE_URL):
        place = place.removeprefix(_SQLITE_URL)
    elif "://" in place:
        raise InputError(f"no store of this kind is known: {place!r}; name a file, or {_SQLITE_URL}FILE")
    if not place:
        raise InputError("the store has no name; name a file")
    return SqliteStore(place, durability=durability, read_only=read_only)


def default_path() -> Path:
    """Where the user's own store is: `turnlog/turnlog.db` in the data folder of the system's custom
    (`XDG_DATA_HOME`, `~/.local/share`, `LOCALAPPDATA` on Windows)."""
    home = os.environ.get("XDG_DATA_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(home) if home else Path.home() / ".local" / "share") / "turnlog" / "turnlog.db"
