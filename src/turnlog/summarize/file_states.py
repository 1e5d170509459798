"""The section of a digest that names the files which a session changed, each with its last state.

Whoever has the whole log gives the states (see `Digest`). Files of one folder share a line, and folders that begin
alike a line above them, so that many files take little room.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .sections import SectionLine

_LEAST_ROOT = 8  # characters of a folder that is worth a line of its own
_MORE = "{} more, changed before these"


class FileState(NamedTuple):
    """A file that was changed: its path, what was done to it last, and the record that says so."""

    path: str
    state: str
    record: int


def lines_of(states: Sequence[FileState], room: float) -> list[SectionLine]:
    """The lines of the section for `states`, the last changed first: as many files as have `room` characters. A last
    line says how many more there are."""
    low, high = 0, len(states)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(states, middle) <= room else (low, middle - 1)
    texts = _texts(states, low)
    return [SectionLine(place, text) for place, text in enumerate(texts)] if low else []


def _size(states: Sequence[FileState], number: int) -> int:
    return sum(len(text) + 1 for text in _texts(states, number))


def _texts(states: Sequence[FileState], number: int) -> list[str]:
    """The lines that name the first `number` files."""
    folders: dict[str, list[str]] = {}
    for path, state, record in states[:number]:
        folder, slash, name = " ".join(path.splitlines()).rpartition("/")
        folders.setdefault(folder + slash, []).append(f"{name} {state} [{record}]")
    root = _root([folder for folder in folders if folder.startswith("/")])
    lines = [f"in {root}" for _ in range(1) if root]
    for folder, files in folders.items():
        place = folder.removeprefix(root) if root and folder.startswith(root) else folder
        lines.append(f"{place or './'}: {', '.join(files)}")
    if number < len(states):
        lines.append(_MORE.format(len(states) - number))
    return lines


def _root(folders: Sequence[str]) -> str:
    """The folder that all of `folders` are in, if naming it once saves room."""
    if len(folders) < 2:
        return ""
    first, last = min(folders), max(folders)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    root = first[: first.rfind("/", 0, same) + 1]
    return root if len(root) >= _LEAST_ROOT else ""
