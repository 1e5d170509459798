"""What a session has while it is open: the hold, which keeps `gc` away, and the lease, which keeps writers away."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from ..errors import InputError
from ..log.store import Held, Leased, Store


class Locks:
    """The hold and the lease of the session that is being opened; `opened` releases them if the rest fails."""

    def __init__(self, store: Store, opened: ExitStack, *, shared: bool, wait: float) -> None:
        self._store = store
        self._shared = shared
        self._wait = wait
        self.hold: Held | None = None
        self.lease: Leased | None = None
        opened.callback(self.release)

    def take(self, session_id: str, *, wait: float | None = None) -> None:
        """Take both, before the session is looked for: `gc` must not come between. Raises SessionBusy."""
        self.hold = self._store.hold(session_id)
        self.lease = self._store.lease(session_id, shared=self._shared, wait=self._wait if wait is None else wait)

    def release(self) -> None:
        """Release what was taken."""
        for one in (self.lease, self.hold):
            if one is not None:
                one.close()


def wait_given(wait: Any) -> float:
    """`wait`, if it is a number of seconds. Raises InputError."""
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
        raise InputError(f"wait must be a number of seconds, 0 or more, not {wait!r}")
    return float(wait)
