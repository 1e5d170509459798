"""What a runner answers to the next request of a session: recorded, or as events."""

from __future__ import annotations

import asyncio
from typing import Any

import turnlog
from turnlog.runners import RunnerEvent, events
from turnlog.session import Answer

__all__ = ["received", "heard"]


def received(session: turnlog.Session, runner: Any) -> Answer:
    """The next answer, recorded as it comes."""

    async def ask() -> Answer:
        request = session.request()
        return await session.areceive(runner.stream(request), request)

    return asyncio.run(ask())


def heard(session: turnlog.Session, runner: Any) -> list[RunnerEvent]:
    """The events of the next answer."""

    async def ask() -> list[RunnerEvent]:
        return [event async for event in events(runner, session.request())]

    return asyncio.run(ask())
