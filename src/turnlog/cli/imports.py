"""`import`: read transcripts of other programs, and our own exports, into the store."""

from __future__ import annotations

import math
import os
import stat
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from .. import importers  # formats load when a file is read: most imports meet nothing new
from .._platform.alike import kind_of
from .._platform.exceptions import place_of
from .._platform.texts import without_password
from .._platform.units import AGES, counted, read_age, size_text
from ..config.settings import Settings
from ..errors import Conflict, CorruptRecord, ImportFailed, InputError, TurnlogError
from ..importers.catalog import FORMATS
from ..importers.discovery import REFUSED_PLACES, discover
from ..importers.known_files import KnownFiles
from ..importers.protocol import Imported, Origin, origin_name
from ..importers.sync.session import Synced, sync_session, without_secrets
from ..log.messages import ToolCall
from ..log.records import MessageBody
from ..log.store import Store
from ..redaction import Redactor
from ..stores.places import local_path
from .arguments import add_command, checked
from .drawing import clipped
from .stores import opened, place, settings_of
from .tables import terminal_width
from .terminal import is_terminal, out_json, out_line, out_lines, say, say_over, stdin_bytes

_WIDTH = 79
"""Characters of the progress line."""

_STATUSES = ("new", "continued", "unchanged", "diverged")

_FEW = 3
"""Up to this many warnings of a kind each get a line."""

_SUFFIXES = ("-jsonl", "-json", "-rollout", "-traj", "-events", "-session")
"""Endings of formats that say how a program writes, not which one."""


def add_to(commands: Any, store: ArgumentParser) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, store, "import")
    parser.add_argument("paths", metavar="PATH", nargs="*", help="a file, or a folder of them; - is standard input")
    text = "import all transcripts of agents in this home folder (default: your own)"
    parser.add_argument("--discover", metavar="HOME", nargs="?", const="~", help=text)
    text = "with --discover, only files written to within this time, such as 30d"
    parser.add_argument("--newer-than", metavar="AGE", type=checked(read_age, AGES), help=text)
    text = "list every session and every warning, and read files that did not change, too"
    parser.add_argument("-v", "--verbose", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="one JSON object a session, one a line")
    text = "list the formats: what is read, where programs keep it, when it was last checked"
    parser.add_argument("--formats", action="store_true", help=text)
    text = "store keys, tokens and passwords as they are (default: each is replaced by [redacted:...])"
    parser.add_argument("--unredacted", action="store_true", help=text)
    parser.set_defaults(run=_import)


def _import(arguments: Namespace) -> int:
    if arguments.formats:
        return _list_formats(arguments)
    if not arguments.paths and arguments.discover is None:
        raise InputError("nothing to import: give files or folders, or use --discover")
    if arguments.newer_than is not None and arguments.discover is None:
        raise InputError("--newer-than works only with --discover; files given by name are read however old they are")
    settings = settings_of(arguments)
    files = [] if arguments.discover is None else _discovered(arguments)
    progress = _Progress(0 if arguments.paths else len(files))
    redactor = None if arguments.unredacted else settings.redactor
    with opened(arguments, write=True, make=True) as store:
        known = known_files(store, arguments, settings, redactor)
        run = _Import(store, redactor, known, arguments)
        try:
            # Files that were read as part of another transcript are not read again.
            new = (each for each in files if not isinstance(each[1], Path) or str(each[1].absolute()) not in run.seen)
            for agent, origin in chain(new, (("", each) for each in transcripts(arguments.paths, run.seen, known))):
                progress.show(origin)
                run.read(agent, origin, progress.clear)
            progress.clear()
            run.summarize(place(arguments))
        finally:
            progress.clear()
            known.save()
            run.tell()
    if run.passed_over:
        say(f"not a transcript, skipped: {counted(run.passed_over, 'file')}")
    if not run.met and arguments.paths:
        say("nothing found to import: hidden folders are skipped, and --discover HOME searches the folders of agents")
    return run.code


def _list_formats(arguments: Namespace) -> int:
    """Print a row for each format, those that are only recognised and refused last."""
    formats = sorted(FORMATS, key=lambda row: not row.module)
    if arguments.paths or arguments.discover is not None:
        raise InputError("--formats lists the formats and imports nothing: give it without files and --discover")
    if arguments.json:
        for row in formats:
            places = {row.name: row.where, **row.also}
            out_json({"format": row.name, "reads": row.title, "read": bool(row.module), "checked": row.checked,
                      "where": {agent: where for agent, where in places.items() if where}})  # fmt: skip
        return 0
    width = max(len(row.name) for row in formats)
    for row in formats:
        out_line(f"{row.name:<{width}}  {row.title}" + ("" if row.module else " (recognised, not read)"))
        where = (*row.where, *(place for places in row.also.values() for place in places))
        out_lines([f"{'':{width}}  {place if place.startswith('<') else f'~/{place}'}" for place in where])
        out_lines([f"{'':{width}}  checked {row.checked}"] if row.module else [])
    return 0


def known_files(store: Store, arguments: Namespace, settings: Settings, redactor: Redactor | None) -> KnownFiles:
    """What was read into the store of a command with this redactor."""
    path = local_path(place(arguments))
    kinds = (redactor is None, settings.redact, settings.redact_patterns, settings.sensitive_patterns)
    return KnownFiles(store, place(arguments) if path is None else str(path.absolute()), kinds)


class _Import:
    """What an import met and did. `seen` are all files that were read, by their absolute paths."""

    def __init__(self, store: Store, redactor: Redactor | None, known: KnownFiles, arguments: Namespace) -> None:
        self._store, self._redactor, self._known, self._json = store, redactor, known, arguments.json
        one = arguments.paths[0] if arguments.discover is None and len(arguments.paths) == 1 else ""
        self._is_one = bool(one) and not Path(one).is_dir()
        self._lists, self._groups = arguments.verbose or self._is_one, not arguments.verbose
        self._begun = time.monotonic()
        self._programs: dict[str, Counter[str]] = {}
        self._told: list[str] = []
        self.seen: set[str] = set()
        self.code = self.passed_over = self.met = 0

    def read(self, agent: str, origin: Origin | InputError | None, clear: Callable[[], None]) -> None:
        """Import the sessions of a transcript, unless it did not change. `clear` is called before anything is
        printed."""
        self.met += 1
        if origin is None:
            self.passed_over += 1
            return
        if isinstance(origin, Path) and not (self._json or self._lists) and (known := self._known.find(origin)):
            self.seen.update(known.files)
            self._count(agent or known.agent, {"unchanged": len(known.sessions)})
            return
        began, failed, damaged = time.time_ns(), None, False
        kept: list[Synced] = []
        files: dict[str, None] = {}
        for imported in _read(origin):
            clear()
            if isinstance(imported, TurnlogError):
                failed = imported
                continue
            agent = agent or _program(imported.format)
            damaged = damaged or any(warning.lost != "nothing" for warning in imported.warnings)
            files.update(dict.fromkeys(imported.files))
            self.seen.update(map(os.path.abspath, imported.files))
            stored = _stored(self._store, imported, self._redactor)
            if isinstance(stored, TurnlogError):
                failed = stored
            else:
                kept.append(stored[1])
                self._report(agent, *stored)
        self.code = max(self.code, int(damaged), 0 if failed is None else failed.exit_code)
        if failed is not None:
            self._told.append(f"turnlog: {failed}")
        if files or kept:
            self._count(agent, Counter(each.status for each in kept))
            # What has to be said again is read again.
            if isinstance(origin, Path) and failed is None and not damaged and not any(each.exposed for each in kept):
                self._known.add(origin, began, agent, [each.session for each in kept], files)

    def _count(self, agent: str, numbers: Mapping[str, int]) -> None:
        self._programs.setdefault(agent, Counter()).update({"files": 1, **numbers})

    def _report(self, agent: str, imported: Imported, synced: Synced) -> None:
        if synced.status != "unchanged":
            self._programs.setdefault(agent, Counter()).update(secrets=sum(_redacted(imported).values()))
        for damage in imported.warnings:
            self._told.append(
                f"{damage.file}" + (f", line {damage.line}" if damage.line else "") + f": {damage.message}"
            )
        if self._json:
            out_json(_summary(imported, synced))
        elif self._lists:
            out_lines(_sentences(imported, synced))
        if synced.exposed:
            self._told.append(
                f"{synced.session} was imported when fewer secrets were known; "
                f"`turnlog scrub {synced.session}` removes them"
            )
        if synced.status == "diverged":
            self._told.append(
                f"{imported.session_id} contains another conversation; this one was imported as {synced.session}"
            )

    def summarize(self, where: str) -> None:
        """Print a line for each program, and the total with the store."""
        if self._json or self._is_one or not self._programs:
            return
        width = max(map(len, self._programs))
        most = max(numbers["files"] for numbers in self._programs.values())
        for agent, numbers in self._programs.items():
            files = f"{numbers['files']:>{len(f'{most:,}')},} {'file' if numbers['files'] == 1 else 'files'}"
            files = files.ljust(len(counted(most, "file")))
            out_line(f"{agent:<{width}}  {files}  {_numbers(numbers)}".rstrip())
        total = {status: sum(numbers[status] for numbers in self._programs.values()) for status in _STATUSES}
        did = f"{_numbers(total) or 'nothing'} in {time.monotonic() - self._begun:.1f} s"
        into = f"-> {_at_home(without_password(where))} ({size_text(self._store.used())})"
        fits = len(f"{did} {into}") <= (terminal_width() or math.inf)
        out_lines([f"{did} {into}"] if fits else [did, into])
        hint = "" if self._lists else "      (-v lists every session)"
        say(f"next: turnlog ls · turnlog search WORDS{hint}")

    def tell(self) -> None:
        """Print errors and warnings, many of a kind in one line."""
        groups: dict[str, list[str]] = {}
        for line in self._told:
            groups.setdefault(kind_of(line.partition(": ")[2]) if self._groups else line, []).append(line)
        for lines in groups.values():
            few = lines if len(lines) <= _FEW or not self._groups else lines[:1]
            for line in few:
                say(line + (f" (and {len(lines) - 1:,} alike; -v shows each)" if few is not lines else ""))


def _program(form: str) -> str:
    """The program that writes a format."""
    return next((form.removesuffix(suffix) for suffix in _SUFFIXES if form.endswith(suffix)), form)


def _numbers(numbers: Mapping[str, int]) -> str:
    """What became of sessions: `3 new, 36 unchanged, 1 secret redacted`."""
    told = [f"{numbers[status]:,} {status}" for status in _STATUSES if numbers[status]]
    secrets = numbers.get("secrets", 0)
    return ", ".join(told + ([f"{counted(secrets, 'secret')} redacted"] if secrets else []))


def _at_home(place: str) -> str:
    """A path, with `~` for the home folder."""
    home = os.path.expanduser("~")
    return "~" + place.removeprefix(home) if home != os.sep and place.startswith(home + os.sep) else place


def _discovered(arguments: Namespace) -> list[tuple[str, Origin | InputError]]:
    """The files of agents in a home folder, each with its agent, without files older than `--newer-than`, and an error
    for each folder that cannot be read."""
    folder, age = Path(arguments.discover).expanduser(), arguments.newer_than
    if not folder.is_dir():
        raise InputError(f"--discover: {folder} is not a folder; give the home folder of the user who ran the agents")
    unreadable: list[OSError] = []
    agent_files = list(discover(folder, unreadable.append))
    agents = Counter(each.agent for each in agent_files)
    files = ", ".join(f"{agent} {counted(number, 'file')}" for agent, number in agents.items())
    if arguments.json or not files:
        say(f"found in {folder}: {files or 'no sessions of agents'}")
    others = Counter(each.agent for each in discover(folder, lambda error: None, REFUSED_PLACES))
    if others:
        files = ", ".join(f"{agent} {counted(number, 'file')}" for agent, number in others.items())
        say(f"found, not read yet: {files}")
    if age is not None:
        since = time.time() - age.total_seconds()
        young = [each for each in agent_files if _is_newer(each.path, since)]
        say(f"skipped, older: {counted(len(agent_files) - len(young), 'file')}")
        agent_files = young
    return [
        *(("", _unreadable(error, Path(str(error.filename)))) for error in unreadable),
        *((each.agent, each.path) for each in agent_files),
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


def _read(origin: Origin | InputError) -> Iterator[Imported | TurnlogError]:
    """The sessions of a transcript, and the error if reading failed."""
    if isinstance(origin, InputError):
        yield origin
        return
    try:
        yield from importers.read_sessions(origin)
    except ImportFailed as error:
        yield error
    except OSError as error:
        yield ImportFailed(f"{_name(origin)}: cannot be read ({error.strerror or error})")
    except Exception as error:  # noqa: BLE001 - a bug in turnlog must not stop the import of the other files
        yield _bug(_name(origin), error)


def _name(origin: Origin | InputError) -> str:
    return str(origin) if isinstance(origin, InputError) else origin_name(origin)


def _bug(name: str, error: Exception) -> _Bug:
    """A bug of turnlog, with the place where it was raised."""
    return _Bug(f"{name}: an error in turnlog itself, please report it: {place_of(error)}")


def _stored(store: Store, imported: Imported, redactor: Redactor | None) -> tuple[Imported, Synced] | TurnlogError:
    """Import one session; returns it without secrets and what became of it, or the error if this failed, so that the
    others are still imported."""
    try:
        if redactor is not None:
            imported = without_secrets(imported, redactor)
        return imported, sync_session(store, imported, redactor)
    except (InputError, Conflict, CorruptRecord) as error:
        return error
    except (TurnlogError, OSError):  # an error of the store, not of the transcript
        raise
    except Exception as error:  # noqa: BLE001 - as in `_read`
        return _bug(imported.files[0] if imported.files else imported.session_id, error)


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


def _sentences(imported: Imported, synced: Synced) -> list[str]:
    """What became of a session, on one line if it fits the terminal."""
    messages, calls = _counts(imported)
    what = f"{imported.format}, {counted(messages, 'message')}, {counted(calls, 'tool call')}"
    if synced.status == "continued":
        what += f", {counted(synced.added, 'new record')}"
    if secrets := sum(_redacted(imported).values()):
        what += f", {counted(secrets, 'secret')} redacted"
    begins = f"{synced.status:<9}  {synced.session}  "
    line = f"{begins}({what})  {imported.title}".rstrip()
    room = terminal_width() or len(line)
    return [line] if len(line) <= room else [clipped(begins + imported.title, room).rstrip(), f"{'':11}({what})"]


def transcripts(
    names: Iterable[str], seen: Container[str], known: Container[Path]
) -> Iterator[Origin | InputError | None]:
    """The transcripts behind these names, an error for each that cannot be read, and None for a file in a folder that
    is not a transcript.

    A folder may be one transcript. Other folders are searched, files before folders, without hidden ones, links to
    folders, and files in `seen`, which are parts of other transcripts. Those in `known` are transcripts.
    """
    for name in names:
        path = Path(name)
        try:
            if name == "-":
                yield stdin_bytes()
            elif path.is_dir():
                yield from _in_folder(path, seen, known)
            elif path.is_fifo():  # it can be read only once
                yield path.read_bytes()
            else:
                yield path
        except InputError as error:
            yield error
        except OSError as error:
            yield _unreadable(error, path)


def _in_folder(folder: Path, seen: Container[str], known: Container[Path]) -> Iterator[Origin | InputError | None]:
    if folder in known or _is_known(folder):
        yield folder
        return
    try:
        inside = sorted(folder.iterdir(), key=lambda path: (_is_folder(path), path.name))
    except OSError as error:
        yield _unreadable(error, folder)
        return
    for path in inside:
        if path.name.startswith(".") or str(path.absolute()) in seen:
            continue
        if _is_folder(path):
            yield from _in_folder(path, seen, known)
            continue
        try:
            is_file = stat.S_ISREG(path.stat().st_mode)
        except OSError as error:  # a link to nothing or to itself, or no permission
            yield _unreadable(error, path)
            continue
        if is_file:
            yield path if path in known or _is_known(path) else None


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
        importers.detect(path)
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
