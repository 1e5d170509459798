"""A pager: the program that shows output page by page, `$PAGER` or less."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .lazy import lazy_pattern
from .stdlib import shlex, subprocess

_STYLE = lazy_pattern(r"\x1b\[[0-9;]*m")


def pager_words() -> list[str]:
    """The command of the pager; [] if the user wants none, names none that can be read, or the terminal can do
    nothing but print."""
    try:
        words = shlex.split(os.environ.get("PAGER", "less -R"))
    except ValueError:  # a quotation mark without its other one
        return []
    return [] if words == ["cat"] or os.environ.get("TERM") == "dumb" else words


class Pages:
    """Output that is held back until it is longer than the screen; then a pager shows it. `write` writes to the
    terminal; `said` are messages to print afterwards."""

    def __init__(self, words: list[str], write: Callable[[bytes], None]) -> None:
        self.said: list[str] = []
        self._words = words
        self._write = write
        self._size = shutil.get_terminal_size()
        self._held: list[bytes] = []
        self._rows = 0
        self._pager: Any = None

    @property
    def has_begun(self) -> bool:
        """Whether a pager shows the output."""
        return self._pager is not None

    def takes(self, data: bytes) -> bool:
        """Hold data back or give it to the pager; False if there is none that could take it. Raises BrokenPipeError if
        the user has left the pager."""
        if self._pager is not None:
            self._pager.stdin.write(data)
            return True
        if not self._words:
            return False
        self._held.append(data)
        lines = _STYLE.sub("", data.decode("utf-8", "replace")).split("\n")
        self._rows += sum(1 + max(0, len(line) - 1) // self._size.columns for line in lines) - 1
        if self._rows >= self._size.lines:
            with suppress(OSError):  # no such program: print it
                environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
                self._pager = subprocess.Popen(self._words, stdin=subprocess.PIPE, env=environment)
            self._release()
        return True

    def _release(self) -> None:
        held, self._held, self._words = self._held, [], []
        for data in held:
            self._write(data)

    def end(self) -> None:
        """Wait until the user has left the pager, or print what is held back."""
        if self._pager is None:
            self._release()
            return
        with suppress(OSError):
            self._pager.stdin.close()
        while self._pager.poll() is None:
            with suppress(KeyboardInterrupt):  # Ctrl-C is for the pager, which goes on
                self._pager.wait()
