"""`export`: write a session to a file or to standard output."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from ..export import FORMATS, save
from ..log.store import Problem
from ..providers import PROVIDERS
from ..stores.ownership import is_part_of
from ..stores.places import local_path
from .arguments import ANY_ID, add_command
from .stores import opened, place
from .terminal import out_bytes, say

_FEW = 3
"""Up to this many problems that differ only in an id each get a line."""

_NUMBERS = 5
"""At most this many record numbers are named for one problem."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    export = add_command(commands, store, "export")
    export.add_argument("id", metavar="ID", help=ANY_ID)
    help_text = f"html, markdown: to read; jsonl, json: for `turnlog import`; {', '.join(PROVIDERS)}: a request body"
    export.add_argument("--format", choices=list(FORMATS), required=True, help=help_text)
    help_text = (
        "write to this file, which is replaced if the export is not stopped by an error (default: standard output)"
    )
    export.add_argument("--output", metavar="FILE", default="", help=help_text)
    export.set_defaults(run=_export)


def _export(arguments: Namespace) -> int:
    problems: list[Problem] = []
    store_path = local_path(place(arguments))
    if arguments.output and store_path is not None and is_part_of(store_path, Path(arguments.output)):
        raise InputError(f"--output: {arguments.output} is a file of the store itself; give another file")
    with opened(arguments) as store:
        if arguments.output:
            problems = save(store, arguments.id, arguments.format, arguments.output)
        else:
            out_bytes(FORMATS[arguments.format](store, arguments.id, problems))
    for line in _problem_lines(problems):
        say(line)
    return 1 if problems else 0


def _problem_lines(problems: Sequence[Problem]) -> Iterator[str]:
    """One line for each kind of problem: sessions of other programs have hundreds of the same kind."""
    kinds = Counter(_kind(what) for what in {problem.what for problem in problems})
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        kind = _kind(problem.what)
        groups.setdefault((problem.session, problem.what if kinds[kind] <= _FEW else kind), []).append(problem)
    for (session, _), group in groups.items():
        numbers = list(dict.fromkeys(problem.record for problem in group if problem.record))
        named = ", ".join(map(str, numbers[:_NUMBERS]))
        omitted = f" and {len(numbers) - _NUMBERS:,} more" if len(numbers) > _NUMBERS else ""
        where = f", record{'s' if len(numbers) > 1 else ''} {named}{omitted}" if numbers else ""
        alike = len({problem.what for problem in group}) - 1
        yield f"{session}{where}: {group[0].what}" + (f" (and {alike:,} alike)" if alike else "")


def _kind(what: str) -> str:
    """The text of a problem without call ids, positions, hashes and names in quotes."""
    words = what.split(" ")
    return " ".join(
        word
        for before, word in zip(["", *words], words, strict=False)
        if before != "call" and not word.startswith("'") and not any(char.isdigit() for char in word)
    )
