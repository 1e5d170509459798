"""How fluid a chat is in a real terminal: CPU time while an answer streams, and the time from a key to the screen.

    python bench/chat.py [--seconds 10] [--rate 200]

A chat runs in a pseudo-terminal of 100 columns, with a scripted model that streams words of Markdown at `rate` a
second. Meanwhile keys are pressed, one after the other, and the time is taken until the terminal is sent each letter.
Bars: less than 30 % of one core, and less than 30 ms from key to screen (median; the slowest are reported).
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

CPU, DELAY = 0.30, 0.030
COLUMNS, LINES = 100, 40
READY = b"/help lists"
_TEXT = "The **totals** of `shop.py` are summed before they are rounded, so that cents get lost. " * 4
LETTERS = "qzxjkvwy"


def child(rate: int, seconds: float) -> None:
    """The chat itself, in the pseudo-terminal."""
    import asyncio
    from functools import partial

    import turnlog
    from turnlog.chat import Choice, Conversation, talk
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
    asyncio.run(talk(Conversation(store, start, start("s", target=aim), choice, folder=Path.cwd())))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.rate, options.seconds)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return measure(options.rate, options.seconds, folder)


def measure(rate: int, seconds: float, folder: str) -> int:
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ["TERM"] = "xterm-256color"
        place = str(Path(__file__).resolve())
        os.execv(sys.executable, [sys.executable, place, "--child", "--rate", f"{rate}", "--seconds", f"{seconds}"])
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
    delays.sort()
    median, slow = statistics.median(delays), delays[int(len(delays) * 0.95)]
    print(f"{words:.0f} words a second for {seconds:.0f} s: {100 * share:.0f} % of one core (bar {100 * CPU:.0f})")
    print(
        f"{len(delays)} keys: median {1000 * median:.0f} ms, 95 % within {1000 * slow:.0f} ms, slowest "
        f"{1000 * delays[-1]:.0f} ms (bar {1000 * DELAY:.0f})"
    )
    return 0 if share < CPU and median < DELAY and words > 0.9 * rate else 1


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


if __name__ == "__main__":
    sys.exit(main())
