"""Connections to the server: how many there may be, and how long one may wait without asking for anything.

Any program of this machine can connect, without the key. None may keep the user from the pages, or fill the terminal.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .._platform.stdlib import LOG

PATIENCE = 10.0
"""Seconds in which a connection sends the whole head of a request."""


def _most() -> int:
    """So many connections there are at most; files need handles too."""
    try:
        from resource import RLIMIT_NOFILE, getrlimit
    except ImportError:  # Windows
        return 100
    handles = getrlimit(RLIMIT_NOFILE)[0]
    return min(100, handles // 4) if handles > 0 else 100


class Connection(H11Protocol):
    """A connection that waits for a request only for a while, and makes room for a new one."""

    until: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request. If there are too many, the one that has waited longest is closed."""
        super().connection_made(transport)
        self._look()
        if len(self.connections) > _most():
            waiting = (one for one in self.connections if isinstance(one, Connection) and one.until is not None)
            min(waiting, key=lambda one: one.until.when() if one.until else 0.0).close()

    def data_received(self, data: bytes) -> None:
        """Take what was sent; a part of a request gives no more time."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._look()

    def close(self) -> None:
        """End it at once."""
        self.connections.discard(self)
        self.transport.abort()

    def _look(self) -> None:
        """Whether it waits, or is answered."""
        is_answered = self.cycle is not None and not self.cycle.response_complete
        if is_answered and self.until is not None:
            self.until.cancel()
            self.until = None
        elif not is_answered and self.until is None:
            self.until = self.loop.call_later(PATIENCE, self.close)


def tell_once(loop: asyncio.AbstractEventLoop) -> None:
    """Say only once that the system lets no connection in, instead of a traceback for each try."""
    told = list[object]()

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not context["message"].startswith("socket.accept()"):
            loop.default_exception_handler(context)
        elif not told:
            told.append(context)
            LOG.warning("turnlog serve: no more connections can be taken: %s", context.get("exception"))

    loop.set_exception_handler(handle)
