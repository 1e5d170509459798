"""Stores, which keep logs: SQLite, JSON lines, PostgreSQL, memory, and an encrypting store in front of any of them.

`open_store` takes a path and returns a store. Only `redaction` and the packages above it import this one. A new store
is a subclass of `BaseStore` that passes `turnlog.testing.check_store`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._platform.lazy import lazy_names

if TYPE_CHECKING:
    from .base import BaseStore, Log
    from .copying import copy_store
    from .durability import Durability
    from .encrypted.keys import ASK, KEY_PLACES, KeySource, Passphrase, is_key_place, new_key, placed_key
    from .encrypted.store import SealedStore
    from .jsonl.store import FilesStore
    from .memory import MemoryStore
    from .ownership import is_part_of, leads_out
    from .places import default_path, local_path, open_store, placed, rekey_store, store_given
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
            "copying": "copy_store",
            "durability": "Durability",
            "encrypted.keys": "ASK is_key_place KEY_PLACES KeySource new_key Passphrase placed_key",
            "encrypted.store": "SealedStore",
            "jsonl.store": "FilesStore",
            "memory": "MemoryStore",
            "ownership": "is_part_of leads_out",
            "places": "default_path local_path open_store placed rekey_store store_given",
            "postgres.store": "PostgresStore",
            "retention": "Collected Limits",
            "salvaging": "salvage Salvaged",
            "sqlite.store": "SqliteStore",
            "wrapper": "PastDamage",
        },
    )

__all__ = [
    "ASK",
    "BaseStore",
    "Collected",
    "Durability",
    "FilesStore",
    "KEY_PLACES",
    "KeySource",
    "Limits",
    "Log",
    "MemoryStore",
    "Passphrase",
    "PastDamage",
    "PostgresStore",
    "Salvaged",
    "SealedStore",
    "SqliteStore",
    "copy_store",
    "default_path",
    "is_key_place",
    "is_part_of",
    "leads_out",
    "local_path",
    "new_key",
    "open_store",
    "placed",
    "placed_key",
    "rekey_store",
    "salvage",
    "store_given",
]
