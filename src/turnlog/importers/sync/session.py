"""Import sessions into a store, without overwriting any.

A transcript that grew since it was imported continues its session; a transcript with another conversation under the
same id is stored beside the old one. If a transcript was imported while its last answer was still being written, it now
contains more of that answer: then the whole session is replaced, if nothing else was recorded in it. Own records of
turnlog keep their positions.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain, count
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..._platform.lazy import cached_property
from ...errors import BlobMissing, Conflict, InputError, SessionExists, SessionIdError, SessionNotFound
from ...log.codec import encode_record
from ...log.messages import Message, Part, Reasoning, Text, text_of
from ...log.records import Body, MessageRecord, Note, PartialAnswer, Record, TurnClosed, UnknownRecord, UsageRecord
from ...log.store import Draft, Held, SessionInfo, Store, check_session_id
from ...log.validation import check_readable
from ...redaction import Redactor
from ...redaction.drafts import Cleaned, redacted_bytes, redacted_draft, redacted_drafts, redacted_time
from ...redaction.redactor import Attentive
from ...redaction.store import cut_title, redacted_title
from ...session.titles import title_from, title_of
from ...stores.records import blob_names
from ...view.program_prefaces import request_in
from .. import Imported
from ..protocol import hashed_id
from ..repeats import result_text, texts_of
from .own_records import OwnRecords, can_be_renumbered, can_follow, closes_left_open, is_own, unnumbered

# -- growth ----------------------------------------------------------------------------------------
#
# Whether a transcript only grew since it was imported: it contains everything that the session has of it, and more.
#
# A session is replaced only if every record that would be deleted came from the transcript. A message came from it if
# the message has a `source`; messages recorded by turnlog have none. Any other record came from it if the transcript
# has the same record at the same time. If the transcript has no times, all records of one import have one time,
# that of the file or of the import, so a record with the time of an imported message came from it.


def says_more(imported: Imported, shared: int, records: Sequence[Record], times: Iterable[str]) -> bool:
    """Whether the transcript contains everything that `records` contain, and all of them came from it.

    The first `shared` of its drafts precede `records`. `times` are the times of these drafts, or of their import; the
    last records of a transcript can have the time of the record before them. Records that closed a turn because it was
    open when the session was opened are ignored: the transcript has the real end of that turn.
    """
    times = {*times, *(record.time for record in records if has_source(record))}
    older = [record for record in records if not closes_left_open(record.body)]
    return _Newer(imported.drafts[shared:], imported.echoes, times).contains_all(older)


def says_less(imported: Imported, shared: int, records: Sequence[Record]) -> bool:
    """Whether `records` contain everything that the transcript contains after draft `shared`: then the transcript is an
    older copy."""
    return _Newer(records, imported.echoes, ("",)).contains_all(imported.drafts[shared:])


def has_source(record: Record) -> bool:
    """Whether this is a message from a transcript."""
    return isinstance(record.body, MessageRecord) and bool(record.body.source)


_NO_FIGURES = ("incomplete", "charged", "apart")
"""Fields of `Usage` that do not grow while an answer is written."""


class _Newer(Struct, dict=True, frozen=True):
    """Records or drafts that may contain everything that older ones contain, and more. A record whose time is in
    `times` has the time of its import, so its time may differ here."""

    entries: Sequence[Record | Draft]
    echoes: Mapping[tuple[str, str], str]
    times: Container[str]

    def contains_all(self, older: Iterable[Record | Draft]) -> bool:
        """Whether each of the `older` records is contained, the messages in their order."""
        messages = iter(self._messages)
        message = next(messages, None)
        for record in older:
            if isinstance(record.body, (MessageRecord, PartialAnswer)):
                while message is not None and not self._grew(record, message):
                    message = next(messages, None)
                if message is None:  # one message may contain several older ones, so the next is tried with it too
                    return False
            elif not self._repeats(record) and not self._echoes(record):
                return False
        return True

    def _grew(self, record: Record | Draft, other: Record | Draft) -> bool:
        """Whether the message `other` is a later version of `record`."""
        old, new = record.body, other.body
        if not isinstance(old, (MessageRecord, PartialAnswer)) or not isinstance(new, (MessageRecord, PartialAnswer)):
            return False
        if not self._same_time(record, other) or not all(_is_foreign(body) for body in (old, new)):
            return False
        parts = iter(new.message.parts)
        if old.message.role != new.message.role:
            return False
        return all(any(_continues(part, longer) for longer in parts) for part in old.message.parts)

    def _same_time(self, record: Record | Draft, other: Record | Draft) -> bool:
        return record.time == other.time or record.time in self.times

    def _repeats(self, record: Record | Draft) -> bool:
        """Whether this record is contained, possibly with more in it."""
        same = self._kinds.get(_kind(record.body))
        if same is None:
            return False
        for position in chain(range(same.next, len(same.entries)), range(same.next)):
            other = same.entries[position]
            if self._same_time(record, other) and _is_update(record.body, other.body):
                same.next = position + 1  # usually the next record to look for follows this one
                return True
        return False

    def _echoes(self, record: Record | Draft) -> bool:
        """Whether this note repeats the text of a message that is contained."""
        body = record.body
        if not isinstance(body, Note) or body.text or not isinstance(body.data, dict):
            return False
        text = body.data.get(self.echoes.get((record.time, body.topic), ""))
        return isinstance(text, str) and any(text.strip() in message_text for message_text in self._texts)

    @cached_property
    def _messages(self) -> list[Record | Draft]:
        return [entry for entry in self.entries if isinstance(entry.body, (MessageRecord, PartialAnswer))]

    @cached_property
    def _kinds(self) -> dict[object, _Kind]:
        kinds: dict[object, _Kind] = {}
        for entry in self.entries:
            kinds.setdefault(_kind(entry.body), _Kind([])).entries.append(entry)
        return kinds

    @cached_property
    def _texts(self) -> list[str]:
        bodies = (entry.body for entry in self._messages)
        messages = [body.message for body in bodies if isinstance(body, (MessageRecord, PartialAnswer))]
        return [text for message in messages for text in (*texts_of(message), *_summaries(message))]


class _Kind(Struct):
    """Records of one kind, and the index at which to look next."""

    entries: list[Record | Draft]
    next: int = 0


def _kind(body: Body) -> object:
    return (type(body), body.topic if isinstance(body, Note) else "")


def _continues(part: Part, longer: Part) -> bool:
    """Whether a part is the same, or a text of which more was printed since."""
    if isinstance(part, Text) and isinstance(longer, Text) and part.text and part.form is longer.form is None:
        return longer.text.startswith(part.text)
    return part == longer


def _is_foreign(body: MessageRecord | PartialAnswer) -> bool:
    """Whether a message may come from a transcript. A partial answer has no source, so only its time is compared."""
    return isinstance(body, PartialAnswer) or bool(body.source)


def _summaries(message: Message) -> list[str]:
    return [text for part in message.parts if isinstance(part, Reasoning) for text in part.summary]


def _is_update(old: Body, new: Body) -> bool:
    """Whether `new` is a later version of `old`. The usage of an answer grows while the answer is written. A note gains
    data, or loses what a message contains by then. References to record numbers differ if an older turnlog made fewer
    records from the transcript."""
    if unnumbered(old) == unnumbered(new):
        return True
    if isinstance(old, UsageRecord) and isinstance(new, UsageRecord):
        fields = [name for name in type(old.usage).__struct_fields__ if name not in _NO_FIGURES]
        grew = all(getattr(new.usage, name) >= getattr(old.usage, name) for name in fields)
        return grew and (old.provider, old.model) == (new.provider, new.model)
    if isinstance(old, Note) and isinstance(new, Note):
        return (old.topic, old.text) == (new.topic, new.text) and _agree(old.data, new.data)
    return False


def _agree(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, except for keys and items that only one of them has."""
    if isinstance(one, dict) and isinstance(other, dict):
        common = one.keys() & other.keys()
        return bool(common) and all(_agree(one[key], other[key]) for key in common)
    if isinstance(one, list) and isinstance(other, list):
        few, many = sorted((one, other), key=len)
        rest = iter(many)
        return all(any(_agree(item, candidate) for candidate in rest) for item in few)
    return type(one) is type(other) and bool(one == other)


_TRIES = 8
"""The number of retries if another process imports the same session at the same time."""


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
    """An imported session with marks in place of secrets, in its records, files and title. An id with a secret becomes
    a hash."""
    session_id, parent = (
        hashed_id("session", identifier) if redactor.find(identifier) else identifier
        for identifier in (imported.session_id, imported.parent)
    )
    redactor = Attentive(redactor)  # the title may begin or end inside a secret
    drafts, blobs = redacted_drafts(imported.drafts, imported.blobs, redactor)
    texts = (text_of(draft.body.message) for draft in drafts if isinstance(draft.body, MessageRecord))
    title, created = redacted_title(imported.title, texts, redactor)[0], redacted_time(imported.created, redactor)[0]
    return replace(
        imported, session_id=session_id, parent=parent, drafts=drafts, blobs=blobs, title=title, created=created
    )


class _Overlap(Struct, frozen=True):
    """What a stored session has of an imported one: the first `shared` records, with turnlog's `own` records among
    them. After these come `others`, and the own records `behind` them. `times` are the times of the shared records:
    those of the transcript, or of their import for messages without a time. `exposed`: some of the shared records
    contain secrets where the imported ones have marks."""

    shared: int
    own: OwnRecords
    others: Sequence[Record] = ()
    behind: Sequence[Record] = ()
    times: frozenset[str] = frozenset()
    exposed: bool = False
    exists: bool = True

    @property
    def last(self) -> int:
        """The number of the last record before `others`."""
        return self.shared + len(self.own)


def sync_session(store: Store, imported: Imported, redactor: Redactor | None = None) -> Synced:
    """Append to `store` the records of `imported` that it does not have. A second call changes nothing.

    `redactor` is the redactor that replaced secrets in `imported`: records stored earlier without marks count as the
    same.

    Raises InputError if a record cannot be stored, or if the session must be replaced but is in use; Conflict if others
    keep appending.
    """
    check_session_id(imported.session_id)
    if imported.parent:
        check_session_id(imported.parent)
    with closing(_import_lock(store, imported.session_id)):
        for _ in range(_TRIES):  # without a lock in the store, another process may import the session too
            with suppress(Conflict, SessionExists):
                return _sync(store, imported, redactor)
        return _sync(store, imported, redactor)


def _import_lock(store: Store, session_id: str) -> Held:
    """Wait until no other process imports this session, and make others wait until the returned lock is closed. While a
    session is being replaced it does not exist for a moment, and another process would create it a second time."""
    name = f"{session_id[:117]}.importing"  # not the session's id: that would wait until nobody has the session open
    while (lock := store.hold(name, alone=True)) is None:
        if (others := store.hold(name)) is not None:
            others.close()
    return lock


def _sync(store: Store, imported: Imported, redactor: Redactor | None) -> Synced:
    for number in count(1):
        session_id = imported.session_id if number == 1 else f"{imported.session_id[:120]}.{number}"
        _finish_interrupted(store, session_id, imported, redactor)
        overlap = _overlap(store, session_id, imported, redactor)
        fresh = len(imported.drafts) - overlap.shared
        if overlap.others:
            stays = all(can_follow(record, overlap.last) for record in overlap.behind)
            if stays and says_more(imported, overlap.shared, overlap.others, overlap.times):
                _replace_session(store, session_id, imported, overlap)
                return Synced(session_id, "continued", fresh)
            if says_less(imported, overlap.shared, overlap.others):
                return Synced(session_id, "unchanged", 0)
            continue
        _check(imported, overlap.shared)
        if overlap.exists or _can_make(store, session_id, imported):
            break
    if fresh:
        _put_blobs(store, imported)
        drafts = _timed(overlap.own.merged(imported.drafts), imported)
        store.append(session_id, drafts[overlap.last :], expected=overlap.last)
    if not overlap.exists or (fresh and not overlap.shared):
        return Synced(session_id, "diverged" if number > 1 else "new", fresh)
    if overlap.shared and (title := _title(store.info(session_id).title, imported)) is not None:
        store.rename(session_id, title)
    return Synced(session_id, "continued" if fresh else "unchanged", fresh, overlap.exposed)


def _timed(drafts: Iterable[Draft], imported: Imported) -> tuple[Draft, ...]:
    """The drafts as they are stored: without times in the transcript, with the time when it was written. They are
    compared without it, as older versions stored the time of the import, and files are copied and touched."""
    return tuple(draft if draft.time or draft.raw else replace(draft, time=imported.written) for draft in drafts)


def _put_blobs(store: Store, imported: Imported) -> None:
    for data in imported.blobs.values():
        store.put_blob(data)


def _check(imported: Imported, shared: int) -> None:
    """Raises InputError if a draft after number `shared` could be written but not read again. Only imports check this:
    checking every appended record would take longer than appending."""
    for number, draft in enumerate(imported.drafts[shared:], shared + 1):
        if draft.raw is None:
            try:
                check_readable(draft.body)
            except InputError as error:
                where = f"record {number} made from the transcript"
                raise InputError(f"session {imported.session_id!r} cannot be stored: {where}: {error}") from error


def _title(current: str, imported: Imported) -> str | None:
    """The new title of a session according to the transcript; None if somebody renamed the session. A title that was
    made of what the user said, by this version or by an earlier one, is nobody's."""
    if imported.title in ("", current):
        return None
    bodies = (draft.body for draft in imported.drafts)
    said = [body.message for body in bodies if isinstance(body, MessageRecord) and body.message.role == "user"]
    return imported.title if current in ("", title_of(said), *_earlier_titles(said)) else None


def _overlap(store: Store, session_id: str, imported: Imported, redactor: Redactor | None) -> _Overlap:
    try:
        store.info(session_id)
    except SessionNotFound:
        return _Overlap(0, OwnRecords(), exists=False)
    shared, own_records, times, exposed = 0, OwnRecords(), set[str](), False
    begins = imported.drafts[0].time if imported.drafts else ""
    known_times = {draft.time for draft in imported.drafts} | {time for time, _ in imported.echoes}
    for record in store.read(session_id):
        if shared == len(imported.drafts):
            break
        draft = own_records.renumbered(imported.drafts[shared])
        if draft.time != begins:
            begins = ""
        if not _is_same(record, draft, timed=not begins):
            moves = can_be_renumbered(imported.drafts[shared:])
            if moves and is_own(record, known_times):
                own_records.add(shared, record)
                continue
            if redactor is None or not _is_same(_without_secrets(record, store, redactor), draft, timed=not begins):
                rest = tuple(store.read(session_id, first=record.n))
                # Records that closed an open turn are not kept: they would apply after the transcript's own end of the
                # turn.
                behind = [
                    later
                    for later in rest
                    if moves and is_own(later, known_times) and not isinstance(later.body, TurnClosed)
                ]
                stay = {later.n for later in behind}
                others = [later for later in rest if later.n not in stay]
                return _Overlap(shared, own_records, others, behind, frozenset(times))
            exposed = True
        shared += 1
        if not draft.time:
            known_times.add(record.time)
        if draft.time or has_source(record):
            times.add(record.time)
    return _Overlap(shared, own_records, exposed=exposed)


def _without_secrets(record: Record, store: Store, redactor: Redactor) -> Record:
    """The record with marks in place of all secrets that are known today."""
    renamed: dict[str, Cleaned] = {}
    for name in blob_names(record):
        with suppress(BlobMissing):
            data, counts = redacted_bytes(store.get_blob(name), redactor)
            if counts:
                renamed[name] = Cleaned.of(data, counts)
    return replace(record, body=redacted_draft(Draft(record.body, record.time), redactor, renamed).body, raw=None)


def _can_make(store: Store, session_id: str, imported: Imported) -> bool:
    """Create the session; returns False if its id is not possible because it differs from another id only in case."""
    try:
        _make(store, session_id, imported, imported.title)
    except SessionIdError:
        return False
    return True


def _make(store: Store, session_id: str, imported: Imported, title: str) -> SessionInfo:
    created = imported.created or (imported.drafts[0].time if imported.drafts else "") or imported.written
    parent = imported.parent if imported.parent.lower() != session_id.lower() else ""
    return store.create(session_id, title=title, created=created, parent=parent)


def _replace_session(store: Store, session_id: str, imported: Imported, overlap: _Overlap) -> None:
    """Replace an imported session with its new version, and keep the own records; forks of the session stay complete.

    The new version is first written under another id, so that the store has all of it even if a step fails. After a
    failure, or if the process is killed, the next import continues (`_finish_interrupted`).
    """
    _check(imported, 0)
    drafts = _timed(overlap.own.merged(imported.drafts, overlap.behind), imported)
    alone = store.hold(session_id, alone=True)
    if alone is None:
        raise InputError(
            f"session {session_id!r} cannot be updated while it is open: its last answer was incomplete when it was "
            "imported, so the session has to be replaced; close it and import again"
        )
    try:
        title, is_kept = store.info(session_id).title, session_id in store.inventory().kept
        spare = _spare_id(session_id)
        _make(store, spare, replace(imported, parent=session_id), _title(title, imported) or title)
        try:
            _put_blobs(store, imported)
            store.append(spare, drafts, expected=0)
            store.keep(spare, kept=is_kept)
            store.delete(session_id, expected=overlap.last + len(overlap.others) + len(overlap.behind))
        except BaseException:
            with suppress(SessionNotFound):
                store.info(session_id)  # if the session is already deleted, the spare has the only copy
                store.delete(spare)
            raise
        _put_in_place(store, session_id, imported, kept=is_kept)
    finally:
        alone.close()


def _finish_interrupted(store: Store, session_id: str, imported: Imported, redactor: Redactor | None) -> None:
    """Finish replacing a session if a process was killed while it did so."""
    try:
        spare = store.info(_spare_id(session_id))
    except SessionNotFound:
        return
    if spare.parent != session_id or spare.parent_records:  # another session that has this id by chance
        return
    alone = store.hold(session_id, alone=True)
    if alone is None:  # another process is replacing the session
        return
    try:
        stored, spare_first = _first(store, session_id), _first(store, spare.id)
        if spare.records and stored is None:
            _put_in_place(store, session_id, imported, kept=spare.id in store.inventory().kept)
        elif stored is None or spare_first is None or _is_alike(stored, spare_first, store, redactor):
            # The session was not replaced by something else.
            if stored is not None and spare.id in store.inventory().kept:
                store.keep(session_id)
            store.delete(spare.id)
    finally:
        alone.close()


def _put_in_place(store: Store, session_id: str, imported: Imported, *, kept: bool) -> None:
    """Copy the new version of a session to the session's own id."""
    spare = _spare_id(session_id)
    with suppress(SessionExists):  # an empty session: an earlier import began this
        _make(store, session_id, imported, store.info(spare).title)
    store.append(session_id, list(map(Draft.of, store.read(spare))), expected=0)
    store.keep(session_id, kept=kept)
    store.delete(spare)


def _first(store: Store, session_id: str) -> Record | None:
    """The first record of a session, None if there is none."""
    with suppress(SessionNotFound):
        return next(store.read(session_id, last=1), None)
    return None


def _is_alike(stored: Record, spare_first: Record, store: Store, redactor: Redactor | None) -> bool:
    """Whether two records were imported from the same place. Their times are not compared: without a time in the
    transcript each has that of its file or its import. Secrets that became known since the first import are ignored."""
    bodies = [stored.body] if redactor is None else [stored.body, _without_secrets(stored, store, redactor).body]
    return stored.raw == spare_first.raw or (
        spare_first.body in bodies and not isinstance(spare_first.body, UnknownRecord)
    )


def _spare_id(session_id: str) -> str:
    """The id of the new version of a session while the session is being replaced."""
    return f"{session_id[:117]}.being-made"


def _is_same(record: Record, draft: Draft, *, timed: bool) -> bool:
    """Whether the record equals the draft. With `timed=False` the draft is among the first of a transcript and has the
    transcript's first time, so a later time of the record is accepted: if the transcript had no time yet when it was
    imported, the record has the clock time of that import."""
    if draft.time and draft.time != record.time and (timed or draft.raw is not None or record.time < draft.time):
        return False
    if isinstance(record.body, UsageRecord) and isinstance(draft.body, UsageRecord) and draft.raw is None:
        # Older versions recognised fewer figures as being from before the end of an answer.
        usage = replace(draft.body.usage, incomplete=record.body.usage.incomplete)
        return record.body == replace(draft.body, usage=usage)
    # Equal values, or equal bytes: NaN is not equal to itself, and records of an unknown kind are compared by bytes.
    if record.body == draft.body and not isinstance(record.body, UnknownRecord):
        return True
    return encode_record(Record(record.n, record.time, draft.body, draft.raw, draft.redacted)) == encode_record(record)


def _earlier_titles(messages: Iterable[Message]) -> set[str]:
    """The titles that earlier versions may have made of the messages up to the first request: the first line that is
    not markup; for some agents, of those that neither end with a colon nor are a path."""
    titles: set[str] = set()
    for message in messages:
        text = result_text(message.parts)
        for said in (text, request_in(text)[1]):
            lines = [line.strip().lstrip("#").strip() for line in said.splitlines()]
            lines = [line for line in lines if line and not line.startswith("<")]
            plain = [line for line in lines if not line.endswith(":") and not line.startswith("/")]
            titles.update(map(cut_title, (*lines[:1], *plain[:1])))
        if title_from(text) and not text.startswith("<"):
            break
    return titles
