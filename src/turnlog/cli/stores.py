"""Which store a command works on."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..log import Store
from ..stores import default_path, open_store

__all__ = ["VARIABLE", "is_missing", "opened", "place"]

VARIABLE = "TURNLOG_STORE"
"""Environment variable that names the store where `--store` does not."""


def place(arguments: Namespace) -> str:
    """Path or URL of the store: `--store`, else TURNLOG_STORE, else the user's own."""
    return arguments.store or os.environ.get(VARIABLE) or str(default_path())


def is_missing(arguments: Namespace) -> bool:
    """Whether the store is a file that is not there (yet)."""
    path = place(arguments)
    return "://" not in path and path != ":memory:" and not Path(path).exists()


@contextmanager
def opened(arguments: Namespace, *, write: bool = False) -> Iterator[Store]:
    """The store, for the length of a command. Without `write` nothing is created or changed."""
    store = open_store(place(arguments), read_only=not write)
    try:
        yield store
    finally:
        store.close()
