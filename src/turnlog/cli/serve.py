"""`serve`: sessions as pages in a browser."""

from __future__ import annotations

import webbrowser
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from .._platform.texts import install_extra
from ..errors import InputError
from ..importers.sync.programs import Sync
from ..log.store import Store
from ..stores import PastDamage
from ..web.guard import kept_token, root_of
from .arguments import add_command
from .imports import known_files
from .stores import damage_line, is_writable, opened, settings_of, told_place
from .terminal import flush, out_line, say

PORT = 7333
"""The usual port."""
_TRIES = 20
"""So many ports from the usual one on are tried."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "serve")
    text = "read transcripts of agents in this home folder (default: your own), and go on as they grow"
    parser.add_argument("--discover", metavar="HOME", nargs="?", const="~", help=text)
    text = f"the port at 127.0.0.1; 0 is any free one (default: {PORT}, or the next that is free)"
    parser.add_argument("--port", metavar="N", type=_port, default=None, help=text)
    parser.add_argument("--open", action="store_true", help="open the pages in the browser")
    parser.add_argument("--new-token", action="store_true", help="make a new key to the pages; the old one is refused")
    parser.set_defaults(run=_serve)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) < 65_536):
        raise ArgumentTypeError(f"{text!r} is not a port; give a number from 0 to 65535")
    return int(text)


def _serve(arguments: Namespace) -> int:
    try:
        app = import_module("turnlog.web.app")
    except ImportError as error:
        raise InputError(f"serve: the extra web is missing: {install_extra('web')}") from error
    reads = arguments.discover is not None
    # Where it can be written to, searches keep an index; nothing else is written.
    with opened(arguments, write=reads or is_writable(arguments), make=reads, past_damage=False) as store:
        try:
            at = app.listening(PORT if arguments.port is None else arguments.port, 1 if arguments.port else _TRIES)
        except OSError as error:
            raise InputError(f"serve: port {arguments.port or PORT}: {error.strerror}; --port 0 takes any") from error
        with at:
            token, port = kept_token(new=arguments.new_token), at.getsockname()[1]
            if arguments.port is None and port != PORT:
                say(f"port {PORT} is taken, so this is {port}")
            url = f"http://127.0.0.1:{port}{root_of(token)}/?token={token}"
            say(f"{told_place(arguments)}: the pages of this store are here until Ctrl-C; the address is their key")
            out_line(url)
            flush()
            if arguments.open:
                webbrowser.open(url)
            server = app.PageServer(PastDamage(store, lambda problem: say(damage_line(problem))), token, at)
            sync = _following(store, arguments) if reads else None
            try:
                server.serve_pages()
            finally:
                if sync is not None:
                    sync.close()
    return 0


def _following(store: Store, arguments: Namespace) -> Sync:
    """Reads what agent programs write while the server runs."""
    settings = settings_of(arguments)
    known = partial(known_files, store, arguments, settings, settings.redactor)
    sync = Sync(store, settings.redactor, Path(arguments.discover).expanduser(), known)
    sync.follow()
    return sync
