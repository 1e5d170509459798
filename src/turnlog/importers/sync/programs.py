"""New transcripts of the agent programs on this machine, read as they grow: a little before each question, or all the
time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from ... import importers
from ..._platform.stdlib import LOG
from ...log.store import Store
from ...redaction import Redactor
from ..discovery import discover
from ..known_files import KnownFiles
from .session import sync_session, without_secrets

SECONDS = 0.2
"""How long a question waits for transcripts."""

LOOK = 0.2
"""Seconds between two looks at the transcripts that were written last, for `follow`."""
FIND = 5.0
"""Seconds between two searches for new transcripts."""
GROWING = 100
"""So many transcripts, the last written first, are looked at between two searches."""

State = tuple[int, int]
"""When a file was last written, and its size."""


class Sync:
    """Reads the transcripts in `home` that changed, the newest first, into a store. `known` gives what imports have
    read. `wait` reads for a moment: the file at which the time is over is finished beside the answer, and nothing is
    read after it. `follow` goes on until `close`."""

    def __init__(self, store: Store, redactor: Redactor | None, home: Path, known: Callable[[], KnownFiles]) -> None:
        self._store, self._redactor, self._home, self._known = store, redactor, home, known
        self._met: dict[Path, State] = {}  # also files that cannot be read, or were written just before
        self._thread: Thread | None = None
        self._lock = Lock()  # programs ask two questions at once
        self._until = 0.0
        self._closed = Event()
        self.unread = 0

    def wait(self, asking: Collection[str]) -> None:
        """Read for at most `SECONDS`; `unread` are the transcripts that are left. Those of the sessions `asking` are
        known by their names and not read: they grow with each question, and nobody asks for them."""
        self._until = time.monotonic() + SECONDS
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._read, args=(asking,), daemon=True)
                self._thread.start()
        self._thread.join(SECONDS)

    def follow(self) -> None:
        """Read what changed in a thread, and whatever changes from now on: transcripts that were written before within
        a second, new ones within some. A file that takes long to read is read less often."""
        self._until = float("inf")
        self._thread = Thread(target=self._follow, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop behind the file that is being read."""
        self._until = 0.0
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def files(self) -> list[tuple[State, str, Path]]:
        """All transcripts, the last written first, with the program that wrote each."""
        states: list[tuple[State, str, Path]] = []
        for file in discover(self._home, lambda error: None):
            if (state := _state(file.path)) is not None:
                states.append((state, file.agent, file.path))
        return sorted(states, reverse=True)

    def _follow(self) -> None:
        while not self._closed.is_set():
            newest = self._read(())
            rest = dict.fromkeys(newest, 0.0)
            searched = time.monotonic()
            while time.monotonic() < searched + FIND and not self._closed.wait(LOOK):
                for path in newest:
                    state, now = _state(path), time.monotonic()
                    if state is not None and state != self._met.get(path) and rest[path] <= now:
                        self._met[path] = state
                        self._take(path)
                        rest[path] = 2 * time.monotonic() - now  # at most half of the time
                    if self._closed.is_set():
                        return

    def _read(self, asking: Collection[str]) -> list[Path]:
        """Read all transcripts that changed; returns those that were written last, changed or not."""
        files = self.files()
        new = [each for each in files if self._met.get(each[2]) != each[0]]
        new = [each for each in new if not any(name in each[2].name for name in asking)]
        if new:
            self._read_new(new)
        return [path for _, _, path in files[:GROWING]]

    def _read_new(self, new: list[tuple[State, str, Path]]) -> None:
        known = self._known()
        changed = [each for each in new if not known.find(each[2])]
        for self.unread, (state, agent, path) in zip(range(len(changed), 0, -1), changed, strict=True):
            if time.monotonic() > self._until:
                break
            self._met[path], began = state, time.time_ns()
            if (read := self._take(path)) is not None:
                known.add(path, began, agent, *read)
        else:
            self.unread = 0
            self._met.update((path, state) for state, _, path in new)
        known.save()

    def _take(self, path: Path) -> tuple[list[str], list[str]] | None:
        """Read one transcript: its sessions and its files; None if not all of it could be read."""
        try:
            names, files, is_whole = list[str](), list[str](), True
            for each in importers.read_sessions(path):
                kept = each if self._redactor is None else without_secrets(each, self._redactor)
                names.append(sync_session(self._store, kept, self._redactor).session)
                files += each.files
                is_whole = is_whole and not each.warnings
        except Exception as error:  # noqa: BLE001 - one transcript must not keep the others from being read
            LOG.warning("%s is not read: %s", path, error)
            return None
        return (names, files) if is_whole else None


def _state(path: Path) -> State | None:
    """The state of a file; None if it is gone."""
    with suppress(OSError):
        status = path.stat()
        return status.st_mtime_ns, status.st_size
    return None
