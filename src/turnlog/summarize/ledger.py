"""Records of the summaries that were made or claimed. They are in the log, so that no content is paid for twice.

Before a summarizer is called, a `claimed` record is appended. The log numbers records in one order for all writers, so
if several processes claim the same summary, all of them see which claim was first. A claim without an end (because its
process died, or is still at work) stays valid for ever: an offline summary is better than a second bill.
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
        """The records of a key and their numbers, in order."""

    def append(self, body: SummaryRecord) -> int:
        """Append a record; returns its number."""


class MemoryLedger:
    """A ledger in the memory of this process, for use without a log. Threads may share it."""

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
        *(["requests"] if material.reflective else []),
    ]
    digest = [sha256_hex("\n".join(lines).encode("utf-8", "surrogatepass"))]
    for shown in material.messages:
        raw = encode_record(Record(0, "", MessageRecord(shown.message)))
        digest.append(f"{shown.records} {sha256_hex(raw)}")
    return sha256_hex("\n".join(digest).encode())


def outcome_of(records: Sequence[tuple[int, SummaryRecord]]) -> tuple[int, SummaryRecord] | None:
    """The record that decides about a key: the summary made, else the last failure, else the first claim; else None."""
    for state in ("made", "failed"):
        for entry in reversed(records):
            if entry[1].state == state:
                return entry
    return records[0] if records else None


def claim(ledger: Ledger, key: str, summarizer_id: str) -> tuple[int, SummaryRecord] | None:
    """Claim a key. Returns None if the caller has the key now and has to record how the call ended (`settle`); else the
    record that is there already."""
    outcome = outcome_of(ledger.find(key))
    if outcome is not None:
        return outcome
    mine = ledger.append(SummaryRecord(key, "claimed", summarizer=summarizer_id))
    records = ledger.find(key)
    if min(n for n, body in records if body.state == "claimed") == mine:
        return None
    return outcome_of(records)


def settle(ledger: Ledger, key: str, ended: SummaryFailure | tuple[str, str]) -> SummaryFailure | None:
    """Record how a claimed summary ended: with a failure, or with a summarizer's id and text.

    Returns the failure, if there is one. If nothing can be recorded, that is a failure too, not an exception: the text
    is there, and a store that accepts no more records will raise an error in its owner's next append.
    """
    if isinstance(ended, SummaryFailure):
        reason = f"{ended.fault}: {ended.detail}"
        body = SummaryRecord(key, "failed", reason=reason, summarizer=ended.summarizer)
    else:
        body = SummaryRecord(key, "made", ended[1], summarizer=ended[0])
    try:
        ledger.append(body)
    except (TurnlogError, OSError) as error:
        unrecorded = SummaryFailure(body.summarizer, "ledger", str(error))
        if isinstance(ended, SummaryFailure):
            return msgspec.structs.replace(ended, detail=f"{ended.detail}; {unrecorded}")
        return unrecorded
    return ended if isinstance(ended, SummaryFailure) else None
