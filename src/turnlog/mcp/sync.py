"""New transcripts of the agent programs on this machine, read a little before each question."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread

from .. import importers
from .._platform.stdlib import LOG
from ..importers.discovery import discover
from ..importers.known_files import KnownFiles
from ..importers.sync.session import sync_session, without_secrets
from ..log.store import Store
from ..redaction import Redactor

SECONDS = 0.2
"""How long a question waits for transcripts."""

State = tuple[int, int]
"""When a file was last written, and its size."""


class Sync:
    """Reads the transcripts in `home` that changed, the newest first, into a store. `known` gives what imports have
    read. The file at which the time is over is finished beside the answer, and nothing is read after it."""

    def __init__(self, store: Store, redactor: Redactor | None, home: Path, known: Callable[[], KnownFiles]) -> None:
        self._store, self._redactor, self._home, self._known = store, redactor, home, known
        self._met: dict[Path, State] = {}  # also files that cannot be read, or were written just before
        self._thread: Thread | None = None
        self._lock = Lock()  # programs ask two questions at once
        self._until = 0.0
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

    def close(self) -> None:
        """Stop behind the file that is being read."""
        self._until = 0.0
        if self._thread is not None:
            self._thread.join()

    def files(self) -> list[tuple[State, str, Path]]:
        """All transcripts, the last written first, with the program that wrote each."""
        states: list[tuple[State, str, Path]] = []
        for file in discover(self._home, lambda error: None):
            with suppress(OSError):  # it is gone
                status = file.path.stat()
                states.append(((status.st_mtime_ns, status.st_size), file.agent, file.path))
        return sorted(states, reverse=True)

    def _read(self, asking: Collection[str]) -> None:
        known = self._known()
        changed = [
            (state, agent, path)
            for state, agent, path in self.files()
            if self._met.get(path) != state and not any(each in path.name for each in asking) and not known.find(path)
        ]
        for self.unread, (state, agent, path) in zip(range(len(changed), 0, -1), changed, strict=True):
            if time.monotonic() > self._until:
                break
            self._met[path], began = state, time.time_ns()
            try:
                names, files, is_whole = list[str](), list[str](), True
                for each in importers.read_sessions(path):
                    kept = each if self._redactor is None else without_secrets(each, self._redactor)
                    names.append(sync_session(self._store, kept, self._redactor).session)
                    files += each.files
                    is_whole = is_whole and not each.warnings
                if is_whole:
                    known.add(path, began, agent, names, files)
            except Exception as error:  # noqa: BLE001 - one transcript must not keep the others from being read
                LOG.warning("%s is not read: %s", path, error)
        else:
            self.unread = 0
        known.save()
