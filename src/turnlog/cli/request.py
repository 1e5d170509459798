"""`request`: print the request that would be sent to a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._platform.texts import without_password
from .._platform.units import counted
from ..errors import SessionNotFound
from ..export.escapes import visible
from ..importers import read_file
from ..importers.protocol import Origin, origin_name
from ..importers.sync.session import sync_session
from ..log.messages import Message, Part, Text, ToolCall, ToolResult
from ..log.store import Store
from ..models.makers import PROVIDER_ROWS
from ..models.target import Target
from ..providers import PROVIDERS
from ..providers.protocol import Parsed
from ..requests.request import Request
from ..requests.standalone import aimed
from ..session.session import Session
from ..stores import MemoryStore
from ..view.types import Edit, Loss
from .arguments import add_command
from .stores import is_missing, opened, place, whole_id
from .targets import SERVER_OF_BODY, add_terms
from .terminal import as_json, out_bytes, out_json, out_lines, say, shorten, stdin_bytes


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
        for line in _change_lines(prepared, arguments.source):
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
            session_id = store.info(whole_id(store, arguments.source)).id
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


def changes(prepared: Request) -> list[tuple[str, Edit | Loss]]:
    """Edits, then losses, each with the word for it."""
    return [("edit", edit) for edit in prepared.edits] + [("loss", loss) for loss in prepared.losses]


def sentence(kind: str, change: Edit | Loss) -> str:
    """A change on one line, with its record numbers."""
    numbers = ", ".join(map(str, change.records))
    if isinstance(change, Edit) and change.through and change.records != (change.through,):
        where = f" (records {numbers} to {change.through})"
    else:
        where = f" (record {numbers})" if numbers else ""
    return visible(f"{kind} {change.kind}: {change}{where}", one_line=True)


def _counts(prepared: Request) -> str:
    target = prepared.target
    done = f"{counted(len(prepared.view), 'message')}, {counted(len(prepared.edits), 'edit')}"
    return f"{target.provider} {target.model}: {done}, {counted(len(prepared.losses), 'loss')}"


def _change_lines(prepared: Request, source: str) -> Iterator[str]:
    """One line for each change. A long session has hundreds of decisions of one kind that still hide something: the
    newest gets a line, the others share a line."""
    decided = [edit for edit in prepared.edits if edit.through]
    newest = {edit.kind: edit for edit in decided}
    for kind, number in Counter(edit.kind for edit in decided).items():
        if number > 1:
            yield f"edit {kind}: by {counted(number - 1, 'earlier decision')}, see `turnlog why {source}`"
    for kind, change in changes(prepared):
        if not (isinstance(change, Edit) and change.through) or change is newest[change.kind]:
            yield sentence(kind, change)


def _explained(prepared: Request, source: str) -> Iterator[str]:
    yield _counts(prepared)
    for shown in prepared.view:
        numbers = ",".join(map(str, shown.records)) or "-"
        yield f"{numbers:>9}  {shown.message.role:<9}  {shown.treatment:<11}  {gist(shown.message)}".rstrip()
    yield from _change_lines(prepared, source)


def gist(message: Message, *, characters: int = 100) -> str:
    """A message on one line, shortened."""
    words = " ".join(" ".join(map(_word, message.parts)).split())
    return shorten(words, characters=characters)


def _word(part: Part) -> str:
    match part:
        case Text(text=text):
            return text[:1_000]
        case ToolCall(name=name):
            return f"[calls {name}]"
        case ToolResult(name=name, outcome=outcome):
            return f"[result {name} {outcome}]"
        case _:
            return f"[{type(part).__name__.lower()}]"
