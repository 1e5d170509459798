"""What a person sees while a command works for longer than a second."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from turnlog.cli import progress, terminal


class Screen:
    """A terminal that keeps what is written, and tells when a text is."""

    def __init__(self) -> None:
        self.text = ""
        self.came = threading.Event()
        self.waits_for = ""

    def isatty(self) -> bool:
        """A person looks at it."""
        return True

    def write(self, text: str) -> int:
        """Keep a text."""
        self.text += text
        if self.waits_for and self.waits_for in self.text:
            self.came.set()
        return len(text)

    def flush(self) -> None:
        """Nothing is kept back."""


@contextmanager
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    """A terminal for both streams, and no patience. Not a fixture: between those and tests, pytest sets the streams."""
    made = Screen()
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", made)
        patch.setattr("sys.stderr", made)
        patch.setattr(progress, "_PATIENCE", 0.01)
        yield made


def test_a_long_command_says_that_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A blank screen for half a minute; or a line about seconds that stays in front of what the command says."""
    with screen(monkeypatch) as seen:
        seen.waits_for = "turnlog verify: 0 s\r"
        with progress.counted_seconds("verify", terminal.is_terminal):
            came = seen.came.wait(60)
            terminal.out("no problems")
    line = "turnlog verify: 0 s"
    before, _, _ = seen.text.partition("no problems\n")
    assert came and before.replace(f"{line}\r", "") == " " * len(line) + "\r"


def test_rows_that_were_held_back_do_not_cover_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come after the seconds in one line, and the blanks that take the seconds away cover a row's beginning."""

    class HoldsBack(Screen):
        """A stream that writes only when it is flushed."""

        def flush(self) -> None:
            seen.text, self.text = seen.text + self.text, ""

    with screen(monkeypatch) as seen:
        monkeypatch.setattr("sys.stdout", HoldsBack())
        monkeypatch.setattr(terminal, "_flushed", [float("inf")])
        seen.waits_for = "turnlog show: 0 s\r"
        with progress.counted_seconds("show", terminal.is_terminal):
            terminal.out("a row")
            came = seen.came.wait(60)
            terminal.flush()
    line = "turnlog show: 0 s"
    before, row, after = seen.text.partition("a row\n")
    assert came and row and before.replace(f"{line}\r", "") == " " * len(line) + "\r"
    assert after.replace(f"{line}\r", "").strip(" \r") == ""


def test_nothing_is_said_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds in a log file, or over the screen of the pager that waits for the output."""
    with screen(monkeypatch) as seen, progress.counted_seconds("verify", lambda stream: False):
        assert not seen.came.wait(0.05)
    assert seen.text == ""
