"""The places in a home folder where agents store their sessions.

A place is a pattern below the home folder; `**` matches any number of folders. The places of a format are in
`catalog.FORMATS`. This module does not read transcripts: `detect` determines the format of each file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from .catalog import FORMATS, IMPORTERS, ROOTS
from .protocol import Importer


class AgentFile(Struct, frozen=True, order=True):
    """A file of an agent, in the place where that agent stores its sessions."""

    agent: str
    path: Path


def _places(importers: Iterable[Importer]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (agent, place.replace(word, root))
        for importer in importers
        for agent, places in {importer.name: importer.where, **importer.also}.items()
        for place in places
        for word, roots in [next((each for each in ROOTS.items() if place.startswith(each[0])), ("<", ("",)))]
        for root in roots
    )


PLACES = _places(IMPORTERS)
"""The places of each agent, from the table of formats."""
REFUSED_PLACES = _places(importer for importer in FORMATS if not importer.module)
"""Those of the agents whose files are not read."""


def discover(
    home: Path, failed: Callable[[OSError], None], places: Iterable[tuple[str, str]] = PLACES
) -> Iterator[AgentFile]:
    """Every session file of agents under `home`, sorted, without duplicates; `places` may be other ones.

    A link to a folder is followed only if the pattern names it, never for `**`. `failed` is called for every folder, or
    link to a folder, that exists but cannot be read.
    """
    seen: set[Path] = set()
    found = (AgentFile(agent, path) for agent, place in places for path in _matching(home, place.split("/"), failed))
    for file in sorted(found, key=lambda file: (file.agent, file.path.parts)):
        if file.path not in seen:
            seen.add(file.path)
            yield file


def _matching(folder: Path, steps: list[str], failed: Callable[[OSError], None]) -> Iterator[Path]:
    """The files below `folder` that match the remaining steps of a pattern."""
    step, *rest = steps
    if rest and not set(step) & set("*?["):
        yield from _matching(folder / step, rest, failed)
        return
    for entry in _entries(folder, failed):
        below = folder / entry.name
        if step == "**":
            if entry.is_dir(follow_symlinks=False):
                yield from _matching(below, steps, failed)
            elif not rest[1:] and _is_file(entry) and fnmatchcase(entry.name, rest[0]):
                yield below
        elif fnmatchcase(entry.name, step):
            if rest and _is_folder(entry, failed):
                yield from _matching(below, rest, failed)
            elif not rest and _is_file(entry):
                yield below


def _is_folder(entry: os.DirEntry[str], failed: Callable[[OSError], None]) -> bool:
    try:
        return entry.is_dir()
    except OSError as error:  # a link to itself, or no permission
        failed(error)
        return False


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether this is a file or a broken link. Reading a broken link then reports the error."""
    try:
        return entry.is_file() or (entry.is_symlink() and not entry.is_dir())
    except OSError:
        return True


def _entries(folder: Path, failed: Callable[[OSError], None]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        failed(error)
        return []
