"""Summarizers that are asynchronous: awaited in the event loop of whoever waits, or in one of their own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from .._platform.stdlib import asyncio, inspect

if TYPE_CHECKING:
    from concurrent.futures import Future


class Waiting:
    """A task that waits for what is called, in another thread, from here. In its event loop the clients of SDKs work,
    which summarizers use."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.called: list[Awaited] = []

    def cancel(self) -> None:
        """Stop what is awaited for the task: it is cancelled."""
        for awaited in self.called:
            awaited.cancel()


waiting: ContextVar[Waiting | None] = ContextVar("waiting", default=None)
"""The task that waits; None if a thread does."""


class Awaited:
    """The result of a call that may be asynchronous; made in the thread that is to wait for it."""

    def __init__(self) -> None:
        task = waiting.get()
        self._loop = None if task is None else task.loop
        self._future: Future[Any] | None = None
        self._cancelled = False
        if task is not None:
            task.called.append(self)

    def result(self, call: Callable[[], Any]) -> Any:
        """What `call` returns, awaited if it has to be."""
        returned = call()
        if not inspect.isawaitable(returned):
            return returned
        if self._loop is None or not self._loop.is_running():
            return asyncio.run(_awaited(returned))
        self._future = asyncio.run_coroutine_threadsafe(_awaited(returned), self._loop)
        if self._cancelled:
            self._future.cancel()
        return self._future.result()

    def cancel(self) -> None:
        """Stop what is awaited: nobody waits for it any more. A call that is not asynchronous goes on."""
        self._cancelled = True
        if self._future is not None:
            self._future.cancel()


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found
