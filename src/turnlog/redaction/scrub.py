"""Secrets in existing logs: `scan` finds them, `scrub` removes them.

Scrubbing is the only operation that rewrites records. It is recorded itself: each changed record contains how many
secrets it lost, and a note at the end of the session describes what was done; the time of the note is the time of the
scrub.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress

from msgspec import Struct

from ..errors import BlobMissing, CorruptRecord, SessionNotFound, StoreError
from ..log.codec import encode_record
from ..log.messages import text_of
from ..log.records import MessageRecord, Note, Record
from ..log.store import Draft, Store
from ..stores.leases import unowned
from ..stores.records import blob_names
from .drafts import Cleaned, redacted_bytes, redacted_draft, redacted_next
from .redactor import Attentive, Counts, Pieces, Redactor, has_mark
from .store import is_cut, redacted_title

SCRUBBED = "scrubbed"
"""The topic of the notes about scrubs."""

_QUOTING = frozenset({"decision", "summary"})
"""Kinds of records that quote other records. Their quotations may be cut off."""


class Leak(Struct, frozen=True):
    """Secrets of one kind in one record (0: the session's title), including those in files that it names."""

    session: str
    record: int
    kind: str
    number: int


class Scrubbed(Struct, frozen=True):
    """The result of a scrub: the rewritten records, the number of removed secrets by kind, and the hashes of files that
    contained secrets but had to stay because other sessions name them."""

    session: str
    records: tuple[int, ...]
    redacted: Counts
    kept_blobs: tuple[str, ...] = ()


def scan(store: Store, session_id: str | None = None, redactor: Redactor | None = None) -> Iterator[Leak]:
    """The secrets in one session, or in all sessions. Those in shared records are found in each session. Raises as
    `Store.read`."""
    redactor = redactor or Redactor()
    files = _Files(store, redactor)
    if session_id is not None:
        yield from _leaks(store, session_id, redactor, files)
        return
    for info in store.sessions():
        with suppress(SessionNotFound):  # deleted meanwhile
            yield from _leaks(store, info.id, redactor, files)


def _leaks(store: Store, session: str, redactor: Redactor, files: _Files) -> Iterator[Leak]:
    title = store.info(session).title
    whole = redactor.text(title)[1]
    texts: list[str] = []
    yield from (Leak(session, 0, kind, number) for kind, number in whole.items())
    attentive = Attentive(redactor)
    for record in store.read(session):
        clean = _clean(record, attentive, files)
        texts += _said(title, clean or record)
        if clean is not None:
            new_counts = Counter(clean.redacted) - Counter(record.redacted)
            yield from (Leak(session, record.n, kind, number) for kind, number in new_counts.items())
    halves = redacted_title(title, texts, attentive)[1] - whole
    yield from (Leak(session, 0, kind, number) for kind, number in halves.items())


def scrub(store: Store, session_id: str, redactor: Redactor | None = None) -> Scrubbed:
    """Replace all secrets of a session with marks, for good.

    Records shared with forks change there, too, and so do summaries in forks that quote the secrets. Token counts of
    changed messages are removed. If there are no secrets, no record changes, but the leftovers of an earlier run are
    removed: old bytes in the store's files; text files that only other sessions named at that time; and if the earlier
    run was killed, files that no record names any more (see `Store.sweep`). Raises CorruptRecord, with nothing changed,
    if the log is damaged, and SessionBusy if this session, or one that shares records with it, has an owner.
    """
    relatives = _relatives(store, session_id)
    with ExitStack() as owned:
        for name in sorted((session_id, *relatives)):
            owned.enter_context(unowned(store, name))
        return _scrubbed(store, session_id, relatives, redactor)


def _scrubbed(store: Store, session_id: str, relatives: Sequence[str], redactor: Redactor | None) -> Scrubbed:
    redactor = Attentive(redactor or Redactor())
    files = _Files(store, redactor)
    info = store.info(session_id)
    counts = Counter[str]()
    changed: dict[int, bytes] = {}
    earlier: set[str] = set()
    texts: list[str] = []
    for record in store.read(session_id):
        earlier |= _listed(record)
        draft = _clean(record, redactor, files)
        texts += _said(info.title, draft or record)
        if draft is None:
            continue
        changed[record.n] = encode_record(Record(record.n, record.time, draft.body, draft.raw, draft.redacted))
        counts += Counter(draft.redacted) - Counter(record.redacted)
    if redactor.pieces:  # first, so that a later run still finds them if this one is interrupted
        _scrub_relatives(store, relatives, redactor.pieces)
    title, title_counts = redacted_title(info.title, texts, redactor)
    counts += title_counts
    for data in files.clean.values():
        store.put_blob(data)
    if title != info.title:
        store.rename(session_id, title)
    if counts:
        _rewrite(store, session_id, changed, counts, sorted(files.renamed))
    doomed = earlier | files.renamed.keys()
    needed = _named(store) if doomed else frozenset()
    if not counts:
        store.sweep()  # if an earlier run was killed after rewriting, no note lists the files to delete
    if doomed - needed or not counts:
        store.rewrite(session_id, {}, blobs=sorted(doomed - needed))
    return Scrubbed(session_id, tuple(changed), counts, tuple(sorted(needed & files.renamed.keys())))


def _relatives(store: Store, session_id: str) -> list[str]:
    """The other sessions that share records with this one, directly or through other sessions, or that once did."""
    infos = {info.id: info for info in store.sessions()}

    def line(name: str) -> set[str]:
        met: set[str] = set()
        while name not in met:  # a session deleted and forked back from its own fork is the parent of its parent
            met.add(name)
            name = infos[name].parent if name in infos and infos[name].parent_records else name
        return met

    ancestors = line(session_id)
    return [name for name in infos if name != session_id and not ancestors.isdisjoint(line(name))]


def _scrub_relatives(store: Store, relatives: Sequence[str], pieces: Pieces) -> None:
    """Remove cut-off pieces of the secrets from sessions that share records with this one. Nothing would recognise
    these pieces there once the whole secrets are replaced with marks."""
    for name in relatives:
        changed: dict[int, bytes] = {}
        counts = Counter[str]()
        with suppress(SessionNotFound, CorruptRecord):  # deleted meanwhile; `verify` reports damage
            for record in store.of_kinds(name, _QUOTING):
                draft = redacted_draft(Draft.of(record), pieces, {})
                if draft.redacted != record.redacted:
                    changed[record.n] = encode_record(Record(record.n, record.time, draft.body, None, draft.redacted))
                    counts += Counter(draft.redacted) - Counter(record.redacted)
            if changed:
                _rewrite(store, name, changed, counts, [])


def _said(title: str, one: Draft | Record) -> list[str]:
    """The lines of a message that may contain the secret in which `title` was cut off; none if the title is whole."""
    if not is_cut(title) or not isinstance(one.body, MessageRecord):
        return []
    return [line for line in text_of(one.body.message).splitlines() if has_mark(line) or title[:-1] in line]


def _rewrite(store: Store, session_id: str, changed: dict[int, bytes], counts: Counts, files: list[str]) -> None:
    """Rewrite records and add a note at the end of the session. The note is added even if the store fails after
    rewriting, or is interrupted (rewriting a whole store file takes long), because the note lists the files to
    delete."""
    data = {"records": list(changed), "redacted": counts, "files": files}
    note = Draft(Note(SCRUBBED, "secrets were taken out of records that were there", data))
    try:
        store.rewrite(session_id, changed)
    except (StoreError, KeyboardInterrupt):
        first = min(changed, default=0)
        if first and [record.raw for record in store.read(session_id, first=first, last=first)] == [changed[first]]:
            store.append(session_id, [note])
        raise
    store.append(session_id, [note])


def _listed(record: Record) -> set[str]:
    """The files that an earlier scrub listed for deletion."""
    body = record.body
    if not (isinstance(body, Note) and body.topic == SCRUBBED and isinstance(body.data, dict)):
        return set()
    listed = body.data.get("files")
    return {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()


def _named(store: Store) -> frozenset[str]:
    """The files that any record names."""
    names: set[str] = set()
    for info in store.sessions():
        with suppress(SessionNotFound):  # deleted meanwhile, so it names no files
            for record in store.read(info.id):
                names |= blob_names(record)
    return frozenset(names)


class _Files:
    """The text files that records name. Each is searched once."""

    def __init__(self, store: Store, redactor: Redactor) -> None:
        self._store = store
        self._redactor = redactor
        self._seen: set[str] = set()
        self.renamed: dict[str, Cleaned] = {}
        self.clean: dict[str, bytes] = {}

    def look(self, name: str) -> None:
        """Search a file, if it exists and is intact."""
        if name in self._seen:
            return
        self._seen.add(name)
        try:
            data, counts = redacted_bytes(self._store.get_blob(name), self._redactor)
        except BlobMissing:
            return  # `verify` reports it
        if counts:
            self.renamed[name] = Cleaned.of(data, counts)
            self.clean[self.renamed[name].name] = data


def _clean(record: Record, redactor: Attentive, files: _Files) -> Draft | None:
    """The record without its secrets; None if it contains none."""
    for name in blob_names(record):
        files.look(name)
    draft = Draft.of(record)
    clean = redacted_next(draft, redactor, files.renamed)
    return None if clean is draft else clean
