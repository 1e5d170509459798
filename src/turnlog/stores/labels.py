"""Labels of sessions: names and values of the caller's own, such as the user that a session belongs to.

They are on record, as notes with the topic `labels`, so that forks, copies and exports have them, and encryption and
redaction apply. The newest note has all labels in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from ..errors import CorruptRecord, InputError, SessionNotFound, text_given
from ..log.records import Note
from ..log.store import RecordStore, SessionInfo

LABELS = "labels"
"""The topic of the notes."""


def labels_given(labels: Any) -> dict[str, str]:
    """`labels`, if they are names and values of text; else InputError."""
    if not isinstance(labels, Mapping):
        raise InputError(f"labels must be a dict from name to value, not {type(labels).__name__}")
    return {text_given("the name of a label", name): text_given(f"label {name}", labels[name]) for name in labels}


def labels_of(store: RecordStore, session_id: str) -> dict[str, str]:
    """The labels of a session. Raises as `Store.of_kinds`."""
    for record in store.of_kinds(session_id, ("note",), reverse=True):
        if isinstance(record.body, Note) and record.body.topic == LABELS and isinstance(record.body.data, dict):
            return {name: value for name, value in record.body.data.items() if isinstance(value, str)}
    return {}


def labels_note(now: Mapping[str, str], changes: Mapping[str, str]) -> Note | None:
    """The note that changes labels, an empty value taking one away; None if nothing changes."""
    labels = {name: value for name, value in {**now, **changes}.items() if value}
    return None if labels == now else Note(LABELS, "", labels)


def labelled(store: RecordStore, infos: Iterable[SessionInfo], where: Mapping[str, str]) -> list[SessionInfo]:
    """The sessions that have all these labels; damaged ones whose labels cannot be read have none."""
    wanted, found = labels_given(where), []
    for info in infos:
        with suppress(SessionNotFound, CorruptRecord):  # deleted meanwhile, or damaged
            if wanted.items() <= labels_of(store, info.id).items():
                found.append(info)
    return found
