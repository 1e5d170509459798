"""Find and run the command of a command line, and turn its result or error into an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any, NoReturn

from .._platform.exceptions import place_of
from .._version import __version__
from ..errors import CorruptRecord, InputError, TurnlogError, UnknownModelWarning
from .arguments import COMMANDS, KEY, STORE, add_command, no_command
from .progress import counted_seconds
from .terminal import discard_output, flush, in_order, is_terminal, out, paged, say

EXIT_CODES = {
    0: "done",
    1: "findings: violations, problems, secrets, something that was left out",
    2: "the input or the command line cannot be used",
    3: "the store, the system or whoever was to answer could not do it",
    4: "there is no session of that id",
    5: "damaged data in the store; commands that only read do all they can first",
    6: "the store was written by a newer turnlog",
    7: "the request cannot fit the budget or the model's window",
    70: "an error in turnlog itself",
    130: "interrupted (Ctrl-C)",
    141: "the reader of the output went away",
}
"""What the exit codes mean. 1 to 7 are those of `turnlog.errors`."""

_DESCRIPTION = "Keeps what LLM agents say and do: one log, and requests that models accept."
_EPILOG = "exit codes:\n" + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())


_OWN_SCREEN = ("chat", "demo", "handoff", "serve")
"""Commands that write to the terminal in their own way."""


class _Parser(argparse.ArgumentParser):
    """A parser that prints like the rest of the command line: text is escaped, and failures to write are reported."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.color = False  # Python 3.14 would colour its help, and the colours would be escaped

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.format_usage()}{self.prog}: {message}\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        text = message.rstrip("\n")
        if text and file is not None and file is sys.stdout:
            with paged():
                out(text)
        elif text:
            say(text)


class _CommandParser(_Parser):
    """The parser of one command. It reports unknown arguments itself: the parser of all commands would show a usage
    without the command's options."""

    def parse_known_args(self, *given: Any, **named: Any) -> Any:
        namespace, rest = super().parse_known_args(*given, **named)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return namespace, rest


def build_parser(argv: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """The parser of the whole command line, or of what `argv` needs of it: one command, or the list of all without
    their options. The namespace of each command has `run`; without a command there is the start page."""
    store = argparse.ArgumentParser(add_help=False)
    text = (
        "the store: a file, files:FOLDER or postgresql://USER@HOST/DATABASE "
        f"(default: ${STORE}, else your configuration's, else one in your home)"
    )
    store.add_argument("--store", metavar="PATH", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    store.add_argument("--key", metavar="WHERE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    places = "file:PATH, env:NAME, passphrase-file:PATH, passphrase-env:NAME, ask (at the terminal) or none"
    key_text = f"key of an encrypted store: {places} (default: ${KEY}, else your configuration's)"
    parser = _Parser(
        prog="turnlog",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--store", metavar="PATH", default="", help=text)
    parser.add_argument("--key", metavar="WHERE", default="", help=key_text)
    parser.add_argument("--version", action="version", version=f"turnlog {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=_CommandParser)
    named = COMMANDS if argv is None else {_command(argv)} & COMMANDS.keys()
    for module in dict.fromkeys(COMMANDS[name][0] for name in named):
        import_module(f"{__package__}.{module}").add_to(commands, store)
    for name in COMMANDS if not commands.choices else ():
        add_command(commands, None, name)
    return parser


def _command(argv: Sequence[str]) -> str:
    """The word where a command line has its command; "" if there is none, or another option ahead of it."""
    words = iter(argv)
    for word in words:
        if word in ("--store", "--key"):
            next(words, None)
        elif not word.startswith("-"):
            return word
        elif not word.startswith(("--store=", "--key=")):
            break
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (None: the arguments of this process) and return its exit code. Never raises."""
    try:
        with in_order():
            warnings.simplefilter("ignore", UnknownModelWarning)  # commands report unknown models themselves
            code = _run(argv)
        flush()
        return code
    except BrokenPipeError:
        discard_output()
        return 141
    except KeyboardInterrupt:
        discard_output()
        say("turnlog: interrupted")
        return 130
    except OSError as error:
        discard_output()
        say(f"turnlog: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return 3


def _run(argv: Sequence[str] | None) -> int:
    """The exit code of the command, or of the error that ended it."""
    try:
        for word in argv or ():
            _check_word(word)
        argv = sys.argv[1:] if argv is None else argv
        if (word := _command(argv)) and word not in COMMANDS:
            raise InputError(no_command(word))
        arguments = build_parser(argv).parse_args(argv)
        run = getattr(arguments, "run", None) or import_module(f"{__package__}.start").start
        with nullcontext() if word in _OWN_SCREEN else counted_seconds(word, is_terminal):
            code: int = run(arguments)
        code = code or (CorruptRecord.exit_code if getattr(arguments, "damaged", None) else 0)
    except SystemExit as end:  # --help, --version, a usage error
        return end.code if isinstance(end.code, int) else 2
    except TurnlogError as error:
        say(f"turnlog: {error}")
        return error.exit_code
    except OSError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug in turnlog: a traceback does not help a user
        say(f"turnlog: an error in turnlog itself, please report it: {place_of(error)}")
        return 70
    return code


def _check_word(word: str) -> None:
    """Raise InputError for characters that neither a shell can pass nor a file name can contain."""
    try:
        possible = b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise InputError(f"the argument {word!r} contains a NUL character or text that cannot be encoded; remove it")
