"""`StoreWrapper`: a store in front of another, which changes some of the calls and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..log.store import Store

if TYPE_CHECKING:
    from .base import BaseStore
else:
    BaseStore = object  # so that every method that a wrapper does not define is looked up in the inner store


class StoreWrapper(BaseStore):
    """Passes every call on to `store`, and also every other attribute of it, such as a path."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:
        if name == "store":  # not set yet: the wrapper is being copied or unpickled
            raise AttributeError(name)
        return getattr(self.store, name)
