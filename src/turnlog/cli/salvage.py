"""`salvage`: make a new session from the readable records of a damaged one."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .._platform.units import counted
from ..stores import salvage
from .arguments import AN_ID, add_command
from .stores import damage_line, opened
from .terminal import say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    command = add_command(commands, store, "salvage")
    command.add_argument("id", metavar="ID", help=f"{AN_ID}, which stays as it is")
    command.add_argument("new", metavar="NEW", help="the id of the new session")
    command.set_defaults(run=_salvage)


def _salvage(arguments: Namespace) -> int:
    with opened(arguments, write=True) as store:
        records = store.info(arguments.id).records
        done = salvage(store, arguments.id, arguments.new)
    for problem in done.damaged:
        say(damage_line(problem))
    say(f"session {done.session} has {done.kept:,} of {counted(records, 'record')} of {arguments.id}")
    return 0
