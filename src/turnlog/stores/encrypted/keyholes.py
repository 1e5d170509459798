"""Where stores on a disk keep their locks: a row of its own table, a field of the folder's marker."""

from __future__ import annotations

import json

from ...errors import StoreError, StoreKeyError
from ..jsonl.files import LogFolder, marked, write_marker
from ..sqlite.database import Database
from ..sqlite.schema import LOCK_VERSION, version_of


class SqliteKeyhole:
    """The lock of an SQLite store. `sealed`: it is opened by who has the key."""

    def __init__(self, database: Database, *, sealed: bool) -> None:
        self._database = database
        self._sealed = sealed

    def check(self) -> None:
        """Raises StoreKeyError if the store is encrypted and was opened without its key."""
        if not self._sealed:
            _check(self.read(), self._database.path)

    def read(self) -> bytes | None:
        """See `Keyhole.read`."""
        with self._database.reading() as db:
            if version_of(db) < LOCK_VERSION:
                return None
            found = db.execute("select lock from locks").fetchone()
        return None if found is None else str(found[0]).encode()

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        """See `Keyhole.write`."""
        with self._database.writing() as db:
            found = db.execute("select lock from locks").fetchone()
            if (None if found is None else str(found[0]).encode()) != was:
                return False
            if was is None and any(db.execute(f"select 1 from {table}").fetchone() for table in ("sessions", "blobs")):
                raise _not_empty(self._database.path)
            db.execute("pragma secure_delete = on")
            db.execute("insert or replace into locks (no, lock) values (1, ?)", (lock.decode(),))
        self._database.fold_log()
        return True


class FilesKeyhole:
    """The lock of a store of files. `sealed`: it is opened by who has the key."""

    def __init__(self, folder: LogFolder, *, read_only: bool, sealed: bool) -> None:
        self._sealed = sealed
        self._folder = folder
        self._read_only = read_only

    def check(self) -> None:
        """Raises StoreKeyError if the store is encrypted and was opened without its key."""
        if not self._sealed:
            _check(self.read(), self._folder.path)

    def read(self) -> bytes | None:
        """See `Keyhole.read`."""
        lock = marked(self._folder).get("lock")
        return None if lock is None else json.dumps(lock, separators=(",", ":")).encode()

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        """See `Keyhole.write`."""
        if self._read_only:
            raise StoreError(f"the store {self._folder.path} is open for reading only")
        with self._folder.store_lock():
            if self.read() != was:
                return False
            if was is None and (self._folder.stems() or (self._folder.path / "blobs").exists()):
                raise _not_empty(self._folder.path)
            write_marker(self._folder, lock=json.loads(lock))
        return True


def _check(lock: bytes | None, place: object) -> None:
    """Raises StoreKeyError if there is a lock: without the key, nothing in the store means anything."""
    if lock is not None:
        raise StoreKeyError(
            f"{place} is encrypted: open it with open_store(path, key=...), on the command line with --key WHERE or "
            "TURNLOG_KEY; nothing was read"
        )


def _not_empty(place: object) -> StoreKeyError:
    return StoreKeyError(
        f"{place} holds sessions or files that are not encrypted: open it without a key, or copy it into a new, "
        "encrypted store with `turnlog copy`"
    )
