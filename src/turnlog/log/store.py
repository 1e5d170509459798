"""Where logs live: the store protocol, and what every store says of its sessions.

A log is the numbered records of one session, 1 to n without gaps, appended to and never rewritten.
Stores differ in where they keep it; what they promise is in `turnlog.testing.check_store`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns
from typing import Protocol

from msgspec import Struct

from ..errors import SessionIdError
from .bills import Bills
from .records import Body, Record

SWEEP_GRACE_SECONDS = 3600.0
"""How long a blob may wait for the record that refers to it."""


class Draft(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A record to be: the store numbers it. `time` is the store's clock if empty.

    `raw` is the encoded record where one is copied from another store: it is kept byte for byte,
    so that fields of a newer version survive, provided the number in it is the one it gets.
    `redacted` is as in `Record`.
    """

    body: Body
    time: str = ""
    raw: bytes | None = None
    redacted: dict[str, int] = {}


class SessionInfo(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """What a listing says of a session.

    `created` and `updated` are UTC, ISO 8601. `records` is the number of the last record,
    `messages` how many of them are messages. `parent` is the session that it belongs to: what it was
    forked from, with the number of records it shares in `parent_records`, or whose subagent's it is,
    sharing none.
    """

    id: str
    title: str
    created: str
    updated: str
    records: int
    messages: int
    parent: str = ""
    parent_records: int = 0


class Problem(Struct, frozen=True, repr_omit_defaults=True):
    """Something that `verify` found: which session, which record (0: none in particular), what."""

    session: str
    record: int
    what: str


class Swept(Struct, frozen=True, repr_omit_defaults=True):
    """What a sweep did: how many blobs it removed and of how many bytes, and how many that nothing
    refers to it left alone because they were put only recently."""

    removed: int
    size: int
    recent: int


class Packed(Struct, frozen=True, repr_omit_defaults=True):
    """What packing a session did: how many records it compressed, and how many bytes they took before and after."""

    records: int
    before: int
    after: int


class Hit(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A record that a search found.

    `role` is whose words it holds: `system`, `user`, `assistant`, or `tool` for the results of tools;
    of records that are no message, their kind. `snippet` is one line of its text, and `start` to
    `end` the characters of it where the first word stands (0 and 0: not in the text that is shown).
    """

    session: str
    record: int
    role: str
    time: str
    snippet: str
    start: int = 0
    end: int = 0


class Piece(Struct, frozen=True, repr_omit_defaults=True):
    """Records that are kept together: the id of the session that they were appended to (empty if it was deleted and
    forks read them still), of the sessions that read any of them, their bytes, and the blobs that they name."""

    owner: str
    readers: frozenset[str]
    size: int
    blobs: frozenset[str]


class Inventory(Struct, frozen=True, repr_omit_defaults=True):
    """What a store holds: its pieces, the size of each blob, which sessions are kept (see `Store.keep`), and which
    are in use (None: this system or disk cannot tell). Blobs go by the names that pieces have for them. `base` is about
    what it takes on disk with nothing in it."""

    pieces: tuple[Piece, ...]
    blobs: dict[str, int]
    kept: frozenset[str]
    in_use: frozenset[str] | None
    base: int = 0


class Held(Protocol):
    """That a session is in use."""

    def close(self) -> None:
        """Let go. A second time does nothing."""


class RecordStore(Protocol):
    """The log itself."""

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """Append all of `drafts` or none, and return them as numbered records.

        With `expected`, the number of the last record as the caller knows it, raises Conflict if
        somebody else appended since. Raises SessionNotFound. What is returned is on disk to the
        degree that the store's durability setting says.
        """

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """The records `first` to `last` (inclusive; None: to the end), or the same backwards.

        Raises SessionNotFound, and CorruptRecord where a record is damaged or missing: what came
        before it has been yielded.
        """

    def usage(self, session_id: str) -> Bills:
        """What the usage records of a session say, summed for each model, without reading the others if
        the store can help it. Raises as `read`."""

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """The records from number `first` on of these kinds, in order or backwards, without decoding the others if the
        store can help it.

        Kinds are the words in docs/format.md; `system` is that of messages with system text. Raises as `read`; damage
        to records of other kinds may go unseen."""


class Store(RecordStore, Protocol):
    """Where logs live."""

    # -- sessions ----------------------------------------------------------------------------------

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        """A new empty session. `parent` is the id of the one it belongs to, which need not be there:
        it shares no records with it. Raises SessionExists, SessionIdError."""

    def info(self, session_id: str) -> SessionInfo:
        """Raises SessionNotFound."""

    def sessions(self, *, limit: int | None = None) -> list[SessionInfo]:
        """All sessions, the last updated first."""

    def usages(self) -> dict[str, Bills]:
        """`usage` of every session that was billed anything, by its id. Raises CorruptRecord."""

    def rename(self, session_id: str, title: str) -> None:
        """Give a session another title. Raises SessionNotFound."""

    def delete(self, session_id: str, *, expected: int | None = None) -> None:
        """Delete a whole session, or nothing of it. Forks of it stay whole. Raises SessionNotFound, and with
        `expected`, the number of the last record as the caller knows it, Conflict if there is another."""

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """A new session that begins with the records of this one up to number `at` (None: all),
        without copying them. Raises SessionNotFound, SessionExists, SessionIdError, InputError."""

    # -- media bytes by content --------------------------------------------------------------------

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """Keep `data`; returns its hex SHA-256, under which it is kept. Only encrypted bytes are kept under another
        `name`."""

    def get_blob(self, sha256: str) -> bytes:
        """The bytes of that hash. Raises BlobMissing, CorruptRecord."""

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """Remove the blobs that no record refers to.

        Those put less than `grace` seconds ago stay: the record that needs one is appended after it.
        To put a blob again makes it as young as a new one.
        """

    # -- searching ---------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        session: str | None = None,
        role: str | None = None,
        tool: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = 50,
    ) -> list[Hit]:
        """The records that hold every word of `query`: the session made last first, and of each its
        newest records first.

        A query is words and "phrases"; `word*` stands for all that begin so. Case and accents do
        not count, nor does anything else that is no letter or digit. `role` is as in `Hit`, `tool`
        the name of a tool whose call or result it is. `since` and `until` are times as records hold
        them or the beginnings of such (a day, a month), both inclusive. A record that several
        sessions share is found once, in the oldest of them; with `session`, in that one.
        Raises SessionNotFound, InputError.
        """

    # -- packing: sessions that nobody writes to, kept in less room --------------------------------

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        """Compress the records of a session that it owns and that are not compressed yet.

        Everything goes on as before: it is read, searched, verified, forked and appended to. What is appended
        afterwards is not compressed until the next time. Records that it shares with a session that it was forked
        from are packed with that one. All is packed or nothing. `reclaim` gives the room back to the disk. Raises
        SessionNotFound, CorruptRecord, and InputError where the package zstandard is not installed.

        With `instead`, these bytes first replace records, by number; `was` is as in `Store.rewrite`.
        """

    def unpacked(self) -> frozenset[str]:
        """The sessions with records of their own that packing could compress. Reads no record."""

    # -- what may go, what must not, and the room that it takes ------------------------------------

    def hold(self, session_id: str, *, alone: bool = False) -> Held | None:
        """Say that a session is in use, until what is returned is closed or its process ends. It need not be there
        yet. With `alone`, None if somebody else uses it, and nobody does until it is closed: they wait."""

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        """Have a session left alone by `turnlog gc`, or no longer. Raises SessionNotFound."""

    def inventory(self) -> Inventory:
        """What there is and what it takes. Raises CorruptRecord where damage keeps that from being told."""

    def used(self) -> int:
        """The bytes that the store takes on disk, without room in its files that is free."""

    def reclaim(self) -> None:
        """Give the room that is free in the store's files back to the disk."""

    # -- the whole ---------------------------------------------------------------------------------

    @property
    def encrypted(self) -> bool:
        """Whether records, titles and blobs are encrypted before they are kept."""

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """Re-derive everything that can be, of one session or all; each damage found is a value."""

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        """Put these bytes in place of records, by number, and delete the blobs of these names: the one
        operation that changes what was appended, for secrets that must not stay. `turnlog scrub` is
        what calls it.

        The bytes have to encode records of those numbers. Records that forks share change for all of
        them. What was there before is gone from the disk when it returns, as far as the file system
        lets that be said. Everything `verify` checks holds again. All is rewritten or nothing. Raises
        SessionNotFound, InputError for a record that there is not, and CorruptRecord where a checksum
        is wrong before: rewriting would hide that. With `was`, raises Conflict unless the records of these numbers
        still have these bytes.
        """

    def close(self) -> None:
        """Release files and connections. A closed store is not used again."""


_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


def check_session_id(session_id: str) -> str:
    """`session_id` if it is safe as a file name on every system, else SessionIdError.

    Letters, digits, `.`, `_`, `-`; starts with a letter or digit; at most 128; no trailing dot; no
    name that Windows reserves. That two ids do not differ by case alone is for the store to see to.
    """
    if (
        not isinstance(session_id, str)
        or not _SESSION_ID.fullmatch(session_id)
        or session_id.endswith(".")
        or _RESERVED.fullmatch(session_id)
    ):
        raise SessionIdError(
            f"session id {session_id!r} cannot be used: use letters, digits, '.', '_' and '-', starting with a letter "
            "or digit; at most 128 characters, no dot at the end, and no device name of Windows such as CON or NUL"
        )
    return session_id


def check_parent(session_id: str, parent: str) -> None:
    """Raises SessionIdError unless `parent`, if it is given, can be the id of another session."""
    if parent and check_session_id(parent).lower() == session_id.lower():
        raise SessionIdError(
            f"parent: session {session_id!r} cannot be its own parent (case does not count); give the id of another "
            "session, or none"
        )


def utc_now() -> str:
    """The time as records hold it: UTC, ISO 8601, milliseconds."""
    seconds, milliseconds = divmod(time_ns() // 1_000_000, 1000)
    return f"{_to_seconds(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=1)
def _to_seconds(seconds: int) -> str:
    """Seconds since 1970 as text. Remembered: to write it takes longer than to number a record."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
