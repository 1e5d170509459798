"""`request`: print the request that would be sent to a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._platform.texts import without_password
from .._platform.units import counted
from ..display.request_words import changes, gist, request_changes
from ..errors import SessionNotFound
from ..importers import read_file
from ..importers.protocol import Origin, origin_name
from ..importers.sync.session import sync_session
from ..log.store import Store
from ..models.makers import PROVIDER_ROWS
from ..models.target import Target
from ..providers import PROVIDERS
from ..providers.protocol import Parsed
from ..requests.request import Request
from ..requests.standalone import aimed
from ..session.session import Session
from ..stores import MemoryStore
from ..stores.ids import session_named
from .arguments import add_command
from .drawing import clipped
from .stores import is_missing, opened, place
from .tables import folded, terminal_width
from .targets import SERVER_OF_BODY, add_terms
from .terminal import as_json, out_bytes, out_json, out_lines, say, stdin_bytes


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "request")
    help_text = "a session, or a file: a request body or any transcript; - is standard input"
    parser.add_argument("source", metavar="SOURCE", help=help_text)
    parser.add_argument("--to", metavar="PROVIDER", required=True, help=f"one of {', '.join(PROVIDERS)}")
    common = ", ".join(row.model for row in PROVIDER_ROWS.values())
    help_text = f"default: the session's model if it is of that provider, else {common}"
    parser.add_argument("--model", metavar="MODEL", default="", help=help_text)
    parser.add_argument("--server", metavar="SERVER", default="", help=SERVER_OF_BODY)
    add_terms(parser)
    help_text = "instead of the request, list its messages, what was changed in them and what was left out"
    parser.add_argument("--explain", action="store_true", help=help_text)
    parser.add_argument("--json", action="store_true", help="with --explain: one JSON object a line")
    parser.set_defaults(run=_request)


def _request(arguments: Namespace) -> int:
    with session_of(arguments) as session:
        target = _target(session, arguments.to, arguments.model, arguments.server)
        prepared = session.preview(target, budget=arguments.budget, strategy=arguments.strategy)
        body = None if arguments.explain else as_json(prepared.body, indent=2)  # reads images from the store
    if body is not None:
        out_bytes([body.encode("utf-8"), b"\n"])
        for line in request_changes(prepared, arguments.source):
            say(line)
        say(_counts(prepared))
    elif arguments.json:
        for kind, change in changes(prepared):
            row = {key: getattr(change, key) for key in ("kind", "detail", "records", "path")}
            out_json({"change": kind, **row})
    else:
        out_lines(_explained(prepared, arguments.source))
    return 0


@contextmanager
def session_of(arguments: Namespace) -> Iterator[Session]:
    """The session that SOURCE names (see `source_of`)."""
    with source_of(arguments) as (store, session_id):
        yield Session(store, store.info(session_id))


@contextmanager
def source_of(arguments: Namespace) -> Iterator[tuple[Store, str]]:
    """The store and the id of the session that SOURCE names. If a file and a session have that name, the file is used;
    it is read into memory only."""
    path = Path(arguments.source)
    origin: Origin = path
    if arguments.source == "-":
        origin = stdin_bytes()
    elif path.is_dir() or not path.exists():
        with _stored(arguments) as stored:
            yield stored
        return
    elif not path.is_file():  # a pipe can be read only once
        origin = path.read_bytes()
    imported, *others = read_file(origin)
    store = MemoryStore()
    synced = sync_session(store, imported)
    say(f"{origin_name(origin)}: {imported.format}" + (f", the first of {len(others) + 1} sessions" if others else ""))
    if imported.warnings:
        first, further = imported.warnings[0], len(imported.warnings) - 1
        say(
            f"{origin_name(origin)}: {first.message}"
            + (f" (and {counted(further, 'more warning')})" if further else "")
        )
    yield store, synced.session


@contextmanager
def _stored(arguments: Namespace) -> Iterator[tuple[Store, str]]:
    if is_missing(arguments):
        raise SessionNotFound(f"{arguments.source}: {_no_file(arguments)}, and there is no store at {place(arguments)}")
    with opened(arguments) as store:
        try:
            session_id = store.info(session_named(store, arguments.source)).id
        except SessionNotFound as error:
            raise SessionNotFound(
                f"{arguments.source}: {_no_file(arguments)}; in {without_password(place(arguments))} {error}"
            ) from error
        yield store, session_id


def _no_file(arguments: Namespace) -> str:
    return "a folder, not a file" if Path(arguments.source).is_dir() else "no such file"


def _target(session: Session, provider: str, model: str, server: str) -> Target:
    target = aimed(Parsed(messages=(), configuration=session.configuration), provider, model, server)
    if target.doubt:
        say(target.doubt)
    return target


def _counts(prepared: Request) -> str:
    target = prepared.target
    done = f"{counted(len(prepared.view), 'message')}, {counted(len(prepared.edits), 'edit')}"
    return f"{target.provider} {target.model}: {done}, {counted(len(prepared.losses), 'loss')}"


def _explained(prepared: Request, source: str) -> Iterator[str]:
    yield _counts(prepared)
    room = terminal_width()
    for shown in prepared.view:
        numbers = ",".join(map(str, shown.records)) or "-"
        line = f"{numbers:>9}  {shown.message.role:<9}  {shown.treatment:<11}  {gist(shown.message)}"
        yield (clipped(line, room) if room else line).rstrip()
    yield from (part for line in request_changes(prepared, source) for part in folded(line, 2))
