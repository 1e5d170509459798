"""`import`: read transcripts of other programs, and our own exports, into the store."""

from __future__ import annotations

import stat
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from .._platform.units import AGES, counted, read_age
from ..errors import Conflict, CorruptRecord, ImportFailed, InputError, TurnlogError
from ..importers import Imported, detect, read_file
from ..importers.discovery import discover
from ..importers.protocol import Origin, origin_name
from ..importers.sync.session import Synced, sync_session, without_secrets
from ..log.messages import ToolCall
from ..log.records import MessageBody
from ..log.store import Store
from ..redaction import Redactor
from .arguments import add_command, checked
from .stores import opened, settings_of
from .terminal import is_terminal, out_json, out_line, place_of, say, say_over, stdin_bytes

_WIDTH = 79
"""Characters of the progress line."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "import")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="a file, or a folder of them; - is standard input")
    text = "import all transcripts of agents in this home folder (default: your own)"
    parser.add_argument("--discover", metavar="HOME", nargs="?", const="~", help=text)
    text = "with --discover, only files written to within this time, such as 30d"
    parser.add_argument("--newer-than", metavar="AGE", type=checked(read_age, AGES), help=text)
    parser.add_argument("--json", action="store_true", help="one JSON object a session, one a line")
    text = "store keys, tokens and passwords as they are (default: each is replaced by [redacted:...])"
    parser.add_argument("--unredacted", action="store_true", help=text)
    parser.set_defaults(run=_import)


def _import(arguments: Namespace) -> int:
    if not arguments.paths and arguments.discover is None:
        raise InputError("nothing to import: give files or folders, or use --discover")
    if arguments.newer_than is not None and arguments.discover is None:
        raise InputError("--newer-than works only with --discover; files given by name are read however old they are")
    code = passed_over = met = 0
    seen: set[str] = set()
    discovered = [] if arguments.discover is None else _discovered(arguments.discover, arguments.newer_than)
    progress = _Progress(0 if arguments.paths else len(discovered))
    # Files that were read as part of another transcript are not read again.
    new = (origin for origin in discovered if not isinstance(origin, Path) or str(origin) not in seen)
    redactor = None if arguments.unredacted else settings_of(arguments).redactor
    with opened(arguments, write=True, make=True) as store:
        for origin in chain(new, transcripts(arguments.paths, seen)):
            progress.show(origin)
            met += 1
            if origin is None:
                passed_over += 1
                continue
            sessions, failed = _read(origin)
            progress.clear()
            code = max(code, int(any(warning.lost != "nothing" for each in sessions for warning in each.warnings)))
            for imported in sessions:
                seen.update(imported.files)
                failed = _keep(store, imported, redactor, arguments.json) or failed
            if failed is not None:
                say(f"turnlog: {failed}")
                code = max(code, failed.exit_code)
    progress.clear()
    if passed_over:
        say(f"not a transcript, skipped: {counted(passed_over, 'file')}")
    if not met and arguments.paths:
        say("nothing found to import: hidden folders are skipped, and --discover HOME searches the folders of agents")
    return code


def _discovered(home: str, age: timedelta | None) -> list[Origin | InputError]:
    """The files of agents in a home folder, without files older than `age` if it is given, and an error for each folder
    that cannot be read."""
    folder = Path(home).expanduser()
    if not folder.is_dir():
        raise InputError(f"--discover: {folder} is not a folder; give the home folder of the user who ran the agents")
    unreadable: list[OSError] = []
    agent_files = list(discover(folder, unreadable.append))
    agents = Counter(each.agent for each in agent_files)
    files = ", ".join(f"{agent} {counted(number, 'file')}" for agent, number in agents.items())
    say(f"found in {folder}: {files or 'no sessions of agents'}")
    if age is not None:
        since = time.time() - age.total_seconds()
        young = [each for each in agent_files if _is_newer(each.path, since)]
        say(f"skipped, older: {counted(len(agent_files) - len(young), 'file')}")
        agent_files = young
    return [
        *(_unreadable(error, Path(str(error.filename))) for error in unreadable),
        *(each.path for each in agent_files),
    ]


def _is_newer(path: Path, since: float) -> bool:
    """Whether a file was written to since that time. Also true if its time cannot be read: reading the file then
    reports the error."""
    try:
        return path.stat().st_mtime >= since
    except OSError:
        return True


class _Bug(TurnlogError):
    """A bug of turnlog, met while a transcript was read or imported."""

    exit_code = 70


def _read(origin: Origin | InputError) -> tuple[list[Imported], TurnlogError | None]:
    """The sessions of a transcript, and the error if reading failed."""
    try:
        return ([], origin) if isinstance(origin, InputError) else (read_file(origin), None)
    except ImportFailed as error:
        return [], error
    except OSError as error:
        return [], ImportFailed(f"{_name(origin)}: cannot be read ({error.strerror or error})")
    except Exception as error:  # noqa: BLE001 - a bug in turnlog must not stop the import of the other files
        return [], _bug(_name(origin), error)


def _name(origin: Origin | InputError) -> str:
    return str(origin) if isinstance(origin, InputError) else origin_name(origin)


def _bug(name: str, error: Exception) -> _Bug:
    """A bug of turnlog, with the place where it was raised."""
    return _Bug(f"{name}: an error in turnlog itself, please report it: {place_of(error)}")


def _keep(store: Store, imported: Imported, redactor: Redactor | None, json: bool) -> TurnlogError | None:
    """Import one session and report it; returns the error if this failed, so that the others are still imported."""
    for damage in imported.warnings:
        say(f"{damage.file}" + (f", line {damage.line}" if damage.line else "") + f": {damage.message}")
    try:
        if redactor is not None:
            imported = without_secrets(imported, redactor)
        synced = sync_session(store, imported, redactor)
    except (InputError, Conflict, CorruptRecord) as error:
        return error
    except (TurnlogError, OSError):  # an error of the store, not of the transcript
        raise
    except Exception as error:  # noqa: BLE001 - as in `_read`
        return _bug(imported.files[0] if imported.files else imported.session_id, error)
    if json:
        out_json(_summary(imported, synced))
    else:
        out_line(_sentence(imported, synced))
    if synced.exposed:
        say(
            f"{synced.session} was imported when fewer secrets were known; "
            f"`turnlog scrub {synced.session}` removes them"
        )
    if synced.status == "diverged":
        say(f"{imported.session_id} contains another conversation; this one was imported as {synced.session}")
    return None


def _counts(imported: Imported) -> tuple[int, int]:
    """The number of messages and of tool calls in a transcript."""
    bodies = [draft.body for draft in imported.drafts]
    messages = [body.message for body in bodies if isinstance(body, MessageBody)]
    return len(messages), sum(isinstance(part, ToolCall) for message in messages for part in message.parts)


def _redacted(imported: Imported) -> dict[str, int]:
    """The number of secrets replaced by marks, by kind."""
    return dict(sum((Counter(draft.redacted) for draft in imported.drafts), Counter()))


def _summary(imported: Imported, synced: Synced) -> dict[str, Any]:
    messages, calls = _counts(imported)
    return {
        "session": synced.session,
        "format": imported.format,
        "messages": messages,
        "tool_calls": calls,
        "warnings": msgspec.to_builtins(imported.warnings),
        "status": synced.status,
        "records": len(imported.drafts),
        "added": synced.added,
        "title": imported.title,
        "parent": imported.parent,
        "redacted": _redacted(imported),
        "files": imported.files,
    }


def _sentence(imported: Imported, synced: Synced) -> str:
    messages, calls = _counts(imported)
    what = f"{imported.format}, {counted(messages, 'message')}, {counted(calls, 'tool call')}"
    if synced.status == "continued":
        what += f", {counted(synced.added, 'new record')}"
    if secrets := sum(_redacted(imported).values()):
        what += f", {counted(secrets, 'secret')} redacted"
    return f"{synced.status:<9}  {synced.session}  ({what})  {imported.title}".rstrip()


def transcripts(names: Iterable[str], seen: Container[str]) -> Iterator[Origin | InputError | None]:
    """The transcripts behind these names, an error for each that cannot be read, and None for a file in a folder that
    is not a transcript.

    A folder may be one transcript. Other folders are searched, files before folders, without hidden ones, links to
    folders, and files in `seen`, which are parts of other transcripts.
    """
    for name in names:
        path = Path(name)
        try:
            if name == "-":
                yield stdin_bytes()
            elif path.is_dir():
                yield from _in_folder(path, seen)
            elif path.exists() and not path.is_file():  # a pipe can be read only once
                yield path.read_bytes()
            else:
                yield path
        except InputError as error:
            yield error
        except OSError as error:
            yield _unreadable(error, path)


def _in_folder(folder: Path, seen: Container[str]) -> Iterator[Origin | InputError | None]:
    if _is_known(folder):
        yield folder
        return
    try:
        inside = sorted(folder.iterdir(), key=lambda path: (_is_folder(path), path.name))
    except OSError as error:
        yield _unreadable(error, folder)
        return
    for path in inside:
        if path.name.startswith(".") or str(path) in seen:
            continue
        if _is_folder(path):
            yield from _in_folder(path, seen)
            continue
        try:
            is_file = stat.S_ISREG(path.stat().st_mode)
        except OSError as error:  # a link to nothing or to itself, or no permission
            yield _unreadable(error, path)
            continue
        if is_file:
            yield path if _is_known(path) else None


def _is_folder(path: Path) -> bool:
    """Whether this is a folder, not a link to a folder."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _unreadable(error: OSError, path: Path) -> ImportFailed:
    return ImportFailed(f"{path}: cannot be read ({error.strerror})")


def _is_known(path: Path) -> bool:
    """Whether an importer recognises this file or folder. A file that cannot be opened counts as recognised, so that
    reading it reports the error."""
    try:
        if path.is_file():
            path.open("rb").close()
        detect(path)
    except ImportFailed:
        return False
    except OSError:
        return True
    except Exception:  # noqa: BLE001 - reading the file reports what went wrong
        return True
    return True


class _Progress:
    """A progress line on a terminal, shown after the first second."""

    def __init__(self, expected: int) -> None:
        self._of = f" of {expected}" if expected else ""
        self._watched = is_terminal(sys.stderr)
        self._begun = time.monotonic()
        self._shown = False
        self._done = 0

    def show(self, origin: object) -> None:
        """Show which file is being read."""
        self._done += 1
        if self._watched and time.monotonic() - self._begun > 1:
            name = origin if isinstance(origin, Path) else "..."
            say_over(f"file {self._done}{self._of}: {name}", _WIDTH)
            self._shown = True

    def clear(self) -> None:
        """Erase the progress line before other output."""
        if self._shown:
            say_over("", _WIDTH)
            self._shown = False
