"""Which summaries were made, and who may make one: kept in the log, so that no content is paid for twice.

Before a summarizer is called, `claimed` is appended. The log numbers records, one after the other whoever
writes them; so of several who claim the same, in whatever process, one was first, and all see which. A claim
without an end (its process died, or is still at work) holds for ever: better an offline summary than a
second bill.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import msgspec

from ..errors import TurnlogError
from ..log.codec import encode_record
from ..log.messages import sha256_hex
from ..log.records import MessageRecord, Record, SummaryRecord
from ..log.store import Draft, RecordStore
from .protocol import Material
from .verdict import SummaryFailure


class Ledger(Protocol):
    """The summary records of one log."""

    def find(self, key: str) -> Sequence[tuple[int, SummaryRecord]]:
        """The records of a key with their numbers, in order."""

    def append(self, body: SummaryRecord) -> int:
        """Append a record; returns its number."""


class MemoryLedger:
    """A ledger of this process's own, for use without a log. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: dict[str, list[tuple[int, SummaryRecord]]] = {}
        self._last = 0

    def find(self, key: str) -> Sequence[tuple[int, SummaryRecord]]:
        """See `Ledger.find`."""
        with self._lock:
            return tuple(self._records.get(key, ()))

    def append(self, body: SummaryRecord) -> int:
        """See `Ledger.append`."""
        with self._lock:
            self._last += 1
            self._records.setdefault(body.key, []).append((self._last, body))
            return self._last


class LogLedger:
    """The ledger in a session's log."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._store = store
        self._session_id = session_id

    def find(self, key: str) -> Sequence[tuple[int, SummaryRecord]]:
        """See `Ledger.find`."""
        marks = ((mark.n, mark.body) for mark in self._store.of_kinds(self._session_id, ("summary",)))
        return [(n, body) for n, body in marks if isinstance(body, SummaryRecord) and body.key == key]

    def append(self, body: SummaryRecord) -> int:
        """See `Ledger.append`."""
        return self._store.append(self._session_id, [Draft(body)])[0].n


def key_of(summarizer_id: str, material: Material) -> str:
    """The key under which a summarizer's summary of `material` is stored: the same content gives the same key.

    `material.kept` is not part of the key, because it grows while a summary is computed in advance. Raises InputError
    if a message cannot be recorded.
    """
    lines = [
        f"{len(summarizer_id)} {summarizer_id}",
        str(material.target),
        f"{len(material.previous)} {material.previous}",
    ]
    digest = [sha256_hex("\n".join(lines).encode("utf-8", "surrogatepass"))]
    for shown in material.messages:
        raw = encode_record(Record(0, "", MessageRecord(shown.message)))
        digest.append(f"{shown.records} {sha256_hex(raw)}")
    return sha256_hex("\n".join(digest).encode())


def outcome_of(records: Sequence[tuple[int, SummaryRecord]]) -> tuple[int, SummaryRecord] | None:
    """What is known of a key: what was made, else the last failure, else the first claim, else nothing."""
    for state in ("made", "failed"):
        for found in reversed(records):
            if found[1].state == state:
                return found
    return records[0] if records else None


def claim(ledger: Ledger, key: str, summarizer_id: str) -> tuple[int, SummaryRecord] | None:
    """Claim a key. None: it is the caller's, who has to append how it ended. Else what stands there already."""
    known = outcome_of(ledger.find(key))
    if known is not None:
        return known
    mine = ledger.append(SummaryRecord(key, "claimed", summarizer=summarizer_id))
    records = ledger.find(key)
    if min(n for n, body in records if body.state == "claimed") == mine:
        return None
    return outcome_of(records)


def settle(ledger: Ledger, key: str, ended: SummaryFailure | tuple[str, str]) -> SummaryFailure | None:
    """Put on record how a claimed summary ended: a failure, or summarizer and text.

    Returns the failure, also where it is that nothing could be recorded. Raises nothing for that: the text is
    at hand, and a store that takes nothing more tells its owner soon enough.
    """
    if isinstance(ended, SummaryFailure):
        reason = f"{ended.fault}: {ended.detail}"
        body = SummaryRecord(key, "failed", reason=reason, summarizer=ended.summarizer)
    else:
        body = SummaryRecord(key, "made", ended[1], summarizer=ended[0])
    try:
        ledger.append(body)
    except (TurnlogError, OSError) as error:
        unkept = SummaryFailure(body.summarizer, "ledger", str(error))
        if isinstance(ended, SummaryFailure):
            return msgspec.structs.replace(ended, detail=f"{ended.detail}; {unkept}")
        return unkept
    return ended if isinstance(ended, SummaryFailure) else None
