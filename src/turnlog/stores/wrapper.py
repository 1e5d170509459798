"""`StoreWrapper`: a store in front of another one, which changes some of what passes through."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..log.store import Store

if TYPE_CHECKING:
    from .base import BaseStore
else:
    BaseStore = object  # so that every method that a wrapper does not have is asked of the store behind it


class StoreWrapper(BaseStore):
    """Passes every call on to `store`, and asks it for whatever else it offers, such as a path."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        if name == "store":  # not there yet: being copied or unpickled
            raise AttributeError(name)
        return getattr(self.store, name)
