"""Stores, which keep logs: SQLite, JSON lines, PostgreSQL, memory, and an encrypting store in front of any of them.

`open_store` takes a path and returns a store. Only `redaction` and the packages above it import this one. A new store
is a subclass of `BaseStore` that passes `turnlog.testing.check_store`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .base import BaseStore, Log
    from .blobs import Put
    from .copying import copy_store
    from .encrypted.keys import Passphrase, new_key
    from .encrypted.store import SealedStore
    from .jsonl.store import FilesStore
    from .memory import MemoryStore
    from .places import default_path, open_store, rekey_store
    from .postgres.store import PostgresStore
    from .retention import Collected, Limits
    from .salvaging import Salvaged, salvage
    from .sqlite.store import SqliteStore
    from .wrapper import PastDamage
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "base": "BaseStore Log",
            "blobs": "Put",
            "copying": "copy_store",
            "encrypted.keys": "new_key Passphrase",
            "encrypted.store": "SealedStore",
            "jsonl.store": "FilesStore",
            "memory": "MemoryStore",
            "places": "default_path open_store rekey_store",
            "postgres.store": "PostgresStore",
            "retention": "Collected Limits",
            "salvaging": "salvage Salvaged",
            "sqlite.store": "SqliteStore",
            "wrapper": "PastDamage",
        },
    )

__all__ = [
    "BaseStore",
    "Collected",
    "FilesStore",
    "Limits",
    "Log",
    "MemoryStore",
    "Passphrase",
    "PastDamage",
    "PostgresStore",
    "Put",
    "Salvaged",
    "SealedStore",
    "SqliteStore",
    "copy_store",
    "default_path",
    "new_key",
    "open_store",
    "rekey_store",
    "salvage",
]
