"""Output: data to stdout, messages to stderr, and no raw text of a transcript to either.

Output keeps its order, even if both streams go to one screen or file. All questions are asked here, so that a question
appears after everything printed before it.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from getpass import getpass
from time import monotonic
from typing import IO, Any, TypeVar

import msgspec
from msgspec import Struct

from .._platform.pager import Pages, pager_words
from .._platform.visible import visible
from ..errors import InputError
from . import progress

_OFTEN = 0.05
"""Rows reach a terminal within this many seconds."""

Piece = tuple[str, str]
"""A text and its ANSI style."""


def out(text: str = "") -> None:
    """Print data to stdout."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    _write((visible(text) + "\n").encode(encoding, "backslashreplace"))


def out_line(text: str) -> None:
    """Print data to stdout as one line, with control characters escaped."""
    out(visible(text, one_line=True))


def out_lines(lines: Iterable[str]) -> None:
    """Print data to stdout, each on one line."""
    for line in lines:
        out_line(line)


_T = TypeVar("_T", bound=Struct)


def out_each(values: Iterable[_T], line: Callable[[_T], str], arguments: Namespace) -> Iterator[_T]:
    """Print each value as JSON with `--json`, else as a line, and yield it."""
    for value in values:
        if arguments.json:
            out_json(msgspec.to_builtins(value))
        else:
            out_line(line(value))
        yield value


def out_pieces(pieces: Iterable[Piece]) -> None:
    """Print one line to stdout in colours: the text of each piece, escaped, in its ANSI style (empty: none)."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = ((visible(text, one_line=True), style) for text, style in pieces)
    line = "".join(f"\x1b[{style}m{text}\x1b[0m" if style and text else text for text, style in shown)
    _write((line + "\n").encode(encoding, "backslashreplace"))


def out_rendered(text: str) -> None:
    """Print lines to stdout that were escaped before they were coloured."""
    _write(text.encode(getattr(sys.stdout, "encoding", None) or "utf-8", "backslashreplace"))


def out_json(value: Any) -> None:
    """Print a JSON value to stdout on one line, in UTF-8 whatever the locale."""
    _write((as_json(value) + "\n").encode("utf-8"))


def as_json(value: Any, *, indent: int | None = None) -> str:
    """`value` as JSON that is safe to show."""
    return visible(json.dumps(value, ensure_ascii=False, indent=indent))


def out_bytes(pieces: Iterable[bytes]) -> None:
    """Write chunks of UTF-8 to stdout; escaped if stdout is a terminal."""
    shown: Iterator[bytes] | Iterable[bytes] = pieces
    if is_terminal(sys.stdout):
        shown = (visible(piece.decode("utf-8", "replace")).encode("utf-8") for piece in pieces)
    for piece in shown:
        _write(piece)


_COLOURS = {"red": "31", "green": "32", "cyan": "36", "bold": "1"}


def out_coloured(text: str, colour: str) -> None:
    """Print text to stdout, escaped, in a colour (or bold) if stdout is a terminal with colours and NO_COLOR is not set
    (no-color.org)."""
    shown = is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    before, after = (f"\x1b[{_COLOURS[colour]}m", "\x1b[0m") if shown else ("", "")
    _write(f"{before}{visible(text)}{after}\n".encode(encoding, "backslashreplace"))


def say(text: str) -> None:
    """Print a message to stderr, after everything printed to stdout before; ignored if that fails."""
    _to_stderr(visible(text) + "\n")


def say_over(text: str, width: int) -> None:
    """Write a text over the current line of stderr, without ending the line."""
    _to_stderr(f"\r{visible(text, one_line=True)[: width - 1]:<{width}}" + ("" if text else "\r"))


class _Said(logging.Handler):
    """Prints log records as messages."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        say(self.format(record))


@contextmanager
def in_order() -> Iterator[None]:
    """While the block runs, print log records and warnings as messages. Python itself would print them before the text
    that stdout still buffers."""
    before, logging.lastResort = logging.lastResort, _Said(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *others: say(f"turnlog: {message}")
            yield
    finally:
        logging.lastResort = before


def agreed(question: str, command: str, otherwise: str) -> bool:
    """Ask at the terminal; returns whether the answer is yes. The question begins with everything that the user has to
    see and that is not on the screen yet. Raises InputError if nobody could see the question or answer it; `otherwise`
    names the option to add."""
    for stream, name, cannot in (
        (sys.stdin, "input", "no confirmation can be asked for"),
        (sys.stderr, "error", "nobody would see the question"),
    ):
        if not is_terminal(stream):
            raise InputError(f"{command}: standard {name} is not a terminal, so {cannot}; add {otherwise}")
    progress.end()
    say(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def asked_secret(prompt: str, option: str, otherwise: str, *, twice: bool = False) -> str:
    """Ask for a text that is not shown while it is typed; `twice` for a new one, because a typing error would lock
    everybody out. Raises InputError if standard input is not a terminal or the two answers differ. `option` is the
    option that asks, `otherwise` what to use instead."""
    if not is_terminal(sys.stdin):
        raise InputError(
            f"{option}: standard input is not a terminal, so the {prompt} cannot be asked for; use {otherwise}"
        )
    progress.end()
    with suppress(OSError, ValueError):
        flush()
    secret = getpass(f"{prompt}: ")
    if twice and getpass(f"{prompt} again: ") != secret:
        raise InputError(f"{option}: the two answers differ; nothing was changed")
    return secret


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether this stream is a terminal."""
    with suppress(OSError, ValueError):
        return stream is not None and stream.isatty()
    return False


def stdin_bytes() -> bytes:
    """All of stdin. Raises InputError if it is closed."""
    if sys.stdin is None:
        raise InputError("-: standard input is closed; give a file, or redirect one to standard input")
    buffer = getattr(sys.stdin, "buffer", None)
    try:
        return buffer.read() if buffer is not None else sys.stdin.read().encode("utf-8", "surrogatepass")
    except (OSError, ValueError) as error:
        raise InputError(f"-: standard input cannot be read: {error}") from error


def flush() -> None:
    """Flush stdout now, so that a failure can still be reported."""
    if sys.stdout is not None:
        with progress.output():  # rows that were held back would be written over the seconds of a slow command
            sys.stdout.flush()


def discard_output() -> None:
    """Discard buffered output when the reader of stdout is gone, instead of failing at exit."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _write(data: bytes) -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    if _pages and _pages[-1].takes(data):
        return
    buffer = getattr(sys.stdout, "buffer", None)
    with progress.output():
        if buffer is None:
            sys.stdout.write(data.decode("utf-8"))
        else:
            buffer.write(data)
        if is_terminal(sys.stdout):
            _flush_sometimes()


_flushed = [0.0]
"""When `_flush_sometimes` last flushed."""


def _flush_sometimes() -> None:
    """Flush stdout unless that was done just now: a row a system call is slow, and `say` and the end flush the rest."""
    if monotonic() - _flushed[0] > _OFTEN:
        flush()
        _flushed[0] = monotonic()


def _to_stderr(text: str) -> None:
    if _pages:
        _pages[-1].said.append(text)
    elif sys.stderr is not None:
        with suppress(OSError, ValueError):
            flush()  # if it fails, the command meets the same failure at its end
        with suppress(OSError, ValueError), progress.output():
            sys.stderr.write(text)
            sys.stderr.flush()


_pages: list[Pages] = []
"""The output that is being paged, if any."""


@contextmanager
def paged() -> Iterator[None]:
    """While the block runs, output that is longer than the terminal goes through `$PAGER` (by default `less -R`; none
    if it is empty or `cat`). If the user leaves the pager early, the block ends there, without an error. Messages wait
    until the end: they would be written over its page."""
    words = pager_words()
    if _pages or not words or not is_terminal(sys.stdout):
        yield
        return
    progress.end()  # the pager has the screen from here on
    pages = Pages(words, _write)
    _pages.append(pages)
    try:
        yield
    except BrokenPipeError:
        if not pages.has_begun:
            raise
    finally:
        try:
            flush()
            pages.end()
        finally:
            _pages.remove(pages)
            for text in pages.said:
                _to_stderr(text)
