"""A command at a terminal of its own: what is on the screen is read before anything is typed."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_PATIENCE = 120
"""Seconds without any output after which a question will never come; only a failing test waits so long."""

LISTENS = "\x1b[?2004h"
"""What the chat writes when it reads key by key. Before that, the end of input would be lost as a line's end is not."""

_BEGIN = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # a passphrase is asked for at the terminal that controls the process
from turnlog.cli import main, progress
progress._PATIENCE = 1e9  # no seconds of a slow machine: tests/cli/test_cli_progress.py looks at these
sys.exit(main(sys.argv[1:]))
"""


class Screen:
    """What a command has written to its terminal, and the keyboard."""

    def __init__(self, running: subprocess.Popen[bytes], terminal: int) -> None:
        self.text = ""
        self._running = running
        self._terminal = terminal
        self._decoder = getincrementaldecoder("utf-8")()
        self._end = ""  # of what was read, which may be half of a line's end

    def reads(self, *texts: str) -> str:
        """What is on the screen, as soon as it has these texts, one after the other."""
        end = 0
        for text in texts:
            while (at := self.text.find(text, end)) < 0:
                assert self._more(), f"no {text!r} on the screen:\n{self.text}"
            end = at + len(text)
        return self.text

    def types(self, text: str) -> None:
        """Type a text."""
        os.write(self._terminal, text.encode())

    def ends(self) -> tuple[int, str]:
        """The exit code, and everything that the screen has shown."""
        while self._more():
            pass
        try:
            return self._running.wait(_PATIENCE), self.text
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still waiting, with this on the screen:\n{self.text}") from None

    def _more(self) -> bool:
        """Whether anything came."""
        if not select.select([self._terminal], [], [], _PATIENCE)[0]:
            return False
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:  # how Linux says that nobody has the other end any more
            data = b""
        came = self._end + self._decoder.decode(data)
        whole = came.rstrip("\r") if data else came
        self._end = came[len(whole) :]
        self.text += re.sub(r"\r+\n", "\n", whole)
        return bool(data)


@contextmanager
def at_terminal(folder: Path, *words: str, stdout: IO[bytes] | None = None, **more: str) -> Iterator[Screen]:
    """`turnlog` with these arguments, at a terminal, in a folder that is also the home. `stdout` is a file for its
    standard output, `more` are variables of its environment; there is no pager unless they name one."""
    terminal, its_end = pty.openpty()
    home = {
        "HOME": str(folder),
        "XDG_CONFIG_HOME": "",
        "XDG_DATA_HOME": "",
        "XDG_CACHE_HOME": "",
        "TERM": "xterm",
        "COLUMNS": "200",
        "PAGER": "",
    }
    running = subprocess.Popen(
        [sys.executable, "-c", _BEGIN, *words],
        stdin=its_end,
        stdout=stdout or its_end,
        stderr=its_end,
        cwd=folder,
        env={**os.environ, **home, **more},
        start_new_session=True,
    )
    os.close(its_end)
    try:
        yield Screen(running, terminal)
    finally:
        running.kill()
        running.wait()
        os.close(terminal)
