"""`turnlog` alone: where the sessions are, and what one can do next. And `help`."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from .._platform.times import ago
from .._platform.units import counted
from .._version import __version__
from ..session.titles import shown_title
from ..stores.ids import families, short_ids
from .arguments import COMMANDS, add_command
from .drawing import clipped
from .stores import is_missing, opened, told_place
from .tables import terminal_width
from .terminal import out_line, out_lines

_BEGIN = (
    "  begin  turnlog import --discover   what agents on this machine have kept",
    "  try    turnlog demo                a made-up conversation, in a few seconds",
    "  talk   turnlog chat                with a model that has tools for this folder",
)
_NEXT = (
    "  find   turnlog ls · search WORDS · recall QUESTION",
    "  read   show · diff · context · why · export latest --format html",
    "  go on  chat -c · handoff latest --to codex",
)
_LATEST = "turnlog show latest"


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command `help` to the parser."""
    parser = add_command(commands, None, "help")
    parser.add_argument("name", metavar="COMMAND", nargs="?", help="a command (default: the list of all)")
    parser.set_defaults(run=_help)


def _help(arguments: Namespace) -> int:
    run = sys.modules[f"{__package__}.entry"].main  # the module that loaded this one
    code: int = run([*filter(None, [arguments.name]), "--help"])
    return code


def start(arguments: Namespace) -> int:
    """Say where the store is, which session was the last, and what one can do next."""
    last = None
    if not is_missing(arguments):
        with opened(arguments) as store:
            infos = store.sessions()
            if infos:
                last = families(infos)[0].info
                title = shown_title(store, last)
                short = short_ids([last.id], infos)[last.id]
    has = counted(len(infos), "session") if last is not None else "no sessions yet"
    out_line(f"turnlog {__version__}   {has} in {told_place(arguments)}")
    if last is None:
        out_lines(_BEGIN)
    else:
        ahead = f"  last   {short}  {ago(last.updated)}  "
        room = terminal_width()
        cut = clipped(title, max(room - len(ahead) - len(_LATEST) - 3, 0)) if room else title
        out_line(f"{ahead}{cut}   {_LATEST}")
        out_lines(_NEXT)
    shell = os.path.basename(os.environ.get("SHELL", ""))
    shell = shell if shell in ("zsh", "fish") else "bash"
    out_line(f"all {len(COMMANDS)} commands: turnlog --help         completion: turnlog completion {shell}")
    return 0
