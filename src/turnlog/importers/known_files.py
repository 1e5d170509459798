"""Which files were read into a store, so that an import reads only those that changed since.

This is a cache in the user's cache folder, a file for each store: it may be damaged or deleted at any time, and then
everything is read again. An encrypted store and one in memory have none, as names of files would be in clear, or
nothing is left to remember.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from .._platform.files import write_whole
from .._platform.lazy import cached_property
from .._platform.paths import cache_folder
from .._version import __version__
from ..errors import InputError
from ..log.messages import sha256_hex
from ..log.store import Store
from .catalog import IMPORTERS

_SETTLED = 2_000_000_000
"""Nanoseconds. A file that was written to later than this before it was read is read once more: it may change within
one tick of its clock."""


class KnownFile(Struct, frozen=True, array_like=True):
    """A transcript that was read: the state of its files then, the agent or format, the sessions that it became, and
    its other files."""

    state: str
    agent: str
    sessions: tuple[str, ...]
    files: tuple[str, ...] = ()


class _Known(Struct):
    """The content of the file: `made` says by which turnlog, with which settings."""

    made: str
    files: dict[str, KnownFile]


class KnownFiles:
    """The files that were read into `store` at `place`. Files that were read with other `settings`, or by another
    version of turnlog, are not known."""

    def __init__(self, store: Store, place: str, settings: object) -> None:
        self._store = store
        self._made = sha256_hex(repr((__version__, settings)).encode("utf-8", "surrogatepass"))
        has_none = store.encrypted or place == ":memory:"
        name = sha256_hex(place.encode("utf-8", "surrogatepass"))[:32]
        self._place = None if has_none else cache_folder() / "imports" / f"{name}.json"
        self._met: set[str] = set()
        self._folders: dict[str, frozenset[str]] = {}
        self._is_changed = False

    def __contains__(self, path: object) -> bool:
        """Whether the file at this path was a transcript when it was last met."""
        return os.path.abspath(str(path)) in self._files

    def find(self, path: Path) -> KnownFile | None:
        """The transcript at this path, if it and all files that belong to it are as they were, and all its sessions
        are still in the store."""
        name = os.path.abspath(path)
        self._met.add(name)
        known = self._files.get(name)
        if known is None or not self._sessions.issuperset(known.sessions):
            return None
        return known if self._state(name, known.sessions, known.files)[0] == known.state else None

    def add(self, path: Path, began: int, agent: str, sessions: Sequence[str], files: Iterable[str]) -> None:
        """Remember a transcript, unless one of its files was written to shortly before it was read, or since. `began`
        is when that was, in nanoseconds; `files` are those that were read."""
        name = os.path.abspath(path)
        others = tuple(other for other in map(os.path.abspath, files) if other != name)
        state, newest = self._state(name, sessions, others)
        if newest < began - _SETTLED:
            self._files[name] = KnownFile(state, agent, tuple(sessions), others)
        else:
            self._files.pop(name, None)
        self._is_changed = True

    def save(self) -> None:
        """Write the file, without transcripts that are gone. Nothing happens if that is not possible."""
        if self._place is None or not self._is_changed:
            return
        files = {name: file for name, file in self._files.items() if name in self._met or os.path.lexists(name)}
        with suppress(OSError, InputError, UnicodeError):
            self._place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._place, [msgspec.json.encode(_Known(self._made, files))])

    @cached_property
    def _files(self) -> dict[str, KnownFile]:
        with suppress(OSError, msgspec.DecodeError, UnicodeError):
            if self._place is not None:
                known = msgspec.json.decode(self._place.read_bytes(), type=_Known)
                return known.files if known.made == self._made else {}
        return {}

    @cached_property
    def _sessions(self) -> frozenset[str]:
        return frozenset(info.id for info in self._store.sessions())

    def _state(self, name: str, sessions: Sequence[str], others: Iterable[str]) -> tuple[str, int]:
        """The state of a transcript's files, and when the newest of them was last written, in nanoseconds.

        It includes what importers look for beside it (`Importer.beside`), so that one that appears is noticed, and the
        folders of files that were read beside the transcript, such as screenshots.
        """
        folder, file = os.path.split(name)
        names = {"name": file, "stem": os.path.splitext(file)[0], "first": file.partition(".")[0]}
        patterns = {pattern for importer in IMPORTERS for pattern in importer.beside}
        paths = [
            pattern.format(session=session, **names) for pattern in sorted(patterns) for session in sessions or ("",)
        ]
        sought = [(path.partition("/")[0], path) for path in dict.fromkeys(paths)]
        there = self._listed(folder)
        newest, state = 0, list[tuple[int, ...]]()
        beside = (os.path.join(folder, path) for entry, path in sought if entry in there or entry == "..")
        for path in (name, *beside, *others, *dict.fromkeys(map(os.path.dirname, others))):
            try:
                status = os.stat(path)
            except (OSError, ValueError):
                state.append(())
                continue
            state.append((status.st_mtime_ns, status.st_size, status.st_ino))
            newest = max(newest, status.st_mtime_ns)
        return sha256_hex(repr(state).encode())[:32], newest

    def _listed(self, folder: str) -> frozenset[str]:
        """The names in a folder when it was first met: most of what could be beside a transcript is not there."""
        if folder not in self._folders:
            with suppress(OSError):
                self._folders[folder] = frozenset(os.listdir(folder))
        return self._folders.setdefault(folder, frozenset())
