"""How long a command has been working, on a terminal where nothing else has happened for a second."""

from __future__ import annotations

import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import IO, Any

_PATIENCE = 1.0
"""Seconds without output after which a person wants to know that something is going on."""


class _Clock:
    """Writes the seconds to stderr, over and over on one line, until there is output; then takes the line away."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._over: threading.Event | None = None
        self._begun = self._last = 0.0
        self._shown = 0

    def begin(self, command: str) -> None:
        """Begin to count, on a thread of its own."""
        self._over, self._begun = threading.Event(), monotonic()
        self._last = self._begun
        threading.Thread(target=self._run, args=(command, self._over), daemon=True).start()

    def end(self) -> None:
        """Count no more: the command is done, or asks somebody."""
        if self._over is not None:
            self._over.set()
        with self.output():
            self._over = None

    @contextmanager
    def output(self) -> Iterator[None]:
        """While other output is written: without the line, which begins again a second later."""
        with self._lock:
            if self._shown:
                self._write(" " * self._shown + "\r")
                self._shown = 0
            yield
            self._last = monotonic()

    def _run(self, command: str, over: threading.Event) -> None:
        while not over.wait(_PATIENCE / 2):
            with self._lock:
                if monotonic() - self._last >= _PATIENCE and not over.is_set():
                    text = f"turnlog {command}: {monotonic() - self._begun:.0f} s"
                    self._shown = len(text)
                    self._write(f"{text}\r")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(text)
            sys.stderr.flush()


_clock = _Clock()
output, end = _clock.output, _clock.end


@contextmanager
def counted_seconds(command: str, is_terminal: Callable[[IO[Any] | None], bool]) -> Iterator[None]:
    """While a command runs: show how long it has been at work, if a person sees stderr and no other program has the
    screen for the output."""
    if is_terminal(sys.stderr) and (is_terminal(sys.stdout) or _is_file()):
        _clock.begin(command)
    try:
        yield
    finally:
        end()


def _is_file() -> bool:
    """Whether stdout goes to a file."""
    with suppress(OSError, ValueError, AttributeError):
        return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    return False
