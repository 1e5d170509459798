"""`mcp`: past sessions for agent programs, as tools of an MCP server."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from .._platform.files import write_whole
from .._platform.stdlib import difflib
from .._platform.texts import install_extra
from ..errors import InputError
from ..importers.sync.programs import Sync
from ..mcp.install import PROGRAMS, changes
from ..mcp.past import TOTAL, PastSessions
from ..stores.places import placed
from .arguments import KEY, STORE, add_command, add_labels, number
from .imports import known_files
from .stores import is_missing, is_writable, opened, settings_of
from .terminal import agreed, is_terminal, out_json, out_lines, say, stdin_bytes

_TITLES = 300
"""Tokens of the titles that a start hook tells."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "mcp")
    text = "before each question, read new transcripts of agents in this home folder (default: your own)"
    parser.add_argument("--discover", metavar="HOME", nargs="?", const="~", help=text)
    text = "the folder whose sessions come first (default: this one, or the repository that it is in)"
    parser.add_argument("--project", metavar="FOLDER", type=Path, default=Path(), help=text)
    add_labels(parser)
    text = f"answers of at most N tokens together, until the server ends (default: {TOTAL:,})"
    parser.add_argument("--tokens", metavar="N", type=number("tokens", 1), default=TOTAL, help=text)
    what = parser.add_mutually_exclusive_group()
    text = f"let a program start the server, with the options given here: {', '.join(PROGRAMS)}"
    what.add_argument("--install", metavar="PROGRAM", choices=tuple(PROGRAMS), help=text)
    what.add_argument("--titles", action="store_true", help="print what the start hook tells, and end")
    text = "with --install: tell each new session the titles of this folder's last ones"
    parser.add_argument("--hook", action="store_true", help=text)
    parser.add_argument("--print", action="store_true", help="with --install: show what would be written, and end")
    parser.add_argument("--yes", action="store_true", help="with --install: do not ask")
    parser.set_defaults(run=_mcp)


def _mcp(arguments: Namespace) -> int:
    if arguments.install:
        return _install(arguments)
    if arguments.hook or arguments.print:
        raise InputError("mcp: --hook and --print belong to --install PROGRAM")
    if arguments.discover is not None and any(value for _, value in arguments.label):
        raise InputError("mcp: transcripts have no labels, so --label would find none of them; leave out --discover")
    try:
        server = None if arguments.titles else import_module("turnlog.mcp.server")
    except ImportError as error:
        raise InputError(f"mcp: the extra mcp is missing, or older than 2.3: {install_extra('mcp')}") from error
    settings = settings_of(arguments)
    reads = arguments.discover is not None and not arguments.titles
    if arguments.titles and is_missing(arguments):
        return 0
    with opened(arguments, write=reads or is_writable(arguments), make=reads, past_damage=False) as store:
        past = PastSessions(store, settings.finding(), arguments.project, dict(arguments.label), arguments.tokens)
        if server is None:
            return _titles(past)
        if is_terminal(sys.stdin):
            say("waiting for an agent program on standard input; `turnlog mcp --install PROGRAM` lets one start this")
        home = Path(arguments.discover or "").expanduser()
        redactor = settings.redactor
        known = partial(known_files, store, arguments, settings, redactor)
        sync = Sync(store, redactor, home, known) if reads else None
        try:
            server.serve(past, sync)
        finally:
            if sync is not None:
                sync.close()
    return 0


def _titles(past: PastSessions) -> int:
    """Print the titles as a start hook has to; the program tells it on standard input which session begins."""
    try:
        asking = "" if is_terminal(sys.stdin) else str(json.loads(stdin_bytes() or b"{}").get("session_id", ""))
    except (ValueError, AttributeError):
        asking = ""
    if text := past.titles(_TITLES, [asking] if asking else []):
        out_json({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})
    return 0


def _install(arguments: Namespace) -> int:
    """Show what an agent program needs, ask, and write it."""
    command = [sys.executable, "-m", "turnlog"]
    # A program may start the server in another folder, and without the variables of this shell.
    store, key = (arguments.store or os.environ.get(STORE, ""), arguments.key or os.environ.get(KEY, ""))
    command += ["--store", placed(store, Path.cwd())] if store else []
    command += [*(["--key", key] if key else []), "mcp"]
    command += [] if arguments.discover is None else ["--discover", arguments.discover]
    command += [word for name, value in arguments.label for word in ("--label", f"{name}={value}")]
    command += ["--tokens", str(arguments.tokens)] if arguments.tokens != TOTAL else []
    needed = changes(arguments.install, Path.home(), command, [*command, "--titles"] if arguments.hook else ())
    for path, (before, after) in needed.items():
        lines = before.splitlines(), after.splitlines()
        out_lines(difflib.unified_diff(*lines, str(path) if before else "(no file)", str(path), lineterm=""))
    if not needed:
        say(f"{arguments.install} has all that it needs; nothing to write")
    elif arguments.print:
        say("nothing was written: --print shows what would be")
    elif arguments.yes or agreed("Write this?", "mcp", "--yes"):
        for path, (_, after) in needed.items():
            place = path.resolve()  # a link, as people have whose settings are elsewhere, stays one
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, [after.encode()])
        say(f"written; sessions of {arguments.install} that begin from now on have the tools")
    return 0
