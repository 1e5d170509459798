"""The protocol of stores, which keep logs, and the values that its methods return.

A log is the numbered records of one session, 1 to n without gaps; records are appended and never rewritten. Stores
differ in where they keep a log; `turnlog.testing.check_store` checks what all of them promise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from time import time_ns
from typing import Protocol

from msgspec import Struct

from .._platform.lazy import lazy_pattern
from ..errors import SessionIdError
from .bills import Bills
from .messages import sha256_hex
from .records import Body, Record

SWEEP_GRACE_SECONDS = 3600.0
"""How long, in seconds, a blob is kept without a record that refers to it."""


class Draft(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A record without a number, which the store assigns. If `time` is empty, the store's clock is used.

    `raw` is the encoded record if it is copied from another store. It is kept byte for byte, so that fields of a newer
    version survive, provided that the number in it is the number that the record gets. `redacted` and `live` are as in
    `Record`.
    """

    body: Body
    time: str = ""
    raw: bytes | None = None
    redacted: dict[str, int] = {}
    live: bool = False

    @classmethod
    def of(cls, record: Record) -> Draft:
        """A copy of a record, which keeps its time and its bytes."""
        return cls(record.body, record.time, record.raw, record.redacted, record.live)


class SessionInfo(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A session as it is listed.

    `created` and `updated` are UTC, ISO 8601. `updated` never goes back: it is the latest time of any record, also if
    the clock was set back before the last one. `records` is the number of the last record, `messages` the number of
    messages. `parent` is the session that it was forked from, with the number of shared records in `parent_records`; or
    the session whose subagent it is, sharing no records.
    """

    id: str
    title: str
    created: str
    updated: str
    records: int
    messages: int
    parent: str = ""
    parent_records: int = 0


class SessionFacts(Struct, frozen=True, repr_omit_defaults=True):
    """What the notes of a session say about it: its `labels` (see `Session.label`), and for a transcript of an agent
    program that program (`agent`, such as `claude-code`) and the folder in which it worked; empty if they are not
    known. `agent` is `turnlog` for a session that turnlog recorded itself."""

    labels: Mapping[str, str] = {}
    agent: str = ""
    folder: str = ""

    def is_of(self, agent: str) -> bool:
        """Whether the name of the agent program begins so, in capitals or not."""
        return self.agent.startswith(agent.lower())


class Problem(Struct, frozen=True, repr_omit_defaults=True):
    """Damage: in which session, in which record (0: no particular one), and what. `blobs` are media that are missing or
    damaged, although the record that needs them is whole."""

    session: str
    record: int
    what: str
    blobs: tuple[str, ...] = ()


class Swept(Struct, frozen=True, repr_omit_defaults=True):
    """The result of a sweep: how many blobs it removed, their bytes, and how many recent blobs it kept."""

    removed: int
    size: int
    recent: int


class Packed(Struct, frozen=True, repr_omit_defaults=True):
    """The result of packing a session: how many records were compressed, and their bytes before and after."""

    records: int
    before: int
    after: int


class Hit(Struct, frozen=True, repr_omit_defaults=True, gc=False):
    """A record that a search found.

    `role` is `system`, `user`, `assistant`, or `tool` for results of tools; for other records, their kind. `snippet` is
    one line of the record's text, `start` to `end` are the characters of the first word in it (0 and 0: not shown).
    """

    session: str
    record: int
    role: str
    time: str
    snippet: str
    start: int = 0
    end: int = 0


class StoredPiece(Struct, frozen=True, repr_omit_defaults=True):
    """Records that can only be deleted together. `owner` is the id of the session that they were appended to (empty if
    it was deleted and forks still read them), `readers` the sessions that read any of them, `size` their bytes, and
    `blobs` the blobs that they refer to."""

    owner: str
    readers: frozenset[str]
    size: int
    blobs: frozenset[str]


class Inventory(Struct, frozen=True, repr_omit_defaults=True):
    """Everything in a store: its pieces, the size of each blob, the sessions protected from gc (see `Store.keep`), and
    the sessions in use, by `file_name` (None: this system or disk cannot tell). Blobs have the names that pieces use
    for them. `base` is about how many bytes the store takes on disk when it is empty."""

    pieces: tuple[StoredPiece, ...]
    blobs: dict[str, int]
    kept: frozenset[str]
    in_use: frozenset[str] | None
    base: int = 0


class Held(Protocol):
    """A lock that marks a session as in use."""

    def close(self) -> None:
        """Release the lock. A second call does nothing."""


class Leased(Held, Protocol):
    """The right to write to a session; see `turnlog.stores.leases.Lease`."""

    session_id: str
    alone: bool

    @property
    def is_ours(self) -> bool:
        """Whether this process may write."""

    def check(self) -> None:
        """Raises SessionBusy or StoreError if this process may not write."""

    def share(self) -> None:
        """Let others share the session. Raises SessionBusy."""


class RecordStore(Protocol):
    """The records of sessions."""

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """Append all of `drafts` or none, and return them as numbered records.

        With `expected`, the number of the last record that the caller knows, raises Conflict if somebody else has
        appended since. Raises SessionNotFound. The returned records are on disk as far as the store's durability
        setting guarantees.
        """

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """The records `first` to `last` (inclusive; None: to the end), or the same backwards.

        Raises SessionNotFound, and CorruptRecord at a damaged or missing record, after the records before it have been
        yielded.
        """

    def readable(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record | Problem]:
        """As `read`, but past damage: the records that can be read, and a Problem for each that cannot. A record of
        which only the checksum is damaged is both. Raises SessionNotFound, and CorruptRecord if the session as a whole
        cannot be read, for example because the one that it was forked from is lost."""

    def usage(self, session_id: str) -> Bills:
        """The usage records of a session, summed for each model. Stores that can do so read no other records. Raises as
        `read`."""

    def of_kinds(
        self, session_id: str, kinds: Collection[str], *, first: int = 1, reverse: bool = False
    ) -> Iterator[Record]:
        """The records of these kinds from number `first` on, in order or backwards. Stores that can do so decode no
        other records.

        Kinds are the words in docs/format.md; `system` stands for messages with system text. Raises as `read`; damage
        to records of other kinds may go unnoticed.
        """


class Store(RecordStore, Protocol):
    """A place that keeps logs."""

    # -- sessions ----------------------------------------------------------------------------------

    def create(self, session_id: str, *, title: str = "", created: str = "", parent: str = "") -> SessionInfo:
        """A new empty session. `parent` is the id of the session it belongs to, which need not exist; no records are
        shared with it. Raises SessionExists, SessionIdError."""

    def info(self, session_id: str) -> SessionInfo:
        """The session as it is listed. Raises SessionNotFound."""

    def sessions(self, *, limit: int | None = None, where: Mapping[str, str] | None = None) -> list[SessionInfo]:
        """All sessions, the most recently updated first; with `where`, those with all these labels (see
        `Session.label`). An empty value stands for no label of that name. A session whose labels cannot be read is not
        among them."""

    def facts(self) -> dict[str, SessionFacts]:
        """What is known of each session, by id, from the index of labels, which is brought up to date first. Sessions
        whose notes cannot be read are left out."""

    def usages(self) -> dict[str, Bills]:
        """What was billed in each session, by session id, without what an older session has as well (as forks and
        resumed transcripts do), so that it can be added. Sessions that were billed nothing of their own are left out.
        Raises CorruptRecord."""

    def rename(self, session_id: str, title: str) -> None:
        """Change the title of a session. Raises SessionNotFound."""

    def delete(self, session_id: str, *, expected: int | None = None, missing_ok: bool = False) -> None:
        """Delete a whole session, or nothing. Its forks stay complete. Raises SessionNotFound, unless `missing_ok`, and
        SessionBusy if it is in use; with `expected`, the number of the last record that the caller knows, raises
        Conflict if the last record is another."""

    def fork(self, session_id: str, new_id: str, *, at: int | None = None, title: str = "") -> SessionInfo:
        """A new session that begins with the records of this one up to number `at` (None: all), without copying them.
        Raises SessionNotFound, SessionExists, SessionIdError, InputError."""

    # -- media bytes by content --------------------------------------------------------------------

    def put_blob(self, data: bytes, *, name: str = "") -> str:
        """Keep `data` under its hex SHA-256, and return that. Only encrypted bytes are kept under another `name`."""

    def get_blob(self, sha256: str) -> bytes:
        """The bytes with that hash. Raises BlobMissing if there are none, or if they are damaged."""

    def sweep(self, *, grace: float = SWEEP_GRACE_SECONDS) -> Swept:
        """Remove the blobs that no record refers to.

        Blobs put less than `grace` seconds ago stay, because the record that needs a blob is appended after it. Putting
        a blob again makes it as young as a new one.
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
        where: Mapping[str, str] | None = None,
        limit: int | None = 50,
    ) -> list[Hit]:
        """The records that contain every word of `query`: sessions created last come first, and in each session the
        newest records come first.

        A query consists of words and "phrases"; `word*` stands for all words that begin with it. Case, accents and all
        characters other than letters and digits are ignored. `role` is as in `Hit`; `tool` is the name of a tool, for
        its calls and results. `since` and `until` are times as in records, or their beginnings (a day, a month), both
        inclusive. `where` is as in `sessions`: sessions without these labels are not looked at. A record shared by
        several sessions is found once, in the oldest of them; with `session`, in that one. Raises SessionNotFound,
        InputError.
        """

    # -- packing: less space for sessions that are rarely written to -------------------------------

    def pack(
        self, session_id: str, *, instead: Mapping[int, bytes] | None = None, was: Mapping[int, bytes] | None = None
    ) -> Packed:
        """Compress the records that a session owns and that are not compressed yet.

        A packed session is read, searched, verified, forked and appended to as before. Records appended later are
        compressed by the next call. Records shared with the session it was forked from are packed with that session.
        All is packed or nothing. `reclaim` gives the freed space back to the disk. Raises SessionNotFound,
        CorruptRecord, and InputError if the package zstandard is not installed.

        With `instead`, these bytes first replace records, by number; `was` is as in `Store.rewrite`.
        """

    def unpacked(self) -> frozenset[str]:
        """The sessions with records of their own that packing could compress. Reads no records."""

    # -- locks, retention, and space on disk -------------------------------------------------------

    def hold(self, session_id: str, *, alone: bool = False) -> Held | None:
        """Mark a session as in use, until the returned lock is closed or its process ends. The session need not exist
        yet. With `alone`, returns None if somebody else uses the session; otherwise others wait until the lock is
        closed."""

    def lease(self, session_id: str, *, shared: bool = False, wait: float = 0.0) -> Leased:
        """The right to write to a session, which one owner has, or several that all ask for it `shared`; until it is
        closed or its process ends. It is `alone` if nobody else has it. Raises SessionBusy after `wait` seconds."""

    def keep(self, session_id: str, *, kept: bool = True) -> None:
        """Protect a session from `turnlog gc`, or unprotect it. Raises SessionNotFound."""

    def inventory(self) -> Inventory:
        """Everything in the store and its size. Raises CorruptRecord if damage makes this impossible."""

    def used(self) -> int:
        """The bytes that the store takes on disk, without free space inside its files."""

    def reclaim(self) -> None:
        """Give free space inside the store's files back to the disk."""

    # -- the whole ---------------------------------------------------------------------------------

    @property
    def encrypted(self) -> bool:
        """Whether records, titles and blobs are encrypted before they are written."""

    def verify(self, session_id: str | None = None) -> list[Problem]:
        """Derive again everything that can be derived, for one session or all. Each damage found is a value in the
        result."""

    def rewrite(
        self,
        session_id: str,
        records: Mapping[int, bytes],
        *,
        blobs: Sequence[str] = (),
        was: Mapping[int, bytes] | None = None,
    ) -> None:
        """Replace records by these bytes, by number, and delete the blobs with these names. No other operation changes
        records. It exists for secrets that must not stay; `turnlog scrub` calls it.

        The bytes must encode records with these numbers. Records shared with forks change in all of them. When it
        returns, the old bytes are gone from the disk, as far as the file system allows. Everything that `verify` checks
        holds again. All is rewritten or nothing. Raises SessionNotFound, InputError for a record that does not exist,
        and CorruptRecord if a checksum was wrong before, because rewriting would hide that. With `was`, raises Conflict
        unless the records with these numbers still have these bytes.
        """

    def close(self) -> None:
        """Release files and connections. The store must not be used afterwards."""


_PLAIN_ID = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_RESERVED = lazy_pattern(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_UNSAFE = lazy_pattern(r"[^a-z0-9._-]+")
_LONGEST_ID = 200
LATEST = "latest"
"""The session in the first row of `turnlog ls`."""
_REFERENCE = lazy_pattern(rf"{LATEST}|-[1-9][0-9]*")


def check_session_id(session_id: str) -> str:
    """`session_id`, if a session can have it: 1 to 200 printable characters, such as an e-mail address or a URL.
    Otherwise raises SessionIdError. The store has to refuse ids that differ only by the case of ASCII letters."""
    if not isinstance(session_id, str) or not session_id.isprintable() or not 0 < len(session_id) <= _LONGEST_ID:
        raise SessionIdError(
            f"session id {session_id!r:.300} cannot be used: use 1 to {_LONGEST_ID} printable characters, without line "
            "breaks and control characters"
        )
    return session_id


def is_plain_id(session_id: str) -> bool:
    """Whether an id is itself safe as a file name on every system: at most 128 letters, digits, `.`, `_` and `-`,
    beginning with a letter or digit, without a dot at the end, and no name that Windows reserves."""
    plain = _PLAIN_ID.fullmatch(session_id) is not None and not session_id.endswith(".")
    return plain and not _RESERVED.fullmatch(session_id)


def is_reference(session_id: str) -> bool:
    """Whether the command line reads this as a session's place in its list: `latest`, `-1`, `-2` and so on."""
    return _REFERENCE.fullmatch(session_id) is not None


def file_name(session_id: str) -> str:
    """The file name for what belongs to a session: a plain id itself, otherwise its safe characters and a part of its
    hash after a `+`, which no plain id contains. Ids that differ only by the case of ASCII letters have names that do
    so, too, or the same."""
    if is_plain_id(session_id):
        return session_id
    folded = folded_id(session_id)
    readable = _UNSAFE.sub("-", folded)[:40].strip("._-")
    return f"{readable}+{sha256_hex(folded.encode('utf-8', 'surrogatepass'))[:32]}"


def folded_id(session_id: str) -> str:
    """An id without the case of ASCII letters: two sessions of a store never have the same."""
    return session_id.translate(_LOWER)


_LOWER = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def check_parent(session_id: str, parent: str) -> None:
    """Raises SessionIdError if `parent` is given but cannot be the id of another session."""
    if parent and folded_id(check_session_id(parent)) == folded_id(session_id):
        raise SessionIdError(
            f"parent: session {session_id!r} cannot be its own parent (case does not count); give the id of another "
            "session, or none"
        )


def utc_now() -> str:
    """The current time as in records: UTC, ISO 8601, milliseconds."""
    seconds, milliseconds = divmod(time_ns() // 1_000_000, 1000)
    return f"{_to_seconds(seconds)}.{milliseconds:03}Z"


@lru_cache(maxsize=1)
def _to_seconds(seconds: int) -> str:
    """Seconds since 1970 as text. Cached, because formatting takes longer than numbering a record."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
