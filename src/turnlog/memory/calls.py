"""What a tool call does to files, which commands it has, and what its result shows of files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._platform.lazy import lazy_pattern
from ..log.messages import ToolCall
from ..summarize.changed_files import FileWrite, writes_of
from ..summarize.errors import as_command
from ..summarize.reading import spelled
from ..view.curate.reading import read_of
from ..view.file_edits import changes_of, shell_text, words_of

_READING = lazy_pattern(
    r"(?<![a-z])(?:read|view|open|cat|show|get_file|fetch|editor|bash|shell|exec|run|terminal|command)"
)
_BLOCK = lazy_pattern(r"^```[ \t]*(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SHELLS = ("", "bash", "sh", "shell", "zsh", "console", "mswea_bash_command")
"""The languages of code blocks that are commands."""

_READ = 3_000  # characters of a result whose line numbers are read
_NUMBER = lazy_pattern(r"[ \t]*(\d{1,7})(?:→|\t|: ?|\| ?)")


def changes_in(call: ToolCall) -> list[FileWrite]:
    """The changes that a call makes to files, each file once."""
    return writes_of(call, changes_of(call, spelled(call)))


def command_of(call: ToolCall) -> str:
    """The shell command of a call on one line, without a change of folder before it; "" if it has none."""
    return as_command(shell_text(call))


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
