"""How fluid a chat is in a real terminal: CPU time while an answer streams, and the time from a key to the screen.

A chat runs in a pseudo-terminal of 100 columns, with a scripted model that streams words of Markdown at `rate` a
second. Meanwhile keys are pressed, one after the other, and the time is taken until the terminal is sent each letter.
Bars: less than 30 % of one core, and less than 30 ms from key to screen (median; the slowest are reported).
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import tempfile
import termios
import time
from collections.abc import AsyncIterator
from pathlib import Path
from statistics import median
from typing import Any

from harness import Report, bench, quantile

CPU, DELAY = 30, 30
COLUMNS, LINES = 100, 40
READY = b"/help lists"
_TEXT = "The **totals** of `shop.py` are summed before they are rounded, so that cents get lost. " * 4
LETTERS = "qzxjkvwy"


def child(rate: int, seconds: float) -> None:
    """The chat itself, in the pseudo-terminal."""
    import asyncio
    from functools import partial

    import turnlog
    from turnlog.chat.choice import Choice
    from turnlog.chat.conversation import Chat
    from turnlog.chat.terminal import talk
    from turnlog.runners import DEMO_MODEL, ScriptedRunner
    from turnlog.stores import MemoryStore

    class Paced(ScriptedRunner):
        """Streams `rate` chunks a second, and writes down how many: a byte each."""

        async def stream(self, request: turnlog.Request) -> AsyncIterator[Any]:
            due = time.monotonic()
            with Path("streamed").open("ab", buffering=0) as counted:
                async for chunk in super().stream(request):
                    counted.write(b".")
                    yield chunk
                    due += 1 / rate
                    await asyncio.sleep(max(0.0, due - time.monotonic()))

    paragraph = f"{_TEXT}\n\n- one\n- two\n\n```py\ntotal = sum(lines)\n```\n\n"
    words = len(paragraph.split())
    answer = paragraph * max(1, int(rate * seconds * 2 / words))
    aim = turnlog.target("openai-chat", DEMO_MODEL)
    store = MemoryStore()
    start = partial(turnlog.open, store=store, settings=turnlog.Settings())
    choice = Choice(aim, Paced([answer]))
    asyncio.run(talk(Chat(store, start, start("s", target=aim), choice, folder=Path.cwd())))


@bench(quick={"seconds": 3})
def chat(report: Report, *, seconds: float = 10, rate: int = 200) -> None:
    """How fluid a chat is in a real terminal: CPU while an answer streams, and the time from a key to the screen."""
    with tempfile.TemporaryDirectory() as folder:
        measure(report, rate, seconds, folder)


def measure(report: Report, rate: int, seconds: float, folder: str) -> None:
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm-256color"
        child(rate, seconds)
        os._exit(0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    try:
        received(terminal, READY, 60)
        os.write(terminal, b"go\r")
        received(terminal, b"answering", 30)
        used, began, before = cpu(process), time.monotonic(), streamed(folder)
        delays = []
        while time.monotonic() - began < seconds:
            letter = LETTERS[len(delays) % len(LETTERS)].encode()
            pressed = time.monotonic()
            os.write(terminal, letter)
            received(terminal, letter, 5)
            delays.append(time.monotonic() - pressed)
            os.write(terminal, b"\x7f")
            drained(terminal, 0.1)
        took = time.monotonic() - began
        share, words = (cpu(process) - used) / took, (streamed(folder) - before) / took
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
    words_read = {"words a second": words, "% of one core": 100 * share}
    report.row("stream", words_read, at_most={"% of one core": CPU}, at_least={"words a second": 0.9 * rate})
    middle, slow, slowest = (1000 * value for value in (median(delays), quantile(delays, 0.95), max(delays)))
    keys = {"keys": len(delays), "ms, median": middle, "ms, 95 of 100": slow, "ms, slowest": slowest}
    report.row("key to screen", keys, at_most={"ms, median": DELAY})


def received(terminal: int, text: bytes, seconds: float) -> None:
    """Read until the terminal was sent a text. Letters that are pressed occur in no answer and no style."""
    seen, until = b"", time.monotonic() + seconds
    while text not in seen:
        left = until - time.monotonic()
        if left <= 0 or not select.select([terminal], [], [], left)[0]:
            raise SystemExit(f"no {text!r} within {seconds} s: {seen[-300:]!r}")
        seen = seen[-200:] + read(terminal)


def read(terminal: int) -> bytes:
    """The next bytes. A question where the cursor is gets an answer, as from a terminal."""
    data = os.read(terminal, 65_536)
    if b"\x1b[6n" in data:
        os.write(terminal, b"\x1b[%d;1R" % (LINES - 20))
    return data


def drained(terminal: int, seconds: float) -> None:
    """Read for a time."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            read(terminal)


def streamed(folder: str) -> int:
    """How many words the model has streamed."""
    return Path(folder, "streamed").stat().st_size


def cpu(process: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
