"""The tools of a chat: read, list, search, edit and run, in one folder.

Edits, and the files that a command changes, are recorded in the session as changes of files.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from .._platform.texts import clip
from ..agent import FunctionTool
from ..errors import InputError
from ..session import Session
from ..session.threads import recorded
from .processes import ran_command, ran_program
from .searching import WRONG, files_below, is_binary, is_within, named, opened, told

TOOL_NAMES = ("read_file", "list_folder", "search", "edit_file", "run_command")
"""The names of the tools."""

_LINES, _ENTRIES = 2_000, 500
_READ = 100_000  # characters that a call of read_file shows
_PIECE = 65_536  # characters of a line that are read at once
_EDITED = 20_000_000  # bytes of a file that is edited
_PATIENCE = 20  # seconds for reading or searching
_LONGEST = 86_400  # seconds for a command
_SEARCH = Path(__file__).with_name("searching.py")


class Workshop:
    """The tools for one session and one folder. Paths outside of the folder are refused. `hear` is called with the
    output of a command, as it comes."""

    def __init__(self, session: Session, folder: Path, hear: Callable[[bytes], object] | None = None) -> None:
        self._root = folder.resolve()
        self._files = session.files(self._root)
        self._hear = hear

    def close(self) -> None:
        """Delete the saved contents by which changes of files are found."""
        self._files.close()

    def tools(self, allowed: Collection[str] = ()) -> list[FunctionTool]:
        """The tools; those that are not `allowed` need approval. Raises InputError for a name that no tool has."""
        if wrong := sorted({*allowed} - {*TOOL_NAMES, "all"}):
            raise InputError(f"there is no tool {wrong[0]!r} to allow; there are {', '.join(TOOL_NAMES)}, and all")
        reading = (self.read_file, self.list_folder, self.search)
        tools = []
        for function in (*reading, self.edit_file, self.run_command):
            asks = "all" not in allowed and function.__name__ not in allowed
            tools.append(FunctionTool(function, needs_approval=asks, repeatable=function in reading))
        return tools

    def read_file(self, path: str, first: int = 1, last: int = 0, skip: int = 0) -> str:
        """Read a text file, with line numbers.

        Args:
            path: The file, relative to the folder that the chat works in.
            first: The first line.
            last: The last line; 0 for the end, or 2,000 lines.
            skip: How many characters of the first line are left out: to read on in a long line.
        """
        first = max(first, 1)
        if skip < 0 or (last and last < first):
            raise InputError("skip must be 0 or more" if skip < 0 else f"last must be 0, or {first} or more")
        with self._opened(path) as file, _readable(path):
            if is_binary(file):
                raise InputError(f"{_shown(path)} is not text: it has NUL characters; look at it with a command")
            with io.TextIOWrapper(file, encoding="utf-8", newline="\n") as text:
                return _numbered(text, first, min(last or sys.maxsize, first + _LINES - 1), skip)

    def list_folder(self, path: str = ".") -> str:
        """List the files in a folder and below it. Folders of caches and dependencies are left out.

        Args:
            path: The folder.
        """
        files: list[str] = []
        left_out: Counter[str] = Counter()
        for place in files_below(str(self._folder(path)), str(self._root), left_out):
            if len(files) == _ENTRIES:
                files.append(f"[more than {_ENTRIES} files; list a smaller folder]")
                break
            files.append(named(place, str(self._root)))
        return "\n".join([*(files or ["[no files]"]), *told(left_out)])

    async def search(self, pattern: str, path: str = ".") -> str:
        """Search files for a regular expression. Each match is path:line: text. Folders of caches and dependencies are
        left out.

        Args:
            pattern: A regular expression, as in Python.
            path: A file or a folder.
        """
        place = self._place(path)
        if not os.path.isdir(place):
            self._opened(path).close()
        asked = {"pattern": pattern, "place": str(place), "root": str(self._root), "seconds": _PATIENCE}
        program = [sys.executable, "-I", "-S", "-W", "ignore", str(_SEARCH), json.dumps(asked)]
        with _startable("pattern"):
            ran = await ran_program(program, self._root, _PATIENCE)
        if ran.code is None:
            hint = "[not everything was searched; a simpler pattern or a smaller folder takes less time]"
            raise subprocess.TimeoutExpired("search", _PATIENCE, output=f"{ran.output}{hint}")
        if ran.code:
            reason = ran.output.strip().rpartition("\n")[2]
            raise InputError(
                f"pattern: {reason}" if ran.code == WRONG else f"the search broke off: {reason or ran.code}"
            )
        return ran.output.removesuffix("\n")

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a text in a file by another, or make a file.

        Args:
            path: The file.
            old: The text to replace, exactly as it is in the file, where it must occur once. Empty makes a new file.
            new: The text that takes its place.
        """
        place = self._place(path)
        before = self._content(path) if os.path.lexists(place) else None
        self._files.place(place)  # raises InputError for a path that cannot be recorded, before anything is written
        if bool(old) is (before is None):
            hint = "there is no such file; leave old empty to make it" if old else "it exists; give the text to replace"
            raise InputError(f"{_shown(path)}: {hint}")
        with _readable(path):
            text = (before or b"").decode("utf-8")
        if old and (times := text.count(old)) != 1:
            ends = r"; its lines end with \r\n" if "\r\n" in text and "\n" in old else ""
            raise InputError(f"old must occur once in {_shown(path)}, and occurs {times} times{ends}")
        try:
            after = (text.replace(old, new) if old else new).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"new cannot be written as text: {error}") from error
        self._write(path, place, before, after)
        self._files.record(place.relative_to(self._root), before, after)
        return f"{_shown(path)} {'changed' if before is not None else 'made'}"

    async def run_command(self, command: str, seconds: int = 60) -> str:
        """Run a shell command in the folder; gives its output and exit code. It reads nothing from standard input, sees
        no keys and tokens of the environment, and whatever it leaves running is ended with it.

        Args:
            command: The command.
            seconds: It is stopped after this time.
        """
        if not 1 <= seconds <= _LONGEST:
            raise InputError(f"seconds must be from 1 to {_LONGEST:,}")
        self._folder(".")  # a command may have removed it
        async with self._watched():
            with _startable("command"):
                ran = await ran_command(command, self._root, seconds, self._hear)
        if ran.code is None:
            raise subprocess.TimeoutExpired(clip(command, 100), seconds, output=ran.output)
        left = f"; processes that it left running were ended: {ran.left}" if ran.left else ""
        return f"{ran.output}\n[exit code {ran.code}{left}]"

    # -- inside ----------------------------------------------------------------------------------

    def _place(self, path: str) -> Path:
        """The place of a path, with links followed. Raises InputError if it is outside of the folder."""
        try:
            place = os.path.realpath(self._root / path)
        except ValueError as error:  # a NUL, or a character that no path can have
            raise InputError(f"{_shown(path)} cannot be a path: {error}") from error
        if not is_within(place, str(self._root)):
            raise InputError(f"{_shown(path)} is outside of the folder that the chat works in")
        return Path(place)

    def _folder(self, path: str) -> Path:
        place = self._place(path)
        if not os.path.isdir(place):
            raise InputError(f"there is no folder {_shown(path)}")
        return place

    def _opened(self, path: str) -> io.BufferedReader:
        place = self._place(path)
        with _possible(path):
            return opened(str(place))

    def _content(self, path: str) -> bytes:
        """The whole content of a file that is to be edited."""
        with _possible(path), self._opened(path) as file:
            data = file.read(_EDITED + 1)
        if len(data) > _EDITED:
            raise InputError(f"{_shown(path)} has more than {_EDITED:,} bytes; edit it with a command")
        return data

    @staticmethod
    def _write(path: str, place: Path, before: bytes | None, after: bytes) -> None:
        with _possible(path):
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                place.write_bytes(after)
            except OSError:
                with suppress(OSError):  # of a full disk: what was there takes the room that it had
                    place.write_bytes(before) if before is not None else place.unlink(missing_ok=True)
                raise

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """Record the files that change in the folder while the block runs. The event loop does not wait for the
        disk."""
        watch = self._files.watch()
        try:
            await recorded(watch.__enter__)
            yield
        finally:
            await recorded(lambda: watch.__exit__(None, None, None))


def _numbered(text: io.TextIOWrapper, first: int, last: int, skip: int) -> str:
    """Lines of a text with their numbers, as far as there is room; then a mark that says how to read on."""
    size, until = os.fstat(text.fileno()).st_size, time.monotonic() + _PATIENCE
    shown: list[str] = []
    line, column, read, room = 1, 0, 0, _READ  # where the next piece begins, what was read, what may still be shown
    piece, taken = "", 0
    while line <= last and room and (piece := text.readline(_PIECE)):
        if time.monotonic() > until:
            raise InputError(f"line {first} was not found in {_PATIENCE} seconds; read the file with a command")
        left_out = len(piece) if line < first else min(len(piece), skip - column) if line == first else 0
        left_out = max(0, left_out)
        body = piece[left_out : left_out + room]
        taken = left_out + len(body)
        if body:
            begins = column == 0 or not shown
            shown.append(f"{line:6}→{body}" if begins else body)
        room -= len(body)
        read += len(piece[:taken].encode())
        line, column = (line + 1, 0) if piece[:taken].endswith("\n") else (line, column + taken)
    numbered = "".join(shown).replace("\r\n", "\n").removesuffix("\n")
    if piece and (taken < len(piece) or text.read(1)):
        remaining = f"{size - read:,} more bytes" if size > read else "more"
        where = f"first={line}, skip={column}" if column else f"first={line}"
        return f"{numbered}\n[{remaining}; read on with {where}]"
    lines = line if column else line - 1
    return numbered or (f"[the file has {lines:,} lines]" if lines else "[the file is empty]")


def _shown(path: str) -> str:
    """A path for a message: shortened, with characters that are no text as `\\x..`."""
    return clip(path.encode("utf-8", "backslashreplace").decode(), 200).replace("\0", "\\0") or "''"


@contextmanager
def _possible(path: str) -> Iterator[None]:
    """Turn an error of the system into an InputError that names the path."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{_shown(path)}: {error.strerror or error}") from error


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        with _possible(path):
            yield
    except UnicodeDecodeError as error:
        raise InputError(f"{_shown(path)} is not text in UTF-8: {error}") from error


@contextmanager
def _startable(argument: str) -> Iterator[None]:
    """Turn the failure to start a program into an InputError that names the argument, which is too long or has a
    NUL."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise InputError(f"{argument}: {getattr(error, 'strerror', None) or error}") from error
