"""`verify`: find damage in the store."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .._platform.units import counted
from .arguments import add_command
from .stores import damage_line, opened
from .terminal import out_each, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    verify = add_command(commands, store, "verify")
    verify.add_argument(
        "id", metavar="ID", nargs="?", help="the session's id or its beginning (default: the whole store)"
    )
    verify.add_argument("--json", action="store_true", help="one JSON object a line")
    verify.set_defaults(run=_verify)


def _verify(arguments: Namespace) -> int:
    with opened(arguments) as store:
        problems = store.verify(arguments.id)
    number = len(list(out_each(problems, damage_line, arguments)))
    say(counted(number, "problem") if number else "no problems")
    return 1 if number else 0
