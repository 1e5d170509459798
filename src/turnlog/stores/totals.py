"""What all sessions of a store were billed, where no index knows it."""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from ..errors import SessionNotFound
from ..log.bills import Bills
from ..log.store import SessionInfo


class _Billed(Protocol):
    def sessions(self) -> list[SessionInfo]: ...

    def usage(self, session_id: str) -> Bills: ...


def usages_one_by_one(store: _Billed) -> dict[str, Bills]:
    """`SessionIndex.usages`, by reading one log after another. One that is deleted meanwhile was billed nothing."""
    found = {}
    for info in store.sessions():
        with suppress(SessionNotFound):
            if bills := store.usage(info.id):
                found[info.id] = bills
    return found
