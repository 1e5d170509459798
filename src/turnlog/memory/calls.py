"""What a tool call does to files, and what its result shows of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .._platform.lazy import lazy_pattern
from .._platform.texts import clip
from ..log.messages import ToolCall
from ..summarize.reading import spelled
from ..view.curate.reading import read_of
from ..view.file_edits import BY_SHELL, FOLDER, changes_of, shell_text, without_folder, words_of
from .entities import State

_READING = lazy_pattern(
    r"(?<![a-z])(?:read|view|open|cat|show|get_file|fetch|editor|bash|shell|exec|run|terminal|command)"
)
_BLOCK = lazy_pattern(r"^```[ \t]*(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELLS = ("", "bash", "sh", "shell", "zsh", "console", "mswea_bash_command")
"""The languages of code blocks that are commands."""

_FOLDER_KEYS = ("workdir", "cwd", "dir_path", "directory")
_COMMAND = 600  # characters of a command that are kept
_READ = 3_000  # characters of a result whose line numbers are read
_NUMBER = lazy_pattern(r"[ \t]*(\d{1,7})(?:→|\t|: ?|\| ?)")
_CREATED = lazy_pattern(r"(?<![a-z])(?:creat|add)")
_WRITTEN = lazy_pattern(r"(?<![a-z])(?:writ|sav|overwrit|touch)")
_DELETED = lazy_pattern(r"(?<![a-z])(?:delet|remov|rm(?![a-z]))")
_MOVED = lazy_pattern(r"(?<![a-z])(?:mov|renam)")


class FileWrite(NamedTuple):
    """A change that a call makes to a file. `writes`: it writes the whole file, which may be new; `sure`: it is not
    made if the call fails."""

    path: str
    state: State
    writes: bool
    sure: bool

    @property
    def gone(self) -> bool:
        """Whether the file must have been there before, and is not any more."""
        return self.state in ("deleted", "moved")


def changes_in(call: ToolCall) -> Iterator[FileWrite]:
    """The changes that a call makes to files, each file once."""
    seen = set()
    folder = _folder_of(call)
    for given, done in changes_of(call, spelled(call)):
        path = f"{folder}/{given.removeprefix('./')}" if folder and given[:1] not in ("/", "~") else given
        if path not in seen and not path.endswith("/"):
            seen.add(path)
            words = words_of(done)
            yield FileWrite(path, _state(words), _WRITTEN.search(words) is not None, done not in BY_SHELL)


def _folder_of(call: ToolCall) -> str:
    """The folder that a shell command runs in, if the call says so; else ""."""
    match = FOLDER.match(shell_text(call).lstrip())
    named = call.arguments if isinstance(call.arguments, dict) else {}
    folder = match[1] or match[2] or match[3] if match is not None else ""
    folder = folder or next((value for key in _FOLDER_KEYS if isinstance(value := named.get(key), str)), "")
    return folder.rstrip("/") if folder.startswith(("/", "~")) and "$" not in folder else ""


def _state(done: str) -> State:
    if _DELETED.search(done):
        return "deleted"
    if _MOVED.search(done):
        return "moved"
    return "created" if _CREATED.search(done) else "edited"


def command_of(call: ToolCall) -> str:
    """The shell command of a call on one line, without a change of folder before it; "" if it has none."""
    return as_command(shell_text(call))


def as_command(text: str) -> str:
    """A shell command in the form in which commands are compared: on one line, without a change of folder before it."""
    return clip(without_folder(text.strip()), _COMMAND) if text.strip() else ""


def commands_in_blocks(text: str) -> Iterator[str]:
    """The commands in the code blocks of a text."""
    for language, block in _BLOCK.findall(text):
        if language.lower() in SHELLS and block.strip():
            yield as_command(block)


def lines_read(call: ToolCall, text: str) -> tuple[str, tuple[int, int]] | None:
    """The file that a call reads, and the first and last line that its result shows ((0, 0): not known); None if it
    reads none. The numbers of a long result are those at its beginning and end."""
    if _READING.search(words_of(call.name)) is None:
        return None
    part = text if len(text) <= _READ else text[: text.rfind("\n", 0, _READ) + 1 or _READ]
    read = read_of(call, part)
    if read is None:
        return None
    numbers = [n for n in read.numbers if n]
    if not numbers or not read.path:
        return read.path, (0, 0)
    last = numbers[-1]
    if part is not text:
        tail = (match for line in reversed(text[-_READ:].split("\n")) if (match := _NUMBER.match(line)))
        match = next(tail, None)
        counted = last + text.count("\n", len(part))
        last = int(match[1]) if match is not None and last < int(match[1]) <= counted else counted
    return read.path, (numbers[0], last)
