"""The lock of an encrypted JSONL store, in a field of the folder's marker."""

from __future__ import annotations

import json

from ...errors import StoreError
from ..key_slot import KeySlot
from .files import LogFolder, marked, write_marker


class FilesKeySlot(KeySlot):
    """The lock of a JSONL store."""

    def __init__(self, folder: LogFolder, *, read_only: bool, opened_by_key: bool) -> None:
        super().__init__(folder.path, opened_by_key=opened_by_key)
        self._folder = folder
        self._read_only = read_only

    def read(self) -> bytes | None:
        lock = marked(self._folder).get("lock")
        return None if lock is None else json.dumps(lock, separators=(",", ":")).encode()

    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        if self._read_only:
            raise StoreError(f"the store {self._folder.path} is open for reading only")
        with self._folder.store_lock():
            if self.read() != was:
                return False
            if was is None and (self._folder.stems() or (self._folder.path / "blobs").exists()):
                raise self._not_empty()
            write_marker(self._folder, lock=json.loads(lock))
        return True
