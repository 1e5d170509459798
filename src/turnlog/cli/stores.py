"""Which store a command works on."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

from ..configuration import load_settings
from ..log import Store
from ..settings import Settings
from ..stores import default_path, local_path, open_store

__all__ = ["VARIABLE", "is_missing", "is_writable", "opened", "place", "settings_of"]

VARIABLE = "TURNLOG_STORE"
"""Environment variable that names the store where `--store` does not."""


def settings_of(arguments: Namespace) -> Settings:
    """The settings in force for a command."""
    return load_settings(store=arguments.store or None)


def place(arguments: Namespace) -> str:
    """Path or URL of the store: `--store`, else what the settings say (TURNLOG_STORE first), else the user's own."""
    return settings_of(arguments).store or str(default_path())


def is_missing(arguments: Namespace) -> bool:
    """Whether the store is a file or a folder that is not there (yet)."""
    path = local_path(place(arguments))
    return path is not None and not path.exists()


def is_writable(arguments: Namespace) -> bool:
    """Whether the store can be opened for writing, as far as can be told from outside."""
    path = local_path(place(arguments))
    return path is None or (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


@contextmanager
def opened(arguments: Namespace, *, write: bool = False) -> Iterator[Store]:
    """The store, for the length of a command. Without `write` nothing is created or changed."""
    settings = settings_of(arguments)
    store = open_store(place(arguments), durability=settings.durability, read_only=not write)
    try:
        yield store
    finally:
        store.close()
