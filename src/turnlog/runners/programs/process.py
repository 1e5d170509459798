"""Run a program: its prompt in, its lines out, and nothing of it left behind.

The program gets a process group of its own, so that everything that it starts can be ended with it, and Ctrl-C in a
terminal reaches it only through its runner. Its three pipes are served at the same time: none can fill up and stop it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_CHUNK = 1 << 16
_TAIL = 8_192
"""Bytes of standard error that are kept: its end."""

_GRACE = 2.0
"""Seconds between asking a program to end and killing it."""

_FINISH = 5.0
"""Seconds that a program may take to end after its answer."""

_LINGER = 0.5
"""Seconds that pipes are read on after the program has ended: something that it started may hold them open."""

_living: set[int] = set()
"""The process groups that this process has started and not ended."""


class Child:
    """A program that was started. Use `start`, and `end` whatever happens."""

    def __init__(self, process: asyncio.subprocess.Process, prompt: str, seconds: float) -> None:
        self._process = process
        self._left = seconds
        self._errors = b""
        _living.add(process.pid)
        self._fed = asyncio.create_task(self._feed(prompt.encode("utf-8", "replace")))
        self._heard = asyncio.create_task(self._hear())
        self._exited: asyncio.Task[Any] = asyncio.create_task(self._end_of(process))

    @property
    def stderr(self) -> str:
        """The end of what it wrote to standard error."""
        return self._errors.decode("utf-8", "replace").strip()

    @property
    def code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def lines(self) -> AsyncIterator[bytes]:
        """What it prints, line by line. Raises TimeoutError when it has kept its reader waiting for all its time."""
        pending = b""
        while data := await self._read():
            *whole, pending = (pending + data).split(b"\n")
            for line in whole:
                yield line
        if pending:
            yield pending

    async def finish(self) -> None:
        """Give it some time to end by itself: it may have to write the conversation that it is to resume."""
        rest = asyncio.create_task(self._drain())
        await asyncio.wait({self._exited}, timeout=min(_FINISH, max(0.0, self._left)))
        if self._exited.done():
            await asyncio.wait({rest, self._heard}, timeout=_LINGER)
        rest.cancel()
        await asyncio.wait({rest})

    async def end(self) -> None:
        """End it and everything that it has started: at once what is left, the program itself after a pause."""
        try:
            if self._process.returncode is None:
                _signal(self._process.pid, signal.SIGTERM)
                await asyncio.wait({self._exited}, timeout=_GRACE)
        finally:
            _signal(self._process.pid, _KILL)
            _living.discard(self._process.pid)
            await asyncio.wait({self._exited})
            rest = {asyncio.create_task(self._drain()), self._heard, self._fed}
            await asyncio.wait(rest, timeout=_LINGER)
            for task in rest:
                task.cancel()
            await asyncio.wait(rest)

    async def _read(self) -> bytes:
        assert self._process.stdout is not None
        read: asyncio.Task[Any] = asyncio.create_task(self._process.stdout.read(_CHUNK))
        try:
            began = time.monotonic()
            waited = {read, self._exited}
            done, _ = await asyncio.wait(waited, timeout=max(0.0, self._left), return_when=asyncio.FIRST_COMPLETED)
            self._left -= time.monotonic() - began
            if not done:
                raise TimeoutError
            if not read.done():
                await asyncio.wait({read}, timeout=_LINGER)
            found: bytes = read.result() if read.done() else b""
            return found
        finally:
            if not read.done():
                read.cancel()

    async def _drain(self) -> None:
        assert self._process.stdout is not None
        while await self._process.stdout.read(_CHUNK):
            pass

    @staticmethod
    async def _end_of(process: asyncio.subprocess.Process) -> None:
        # not `process.wait()`, which up to Python 3.12 also waits for the pipes (https://github.com/python/cpython/issues/119710)
        pause = 0.005
        while process.returncode is None:
            await asyncio.sleep(pause)
            pause = min(0.1, pause * 1.5)

    async def _feed(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.write(data)
            await stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended, or does not want it; its exit code says more
        finally:
            stdin.close()

    async def _hear(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_CHUNK):
            self._errors = (self._errors + data)[-_TAIL:]


async def start(
    arguments: Sequence[str], prompt: str, seconds: float, *, cwd: str | Path | None, env: Mapping[str, str] | None
) -> Child:
    """Start a program, and write `prompt` to its standard input. It has so many seconds in all, without those in which
    its reader lets it wait. Raises OSError."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=cwd,
        env=None if env is None else {**os.environ, **env},
        start_new_session=True,
    )
    return Child(process, prompt, seconds)


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _signal(pid: int, number: int) -> None:
    """Send a signal to a process group, or to the process alone where there are no groups."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass  # nothing of it is left


@atexit.register
def _end_all() -> None:
    """End what still runs when this process ends without having closed its runners."""
    for pid in _living:
        _signal(pid, _KILL)
