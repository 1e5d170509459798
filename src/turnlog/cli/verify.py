"""`verify`: is what the store holds what was written?"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import msgspec

from .._platform.units import counted
from .stores import opened
from .terminal import out_json, out_line, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    verify = commands.add_parser("verify", parents=[store], help="look for damage in one session, or in all")
    verify.add_argument("id", metavar="ID", nargs="?", help="the session (default: the whole store)")
    verify.add_argument("--json", action="store_true", help="one JSON object a line")
    verify.set_defaults(run=_verify)


def _verify(arguments: Namespace) -> int:
    with opened(arguments) as store:
        problems = store.verify(arguments.id)
    for problem in problems:
        if arguments.json:
            out_json(msgspec.to_builtins(problem))
        else:
            record = f", record {problem.record}" if problem.record else ""
            out_line(f"{problem.session or 'store'}{record}: {problem.what}")
    say(counted(len(problems), "problem") if problems else "no problems")
    return 1 if problems else 0
