"""The memory of a session, and the files that its digests name: both are folds over its log, kept up to date."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from threading import Lock
from typing import Any

import msgspec
from msgspec import Struct

from .._platform.msgspec_init import ready
from ..log.records import Decision, Record
from ..log.store import RecordStore
from ..memory.entities import Entity
from ..memory.fold import KINDS, FileMemory, Memory
from ..summarize.changed_files import FileStates, State
from ..tokens.protocol import Counter
from ..view.decisions import Rewinds, ended_decisions

_FILES = "files"
"""The entry of a decision's `detail` with the files that were changed or read before it."""

_MOST_CHANGED, _MOST_READ = 300, 50
"""A decision keeps at most so many files that were changed, or only read: the last ones. It is no matter how many its
own summary has room for: a later one may have more."""


class SessionMemory:
    """The memory of one session. A session that never asks for it does no work for it."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._store = store
        self._id = session_id
        self._memory: Memory | None = None
        self._lock = Lock()

    def now(self, counter: Counter | None = None) -> Memory:
        """The memory of everything on record. It counts with `counter`, if one is given."""
        with self._lock:
            memory = self._memory
            if memory is None or not _take(memory, self._store.of_kinds(self._id, KINDS, first=memory.last + 1)):
                memory = self._memory = memory_of(self._store, self._id)
            memory.counter = counter or memory.counter
            return memory


def _take(memory: Memory, records: Iterable[Record]) -> bool:
    """Whether the memory could take in these records; if not, it has to be made anew."""
    for record in records:
        if not memory.follows(record):
            return False
        memory.take(record)
    return True


def memory_of(store: RecordStore, session_id: str) -> Memory:
    """The memory of a whole log. Raises SessionNotFound, CorruptRecord."""
    rewinds = Rewinds.of(store.of_kinds(session_id, ("decision",)))
    return Memory.of(store.of_kinds(session_id, KINDS), rewinds)


@ready
class _Kept(Struct, frozen=True, omit_defaults=True):
    """The files that a decision keeps in its `detail`.

    `changed`: by folder, the record of its last change, its name and what that change did, of each changed file.
    `read`: by folder, names of files that were only read. `more`: how many changed files are not named.
    `committed`: the record that committed changes to git last, 0 if none did.
    """

    changed: dict[str, list[tuple[int, str, State]]] = {}
    read: dict[str, list[str]] = {}
    more: int = 0
    committed: int = 0

    def entities(self, n: int) -> list[Entity]:
        """The files as a memory knows them, the last changed first. `n` is the record that keeps them."""
        changed = [(at, folder + name, state) for folder, files in self.changed.items() for at, name, state in files]
        files = [
            Entity("file", path, at, at, change=state, changed=at, changes=1)
            for at, path, state in sorted(changed, reverse=True)
        ]
        read = [folder + name for folder, names in self.read.items() for name in names]
        return [*files, *(Entity("file", path, n, n, read=n) for path in read)]


class DigestFiles:
    """The files that a session changed, as its digests name them.

    A decision that summarises keeps them (`detail`), and the fold goes on from the newest decision in force that has
    them: otherwise the first digest after an open would have to read the whole log. So the result is the same for a
    process that followed the session and one that opened it.
    """

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._store = store
        self._id = session_id
        self._memory: FileMemory | None = None
        self._seen = 0  # the newest decision that was looked at
        self._more = 0

    def states(self) -> FileStates:
        """The files with their last states."""
        return self._now().file_states._replace(more=self._more)

    def detail(self) -> dict[str, Any]:
        """The entry of a summarising decision's `detail` that keeps them; {} while a call may be changing files."""
        memory = self._now()
        if memory.is_changing_files:
            return {}
        changed, read = memory.changed_files, [file.value for file in memory.files if not file.changed]
        named = changed[:_MOST_CHANGED]
        kept = _Kept(more=self._more + len(changed) - len(named), committed=memory.committed)
        for file in named:
            folder, slash, name = file.value.rpartition("/")
            kept.changed.setdefault(folder + slash, []).append((file.changed, name, file.change))
        for path in read[:_MOST_READ]:
            folder, slash, name = path.rpartition("/")
            kept.read.setdefault(folder + slash, []).append(name)
        return {_FILES: msgspec.to_builtins(kept)}

    def read_ahead(self, most: int) -> None:
        """Take in up to so many of the records that the next digest is going to need."""
        self._now(most)

    def _now(self, most: int | None = None) -> FileMemory:
        memory = self._memory
        if memory is None or not self._take(memory, most):
            start, kept, decisions = _newest_kept(self._store.of_kinds(self._id, ("decision",), reverse=True))
            memory = self._memory = FileMemory.after(start, kept.entities(start), Rewinds.of(decisions), kept.committed)
            self._more, self._seen = kept.more, decisions[-1].n if decisions else 0
            self._take(memory, most)
        return memory

    def _take(self, memory: FileMemory, most: int | None) -> bool:
        """Whether the memory could take in what is new; not if a decision moved the place where the fold starts."""
        for record in islice(self._store.of_kinds(self._id, KINDS, first=memory.last + 1), most):
            body = record.body
            if isinstance(body, Decision) and record.n > self._seen:
                if _FILES in body.detail or body.supersedes or body.action == "rewind":
                    return False
            memory.take(record)
        return True


def _newest_kept(read: Iterable[Record]) -> tuple[int, _Kept, list[Record]]:
    """Of the decisions of a log, the newest first: the number of the first one in force that keeps the files, 0 if
    there is none; what it keeps; and the decisions from it on, oldest first."""
    decisions: list[Record] = []
    oldest = None  # the oldest decision that was taken back since: what counts may have changed from there on
    for record in read:
        decisions.insert(0, record)
        kept = _kept_by(record)
        if kept is not None and record.n not in ended_decisions(decisions) and not (oldest and oldest < record.n):
            return record.n, kept, decisions
        if isinstance(record.body, Decision) and record.body.supersedes:
            oldest = min(oldest or record.n, record.body.supersedes)
    return 0, _Kept(), decisions


def _kept_by(record: Record) -> _Kept | None:
    """The files that a decision keeps; None if it has no such entry, or one that another program wrote otherwise."""
    detail = record.body.detail if isinstance(record.body, Decision) else {}
    try:
        return msgspec.convert(detail.get(_FILES), _Kept | None)
    except msgspec.ValidationError:
        return None
