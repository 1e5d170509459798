"""An event loop in a thread of its own: what Ctrl-C does to what it waits for, wherever it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from turnlog.runners.blocking import LoopThread


class Interrupted(LoopThread):
    """Ctrl-C comes while the work is handed over, before or after that is done."""

    def __init__(self, *, before: bool) -> None:
        super().__init__("interrupted")
        self._before = before

    def _running(self) -> Any:
        return _Loop(super()._running(), before=self._before)


class _Loop:
    def __init__(self, loop: asyncio.AbstractEventLoop, *, before: bool) -> None:
        self._loop, self._before, self._calls = loop, before, 0

    def call_soon_threadsafe(self, call: Any) -> None:
        """Hand over, and be interrupted at the first time."""
        self._calls += 1
        if self._calls == 1 and self._before:
            raise KeyboardInterrupt
        self._loop.call_soon_threadsafe(call)
        if self._calls == 1:
            raise KeyboardInterrupt

    def create_task(self, work: Any) -> Any:
        """As the loop."""
        return self._loop.create_task(work)


@pytest.mark.parametrize("before", [True, False])
def test_ctrl_c_may_come_while_work_begins(before: bool) -> None:
    """The work would go on with nobody waiting for it, or be waited for without end."""
    running: list[int] = []

    async def work() -> None:
        running.append(1)
        try:
            await asyncio.sleep(60)
        finally:
            running.pop()

    with pytest.raises(KeyboardInterrupt):
        Interrupted(before=before).wait(work())
    assert running == []
