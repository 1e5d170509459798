"""Runners for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from ..requests.request import Request
from .answer_events import RunnerEvent, events
from .protocol import Runner

_T = TypeVar("_T")
_END = object()


class BlockingRunner:
    """A runner whose streams are iterated with `for`; a context manager. The runner works in an event loop of its own,
    in a thread, so this also works where another event loop is running. Ctrl-C ends the request."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    def stream(self, request: Request) -> Iterator[Any]:
        """As `Runner.stream`: for `Session.receive`."""
        return self._iterate(self._runner.stream(request))

    def events(self, request: Request) -> Iterator[RunnerEvent]:
        """As `turnlog.runners.events`."""
        return self._iterate(events(self._runner, request))

    def close(self) -> None:
        """Close the runner and end the thread."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            self._wait(loop, self._runner.aclose())
            loop.call_soon_threadsafe(loop.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _iterate(self, stream: AsyncIterator[_T]) -> Iterator[_T]:
        loop = self._running()
        try:
            while (item := self._wait(loop, _next(stream))) is not _END:
                yield item
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                self._wait(loop, close())

    def _running(self) -> asyncio.AbstractEventLoop:
        """The loop, started if it is not running."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="turnlog-runner", daemon=True).start()
            return self._loop

    @staticmethod
    def _wait(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of `work`, done in the loop. After Ctrl-C it is cancelled, and its end is waited for."""
        done: Future[Any] = Future()
        tasks: list[asyncio.Task[None]] = []
        loop.call_soon_threadsafe(lambda: tasks.append(loop.create_task(_settle(work, done))))
        try:
            return done.result()
        except BaseException:
            if not done.done():
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                wait([done])
            raise


async def _settle(work: Coroutine[Any, Any, Any], done: Future[Any]) -> None:
    try:
        done.set_result(await work)
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
        done.set_exception(error)


async def _next(stream: AsyncIterator[Any]) -> Any:
    return await anext(stream, _END)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
