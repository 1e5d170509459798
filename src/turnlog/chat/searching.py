"""Find and read files for the tools of a chat, and search them in a separate program.

Python's regular expressions cannot be interrupted, so `Workshop.search` runs this file as a program, which can be
ended. It imports nothing of turnlog, so that it starts at once. Its argument is JSON: `pattern`, `place` (a file or a
folder), `root` and `seconds`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from errno import EINVAL
from io import BufferedReader

IGNORED = {".git", ".venv", "node_modules", "__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "target"}
"""Names of folders that are neither listed nor searched."""

WRONG = 2
"""The exit code for a pattern that is no regular expression; the output says why."""

_MATCHES = 200
_LINE = 1_000_000  # bytes of a line that are searched at once
_SHOWN, _BEFORE = 300, 100  # characters of a long line that are shown, and those before the match
_HEAD = 1_000  # bytes of a file in which a NUL shows that it is binary
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def opened(place: str) -> BufferedReader:
    """A file, opened for reading. Raises OSError, which says what it is, for anything else: reading a pipe or a device
    may take forever."""
    mode = os.stat(place).st_mode
    if not stat.S_ISREG(mode):
        raise OSError(EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")
    # never waits: it may have become a pipe meanwhile, and some files of /proc wait for what is written next
    return open(place, "rb", opener=lambda path, flags: os.open(path, flags | getattr(os, "O_NONBLOCK", 0)))


def is_binary(file: BufferedReader) -> bool:
    """Whether there is a NUL in the beginning of a file."""
    return b"\0" in file.peek(_HEAD)[:_HEAD]


def named(place: str, root: str) -> str:
    r"""A path relative to `root`, with `/`, on one line: control characters, and bytes that are no text, as `\x..`."""
    text = os.fsencode(os.path.relpath(place, root).replace(os.sep, "/")).decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], text)


def is_within(place: str, root: str) -> bool:
    """Whether a path, with its links followed, is `root` or below it."""
    real = os.path.realpath(place)
    return real == root or real.startswith(os.path.join(root, ""))


def files_below(folder: str, root: str, left_out: Counter[str]) -> Iterator[str]:
    """The files in a folder and below it, also links to files under `root`. Counts in `left_out` what is left out."""
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError:
            left_out["folders that cannot be read"] += 1
            continue
        folders = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders += [entry.path] if entry.name not in IGNORED else []
            elif entry.is_symlink() and not is_within(entry.path, root):
                left_out["links that lead out of the folder"] += 1
            elif entry.is_symlink() and os.path.isdir(entry.path):
                left_out["links to folders"] += 1
            else:
                yield entry.path
        waiting += reversed(folders)


def told(left_out: Counter[str]) -> list[str]:
    """A line that counts what was left out; no line if nothing was."""
    counted = "; ".join(f"{what}: {number:,}" for what, number in left_out.items())
    return [f"[left out: {counted}]"] if counted else []


def _search(pattern: re.Pattern[str], place: str, root: str) -> Iterator[str]:
    """A line for each match, and then one for what was not searched."""
    left_out: Counter[str] = Counter()
    number = 0
    for file in files_below(place, root, left_out) if os.path.isdir(place) else [place]:
        try:
            with opened(file) as stream:
                for match in _matches(pattern, stream, left_out):
                    number += 1
                    if number > _MATCHES:
                        yield f"[more than {_MATCHES} matches; a narrower pattern or path shows the others]"
                        yield from told(left_out)
                        return
                    yield f"{named(file, root)}:{match}"
        except OSError as error:
            left_out["pipes, sockets and devices" if error.errno == EINVAL else "files that cannot be read"] += 1
    if not number:
        yield "[no match]"
    yield from told(left_out)


def _matches(pattern: re.Pattern[str], stream: BufferedReader, left_out: Counter[str]) -> Iterator[str]:
    if is_binary(stream):
        left_out["binary files"] += 1
        return
    number, column = 1, 0
    while piece := stream.readline(_LINE):
        text = piece.decode("utf-8", "replace").rstrip("\r\n")
        if match := pattern.search(text):
            yield f"{number}: {_around(text, match.start(), column)}"
        if piece.endswith(b"\n"):
            number, column = number + 1, 0
        else:
            column += len(text)
            if len(piece) == _LINE:
                left_out[f"places between pieces of {_LINE:,} bytes in long lines"] += 1


def _around(text: str, start: int, column: int) -> str:
    """A line, or the part of a long line around a match. `column` is the number of characters of the line before
    `text`."""
    begin = max(0, start - _BEFORE) if len(text) > _SHOWN else 0
    before = f"[{column + begin:,} characters] " if column + begin else ""
    after = max(0, len(text) - begin - _SHOWN)
    return f"{before}{text[begin : begin + _SHOWN]}" + (f" [{after:,} characters or more]" if after else "")


def _main() -> int:
    asked = json.loads(sys.argv[1])
    if hasattr(signal, "alarm"):
        signal.alarm(asked["seconds"] + 1)  # if nobody is left to end this program
    out = sys.stdout.buffer
    try:
        pattern = re.compile(asked["pattern"])
    except (re.error, OverflowError, RecursionError) as error:
        out.write(str(error).encode("utf-8", "backslashreplace"))
        return WRONG
    for line in _search(pattern, asked["place"], asked["root"]):
        out.write(f"{line}\n".encode("utf-8", "backslashreplace"))
        out.flush()  # what was found is kept if time runs out
    return 0


if __name__ == "__main__":
    sys.exit(_main())
