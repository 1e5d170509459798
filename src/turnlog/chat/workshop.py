"""The tools of a chat: read, list, search, edit and run, in one folder.

Edits and whatever a command changes are recorded in the session as changes of files.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..agent import FunctionTool
from ..errors import InputError
from ..session import Session

TOOL_NAMES = ("read_file", "list_folder", "search", "edit_file", "run_command")
"""The names of the tools."""

_IGNORED = {".git", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "target"}
_LINES, _MATCHES, _ENTRIES = 2_000, 200, 500
_SEARCHED = 2_000_000  # bytes of a file that are searched
_OUTPUT = 200_000  # characters of a command's output


_GUARDED = """exec 3<&0 </dev/null
(read -r _ <&3 || kill -KILL 0) >/dev/null 2>&1 &
exec 3<&- /bin/sh -c "$1"
"""
"""Runs a command beside a guard that waits for a line from us. If we are killed, the pipe ends without one, and the
guard ends the command with all that it started."""


@contextmanager
def _guard() -> Iterator[int]:
    """The pipe that a guard reads; at the end, the guard is told that all is well."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        with suppress(BrokenPipeError):  # the guard has been ended, too
            os.write(writing, b"\n")
        os.close(reading)
        os.close(writing)


class Workshop:
    """The tools for one session and one folder. Paths outside of the folder are refused."""

    def __init__(self, session: Session, folder: Path) -> None:
        self._root = folder.resolve()
        self._files = session.files(self._root)

    def tools(self, allowed: Collection[str] = ()) -> list[FunctionTool]:
        """The tools; those that are not `allowed` need approval. Raises InputError for a name that is none of them."""
        if wrong := sorted({*allowed} - {*TOOL_NAMES, "all"}):
            raise InputError(f"there is no tool {wrong[0]!r} to allow; there are {', '.join(TOOL_NAMES)}, and all")
        reading = (self.read_file, self.list_folder, self.search)
        made = []
        for function in (*reading, self.edit_file, self.run_command):
            asks = "all" not in allowed and function.__name__ not in allowed
            made.append(FunctionTool(function, needs_approval=asks, repeatable=function in reading))
        return made

    def read_file(self, path: str, first: int = 1, last: int = 0) -> str:
        """Read a text file, with line numbers.

        Args:
            path: The file, relative to the folder that the chat works in.
            first: The first line.
            last: The last line; 0 for the end, or 2,000 lines.
        """
        lines = self._text(path).splitlines()
        end = min(last or len(lines), max(first, 1) + _LINES - 1)
        shown = [f"{n:6}→{line}" for n, line in enumerate(lines, 1) if max(first, 1) <= n <= end]
        more = f"\n[{len(lines) - end:,} more lines]" if end < len(lines) else ""
        return "\n".join(shown) + more or "[the file is empty]"

    def list_folder(self, path: str = ".") -> str:
        """List the files in a folder and below it. Folders of caches and dependencies are left out.

        Args:
            path: The folder.
        """
        found = []
        for place in self._below(self._place(path)):
            found.append(place.relative_to(self._root).as_posix())
            if len(found) == _ENTRIES:
                return "\n".join([*found, f"[more than {_ENTRIES} files; list a smaller folder]"])
        return "\n".join(found) or "[no files]"

    def search(self, pattern: str, path: str = ".") -> str:
        """Search files for a regular expression. Each match is path:line: text.

        Args:
            pattern: A regular expression, as in Python.
            path: A file or a folder.
        """
        try:
            sign = re.compile(pattern)
        except re.error as error:
            raise InputError(f"pattern: {error}") from error
        found = []
        place = self._place(path)
        for file in [place] if place.is_file() else self._below(place):
            with file.open("rb") as stream:
                data = stream.read(_SEARCHED)
            if b"\0" in data[:1_000]:
                continue
            for n, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
                if sign.search(line):
                    found.append(f"{file.relative_to(self._root).as_posix()}:{n}: {line[:300]}")
                    if len(found) == _MATCHES:
                        return "\n".join([*found, f"[more than {_MATCHES} matches]"])
        return "\n".join(found) or "[no match]"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace a text in a file by another, or make a file.

        Args:
            path: The file.
            old: The text to replace, exactly as it is in the file, where it must occur once. Empty makes a new file.
            new: The text that takes its place.
        """
        place = self._place(path)
        before = place.read_bytes() if place.exists() else None
        if not old and before is not None:
            raise InputError(f"{path} exists; give the text to replace in it")
        text = new if not old else self._text(path)
        if old:
            if (times := text.count(old)) != 1:
                raise InputError(f"the text to replace occurs {times} times in {path}; it must occur once")
            text = text.replace(old, new)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
        self._files.record(place.relative_to(self._root), before, text.encode())
        return f"{path} {'changed' if before is not None else 'made'}"

    async def run_command(self, command: str, seconds: int = 60) -> str:
        """Run a shell command in the folder; gives its output and exit code.

        Args:
            command: The command.
            seconds: It is stopped after this time.
        """
        with self._files.watch(), _guard() as guarded:
            running = await asyncio.create_subprocess_exec(
                "/bin/sh",
                "-c",
                _GUARDED,
                "sh",
                command,
                cwd=self._root,
                stdin=guarded,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
            late = False
            try:
                async with asyncio.timeout(seconds):
                    data, _ = await running.communicate()
            except TimeoutError:
                _end(running.pid)
                late, (data, _) = True, await running.communicate()
            except asyncio.CancelledError:
                _end(running.pid)
                await running.wait()
                raise
        text = data.decode("utf-8", "replace")
        cut = f"{text[: _OUTPUT // 2]}\n[...]\n{text[-_OUTPUT // 2 :]}" if len(text) > _OUTPUT else text
        how = f"stopped after {seconds} seconds" if late else f"exit code {running.returncode}"
        return f"{cut}\n[{how}]"

    def _place(self, path: str) -> Path:
        place = (self._root / path).resolve()
        if not place.is_relative_to(self._root):
            raise InputError(f"{path} is outside of the folder that the chat works in")
        return place

    def _text(self, path: str) -> str:
        try:
            return self._place(path).read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is no text file: {error}") from error
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from error

    def _below(self, folder: Path) -> Iterator[Path]:
        if not folder.is_dir():
            raise InputError(f"there is no folder {folder.relative_to(self._root).as_posix()}")
        for here, folders, files in os.walk(folder):
            folders[:] = sorted(name for name in folders if name not in _IGNORED)
            found = (Path(here, name) for name in sorted(files))
            yield from (place for place in found if place.resolve().is_relative_to(self._root))  # some are links


def _end(process: int) -> None:
    """End a process and those that it started."""
    try:
        os.killpg(process, signal.SIGKILL)
    except ProcessLookupError:
        pass
