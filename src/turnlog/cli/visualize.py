"""`visualize`: show the steps of an agent that moves through images."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .._platform.files import write_whole
from ..errors import InputError
from ..export import as_trajectory, as_trajectory_picture
from ..log.messages import images_in
from ..log.store import Problem
from ..session.reader import SessionLog
from ..stores.ownership import is_part_of
from ..stores.places import local_path
from .arguments import add_command, number
from .exports import add_open, told
from .request import session_of
from .stores import place
from .terminal import is_terminal, out_bytes, say

_OTHER_PICTURES = (".gif", ".jpg", ".jpeg", ".svg", ".webp", ".pdf")
_FORMATS: dict[str, Callable[..., Iterator[bytes]]] = {"html": as_trajectory, "png": as_trajectory_picture}


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "visualize")
    help_text = "a session, or a file: a trajectory or any transcript with images; - is standard input"
    parser.add_argument("source", metavar="SOURCE", help=help_text)
    help_text = "write to this file, which is replaced (default: standard output)"
    parser.add_argument("-o", "--output", metavar="FILE", default="", help=help_text)
    help_text = "html: one page with everything in it (default); png: the path on the thumbnail (needs Pillow)"
    parser.add_argument("--format", choices=list(_FORMATS), default="", help=help_text)
    help_text = "show what the model sees if requests have only the newest N images"
    parser.add_argument("--max-history-images", metavar="N", type=number("images"), default=None, help=help_text)
    add_open(parser)
    parser.set_defaults(run=_visualize)


def _visualize(arguments: Namespace) -> int:
    form = arguments.format or ("png" if arguments.output.lower().endswith(".png") else "html")
    _check_output(arguments, form)
    problems: list[Problem] = []
    with session_of(arguments) as session:
        pieces = _pieces(session.log, form, problems, arguments)
        if arguments.output:
            write_whole(Path(arguments.output), pieces)
            told(arguments)
        else:
            out_bytes(pieces)
        if not any(record.message and images_in(record.message) for record in session.log.of_kinds("message")):
            say("there are no images in it; `turnlog show` shows what was said and done")
    for problem in problems:
        say(f"{problem.session}: {problem.what}")
    return 1 if problems else 0


def _pieces(log: SessionLog, form: str, problems: list[Problem], arguments: Namespace) -> Iterator[bytes]:
    if form == "png":
        return as_trajectory_picture(log, problems)
    return as_trajectory(log, problems, max_history_images=arguments.max_history_images)


def _check_output(arguments: Namespace, form: str) -> None:
    if arguments.open and not arguments.output:
        raise InputError("--open: give the file with -o")
    suffix = Path(arguments.output).suffix.lower()
    if not arguments.format and suffix in _OTHER_PICTURES:
        raise InputError(f"--output: a picture is written as PNG, not as {suffix}: give a name that ends in .png")
    store_path = local_path(place(arguments))
    if arguments.output and store_path is not None and is_part_of(store_path, Path(arguments.output)):
        raise InputError(f"--output: {arguments.output} is a file of the store itself; give another file")
    if arguments.output and arguments.output == arguments.source:
        raise InputError(f"--output: {arguments.output} is the file to show; give another file")
    if not arguments.output and is_terminal(sys.stdout):
        raise InputError(f"{form.upper()} is not for a terminal: give a file with -o (and --open)")
