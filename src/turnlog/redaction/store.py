"""A store in front of another: what is appended through it contains no secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from ..errors import InputError, SessionNotFound
from ..log.messages import sha256_hex, unchanged
from ..log.records import Body, Decision, Note, Record
from ..log.store import Draft, Hit, Problem, SessionInfo, Store
from ..stores.labels import LABELS, where_given
from ..stores.search import Search
from ..stores.wrapper import StoreWrapper
from .drafts import QUOTING, Cleaned, redacted, redacted_bytes, redacted_next, redacted_time
from .redactor import Attentive, Counts, Redactor, marks_in

# -- titles ----------------------------------------------------------------------------------------
#
# Titles: the beginning of a text, cut off if it is too long, possibly in the middle of a secret.
#
# Half a key cannot be recognised as a secret. But the whole text can: where the title was cut, the text has a mark.

_LONGEST = 80
_CUT = "…"
_ENOUGH = 20
"""How many characters before a mark must be the same in a title and a line to show that the title was cut off at the
mark."""


def cut_title(line: str) -> str:
    """A line as a title: at most 80 characters."""
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + _CUT


def is_cut(title: str) -> bool:
    """Whether a title is only the beginning of a line."""
    return title.endswith(_CUT)


def redacted_title(title: str, said: Iterable[str], redactor: Redactor) -> tuple[str, Counts]:
    """A title with marks instead of secrets, and the number of replaced secrets by kind. `said`: the redacted texts of
    the session; if the title is the cut beginning of one of their lines, the mark is taken from there. An Attentive
    redactor also finds cut-off secrets from other places."""
    clean, counts = redactor.text(title)
    if is_cut(clean):
        beginning = clean.removesuffix(_CUT)
        for line in (line.strip().lstrip("#").strip() for text in said for line in text.splitlines()):
            if beginning in line:
                break
            if (cut := _cut_in(beginning, line)) is not None:
                kind, whole = cut
                return cut_title(whole), counts + Counter((kind,))
        if isinstance(redactor, Attentive):
            clean, cut_counts = redactor.pieces.text(clean)
            counts.update(cut_counts)
    return clean, counts


def _cut_in(beginning: str, line: str) -> tuple[str, str] | None:
    """The kind of the secret in which `beginning` was cut off, and `beginning` completed by the mark that replaced this
    secret in `line`; None if it does not come from this line. The line may have other words first, if enough text
    before the mark is the same."""
    last = beginning.split()[-1:]
    for kind, index in marks_in(line) if last else ():
        for size in range(len(beginning) - len(last[0]), len(beginning)):
            if (
                beginning[size] != "["
                and (size == index or size >= _ENOUGH)
                and line.endswith(beginning[:size], 0, index)
            ):
                return kind, beginning[:size] + line[index:]
    return None


SHOWS_MARKS = "redact"
"""Action of a decision: from here on, requests show marks instead of the original secrets."""


class RedactingStore(StoreWrapper):
    """Replaces secrets in records, text files and titles with marks before it passes them to `store`.

    With `redactor.live`, what this object appended is read back as it was given, from memory, until a decision on
    record says that requests show marks (`SHOWS_MARKS`). Everything else is passed on unchanged. A text file that
    contained secrets is stored under another hash than the caller knows; records that name it get the right hash.
    """

    def __init__(self, store: Store, redactor: Redactor) -> None:
        super().__init__(store)
        self.redactor = redactor
        # With `live`, quotations are made from texts with secrets, and may be cut off inside one, so all secrets are
        # remembered. Otherwise they are made from marks, and only secrets that a model wrote into summaries are.
        self._attentive = Attentive(redactor)
        self._renamed: dict[str, Cleaned] = {}
        self._live: dict[tuple[str, int], Body] = {}
        self._given: dict[str, bytes] = {}  # text files with secrets, by the hash that the caller knows

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `Store.append`. Returns what later reads return."""
        clean = [redacted_next(draft, self._finder(draft), self._renamed) for draft in drafts]
        if self.redactor.live:
            clean = [
                after if after is before else replace(after, live=after.raw is None)
                for after, before in zip(clean, drafts, strict=True)
            ]
        records = self.store.append(session_id, clean, expected=expected)
        if not self.redactor.live or unchanged(clean, drafts):
            return records
        for record, after, before in zip(records, clean, drafts, strict=True):
            if after is not before:
                self._live[session_id, record.n] = before.body
        return tuple(self._with_secrets(session_id, records))

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        records = self.store.read(session_id, first=first, last=last, reverse=reverse)
        return self._with_secrets(session_id, records) if self._live else records

    def readable(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record | Problem]:
        for entry in self.store.readable(session_id, first=first, last=last, reverse=reverse):
            yield entry if isinstance(entry, Problem) else next(self._with_secrets(session_id, (entry,)))

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        records = self.store.of_kinds(session_id, kinds, first=first, reverse=reverse)
        return self._with_secrets(session_id, records) if self._live else records

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        self.redactor.refuse("the session's id", session_id)
        self._refuse_new("the id of the session's parent", parent)
        title, created = self.redactor.text(title)[0], redacted_time(created, self.redactor)[0]
        return self.store.create(session_id, title=title, created=created, parent=parent)

    def rename(self, session_id: str, title: str) -> None:
        self.store.rename(session_id, self.redactor.text(title)[0])

    def delete(self, session_id: str, *, expected: int | None = None, missing_ok: bool = False) -> None:
        self.store.delete(session_id, expected=expected, missing_ok=missing_ok)
        self._live = {key: body for key, body in self._live.items() if key[0] != session_id}

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        self.redactor.refuse("the session's id", new_id)
        fork = self.store.fork(session_id, new_id, at=at, title=self.redactor.text(title)[0])
        shared = {n: body for (session, n), body in self._live.items() if session == session_id}
        self._live.update({(new_id, n): body for n, body in shared.items() if n <= fork.records})
        return fork

    def sessions(self, *, limit: int | None = None, where: Mapping[str, str] | None = None) -> list[SessionInfo]:
        """See `Store.sessions`. Raises InputError for a label with a secret: its mark would also find sessions of other
        owners, whose labels have the same mark."""
        return self.store.sessions(limit=limit, where=self._without_secrets(where))

    def search(self, query: str, *, where: Mapping[str, str] | None = None, **terms: Any) -> list[Hit]:
        """See `Store.search`. Raises InputError as `sessions`."""
        return self.store.search(query, where=self._without_secrets(where), **terms)

    def _search(self, search: Search) -> list[Hit]:
        self._without_secrets(search.where)
        store: Any = self.store  # the method is not in the protocol: only stores use it of each other
        hits: list[Hit] = store._search(search)
        return hits

    def _without_secrets(self, where: Mapping[str, str] | None) -> Mapping[str, str] | None:
        given = where_given(where)
        clean = redacted(Note(LABELS, "", given), self.redactor)[0].data
        if clean != given:
            names = " and ".join(repr(name) for name in given if clean.get(name, given[name]) != given[name])
            raise InputError(
                f"where: the value of the label {names or 'given'} is a secret, which is not on record: every session "
                "with such a label has the same mark; label sessions with something that is no secret"
            )
        return where

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """See `Store.put_blob`. Returns the hash of `data` as given, even if secrets in it were replaced before it was
        stored."""
        self.redactor.refuse("the name of a file", name)
        clean, counts = redacted_bytes(data, self.redactor)
        stored_hash = self.store.put_blob(clean, name=name)
        if not counts:
            return stored_hash
        given = sha256_hex(data)
        self._renamed[given] = Cleaned(stored_hash, len(clean), counts)
        if self.redactor.live:
            self._given[given] = data
        return given

    def get_blob(self, sha256: str) -> bytes:
        if sha256 in self._given:
            return self._given[sha256]
        return self.store.get_blob(self._renamed[sha256].name if sha256 in self._renamed else sha256)

    def rewrite(self, session_id: str, records: Mapping[int, bytes], **options: Any) -> None:
        self.store.rewrite(session_id, records, **options)
        self._live.clear()

    def _refuse_new(self, field: str, session_id: str) -> None:
        """Raises InputError for an id with a secret, unless a session has it already."""
        try:
            self.redactor.refuse(field, session_id)
        except InputError:
            with suppress(SessionNotFound):
                self.store.info(session_id)
                return
            raise

    def _finder(self, draft: Draft) -> Redactor:
        return self._attentive if self.redactor.live or isinstance(draft.body, QUOTING) else self.redactor

    def _with_secrets(self, session_id: str, records: Iterator[Record] | Sequence[Record]) -> Iterator[Record]:
        for record in records:
            if isinstance(record.body, Decision) and record.body.action == SHOWS_MARKS:
                last = record.body.last  # another process opened the session: from here on all show the same
                self._live = {key: body for key, body in self._live.items() if key[0] != session_id or key[1] > last}
            body = self._live.get((session_id, record.n))
            yield record if body is None else replace(record, body=body, live=False)


def as_kept(store: Store) -> Store:
    """The store as it is on disk: its records have marks also where an open session shows the original text."""
    while isinstance(store, RedactingStore):
        store = store.store
    return store
