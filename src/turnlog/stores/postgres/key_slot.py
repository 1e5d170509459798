"""The lock of an encrypted PostgreSQL store, in a row of its own table."""

from __future__ import annotations

from ..key_slot import KeySlot
from .database import Database
from .schema import Db


class PostgresKeySlot(KeySlot):
    """The lock of a PostgreSQL store."""

    def __init__(self, database: Database, *, opened_by_key: bool) -> None:
        super().__init__(database.address, opened_by_key=opened_by_key)
        self._database = database

    def read(self) -> bytes | None:
        return self._database.read(_lock_in)

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        def change(db: Db) -> bool:
            db.execute("lock table turnlog_keys, turnlog_sessions, turnlog_blobs in share row exclusive mode")
            if (now := _lock_in(db)) != was:
                return now == lock  # written by an attempt whose commit was lost
            tables = ("turnlog_sessions", "turnlog_blobs")
            if was is None and any(db.execute(f"select 1 from {table} limit 1").fetchone() for table in tables):
                raise self._not_empty()
            db.execute(
                "insert into turnlog_keys values (1, %s) on conflict (no) do update set lock = excluded.lock", (lock,)
            )
            return True

        return self._database.write(change, repeatable=True)


def _lock_in(db: Db) -> bytes | None:
    found = db.execute("select lock from turnlog_keys", binary=True).fetchone()
    return None if found is None else bytes(found[0])
