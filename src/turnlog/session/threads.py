"""Blocking calls in threads, and closing of streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

from .._platform.stdlib import asyncio, futures
from ..summarize.awaiting import Waiting, waiting

_T = TypeVar("_T")


_THREADS = {"turnlog-records": 4, "turnlog-waits": min(32, (os.cpu_count() or 1) + 4)}
"""The number of threads that record for event loops, and of those in which requests may wait for a summary. Asyncio's
own are not used: the whole program shares them, and may need them all."""


@cache
def _pool(name: str) -> futures.ThreadPoolExecutor:
    return futures.ThreadPoolExecutor(_THREADS[name], thread_name_prefix=name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has no threads but its own


async def in_thread(call: Callable[[], _T]) -> _T:
    """The result of `call`, called in a thread. An asynchronous summarizer that it needs is awaited here, and cancelled
    with the task."""
    task = Waiting(asyncio.get_running_loop())
    before = waiting.set(task)
    try:
        return await asyncio.get_running_loop().run_in_executor(_pool("turnlog-waits"), copy_context().run, call)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        waiting.reset(before)


async def recorded(call: Callable[[], _T]) -> _T:
    """The result of `call`, a function that records, called in a thread. It always runs to its end: if the task is
    cancelled meanwhile, the cancellation takes effect after the call."""
    try:
        future = asyncio.get_running_loop().run_in_executor(_pool("turnlog-records"), copy_context().run, call)
    except RuntimeError:  # the interpreter is ending, and gives no threads any more
        return call()
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait((future,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from future.exception()
    return future.result()


async def closed(stream: Any) -> None:
    """Close a stream of chunks that nobody reads on: an async generator, or an SDK's object."""
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    if close is not None:
        with suppress(Exception):  # the connection may be gone; what had come is on record
            pending = close()
            if hasattr(pending, "__await__"):
                await pending
