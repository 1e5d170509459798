"""What blocks, in a thread; and the ends of streams."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from ..summarize.awaiting import Waiting, waiting

_T = TypeVar("_T")


async def in_thread(call: Callable[[], _T]) -> _T:
    """What `call` returns, called in a thread. An asynchronous summarizer that it needs is awaited here, and cancelled
    with the task."""
    task = Waiting(asyncio.get_running_loop())
    before = waiting.set(task)
    try:
        return await asyncio.to_thread(call)
    except asyncio.CancelledError:
        task.cancel()
        raise
    finally:
        waiting.reset(before)


async def closed(stream: Any) -> None:
    """Close a stream of chunks that nobody reads on: an async generator, or an SDK's object."""
    close = getattr(stream, "aclose", None) or getattr(stream, "close", None)
    if close is not None:
        with suppress(Exception):  # the connection may be gone; what had come is on record
            found = close()
            if hasattr(found, "__await__"):
                await found
