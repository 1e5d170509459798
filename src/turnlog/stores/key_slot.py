"""The lock of an encrypted store on disk: the store's data key, encrypted with the user's key."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..errors import StoreKeyError


class KeySlot(ABC):
    """The place of the lock of the store at `place`. `opened_by_key`: the store was opened with a key."""

    def __init__(self, place: object, *, opened_by_key: bool) -> None:
        self._place = place
        self._opened_by_key = opened_by_key

    @abstractmethod
    def read(self) -> bytes | None:
        """The lock; None if the store is not encrypted."""

    @abstractmethod
    def write(self, lock: bytes, *, was: bytes | None) -> bool:
        """Replace the lock `was` by `lock`; False if the store has another lock by now. The first lock (`was` is None)
        requires an empty store: raises StoreKeyError otherwise."""

    def check(self) -> None:
        """Raises StoreKeyError if the store is encrypted and was opened without a key, because then nothing in it can
        be read."""
        if not self._opened_by_key and self.read() is not None:
            raise StoreKeyError(
                f"{self._place} is encrypted: open it with open_store(path, key=...), on the command line with --key "
                "WHERE or TURNLOG_KEY; nothing was read"
            )

    def _not_empty(self) -> StoreKeyError:
        return StoreKeyError(
            f"{self._place} contains sessions or files that are not encrypted: open it without a key, or copy it into "
            "a new, encrypted store with `turnlog copy`"
        )
