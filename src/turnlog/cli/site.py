"""`site`: write the pages of all sessions into a folder."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .._platform.units import counted
from ..errors import InputError
from ..log.store import Problem, Store
from ..redaction.store import RedactingStore
from ..stores import copy_store, open_store
from ..stores.ownership import is_part_of
from ..stores.places import local_path
from ..web.site import write_site
from .arguments import add_command, number
from .exports import problem_lines
from .stores import opened, place, settings_of
from .terminal import say


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "site")
    parser.add_argument("folder", metavar="OUT", help="the folder; made if it does not exist")
    help_text = "replace keys, tokens and passwords by [redacted:...] in what is written"
    parser.add_argument("--redact", action="store_true", help=help_text)
    help_text = "show what the model saw for the newest N requests of each session (default: 1)"
    parser.add_argument("--requests", metavar="N", type=number("requests", 0), default=1, help=help_text)
    parser.add_argument("--open", action="store_true", help="open the first page in the browser")
    parser.set_defaults(run=_site)


def _site(arguments: Namespace) -> int:
    folder, store_path = Path(arguments.folder), local_path(place(arguments))
    if store_path is not None and (is_part_of(store_path, folder) or is_part_of(store_path, folder / "index.html")):
        raise InputError(f"{folder} is a part of the store itself; give another folder")
    problems: list[Problem] = []
    with opened(arguments, past_damage=False) as store, _clean(store, arguments, problems) as shown:
        files = write_site(shown, folder, problems, requests=arguments.requests)
    for line in problem_lines(problems):
        say(line)
    first = folder / "index.html"
    say(f"wrote {counted(files, 'page')} into {folder}; begin with {first}")
    if arguments.open and not import_module("webbrowser").open(first.resolve().as_uri()):
        say("--open: there is no browser that could be opened")
    return 1 if problems else 0


@contextmanager
def _clean(store: Store, arguments: Namespace, problems: list[Problem]) -> Iterator[Store]:
    """The store or, if that is wanted, a copy of it without secrets, which goes when the pages are written."""
    if not arguments.redact:
        yield store
        return
    with TemporaryDirectory(prefix="turnlog-") as place_of_copy:
        copy = open_store(str(Path(place_of_copy) / "copy.db"))
        try:
            redacting = RedactingStore(copy, settings_of(arguments).finding(live=False))
            copy_store(store, redacting, tell=problems.append)
            yield copy
        finally:
            copy.close()
