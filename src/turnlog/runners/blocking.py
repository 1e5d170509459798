"""Runners for programs without an event loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Any, Self, TypeVar

from ..errors import InputError
from ..requests.request import Request
from .protocol import Runner, RunnerEvent, events

_T = TypeVar("_T")
_END = object()


class LoopThread:
    """An event loop in its own thread, started when it is first needed. Callers wait for the coroutines that it runs,
    even where another event loop is running. Ctrl-C cancels them."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0  # a fork has the loop, and not its thread
        self._lock = threading.Lock()

    def iterate(self, stream: AsyncIterator[_T]) -> Iterator[_T]:
        """The items of the stream."""
        try:
            while (item := self.wait(_next(stream))) is not _END:
                yield item
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                self.wait(close())

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run `work` in the loop and return its result. Ctrl-C cancels `work` and waits for its end. Raises InputError
        when called in the loop, which would wait for itself."""
        loop = self._running()
        if self._thread is threading.current_thread():
            work.close()
            raise InputError("this waits for the event loop that it is called in: use the asynchronous form with await")
        done: Future[Any] = Future()
        tasks: list[asyncio.Task[None]] = []

        def settle() -> None:
            if not done.done():  # Ctrl-C came before it began
                work.close()
                done.set_result(None)

        def begin() -> None:
            tasks.append(loop.create_task(_settle(work, done)))
            tasks[0].add_done_callback(lambda _: settle())

        def cancel() -> None:
            if tasks:
                tasks[0].cancel()
            else:
                settle()

        try:  # from here on, Ctrl-C may come at any place
            loop.call_soon_threadsafe(begin)
            return done.result()
        except BaseException:
            if not done.done():
                loop.call_soon_threadsafe(cancel)
                wait([done])
            raise

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        """Run `work` in the loop, and wait for nothing. Cancelling the future cancels `work`."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def close(self, last: Coroutine[Any, Any, Any]) -> None:
        """Run `last` in the loop and end the thread, if the thread runs."""
        if self._loop is None:
            last.close()
            return
        self.wait(last)
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _running(self) -> asyncio.AbstractEventLoop:
        """The loop, started if it is not running."""
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name=self._name, daemon=True)
                self._thread.start()
            return self._loop


class BlockingRunner:
    """A runner whose streams are iterated with `for`; a context manager. The runner works in an event loop of its own,
    in a thread, so this also works where another event loop is running. Ctrl-C ends the request."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._thread = LoopThread("turnlog-runner")

    def stream(self, request: Request) -> Iterator[Any]:
        """As `Runner.stream`: for `Session.receive`."""
        return self._thread.iterate(self._runner.stream(request))

    def events(self, request: Request) -> Iterator[RunnerEvent]:
        """As `turnlog.runners.events`."""
        return self._thread.iterate(events(self._runner, request))

    def close(self) -> None:
        """Close the runner and end the thread."""
        self._thread.close(self._runner.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


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
