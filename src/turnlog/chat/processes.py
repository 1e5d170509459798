"""Run a command or a program, keep its output up to a limit, and end everything that it started.

It gets a process group of its own, which is ended with it. Processes that a command moves into another group or session
are found by a variable in their environment, on systems that show it (Linux).
"""

from __future__ import annotations

import asyncio
import codecs
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from .._platform.lazy import lazy_pattern
from ..redaction.named import name_kind

_MOST = 200_000
"""Bytes of an output that are kept: half of them from its beginning, half from its end."""

_LINGER = 0.5
"""The seconds to wait for processes that cannot be ended, or cannot be found with certainty."""

_MARK = "TURNLOG_COMMAND"
_GUARDED = f"""exec 3<&0 </dev/null
(read -r _ <&3; kill -KILL 0) >/dev/null 2>&1 &
export {_MARK}="$2"
exec 3<&- /bin/sh -c "$1"
"""
"""Runs a command beside a guard that reads a pipe from us. If we are killed, the pipe ends, and the guard ends the
command with its process group."""

_SECRET = lazy_pattern(r"(?:KEYS?|TOKENS|SECRETS|PASSWORDS|CREDENTIALS?|(?<![A-Z])(?:AUTH|PAT))[0-9]*\Z")
"""Endings of the names of variables with secrets, in addition to those that redaction knows."""

_HARMLESS = {"PWD", "OLDPWD", "SSH_AUTH_SOCK"}


class Ran(NamedTuple):
    """How a program ended. `code` is its exit code, negative for a signal; None if its time was up. `left` is how many
    processes it had left running, as far as that is known."""

    output: str
    code: int | None
    left: int


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables whose names say that they hold a key, a token or a password, such as
    `OPENAI_API_KEY`."""
    return {name: value for name, value in environment.items() if not _is_secret(name.upper())}


def _is_secret(name: str) -> bool:
    if name in _HARMLESS:
        return False
    ends = [match.start() for match in re.finditer("_|$", name)]
    return any(name_kind(name[:end]) or _SECRET.search(name[:end]) for end in ends)


async def ran_command(command: str, folder: Path, seconds: float, hear: Callable[[bytes], object] | None = None) -> Ran:
    """Run a command of the shell; `hear` is called with its output, as it comes. Raises OSError and ValueError if it
    cannot be started."""
    if os.name == "nt":
        return await _ran(command, folder, seconds, "", hear)
    mark = secrets.token_hex(16)
    return await _ran(["/bin/sh", "-c", _GUARDED, "sh", command, mark], folder, seconds, mark, hear)


async def ran_program(arguments: Sequence[str], folder: Path, seconds: float) -> Ran:
    """Run a program that starts no others. Raises OSError and ValueError if it cannot be started."""
    return await _ran(arguments, folder, seconds, "")


class Kept:
    """The beginning and the end of an output, together at most `most` bytes."""

    def __init__(self, most: int = _MOST) -> None:
        self._half = most // 2
        self._first, self._last, self._size = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        """Add the next bytes of the output."""
        self._size += len(data)
        room = self._half - len(self._first)
        self._first += data[:room]
        self._last += data[room:]
        del self._last[: max(0, len(self._last) - self._half)]

    @property
    def held(self) -> int:
        """The number of bytes that are kept."""
        return len(self._first) + len(self._last)

    def text(self) -> str:
        """The output; where bytes are left out, a mark counts them. No character is cut in two."""
        if self._size == self.held:
            return (self._first + self._last).decode("utf-8", "replace")
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        first = decoder.decode(self._first)
        cut = len(decoder.getstate()[0])
        none = len(self._last) if len(self._last) < 4 else 0  # a character has at most four bytes
        start = next((n for n, byte in enumerate(self._last[:4]) if byte & 0xC0 != 0x80), none)
        left_out = self._size - self.held + cut + start
        how = "to see them, run it again with its output in a file, or through grep or tail"
        last = self._last[start:].decode("utf-8", "replace")
        return f"{first}\n[{left_out:,} bytes are left out here; {how}]\n{last}"


class _Listener(asyncio.SubprocessProtocol):
    def __init__(self, hear: Callable[[bytes], object] | None) -> None:
        loop = asyncio.get_running_loop()
        self.kept = Kept()
        self._hear = hear
        self.ended: asyncio.Future[None] = loop.create_future()
        self.silent: asyncio.Future[None] = loop.create_future()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.kept.add(data)
        if self._hear is not None:
            self._hear(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1 and not self.silent.done():
            self.silent.set_result(None)

    def process_exited(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


async def _ran(
    arguments: Sequence[str] | str,
    folder: Path,
    seconds: float,
    mark: str,
    hear: Callable[[bytes], object] | None = None,
) -> Ran:
    loop, begun = asyncio.get_running_loop(), _ticks() if mark else 0.0
    options: dict[str, Any] = {
        "stdin": subprocess.PIPE,  # open until the end: the guard reads it
        "stdout": subprocess.PIPE,
        "stderr": subprocess.STDOUT,
        "cwd": folder,
        "env": without_secrets(os.environ),
    }
    if isinstance(arguments, str):
        starting = asyncio.ensure_future(loop.subprocess_shell(lambda: _Listener(hear), arguments, **options))
    else:
        coroutine = loop.subprocess_exec(lambda: _Listener(hear), *arguments, start_new_session=True, **options)
        starting = asyncio.ensure_future(coroutine)
    try:
        transport, listener = await asyncio.shield(starting)
    except asyncio.CancelledError:  # it may be running already
        transport, _ = await starting
        _end(transport.get_pid(), mark, begun)
        transport.close()
        raise
    try:
        in_time, _ = await asyncio.wait({listener.ended}, timeout=seconds)
    finally:
        left = _end(transport.get_pid(), mark, begun)
        try:
            await asyncio.wait({listener.ended, listener.silent}, timeout=_LINGER)
        finally:
            transport.close()
    return Ran(listener.kept.text(), transport.get_returncode() if in_time else None, left)


def _end(pid: int, mark: str, begun: float) -> int:
    """End a process, its group, and all with this mark in their environment; returns the number of those with the
    mark."""
    if os.name == "nt":
        with suppress(OSError):  # a system without it
            subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True, check=False)
        return 0
    before, seen = None, _processes(mark, begun)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    ended: set[int] = set()
    until = time.monotonic() + _LINGER
    while True:
        new = {process_id for process_id, is_ours in seen.items() if is_ours} - ended
        for process_id in new:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process_id, signal.SIGKILL)
        ended |= new
        # One that ended since the last look may have started others, which were not there then.
        is_sure = before is not None and seen.keys() <= before and None not in seen.values()
        if not new and (is_sure or time.monotonic() > until):
            return len(ended)
        before, seen = seen.keys(), _processes(mark, begun)


def _processes(mark: str, begun: float) -> dict[int, bool | None]:
    """Whether each process has the mark in its environment, by process id, on systems where that can be read. None for
    a process that is becoming another program and has no environment yet."""
    processes: dict[int, bool | None] = {}
    for place in Path("/proc").glob("[0-9]*") if mark else ():
        environment, is_ours = b"", None
        with suppress(OSError):  # while a process becomes another program, this may fail as well
            environment = (place / "environ").read_bytes()
        with suppress(OSError):
            if environment or not _is_young(place, begun):
                is_ours = f"{_MARK}={mark}".encode() in environment
            processes[int(place.name)] = is_ours
    return processes


def _is_young(process: Path, begun: float) -> bool:
    """Whether a process was started since `begun`, and is neither dead nor part of the system."""
    fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
    started, memory = int(fields[19]), int(fields[20])  # fields 22 and 23 of proc_pid_stat(5)
    return memory > 0 and started >= begun


def _ticks() -> float:
    """The time since the system was started, as Linux counts it for processes."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK") - 1 if sys.platform == "linux" else 0.0
