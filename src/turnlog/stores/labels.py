"""Labels of sessions: names and values of the caller's own, such as the user that a session belongs to.

They are on record, as notes with the topic `labels`, so that forks, copies and exports have them, and encryption and
redaction apply. The newest note has all labels in force. Every store keeps an index of them, which is derived from the
notes: SQLite and PostgreSQL in a table, a folder of files in a file, all others in memory (`KnownLabels`).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from .._platform.given import text_given
from ..errors import CorruptRecord, InputError, SessionNotFound
from ..log.records import Note, Record
from ..log.store import RecordStore, SessionInfo
from .records import SessionRow

Key = TypeVar("Key", bound=Hashable)

LABELS = "labels"
"""The topic of the notes."""


def labels_given(labels: Any, name: str = "labels") -> dict[str, str]:
    """`labels`, if they are names and values of text; else InputError, which names the argument."""
    if not isinstance(labels, Mapping):
        raise InputError(f"{name} must be a dict from name to value, not {type(labels).__name__}")
    if "" in labels:
        raise InputError(f"{name}: the name of a label is empty; give every label a name")
    return {text_given("the name of a label", key): text_given(f"label {key}", labels[key]) for key in labels}


def where_given(where: Any) -> dict[str, str]:
    """The labels that the argument `where` asks for, none for None. Raises InputError as `labels_given`: another empty
    value, such as the text "", must not stand for all sessions."""
    return {} if where is None else labels_given(where, "where")


def newest_labels(records: Iterable[Record]) -> dict[str, str] | None:
    """The labels in the first of these records that has any; None if none has. Records must be given newest first."""
    for record in records:
        if isinstance(record.body, Note) and record.body.topic == LABELS and isinstance(record.body.data, dict):
            return {name: value for name, value in record.body.data.items() if isinstance(value, str)}
    return None


def labels_of(store: RecordStore, session_id: str) -> dict[str, str]:
    """The labels of a session. Raises as `Store.of_kinds`."""
    return newest_labels(store.of_kinds(session_id, ("note",), reverse=True)) or {}


def labels_note(now: Mapping[str, str], changes: Mapping[str, str]) -> Note | None:
    """The note that changes labels, an empty value taking one away; None if nothing changes."""
    labels = {name: value for name, value in {**now, **changes}.items() if value}
    return None if labels == now else Note(LABELS, "", labels)


def has_labels(labels: Mapping[str, str], where: Mapping[str, str]) -> bool:
    """Whether these labels have all names and values in `where`. An empty value stands for no label of that name."""
    return all(labels.get(name, "") == value for name, value in where.items())


def encoded_labels(labels: Mapping[str, str]) -> str:
    """Labels as ASCII text for an index. Equal labels give the same text."""
    return json.dumps(labels, sort_keys=True, separators=(",", ":"))


@lru_cache(maxsize=4096)
def decoded_labels(text: str) -> Mapping[str, str]:
    """The labels that `encoded_labels` wrote. Raises ValueError."""
    found: dict[str, str] = json.loads(text)
    return found


def entries_of(store: RecordStore, rows: Iterable[SessionRow]) -> Iterator[tuple[int, int, bytes, str]]:
    """The entries of an index in a database: number of the session, number and checksum of its last record, labels.
    Sessions whose labels cannot be read have none. If a note is appended meanwhile, the entry does not hold."""
    for row in rows:
        with suppress(SessionNotFound, CorruptRecord):  # deleted meanwhile, or damaged
            yield row.no, row.records, row.head, encoded_labels(labels_of(store, row.id or ""))


class KnownLabels:
    """The labels of sessions in memory, so that only new records are read again. It is the index of stores that keep
    none, and stands in for an index that cannot be written."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[int, Mapping[str, str]]] = {}

    def matching(
        self, store: RecordStore, sessions: Iterable[tuple[Key, SessionInfo]], where: Mapping[str, str]
    ) -> list[Key]:
        """The keys of the sessions that have these labels, in the given order. `sessions` are all that may be asked
        for; a key belongs to one session for ever. A damaged session whose labels cannot be read is never among them,
        as nobody knows whose it is."""
        known: dict[Hashable, tuple[int, Mapping[str, str]]] = {}
        found = []
        for key, info in sessions:
            with suppress(SessionNotFound, CorruptRecord):  # deleted meanwhile, or damaged
                known[key] = self._read(store, key, info)
                if has_labels(known[key][1], where):
                    found.append(key)
        self._known = known
        return found

    def _read(self, store: RecordStore, key: Hashable, info: SessionInfo) -> tuple[int, Mapping[str, str]]:
        seen, labels = self._known.get(key, (0, {}))
        if info.records == seen:
            return seen, labels
        first = seen + 1 if info.records > seen else 1
        newer = newest_labels(store.of_kinds(info.id, ("note",), first=first, reverse=True))
        return info.records, (labels if first > 1 else {}) if newer is None else newer

    def clear(self) -> None:
        """Forget everything, because records were rewritten."""
        self._known = {}
