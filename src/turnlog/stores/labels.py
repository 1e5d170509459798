"""Labels of sessions: names and values of the caller's own, such as the user that a session belongs to.

Labels are recorded as notes with the topic `labels`, so forks, copies and exports have them, and encryption and
redaction apply. The newest note has all labels in force. Every store keeps an index derived from the notes, with the
agent program and the folder that the first notes name (see `log.origins`): SQLite and PostgreSQL in a table, a folder
of files in a file, all others in memory (`KnownLabels`).
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeVar

from .._platform.given import text_given
from ..errors import CorruptRecord, InputError, SessionNotFound
from ..log.origins import BEGINNING, origin_of
from ..log.records import Note, Record
from ..log.store import RecordStore, SessionFacts, SessionInfo
from .records import SessionRow

Key = TypeVar("Key", bound=Hashable)

LABELS, FOLDER = "labels", "folder"
"""The topic of notes with labels, and the label with which `turnlog chat` tells in which folder it was started."""


OF_TRANSPORT = "transport-"
"""The beginning of labels by which `turnlog.transport` finds sessions; lists for people leave them out."""


def labels_given(labels: Any, name: str = "labels") -> dict[str, str]:
    """`labels`, if they are names and values of text. Otherwise raises InputError, which names the argument."""
    if not isinstance(labels, Mapping):
        raise InputError(f"{name} must be a dict from name to value, not {type(labels).__name__}")
    if "" in labels:
        raise InputError(f"{name}: the name of a label is empty; give every label a name")
    return {text_given("the name of a label", key): text_given(f"label {key}", labels[key]) for key in labels}


def where_given(where: Any) -> dict[str, str]:
    """The labels that the argument `where` asks for; None asks for none. Raises InputError as `labels_given`, also for
    other empty values, such as "", which must not mean all sessions."""
    return {} if where is None else labels_given(where, "where")


def newest_labels(records: Iterable[Record]) -> dict[str, str] | None:
    """The labels in the first of these records that has any; None if there is no such record. Records must be given
    newest first."""
    for record in records:
        if isinstance(record.body, Note) and record.body.topic == LABELS and isinstance(record.body.data, dict):
            return {name: value for name, value in record.body.data.items() if isinstance(value, str)}
    return None


def labels_of(store: RecordStore, session_id: str) -> dict[str, str]:
    """The labels of a session. Raises as `Store.of_kinds`."""
    return newest_labels(store.of_kinds(session_id, ("note",), reverse=True)) or {}


def labels_note(current: Mapping[str, str], changes: Mapping[str, str]) -> Note | None:
    """The note that changes labels; None if nothing changes. An empty value removes a label."""
    labels = {name: value for name, value in {**current, **changes}.items() if value}
    return None if labels == current else Note(LABELS, "", labels)


def has_labels(labels: Mapping[str, str], where: Mapping[str, str]) -> bool:
    """Whether these labels have all names and values in `where`. An empty value there means that the label must be
    absent."""
    return all(labels.get(name, "") == value for name, value in where.items())


def facts_of(store: RecordStore, session_id: str) -> SessionFacts:
    """What the notes of a session say about it. Raises as `Store.of_kinds`."""
    return facts_from(labels_of(store, session_id), _origin(store, session_id))


def facts_from(labels: Mapping[str, str], origin: tuple[str, str]) -> SessionFacts:
    """The facts of a session with these labels and this agent and folder. A label `folder` tells of a session that is
    not from a transcript where it was held."""
    agent, folder = origin
    return SessionFacts(labels, agent, folder or labels.get(FOLDER, ""))


def _origin(store: RecordStore, session_id: str) -> tuple[str, str]:
    try:
        return origin_of(store.read(session_id, last=BEGINNING))
    except CorruptRecord:  # the labels may be in records that can be read
        return "", ""


def encoded_facts(facts: SessionFacts) -> str:
    """Facts as ASCII text for an index. Equal facts give the same text."""
    whole = {"": {"agent": facts.agent, "folder": facts.folder}, **facts.labels}
    return json.dumps(whole, sort_keys=True, separators=(",", ":"))


FACTS = '{"":{'
"""How texts by `encoded_facts` begin. Older entries of an index have labels alone, whose names are never empty; they
are made again."""


@lru_cache(maxsize=4096)
def decoded_facts(text: str) -> SessionFacts:
    """The facts that `encoded_facts` wrote. Raises ValueError."""
    labels: Any = json.loads(text)
    origin = labels.pop("")
    return SessionFacts(labels, origin["agent"], origin["folder"])


def entries_of(store: RecordStore, rows: Iterable[SessionRow]) -> Iterator[tuple[int, int, bytes, str]]:
    """The entries of an index in a database: the number of the session, the number and checksum of its last record, and
    its facts. Sessions whose notes cannot be read have no entry. An entry becomes invalid if a note is appended
    meanwhile."""
    for row in rows:
        with suppress(SessionNotFound, CorruptRecord):  # deleted meanwhile, or damaged
            yield row.no, row.records, row.head, encoded_facts(facts_of(store, row.id or ""))


class KnownLabels:
    """An index of labels in memory, which reads only new records again: for stores without an index, and where an index
    cannot be written."""

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[int, SessionFacts]] = {}

    def facts(self, store: RecordStore, sessions: Iterable[tuple[Key, SessionInfo]]) -> dict[Key, SessionFacts]:
        """The facts of these sessions, in the given order. `sessions` are all sessions that are asked about; a key
        belongs to one session for ever. A damaged session whose notes cannot be read is left out."""
        known: dict[Hashable, tuple[int, SessionFacts]] = {}
        facts_by_key: dict[Key, SessionFacts] = {}
        for key, info in sessions:
            with suppress(SessionNotFound, CorruptRecord):  # deleted meanwhile, or damaged
                known[key] = self._read(store, key, info)
                facts_by_key[key] = known[key][1]
        self._known = known
        return facts_by_key

    def matching(
        self, store: RecordStore, sessions: Iterable[tuple[Key, SessionInfo]], where: Mapping[str, str]
    ) -> list[Key]:
        """The keys of the sessions that have these labels; otherwise as `facts`."""
        return [key for key, facts in self.facts(store, sessions).items() if has_labels(facts.labels, where)]

    def _read(self, store: RecordStore, key: Hashable, info: SessionInfo) -> tuple[int, SessionFacts]:
        seen, facts = self._known.get(key, (0, SessionFacts()))
        if info.records == seen:
            return seen, facts
        if not BEGINNING <= seen < info.records:
            return info.records, facts_of(store, info.id)
        newer = newest_labels(store.of_kinds(info.id, ("note",), first=seen + 1, reverse=True))
        return info.records, facts if newer is None else facts_of(store, info.id)

    def clear(self) -> None:
        """Forget everything, because records were rewritten."""
        self._known = {}
