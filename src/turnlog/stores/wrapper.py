"""`StoreWrapper`: a store in front of another one, which changes some of what passes through."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ..log.bills import Bills
from ..log.records import Record
from ..log.store import SWEEP_GRACE_SECONDS, Draft, Held, Hit, Inventory, Packed, Problem, SessionInfo, Store, Swept
from .base import BaseStore
from .search import Search


class StoreWrapper(BaseStore):
    """Passes every call on to `store`, and asks it for whatever else it offers, such as a path."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def encrypted(self) -> bool:
        return self.store.encrypted

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        return self.store.append(session_id, drafts, expected=expected)

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        return self.store.read(session_id, first=first, last=last, reverse=reverse)

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        return self.store.of_kinds(session_id, kinds, first=first, reverse=reverse)

    def usage(self, session_id: str) -> Bills:
        return self.store.usage(session_id)

    def usages(self) -> dict[str, Bills]:
        return self.store.usages()

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        return self.store.create(session_id, title=title, created=created, parent=parent)

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        return self.store.fork(session_id, new_id, at=at, title=title)

    def info(self, session_id: str) -> SessionInfo:
        return self.store.info(session_id)

    def sessions(self, *, limit: int | None = None) -> list[SessionInfo]:
        return self.store.sessions(limit=limit)

    def rename(self, session_id: str, title: str) -> None:
        self.store.rename(session_id, title)

    def delete(self, session_id: str, *, expected: int | None = None) -> None:
        self.store.delete(session_id, expected=expected)

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        return self.store.put_blob(data, name=name)

    def get_blob(self, sha256: str) -> bytes:
        return self.store.get_blob(sha256)

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        return self.store.sweep(grace=grace)

    def hold(self, session_id: str, *, alone: bool = False) -> Held | None:
        return self.store.hold(session_id, alone=alone)

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        self.store.keep(session_id, kept=kept)

    def inventory(self) -> Inventory:
        return self.store.inventory()

    def used(self) -> int:
        return self.store.used()

    def reclaim(self) -> None:
        self.store.reclaim()

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        return self.store.pack(session_id, instead=instead, was=was)

    def unpacked(self) -> frozenset[str]:
        return self.store.unpacked()

    def _search(self, search: Search) -> list[Hit]:
        return self.store.search(search.query, **search.conditions)

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        self.store.rewrite(session_id, records, blobs=blobs, was=was)

    def verify(self, session_id: str | None = None) -> list[Problem]:
        return self.store.verify(session_id)

    def close(self) -> None:
        self.store.close()

    def __getattr__(self, name: str) -> Any:
        if name == "store":  # not there yet: being copied or unpickled
            raise AttributeError(name)
        return getattr(self.store, name)
