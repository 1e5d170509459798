"""Adding a command, and argument types whose errors name what is allowed."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import Any

ANY_ID = "the session's id; its beginning is enough"
"""Help text of ID for commands that only read."""

WHOLE_ID = "the whole id of the session"
"""Help text of ID for commands that change something."""


def add_command(commands: Any, store: ArgumentParser | None, name: str, does: str) -> ArgumentParser:
    """Add a command. `does` describes it in a sentence, for the list of commands and for its own help; `store` has the
    options of commands that open the store."""
    sentence = f"{does[0].upper()}{does[1:]}."
    parser: ArgumentParser = commands.add_parser(
        name, parents=[] if store is None else [store], help=does, description=sentence
    )
    return parser


def checked(read: Callable[[str], Any], allowed: str) -> Callable[[str], Any]:
    """An argument type that uses `read`, which raises ValueError; `allowed` describes what it accepts."""

    def read_argument(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not {allowed}") from None

    return read_argument


def add_labels(parser: ArgumentParser) -> None:
    """Add the option `--label`, whose value is a list of names and values."""
    text = "only sessions with this label (NAME=: without it); give it again for further labels"
    parser.add_argument("--label", metavar="NAME=VALUE", action="append", default=[], type=_label, help=text)


def _label(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise ArgumentTypeError(f"{text!r} is not a label; write NAME=VALUE, such as user=ann")
    return name, value


def number(what: str, least: int = 0) -> Callable[[str], int]:
    """An argument type for a whole number of `what`, at least `least`; 1,000 and 1_000 are allowed."""

    def read_number(text: str) -> int:
        digits = text.replace(",", "").replace("_", "")
        if not digits.isdecimal() or int(digits) < least:
            from_ = f", at least {least}" if least else ""
            raise ArgumentTypeError(f"{text!r} is not a whole number of {what}{from_}")
        return int(digits)

    return read_number
