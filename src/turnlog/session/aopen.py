"""Opening a session without blocking an event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, ParamSpec

from ..errors import SessionBusy
from ..stores.leases import WAIT
from .locks import wait_given
from .open import open
from .session import Session
from .threads import in_thread

_P = ParamSpec("_P")

_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 0.1
"""Seconds between two attempts to open a session that somebody else has."""


class _Opening:
    """A session that is opened in a thread, and closed there if the task that waits for it is cancelled."""

    def __init__(self, call: Callable[[], Session]) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._session: Session | None = None
        self._unwanted = False

    def run(self) -> Session:
        """Open the session."""
        session = self._call()
        with self._lock:
            self._session = session
            unwanted = self._unwanted
        if unwanted:
            session.close()
        return session

    def give_up(self) -> None:
        """Nobody wants the session any more."""
        with self._lock:
            self._unwanted, opened = True, self._session
        if opened is not None:
            opened.close()


def _in_turns(opens: Callable[_P, Session]) -> Callable[_P, Coroutine[Any, Any, Session]]:
    """`opens`, awaited: it is tried without waiting, again and again, so that no thread waits for another owner."""

    @wraps(opens)
    async def opened(*given: _P.args, **named: _P.kwargs) -> Session:
        wait = wait_given(named.get("wait", WAIT))
        at_once: Any = opens
        call = partial(at_once, *given, **{**named, "wait": 0})
        end, pause = time.monotonic() + wait, _FIRST_PAUSE
        while True:
            opening = _Opening(call)
            try:
                session = await in_thread(opening.run)
            except asyncio.CancelledError:
                opening.give_up()
                raise
            except SessionBusy:
                if time.monotonic() >= end:
                    raise
            else:
                session._wait = session._turn.wait = wait
                return session
            await asyncio.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE)

    return opened


aopen = _in_turns(open)
aopen.__doc__ = """As `turnlog.open`, for `await`: reading from disk and waiting for another owner do not stop the event
loop. A session that comes when the task was cancelled is closed again."""
