"""The memory of a session: made from its log when it is first asked for, and kept up to date from then on."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from ..log.records import Record
from ..log.store import RecordStore
from ..memory.fold import KINDS, Memory
from ..tokens.protocol import Counter
from ..view.decisions import Rewinds


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
