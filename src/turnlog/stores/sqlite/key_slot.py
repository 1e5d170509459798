"""The lock of an encrypted SQLite store, in a row of its own table."""

from __future__ import annotations

import sqlite3

from ..key_slot import KeySlot
from .database import Database
from .schema import LOCK_VERSION, version_of


class SqliteKeySlot(KeySlot):
    """The lock of an SQLite store."""

    def __init__(self, database: Database, *, opened_by_key: bool) -> None:
        super().__init__(database.path, opened_by_key=opened_by_key)
        self._database = database

    def read(self) -> bytes | None:
        with self._database.reading() as db:
            return None if version_of(db) < LOCK_VERSION else _lock_in(db)

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        with self._database.writing() as db:
            if _lock_in(db) != was:
                return False
            if was is None and any(db.execute(f"select 1 from {table}").fetchone() for table in ("sessions", "blobs")):
                raise self._not_empty()
            db.execute("pragma secure_delete = on")
            db.execute("insert or replace into locks (no, lock) values (1, ?)", (lock.decode(),))
        self._database.fold_log()
        return True


def _lock_in(db: sqlite3.Connection) -> bytes | None:
    found = db.execute("select lock from locks").fetchone()
    return None if found is None else str(found[0]).encode()
