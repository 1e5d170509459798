"""Files that are read again: lines that the view shows already, unchanged and with the same number, are not shown
twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ..._platform.lazy import lazy_pattern
from ...log.messages import ToolCall
from ..file_edits import changes_of, shell_text, words_of
from .curate import MOST_LEFT

_PATHS = ("file_path", "absolute_path", "path", "filepath", "filename", "file", "target_file", "uri")
_STARTS = ("offset", "start_line", "line_start", "first_line", "start")
_RANGES = ("view_range", "line_range", "range")
_SED = lazy_pattern(r"\bsed\s+-n\s+['\"]?(\d+),\d+p['\"]?\s+(?:--\s+)?([^\s|;&<>'\"]+)\s*$")
_WHOLE = lazy_pattern(
    r"\b(?:cat|nl|bat)\s+(?:-[A-Za-z]+\s+)*([^\s|;&<>'\"]+)(?:\s*\|\s*sed\s+-n\s+['\"]?(\d+),\d+p['\"]?)?\s*$"
)
_HEAD = lazy_pattern(r"\bhead\s+(?:-n\s*|-)(\d+)\s+([^\s|;&<>'\"]+)\s*$")
_NUMBERED = lazy_pattern(r"[ \t]*(\d{1,9})(?:→|\t|: ?|\| ?)")
_ALONE = lazy_pattern(r"(?:\s*(?:cd|export|set|source|\.)\b[^;&|\n]*(?:&&|;|\n))*\s*\Z")  # prints nothing before a file
_OLD = lazy_pattern(r"old(?:_|$)|search$|find$")  # keys of an edit's arguments
_OUTPUT = lazy_pattern(r"\A(?:[^\n]{0,300}\n){0,8}?Output:\n")

LEAST_READ = 400
"""Characters. A shorter read stays as it is."""

_LEAST_LINES, _LEAST_CHARACTERS = 2, 100
"""The fewest consecutive unchanged lines, and the fewest characters in them, that are worth a mark."""


class ReadLines(Struct, frozen=True):
    """The lines of a file that a tool printed, and the number of each in the file: 0 for a line that the tool added."""

    path: str
    lines: list[str]
    numbers: list[int]


def read_of(call: ToolCall, text: str) -> ReadLines | None:
    """The lines that a call printed of the file it reads; None if the file or the lines are unknown."""
    path, start = _place(call)
    if not path:
        return None
    lead = _OUTPUT.match(text)
    lines = text.split("\n")
    skipped = text.count("\n", 0, lead.end()) if lead else 0
    numbers = _printed_numbers(lines)
    if not numbers:
        if not start:
            return None
        numbers = [0] * skipped + [start + i for i in range(len(lines) - skipped)]
        if lines[-1] == "":
            numbers[-1] = 0
    return ReadLines(_normal(path), lines, numbers)


def _place(call: ToolCall) -> tuple[str, int]:
    """The path of the file, and the number of the first printed line; 0 if unknown."""
    named = call.arguments if isinstance(call.arguments, dict) else {}
    arguments = {words_of(str(key)): value for key, value in named.items()}
    path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), "")
    if path:
        return path, _start(arguments)
    command = shell_text(call).strip()
    for pattern in (_SED, _WHOLE, _HEAD):
        if (match := pattern.search(command)) is not None:
            if _ALONE.match(command[: match.start()]) is None:
                return "", 0
            if pattern is _WHOLE:
                return match[1], int((match[2] or "1")[:9])
            return match[2], int(match[1][:9]) if pattern is _SED else 1
    return "", 0


def _start(own: dict[str, Any]) -> int:
    for key in _STARTS:
        if isinstance(value := own.get(key), int):
            return max(1, value)
    for key in _RANGES:
        value = own.get(key)
        if isinstance(value, list) and value and isinstance(value[0], int):
            return max(1, value[0])
    return 1


def _printed_numbers(lines: Sequence[str]) -> list[int]:
    """The numbers that the tool printed before the lines; [] if it printed none."""
    numbers = [int(match[1]) if (match := _NUMBERED.match(line)) else 0 for line in lines]
    last = 0
    rising = 0
    for i, n in enumerate(numbers):
        if n and (n == last + 1 or not last):
            rising, last = rising + 1, n
        elif n:
            numbers[i] = 0
    return numbers if rising > 0.6 * len(lines) else []


def _normal(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./")


def _replaced(call: ToolCall) -> Iterator[str]:
    """The texts that an edit replaces, as its arguments or its patch name them."""
    waiting: list[Any] = [call.arguments]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            old = (item for key, item in value.items() if _OLD.match(words_of(str(key))) and isinstance(item, str))
            yield from (item for item in old if item.strip())
            waiting += [item for item in value.values() if isinstance(item, (dict, list))]
    if "*** Update File" in call.raw_arguments:
        patch = next((text for text in (call.raw, *_texts(call.arguments)) if text and "*** Update File" in text), "")
        yield from (line[1:] for line in patch.split("\n") if line.startswith("-"))


def _texts(arguments: Any) -> list[str]:
    return [value for value in arguments.values() if isinstance(value, str)] if isinstance(arguments, dict) else []


class ShownLines:
    """The lines of files that a conversation shows: for each line of a file, its newest text and the record that has
    it. A read is taken in when its file is read or edited again, which most are not."""

    def __init__(self) -> None:
        self._files: dict[str, dict[int, tuple[str, int]]] = {}
        self._waiting: dict[str, list[tuple[ReadLines, Sequence[int], int]]] = {}

    def edited(self, call: ToolCall) -> None:
        """Forget what a call changed: the lines that it replaced, if it names them, or the whole file."""
        paths = [path for path, _ in changes_of(call, call.raw_arguments)] if self._files else []
        if not paths:
            return
        replaced = frozenset(line.strip() for text in _replaced(call) for line in text.split("\n"))
        for path in paths:
            ends = "/" + _normal(path).rpartition("/")[2]
            for file in [name for name in self._files if f"/{name}".endswith(ends)]:
                lines = self._lines(file)
                del self._files[file]
                if replaced:
                    remaining = {
                        n: line for n, line in lines.items() if _NUMBERED.sub("", line[0], 1).strip() not in replaced
                    }
                    self._files[file] = remaining

    def repeats(self, read: ReadLines, record: int) -> list[int]:
        """For each line of a read in record `record`, the other record that shows the same line already, with the same
        number; 0 if there is none."""
        shown_lines = self._lines(read.path)
        if not shown_lines:
            return [0] * len(read.lines)
        records = []
        for line, n in zip(read.lines, read.numbers, strict=True):
            text, other = shown_lines.get(n, ("", 0)) if n else ("", 0)
            records.append(other if text == line and other != record else 0)
        return records

    def shown(self, read: ReadLines, since: Sequence[int], record: int) -> None:
        """Take in a read that record `record` shows, except the lines that point to another record."""
        self._files.setdefault(read.path, {})
        self._waiting.setdefault(read.path, []).append((read, since, record))

    def _lines(self, path: str) -> dict[int, tuple[str, int]]:
        """The lines of a file, by number, after all reads of it."""
        for read, since, record in self._waiting.pop(path, ()):
            shown_lines = self._files[path]
            for line, n, other in zip(read.lines, read.numbers, since, strict=True):
                if n and not other:
                    shown_lines[n] = (line, record)
        return self._files.get(path, {})


def folded(read: ReadLines, since: Sequence[int], *, named: bool) -> tuple[str, list[int]]:
    """The text of a read with marks in place of lines that another record shows, and for each line the record that it
    points to (0: none). Nothing is folded if less than a third would go. With `named`, the marks name the record."""
    text = "\n".join(read.lines)
    references = [0] * len(read.lines)
    if len(text) < LEAST_READ or not any(since):
        return text, references
    pieces: list[str] = []
    for start, end, record in _runs(read, since):
        run = read.lines[start:end]
        if record and (len(run) < _LEAST_LINES or sum(map(len, run)) < _LEAST_CHARACTERS):
            record = 0
        if not record:
            pieces += run
            continue
        references[start:end] = [record] * (end - start)
        lines = f"lines {read.numbers[start]:,}-{read.numbers[end - 1]:,}"
        where = f"unchanged since record {record}" if named else "left out: unchanged since they were read above"
        pieces.append(f"[... {lines} of {read.path} {where} ...]")
    short = "\n".join(pieces)
    if len(short) > MOST_LEFT * len(text):
        return text, [0] * len(references)
    return short, references


def _runs(read: ReadLines, since: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Consecutive lines that the same record shows, or none: the first line, the one after the last, and the record."""
    start = 0
    for i in range(1, len(since) + 1):
        if i < len(since) and since[i] == since[start] and (not since[i] or read.numbers[i] == read.numbers[i - 1] + 1):
            continue
        yield start, i, since[start]
        start = i
