"""Imported sessions into a store, without ever overwriting one.

A transcript that grew since it was imported is continued where it was left; one that says something
else than before is kept beside the old one.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ..codec import encode_record
from ..errors import SessionIdError, SessionNotFound
from ..importers import Imported
from ..log import Draft, Store, check_session_id
from ..records import Record, UnknownRecord
from ..redaction import Redactor, redacted_drafts

__all__ = ["Kept", "keep", "without_secrets"]


class Kept(Struct, frozen=True):
    """What became of an imported session: where it is, and how many records were added.

    `new`: it was not there. `continued`: it was, and got what is new. `unchanged`: all of it was
    there. `diverged`: under its id is another conversation, so it got an id of its own.
    """

    session: str
    status: Literal["new", "continued", "unchanged", "diverged"]
    added: int


def without_secrets(imported: Imported, redactor: Redactor) -> Imported:
    """An imported session with marks in place of secrets, in its records, files and title."""
    drafts, blobs = redacted_drafts(imported.drafts, imported.blobs, redactor)
    return replace(imported, drafts=drafts, blobs=blobs, title=redactor.text(imported.title)[0])


def keep(store: Store, imported: Imported) -> Kept:
    """Append to `store` what it does not have of `imported`. Doing it twice changes nothing.

    Raises InputError if it holds what no record can, Conflict if somebody else appends meanwhile.
    """
    session_id = check_session_id(imported.session_id)
    if imported.parent:
        check_session_id(imported.parent)
    number = 1
    while (known := _known(store, session_id, imported)) is None:
        number += 1
        session_id = f"{imported.session_id[:120]}.{number}"
    fresh = imported.drafts[known:]
    if fresh:
        for data in imported.blobs.values():
            store.put_blob(data)
        store.append(session_id, fresh, expected=known)
    if known == 0 and number > 1:
        return Kept(session_id, "diverged", len(fresh))
    return Kept(session_id, "unchanged" if known and not fresh else "continued" if known else "new", len(fresh))


def _known(store: Store, session_id: str, imported: Imported) -> int | None:
    """How many of the drafts the session holds already; it is made if it is not there. None if it is
    another conversation, or an id that cannot be had."""
    try:
        store.info(session_id)
    except SessionNotFound:
        created = imported.drafts[0].time if imported.drafts else ""
        try:
            parent = imported.parent if imported.parent.lower() != session_id.lower() else ""
            store.create(session_id, title=imported.title, created=created, parent=parent)
        except SessionIdError:  # differs from another by case only
            return None
        return 0
    known = 0
    for record, draft in zip_longest(store.read(session_id), imported.drafts):
        if record is None or draft is None:
            break
        if not _same(record, draft):
            return None
        known += 1
    return known


def _same(record: Record, draft: Draft) -> bool:
    if draft.time and draft.time != record.time:
        return False
    # Equal values, or equal bytes: NaN equals nothing, and of an unknown kind only bytes tell.
    if record.body == draft.body and not isinstance(record.body, UnknownRecord):
        return True
    return encode_record(Record(record.n, record.time, draft.body, draft.raw, draft.redacted)) == encode_record(record)
