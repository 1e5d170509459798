"""`request`: print the request that would be sent to a model."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._platform.alike import grouped
from .._platform.texts import without_password
from .._platform.units import counted
from .._platform.visible import visible
from ..errors import SessionNotFound
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
from ..stores.ids import session_named
from ..view.types import Edit, Loss
from .arguments import add_command
from .drawing import clipped
from .stores import is_missing, opened, place
from .tables import folded, terminal_width
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


def changes(prepared: Request) -> list[tuple[str, Edit | Loss]]:
    """Edits, then losses, each with the word for it."""
    return [("edit", edit) for edit in prepared.edits] + [("loss", loss) for loss in prepared.losses]


def change_lines(changed: Iterable[tuple[str, Edit | Loss]]) -> Iterator[str]:
    """Changes, each with the word for it, as lines; many that are alike share a line."""
    found = ((word, f"{change.kind}: {change}", change.records) for word, change in changed)
    for word, what, records in grouped(found):
        yield visible(f"{word} {what}" + (f" ({records})" if records else ""), one_line=True)


def _counts(prepared: Request) -> str:
    target = prepared.target
    done = f"{counted(len(prepared.view), 'message')}, {counted(len(prepared.edits), 'edit')}"
    return f"{target.provider} {target.model}: {done}, {counted(len(prepared.losses), 'loss')}"


def _change_lines(prepared: Request, source: str) -> Iterator[str]:
    """One line for each kind of change. A long session has hundreds of decisions of one kind that still hide something:
    the newest gets a line, the others share a line."""
    decided = [edit for edit in prepared.edits if edit.through]
    newest = {edit.kind: edit for edit in decided}
    for kind, number in Counter(edit.kind for edit in decided).items():
        if number > 1:
            yield f"edit {kind}: by {counted(number - 1, 'earlier decision')}, see `turnlog why {source}`"
    for edit in newest.values():
        numbers = ", ".join(map(str, edit.records))
        where = f"record {numbers}" if edit.records == (edit.through,) else f"records {numbers} to {edit.through}"
        yield visible(f"edit {edit.kind}: {edit} ({where})", one_line=True)
    yield from change_lines(each for each in changes(prepared) if not (isinstance(each[1], Edit) and each[1].through))


def _explained(prepared: Request, source: str) -> Iterator[str]:
    yield _counts(prepared)
    room = terminal_width()
    for shown in prepared.view:
        numbers = ",".join(map(str, shown.records)) or "-"
        line = f"{numbers:>9}  {shown.message.role:<9}  {shown.treatment:<11}  {gist(shown.message)}"
        yield (clipped(line, room) if room else line).rstrip()
    yield from (part for line in _change_lines(prepared, source) for part in folded(line, 2))


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
