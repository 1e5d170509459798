"""Imported sessions into a store, without ever overwriting one.

A transcript that grew since it was imported is continued where it was left; one that says something
else than before is kept beside the old one. One that was imported while its last answer was still being
written says more of that answer now: then the session is made again, whole, if nothing else was in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import count, islice, zip_longest
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..codec import encode_record
from ..content import Message, Reasoning
from ..errors import Conflict, InputError, SessionExists, SessionIdError, SessionNotFound
from ..importers import Imported
from ..importers.answers import strings_of, texts_of
from ..importers.drafting import title_from
from ..log import Draft, SessionInfo, Store, check_session_id
from ..records import MessageRecord, Note, PartialAnswer, Record, TurnClosed, UnknownRecord, UsageRecord
from ..redaction import Redactor, redacted_drafts
from ..turns import LEFT_OPEN

__all__ = ["Kept", "keep", "without_secrets"]

_AHEAD = frozenset({"agent_message", "agent_reasoning"})
"""Topics of notes that tell of an answer before it is there: what Codex writes ahead of it."""

_WORD = 16
"""Characters up to which a text of a note is a word such as a phase or a status."""

_RACES = 8
"""So often somebody else may import the same at the same time."""

_NEWEST = 400
"""Records that one answer and its results may have come to. More of them are another conversation."""


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


class _Held(Struct, frozen=True):
    """What a session has of an imported one: so many records, and then these, which are others (not all, if there are
    very many)."""

    known: int
    others: Sequence[Record] = ()


def keep(store: Store, imported: Imported) -> Kept:
    """Append to `store` what it does not have of `imported`. Doing it twice changes nothing.

    Raises InputError if it holds what no record can, and where a session would have to be made again that
    somebody uses; Conflict if others append all the time.
    """
    check_session_id(imported.session_id)
    if imported.parent:
        check_session_id(imported.parent)
    for _ in range(_RACES):
        with suppress(Conflict, SessionExists):  # somebody else imports it, too: look what is there by now
            return _keep(store, imported)
    return _keep(store, imported)


def _keep(store: Store, imported: Imported) -> Kept:
    session_id, number = imported.session_id, 1
    while True:
        held = _held(store, session_id, imported)
        if held is not None:
            fresh = imported.drafts[held.known :]
            if not held.others:
                break
            if _went_on(held.others, fresh):
                _make_again(store, session_id, imported, held.known + len(held.others))
                return Kept(session_id, "continued", len(fresh))
            if _went_on(fresh, held.others):  # an older copy
                return Kept(session_id, "unchanged", 0)
        number += 1
        session_id = _numbered(imported.session_id, number)
    if fresh:
        for data in imported.blobs.values():
            store.put_blob(data)
        store.append(session_id, fresh, expected=held.known)
    if held.known == 0 and number > 1:
        return Kept(session_id, "diverged", len(fresh))
    if held.known and (title := _title(store.info(session_id).title, imported)) is not None:
        store.rename(session_id, title)
    return Kept(session_id, ("continued" if fresh else "unchanged") if held.known else "new", len(fresh))


def _title(now: str, imported: Imported) -> str | None:
    """The title that a session gets by what the transcript says now, if it has none that somebody gave it."""
    messages = (draft.body.message for draft in imported.drafts if isinstance(draft.body, MessageRecord))
    asked = next((title for one in messages if one.role == "user" and (title := title_from(one))), "")
    return imported.title if now in ("", asked) and imported.title not in ("", now) else None


def _held(store: Store, session_id: str, imported: Imported) -> _Held | None:
    """What the session has of the drafts; it is made if it is not there. None if it is another conversation, or an
    id that cannot be had."""
    try:
        store.info(session_id)
    except SessionNotFound:
        try:
            _make(store, session_id, imported, imported.title)
        except SessionIdError:  # differs from another by case only
            return None
        return _Held(0)
    known = 0
    for record, draft in zip_longest(store.read(session_id), imported.drafts):
        if record is None or draft is None:
            break
        if not _same(record, draft):
            return _Held(known, tuple(islice(store.read(session_id, first=record.n), _NEWEST + 1)))
        known += 1
    return _Held(known)


def _make(store: Store, session_id: str, imported: Imported, title: str) -> SessionInfo:
    created = imported.drafts[0].time if imported.drafts else ""
    parent = imported.parent if imported.parent.lower() != session_id.lower() else ""
    return store.create(session_id, title=title, created=created, parent=parent)


def _make_again(store: Store, session_id: str, imported: Imported, last: int) -> None:
    """Put the imported session in the place of what was imported of it before; forks of that stay whole.

    It is written under another id first, so that all of it is in the store whatever fails: a process that is killed in
    the midst of this leaves that one.
    """
    alone = store.hold(session_id, alone=True)
    if alone is None:
        raise InputError(
            f"session {session_id!r} is in use, and has to be made again, as its last answer was still being written "
            "when it was imported: import it again when nobody has it open"
        )
    try:
        title, kept = store.info(session_id).title, session_id in store.inventory().kept
        title = _title(title, imported) or title
        spare = _free_id(store, session_id)
        try:
            _write(store, spare, imported, title)
            store.delete(session_id, expected=last)
        except BaseException:
            with suppress(SessionNotFound):
                store.delete(spare)
            raise
        _write(store, session_id, imported, title)
        store.keep(session_id, kept=kept)
        store.delete(spare)
    finally:
        alone.close()


def _free_id(store: Store, session_id: str) -> str:
    taken = {info.id for info in store.sessions()}
    return next(name for number in count(2) if (name := _numbered(session_id, number)) not in taken)


def _write(store: Store, session_id: str, imported: Imported, title: str) -> None:
    for data in imported.blobs.values():
        store.put_blob(data)
    _make(store, session_id, imported, title)
    store.append(session_id, imported.drafts, expected=0)


def _numbered(session_id: str, number: int) -> str:
    """The id of a session beside one of the same id."""
    return f"{session_id[:120]}.{number}"


def _went_on(begun: Sequence[Record | Draft], whole: Sequence[Record | Draft]) -> bool:
    """Whether `whole` says all that `begun` does: the transcript went on with an answer that it had only begun.
    Whatever somebody else recorded is not in there."""
    if len(begun) > _NEWEST:
        return False
    whole = whole[: 4 * _NEWEST]  # what an answer had begun with is not far
    messages = [one.body.message for one in whole if isinstance(one.body, (MessageRecord, PartialAnswer))]
    parts = iter([part for message in messages for part in message.parts])
    texts = [text for message in messages for text in (*texts_of(message), *_summaries(message))]
    for one in begun:
        body = one.body
        if isinstance(body, (MessageRecord, PartialAnswer)):
            if body.message.role == "system" or not all(part in parts for part in body.message.parts):
                return False
        elif isinstance(body, TurnClosed) and body.reason.startswith(LEFT_OPEN):
            continue  # said by whoever opened the session meanwhile, of a turn that had not ended yet
        elif not any(_is_again(one, other) for other in whole) and not _is_echo(body, texts):
            return False
    return True


def _summaries(message: Message) -> list[str]:
    return [text for part in message.parts if isinstance(part, Reasoning) for text in part.summary]


def _is_again(one: Record | Draft, other: Record | Draft) -> bool:
    """Whether `other` is what `one` says by now: what an answer costs is told while it grows; a note gathers more, or
    leaves out what a message says by then."""
    old, new = one.body, other.body
    if old == new:
        return True
    if one.time != other.time:
        return False
    if isinstance(old, UsageRecord) and isinstance(new, UsageRecord):
        fields = type(old.usage).__struct_fields__
        grew = all(getattr(new.usage, name) >= getattr(old.usage, name) for name in fields)
        return grew and (old.provider, old.model) == (new.provider, new.model)
    if isinstance(old, Note) and isinstance(new, Note):
        return (old.topic, old.text) == (new.topic, new.text) and _agree(old.data, new.data)
    return False


def _agree(one: Any, other: Any) -> bool:
    """Whether two JSON values say the same, but for keys and items that only one of them has."""
    if isinstance(one, dict) and isinstance(other, dict):
        common = one.keys() & other.keys()
        return bool(common) and all(_agree(one[key], other[key]) for key in common)
    if isinstance(one, list) and isinstance(other, list):
        few, many = sorted((one, other), key=len)
        rest = iter(many)
        return all(any(_agree(item, found) for found in rest) for item in few)
    return type(one) is type(other) and bool(one == other)


def _is_echo(body: object, texts: Sequence[str]) -> bool:
    """Whether a note tells of an answer before it is there, and has no text but such that stands in messages."""
    if not isinstance(body, Note) or body.topic not in _AHEAD or body.text:
        return False
    own = [text for text in strings_of(body.data) if len(text) > _WORD]
    return bool(own) and all(any(text in said for said in texts) for text in own)


def _same(record: Record, draft: Draft) -> bool:
    if draft.time and draft.time != record.time:
        return False
    # Equal values, or equal bytes: NaN equals nothing, and of an unknown kind only bytes tell.
    if record.body == draft.body and not isinstance(record.body, UnknownRecord):
        return True
    return encode_record(Record(record.n, record.time, draft.body, draft.raw, draft.redacted)) == encode_record(record)
