"""A store in memory: for tests, and for sessions that need not be kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import time

from .._platform.given import text_given
from ..errors import StoreError
from .base import BaseStore, Log
from .blobs import Put


class MemoryStore(BaseStore):
    """Logs in the memory of this process; they are lost when it ends. Threads may share the store.

    Records are kept as bytes, as on disk, so later changes by a caller do not affect them.
    """

    def __init__(self) -> None:
        super().__init__()
        self._contents: _Contents | None = _Contents()

    def _logs(self) -> Iterable[Log]:
        return tuple(self._open.logs.values())

    def _find(self, session_id: str) -> Log:
        text_given("session_id", session_id)
        log = self._open.logs.get(self._open.keys.get(session_id, 0))
        if log is None or not log.info.id == session_id != "":
            return super()._find(session_id)  # which says that it is not there
        return log

    def _save(self, log: Log, rows: Mapping[int, bytes]) -> None:
        stored_rows = self._open.rows.setdefault(log.key, [])
        for n, raw in rows.items():
            place = n - log.info.parent_records - 1
            stored_rows[place : place + 1] = [raw]
        self._open.logs[log.key] = log
        self._open.keys[log.info.id] = log.key

    def _rows(self, key: int, first: int, last: int) -> Sequence[bytes]:
        after = self._open.logs[key].info.parent_records if key in self._open.logs else 0
        return self._open.rows.get(key, [])[first - after - 1 : last - after]

    def _cut(self, key: int, after: int) -> None:
        if after:
            del self._open.rows[key][after - self._open.logs[key].info.parent_records :]
        else:
            del self._open.logs[key], self._open.rows[key]

    def _save_blob(self, name: str, data: bytes) -> None:
        self._open.blobs[name] = data
        self._open.puts[name] = Put(time(), len(data))

    def _blob(self, name: str) -> bytes | None:
        return self._open.blobs.get(name)

    def _blobs(self) -> Mapping[str, Put]:
        return dict(self._open.puts)

    def _remove_blobs(self, names: Iterable[str]) -> None:
        for name in names:
            self._open.blobs.pop(name, None)
            self._open.puts.pop(name, None)

    def close(self) -> None:
        """See `Store.close`. The content of the store is lost."""
        self._contents = None

    @property
    def _open(self) -> _Contents:
        """The content of the store. Raises StoreError if the store is closed."""
        if self._contents is None:
            raise StoreError("the store in memory is closed")
        return self._contents


class _Contents:
    def __init__(self) -> None:
        self.logs: dict[int, Log] = {}
        self.keys: dict[str, int] = {}
        self.rows: dict[int, list[bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.puts: dict[str, Put] = {}
