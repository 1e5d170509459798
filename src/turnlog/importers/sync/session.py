"""Imported sessions into a store, without ever overwriting one.

A transcript that grew since it was imported is continued where it was left; one that says something else than before
is kept beside the old one. One that was imported while its last answer was still being written says more of that
answer now: then the session is made again, whole, if nothing else was in it. Own records of turnlog stay in their
places.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import count
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from ...errors import BlobMissing, Conflict, InputError, SessionExists, SessionIdError, SessionNotFound
from ...log.codec import encode_record
from ...log.messages import text_of
from ...log.records import MessageRecord, Record, TurnClosed, UnknownRecord
from ...log.store import Draft, Held, SessionInfo, Store, check_session_id
from ...log.validation import check_readable
from ...redaction import Attentive, Cleaned, Redactor, redacted_bytes, redacted_draft, redacted_drafts, redacted_title
from ...stores.records import blob_names
from .. import Imported
from ..titles import title_from
from .growth import names_its_place, says_less, says_more
from .own_records import OwnRecords, as_draft, can_be_renumbered, can_follow, is_own

_TRIES = 8
"""How often another process may import the same session at the same time."""


class Synced(Struct, frozen=True):
    """The result of an import: the session's id in the store, and how many records were added.

    `new`: the session was not in the store. `continued`: it was, and new records were added. `unchanged`: all records
    were there. `diverged`: another conversation has its id, so it got a new id. `exposed`: records imported earlier
    contain secrets that are recognised only now; `turnlog scrub` removes them.
    """

    session: str
    status: Literal["new", "continued", "unchanged", "diverged"]
    added: int
    exposed: bool = False


def without_secrets(imported: Imported, redactor: Redactor) -> Imported:
    """An imported session with marks in place of secrets, in its records, files and title."""
    redactor = Attentive(redactor)  # the title may be cut off in a secret, and of what no line begins with
    drafts, blobs = redacted_drafts(imported.drafts, imported.blobs, redactor)
    said = (text_of(draft.body.message) for draft in drafts if isinstance(draft.body, MessageRecord))
    return replace(imported, drafts=drafts, blobs=blobs, title=redacted_title(imported.title, said, redactor)[0])


class _Overlap(Struct, frozen=True):
    """What a session has of an imported one: the first `shared` of its records, with the `own` ones of turnlog among
    them; then `others`, with the own ones `behind` them. `times` are those of the shared ones: the transcript's, and of
    messages that tell none those at which they were imported. `exposed`: some of the shared ones hold secrets where the
    imported ones have marks."""

    shared: int
    own: OwnRecords
    others: Sequence[Record] = ()
    behind: Sequence[Record] = ()
    times: frozenset[str] = frozenset()
    exposed: bool = False
    exists: bool = True

    @property
    def last(self) -> int:
        """The number of the last record ahead of the others."""
        return self.shared + len(self.own)


def sync_session(store: Store, imported: Imported, redactor: Redactor | None = None) -> Synced:
    """Append to `store` the records of `imported` that it does not have. A second call changes nothing.

    `redactor` is the one that replaced secrets in `imported`: records stored earlier without marks count as the same.

    Raises InputError if a record cannot be stored, or if the session must be replaced but is in use; Conflict if others
    keep appending.
    """
    check_session_id(imported.session_id)
    if imported.parent:
        check_session_id(imported.parent)
    with closing(_alone(store, imported.session_id)):
        for _ in range(_TRIES):  # where a store cannot keep others waiting, another process may import it, too
            with suppress(Conflict, SessionExists):
                return _sync(store, imported, redactor)
        return _sync(store, imported, redactor)


def _alone(store: Store, session_id: str) -> Held:
    """Wait until nobody else imports this session, and keep others waiting until what is returned is closed. While a
    session is made again there is a moment in which it is not there, and would be made a second time."""
    name = f"{session_id[:117]}.importing"  # not a session's own id: that would wait for whoever has it open
    while (held := store.hold(name, alone=True)) is None:
        if (others := store.hold(name)) is not None:
            others.close()
    return held


def _sync(store: Store, imported: Imported, redactor: Redactor | None) -> Synced:
    for number in count(1):
        session_id = imported.session_id if number == 1 else f"{imported.session_id[:120]}.{number}"
        _finish_interrupted(store, session_id, imported, redactor)
        overlap = _overlap(store, session_id, imported, redactor)
        fresh = len(imported.drafts) - overlap.shared
        if overlap.others:
            stays = all(can_follow(record, overlap.last) for record in overlap.behind)
            if stays and says_more(imported, overlap.shared, overlap.others, overlap.times):
                _make_again(store, session_id, imported, overlap)
                return Synced(session_id, "continued", fresh)
            if says_less(imported, overlap.shared, overlap.others):
                return Synced(session_id, "unchanged", 0)
            continue
        _check(imported, overlap.shared)
        if overlap.exists or _is_made(store, session_id, imported):
            break
    if fresh:
        _put_blobs(store, imported)
        drafts = tuple(overlap.own.merged(imported.drafts))
        store.append(session_id, drafts[overlap.last :], expected=overlap.last)
    if not overlap.exists or (fresh and not overlap.shared):
        return Synced(session_id, "diverged" if number > 1 else "new", fresh)
    if overlap.shared and (title := _title(store.info(session_id).title, imported)) is not None:
        store.rename(session_id, title)
    return Synced(session_id, "continued" if fresh else "unchanged", fresh, overlap.exposed)


def _put_blobs(store: Store, imported: Imported) -> None:
    for data in imported.blobs.values():
        store.put_blob(data)


def _check(imported: Imported, shared: int) -> None:
    """Raises InputError if a draft after number `shared` could be written, and not read again. Only imports ask: for
    everything that is ever appended it would take longer than appending."""
    for number, draft in enumerate(imported.drafts[shared:], shared + 1):
        if draft.raw is None:
            try:
                check_readable(draft.body)
            except InputError as error:
                where = f"record {number} made from the transcript"
                raise InputError(f"session {imported.session_id!r} cannot be stored: {where}: {error}") from error


def _title(now: str, imported: Imported) -> str | None:
    """The title that a session gets by what the transcript says now; None if somebody gave it one."""
    messages = (draft.body.message for draft in imported.drafts if isinstance(draft.body, MessageRecord))
    asked = next(filter(None, (title_from(one) for one in messages if one.role == "user")), "")
    return imported.title if now in ("", asked) and imported.title not in ("", now) else None


def _overlap(store: Store, session_id: str, imported: Imported, redactor: Redactor | None) -> _Overlap:
    try:
        store.info(session_id)
    except SessionNotFound:
        return _Overlap(0, OwnRecords(), exists=False)
    shared, own, times, exposed = 0, OwnRecords(), set[str](), False
    begins = imported.drafts[0].time if imported.drafts else ""
    told = {draft.time for draft in imported.drafts} | {time for time, _ in imported.echoes}
    for record in store.read(session_id):
        if shared == len(imported.drafts):
            break
        draft = own.renumbered(imported.drafts[shared])
        if draft.time != begins:
            begins = ""
        if not _is_same(record, draft, timed=not begins):
            moves = can_be_renumbered(imported.drafts[shared:])
            if moves and is_own(record, told):
                own.add(shared, record)
                continue
            if redactor is None or not _is_same(_without_secrets(record, store, redactor), draft, timed=not begins):
                rest = tuple(store.read(session_id, first=record.n))
                # Not the end of a turn that was found open: behind the one that the transcript tells, it would hold.
                behind = [one for one in rest if moves and is_own(one, told) and not isinstance(one.body, TurnClosed)]
                stay = {one.n for one in behind}
                others = [one for one in rest if one.n not in stay]
                return _Overlap(shared, own, others, behind, frozenset(times))
            exposed = True
        shared += 1
        if not draft.time:
            told.add(record.time)
        if draft.time or names_its_place(record):
            times.add(record.time)
    return _Overlap(shared, own, exposed=exposed)


def _without_secrets(record: Record, store: Store, redactor: Redactor) -> Record:
    """What a record would be if it were imported today."""
    renamed: dict[str, Cleaned] = {}
    for name in blob_names(record):
        with suppress(BlobMissing):
            data, counts = redacted_bytes(store.get_blob(name), redactor)
            if counts:
                renamed[name] = Cleaned.of(data, counts)
    return replace(record, body=redacted_draft(Draft(record.body, record.time), redactor, renamed).body, raw=None)


def _is_made(store: Store, session_id: str, imported: Imported) -> bool:
    """Makes the session; False if it cannot have that id, which differs from another's by case only."""
    try:
        _make(store, session_id, imported, imported.title)
    except SessionIdError:
        return False
    return True


def _make(store: Store, session_id: str, imported: Imported, title: str) -> SessionInfo:
    created = imported.created or (imported.drafts[0].time if imported.drafts else "")
    parent = imported.parent if imported.parent.lower() != session_id.lower() else ""
    return store.create(session_id, title=title, created=created, parent=parent)


def _make_again(store: Store, session_id: str, imported: Imported, overlap: _Overlap) -> None:
    """Put the imported session in the place of what was imported of it before, with the own records; forks of that stay
    whole.

    It is written under another id first, so that all of it is in the store whatever fails. If something does, or the
    process is killed, the next import goes on with it (`_finish_interrupted`).
    """
    _check(imported, 0)
    drafts = tuple(overlap.own.merged(imported.drafts, overlap.behind))
    alone = store.hold(session_id, alone=True)
    if alone is None:
        raise InputError(
            f"session {session_id!r} cannot be updated while it is open: its last answer was incomplete when it was "
            "imported, so the session has to be replaced; close it and import again"
        )
    try:
        title, kept = store.info(session_id).title, session_id in store.inventory().kept
        spare = _spare_id(session_id)
        _make(store, spare, replace(imported, parent=session_id), _title(title, imported) or title)
        try:
            _put_blobs(store, imported)
            store.append(spare, drafts, expected=0)
            store.keep(spare, kept=kept)
            store.delete(session_id, expected=overlap.last + len(overlap.others) + len(overlap.behind))
        except BaseException:
            with suppress(SessionNotFound):
                store.info(session_id)  # if it is gone already, the spare is all there is
                store.delete(spare)
            raise
        _put_in_place(store, session_id, imported, kept=kept)
    finally:
        alone.close()


def _finish_interrupted(store: Store, session_id: str, imported: Imported, redactor: Redactor | None) -> None:
    """Finish making a session again, if a process was killed while it did."""
    try:
        spare = store.info(_spare_id(session_id))
    except SessionNotFound:
        return
    if spare.parent != session_id or spare.parent_records:  # somebody's own, or a fork that has its name by chance
        return
    alone = store.hold(session_id, alone=True)
    if alone is None:  # another process is doing it
        return
    try:
        there, made = _first(store, session_id), _first(store, spare.id)
        if spare.records and there is None:
            _put_in_place(store, session_id, imported, kept=spare.id in store.inventory().kept)
        elif there is None or made is None or _is_alike(there, made, store, redactor):  # nothing else took its place
            if there is not None and spare.id in store.inventory().kept:
                store.keep(session_id)
            store.delete(spare.id)
    finally:
        alone.close()


def _put_in_place(store: Store, session_id: str, imported: Imported, *, kept: bool) -> None:
    """Give the session that was made again its own id."""
    spare = _spare_id(session_id)
    with suppress(SessionExists):  # and empty: this was begun before
        _make(store, session_id, imported, store.info(spare).title)
    store.append(session_id, list(map(as_draft, store.read(spare))), expected=0)
    store.keep(session_id, kept=kept)
    store.delete(spare)


def _first(store: Store, session_id: str) -> Record | None:
    """A session's first record, if there is one."""
    with suppress(SessionNotFound):
        return next(store.read(session_id, last=1), None)
    return None


def _is_alike(there: Record, made: Record, store: Store, redactor: Redactor | None) -> bool:
    """Whether two records were imported from the same place: of what tells no time each has the clock's, and since the
    first some secret may have become known."""
    bodies = [there.body] if redactor is None else [there.body, _without_secrets(there, store, redactor).body]
    return there.raw == made.raw or (made.body in bodies and not isinstance(made.body, UnknownRecord))


def _spare_id(session_id: str) -> str:
    """The id under which a session stands while it is made again."""
    return f"{session_id[:117]}.being-made"


def _is_same(record: Record, draft: Draft, *, timed: bool) -> bool:
    """Whether the record is the draft. Unless `timed`, the draft is of a transcript's first time, which what stands
    ahead of it has, too: a record that was imported before there was a time has the clock's."""
    if draft.time and draft.time != record.time and (timed or draft.raw is not None or record.time < draft.time):
        return False
    # Equal values, or equal bytes: NaN equals nothing, and of an unknown kind only bytes tell.
    if record.body == draft.body and not isinstance(record.body, UnknownRecord):
        return True
    return encode_record(Record(record.n, record.time, draft.body, draft.raw, draft.redacted)) == encode_record(record)
