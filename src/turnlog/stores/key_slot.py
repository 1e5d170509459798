"""Where a store on a disk keeps its lock, the data key of an encrypted store wrapped in the user's key."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..errors import StoreKeyError


class KeySlot(ABC):
    """The lock of a store at `place`. `opened_by_key`: whoever opened the store has its key."""

    def __init__(self, place: object, *, opened_by_key: bool) -> None:
        self._place = place
        self._opened_by_key = opened_by_key

    @abstractmethod
    def read(self) -> bytes | None:
        """The lock; None if the store is not encrypted."""

    @abstractmethod
    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        """Put in a lock in place of the one that was there; False if that is another one. The first lock goes into
        an empty store only: raises StoreKeyError."""

    def check(self) -> None:
        """Raises StoreKeyError if the store is encrypted and was opened without its key: then nothing in it means
        anything."""
        if not self._opened_by_key and self.read() is not None:
            raise StoreKeyError(
                f"{self._place} is encrypted: open it with open_store(path, key=...), on the command line with --key "
                "WHERE or TURNLOG_KEY; nothing was read"
            )

    def _not_empty(self) -> StoreKeyError:
        return StoreKeyError(
            f"{self._place} holds sessions or files that are not encrypted: open it without a key, or copy it into a "
            "new, encrypted store with `turnlog copy`"
        )
