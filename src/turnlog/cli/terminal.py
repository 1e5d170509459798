"""Where output goes: data to stdout, talk to stderr, nothing raw from a transcript to either."""

from __future__ import annotations

import errno
import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import IO, Any, TypeVar

import msgspec
from msgspec import Struct

from ..errors import InputError
from ..export import visible

Piece = tuple[str, str]
"""A text and the ANSI style that it is shown in."""


def out(text: str = "") -> None:
    """A piece of data on stdout, as lines."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    _write((visible(text) + "\n").encode(encoding, "backslashreplace"))


def out_line(text: str) -> None:
    """A piece of data that is one line of stdout, whatever it holds."""
    out(visible(text, one_line=True))


def out_lines(lines: Iterable[str]) -> None:
    """Pieces of data that are one line each."""
    for line in lines:
        out_line(line)


_T = TypeVar("_T", bound=Struct)


def out_each(values: Iterable[_T], line: Callable[[_T], str], arguments: Namespace) -> Iterator[_T]:
    """Each of these values, written down as it is taken: as JSON if the command was asked for that, else as a line."""
    for value in values:
        if arguments.json:
            out_json(msgspec.to_builtins(value))
        else:
            out_line(line(value))
        yield value


def out_pieces(pieces: Iterable[Piece]) -> None:
    """One line of stdout in colours: of each piece the text, escaped, in its ANSI style (empty: none)."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = ((visible(text, one_line=True), style) for text, style in pieces)
    line = "".join(f"\x1b[{style}m{text}\x1b[0m" if style and text else text for text, style in shown)
    _write((line + "\n").encode(encoding, "backslashreplace"))


def out_json(value: Any) -> None:
    """One JSON value on one line of stdout, in UTF-8 whatever the locale."""
    _write((as_json(value) + "\n").encode("utf-8"))


def as_json(value: Any, *, indent: int | None = None) -> str:
    """`value` as JSON that is safe to show."""
    return visible(json.dumps(value, ensure_ascii=False, indent=indent))


def out_bytes(pieces: Iterable[bytes]) -> None:
    """UTF-8 pieces on stdout as they are; a terminal gets them escaped."""
    shown: Iterator[bytes] | Iterable[bytes] = pieces
    if is_terminal(sys.stdout):
        shown = (visible(piece.decode("utf-8", "replace")).encode("utf-8") for piece in pieces)
    for piece in shown:
        _write(piece)


_COLOURS = {"red": "31", "green": "32", "cyan": "36", "bold": "1"}


def out_coloured(text: str, colour: str) -> None:
    """Text on stdout in a colour (or bold), if a person watches it on a terminal that has colours and did
    not set NO_COLOR (no-color.org). What `text` itself holds is made safe first."""
    shown = is_terminal(sys.stdout) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    before, after = (f"\x1b[{_COLOURS[colour]}m", "\x1b[0m") if shown else ("", "")
    _write(f"{before}{visible(text)}{after}\n".encode(encoding, "backslashreplace"))


def say(text: str) -> None:
    """A line of talk on stderr. Lost where nobody can hear it."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(visible(text), file=sys.stderr, flush=True)


def agreed(question: str, command: str, otherwise: str) -> bool:
    """Whether somebody at the terminal says yes. Raises InputError if nobody is there: `otherwise` says what to add."""
    if not is_terminal(sys.stdin):
        raise InputError(f"{command}: nobody is there to be asked; add {otherwise}")
    say(f"{question} [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def place_of(error: BaseException) -> str:
    """An error of ours and the line that it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f" ({trace.tb_frame.f_globals.get('__name__', '?')}, line {trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{at}"


def shorten(text: str, *, characters: int = 400, lines: int = 6) -> str:
    """`text`, or its beginning and how long it is."""
    short = "\n".join(text[:characters].splitlines()[:lines])
    left = len(text) - len(short)
    return short if not text[len(short) :].strip() else f"{short} … [{left:,} more characters]"


def is_terminal(stream: IO[Any] | None) -> bool:
    """Whether a person watches this stream."""
    with suppress(OSError, ValueError):
        return stream is not None and stream.isatty()
    return False


def stdin_bytes() -> bytes:
    """All of stdin. Raises InputError if it is closed."""
    if sys.stdin is None:
        raise InputError("-: standard input is closed; name a file, or send it one")
    buffer = getattr(sys.stdin, "buffer", None)
    try:
        return buffer.read() if buffer is not None else sys.stdin.read().encode("utf-8", "surrogatepass")
    except (OSError, ValueError) as error:
        raise InputError(f"-: standard input cannot be read: {error}") from error


def flush() -> None:
    """Hand over what stdout still holds, so that a failure to do so is seen while it can be told."""
    if sys.stdout is not None:
        sys.stdout.flush()


def discard_output() -> None:
    """Nobody reads stdout any more: let what it still holds go nowhere instead of failing at exit."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _write(data: bytes) -> None:
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        sys.stdout.write(data.decode("utf-8"))
    else:
        sys.stdout.flush()
        buffer.write(data)
