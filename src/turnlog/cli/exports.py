"""`export`: write a session to a file or to standard output."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from .._platform.alike import grouped
from .._platform.units import size_text
from ..errors import InputError
from ..export import FORMATS, save
from ..log.store import Problem
from ..providers import PROVIDERS
from ..stores.ownership import is_part_of
from ..stores.places import local_path
from .arguments import AN_ID, add_command
from .stores import opened, place
from .terminal import is_terminal, out_bytes, say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    export = add_command(commands, store, "export")
    export.add_argument("id", metavar="ID", help=AN_ID)
    help_text = f"html, markdown: to read; jsonl, json: for `turnlog import`; {', '.join(PROVIDERS)}: a request body"
    export.add_argument("--format", choices=list(FORMATS), required=True, help=help_text)
    help_text = (
        "write to this file, which is replaced if the export is not stopped by an error (default: standard output)"
    )
    export.add_argument("-o", "--output", metavar="FILE", default="", help=help_text)
    only = export.add_mutually_exclusive_group()
    only.add_argument(
        "--messages", action="store_true", help="with markdown: every message as it is, instead of the talk"
    )
    only.add_argument("--records", action="store_true", help="with markdown: every record, instead of the talk")
    add_open(export)
    export.set_defaults(run=_export)


def add_open(parser: ArgumentParser) -> None:
    """Add the option `--open` to a command that writes a file."""
    parser.add_argument("--open", action="store_true", help="open the file in the browser (needs --output)")


def told(arguments: Namespace) -> None:
    """Say which file was written, and open it if the user wants to see it."""
    path = Path(arguments.output)
    say(f"wrote {path} ({size_text(path.stat().st_size)})")
    if arguments.open and not import_module("webbrowser").open(path.resolve().as_uri()):
        say("--open: there is no browser that could be opened")


def _export(arguments: Namespace) -> int:
    problems: list[Problem] = []
    if arguments.open and not arguments.output:
        raise InputError("--open: give the file with --output")
    if (arguments.messages or arguments.records) and arguments.format != "markdown":
        raise InputError("--messages and --records are for --format markdown")
    if arguments.format == "html" and not arguments.output and is_terminal(sys.stdout):
        raise InputError("HTML is not for a terminal: give a file with --output (and --open)")
    form = arguments.format + ("-messages" if arguments.messages else "-records" if arguments.records else "")
    store_path = local_path(place(arguments))
    if arguments.output and store_path is not None and is_part_of(store_path, Path(arguments.output)):
        raise InputError(f"--output: {arguments.output} is a file of the store itself; give another file")
    with opened(arguments) as store:
        if arguments.output:
            problems = save(store, arguments.id, form, arguments.output)
            told(arguments)
        else:
            out_bytes(FORMATS[form](store, arguments.id, problems))
    for line in problem_lines(problems):
        say(line)
    return 1 if problems else 0


def problem_lines(problems: Sequence[Problem]) -> Iterator[str]:
    """One line for each kind of problem."""
    for session, what, records in grouped((problem.session, problem.what, (problem.record,)) for problem in problems):
        yield f"{session}, {records}: {what}" if records else f"{session}: {what}"
