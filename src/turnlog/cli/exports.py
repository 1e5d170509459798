"""`export`: a session out of the store."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..export import FORMATS, save
from ..log import Problem
from ..stores import is_part_of, local_path
from .stores import opened, place
from .terminal import out_bytes, say

__all__ = ["add_to"]


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    export = commands.add_parser("export", parents=[store], help="write a session to standard output")
    export.add_argument("id", metavar="ID")
    help_text = "for people: html, markdown; for `turnlog import`: jsonl, json; else a request of that provider"
    export.add_argument("--format", choices=list(FORMATS), required=True, help=help_text)
    help_text = "a file of your own instead of standard output, replaced only if all went well"
    export.add_argument("--output", metavar="FILE", default="", help=help_text)
    export.set_defaults(run=_export)


def _export(arguments: Namespace) -> int:
    problems: list[Problem] = []
    held = local_path(place(arguments))
    if arguments.output and held is not None and is_part_of(held, Path(arguments.output)):
        raise InputError(f"--output: {arguments.output} is a file of the store itself; name another")
    with opened(arguments) as store:
        if arguments.output:
            problems = save(store, arguments.id, arguments.format, arguments.output)
        else:
            out_bytes(FORMATS[arguments.format](store, arguments.id, problems))
    for problem in problems:
        say(f"{problem.session}, record {problem.record}: {problem.what}")
    return 1 if problems else 0
