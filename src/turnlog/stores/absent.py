"""A store that does not exist, open for reading: it has no sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import SessionNotFound, StoreError, no_store
from .base import BaseStore, Log
from .blobs import Put


class AbsentStore(BaseStore):
    """What `open_store(place, read_only=True)` returns if there is no store at `place`. `is_there` says whether
    somebody has made it since: then this object, which would go on saying that there is nothing, raises StoreError."""

    def __init__(self, place: str, is_there: Callable[[], bool]) -> None:
        super().__init__()
        self._place = place
        self._is_there = is_there

    def _logs(self) -> tuple[Log, ...]:
        if self._is_there():
            raise StoreError(f"the store {self._place} was made after it was opened for reading here: open it again")
        return ()

    def _find(self, session_id: str) -> Log:
        self._logs()
        raise SessionNotFound(str(no_store(self._place)))

    def _blob(self, name: str) -> bytes | None:
        self._logs()
        return None

    def _blobs(self) -> Mapping[str, Put]:
        self._logs()
        return {}

    def _rows(self, key: int, first: int, last: int) -> Sequence[bytes]:
        return ()

    def _save(self, log: Log, rows: Mapping[int, bytes]) -> None:
        raise self._refusal()

    def _cut(self, key: int, after: int) -> None:
        raise self._refusal()

    def _save_blob(self, name: str, data: bytes) -> None:
        raise self._refusal()

    def _remove_blobs(self, names: Iterable[str]) -> None:
        raise self._refusal()

    def _refusal(self) -> StoreError:
        return StoreError(f"the store {self._place} is open for reading only, and does not exist")

    def close(self) -> None:
        """Nothing is open."""
