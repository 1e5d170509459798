"""The tables of an SQLite store, their numbered upgrades, and the checksums that bind rows together.

A session owns the records that were appended to it: numbers `parent_records + 1` to `records`, under
`id = no << 32 | n`. What comes before, in a fork, stands with the session `base`. A deleted session
that forks still need keeps its row without an id, and only the records they need.

Checksums form a chain: that of a record is the SHA-256 of the checksum before it and its own bytes,
and the last one stands in the session row as `head`. So a record that is changed, replaced, moved
or lost shows. `seal` does the same for the session row itself.
"""

from __future__ import annotations

import hashlib
import sqlite3
from typing import Any, NamedTuple

import msgspec

from ...errors import NewerStore, StoreError
from ...log.store import SessionInfo

APPLICATION_ID = 0x746C6F67
"""`PRAGMA application_id` of a turnlog store ("tlog"), so that no other database is taken for one."""

_SHA256 = hashlib.sha256()  # a copy of it costs a third of a new one
_encode = msgspec.json.Encoder().encode

CHAIN_START = bytes(32)
"""The checksum before record 1."""

FREQUENT = frozenset({"message", "tool_finished", "tool_started"})
"""The kinds of records that most of a log consists of. All others are found by an index."""

RARE = "and kind <> 'message' and kind <> 'tool_finished' and kind <> 'tool_started'"
"""The condition of that index; a query has to spell it the same. Every insert asks it: `in` would make a table of the
words each time, an eighth of what a row costs."""

INDEXED = "indexed by records_kind"
"""How a query asks for that index."""

_LANDMARKS = "(kind = 'configuration' or kind = 'decision' or kind = 'summary' or kind = 'system')"
_USAGE = "kind = 'usage'"

_UPGRADES: tuple[tuple[str, ...], ...] = (
    (
        f"pragma application_id = {APPLICATION_ID}",
        # autoincrement: the number of a deleted session is never given again, so that a reader that
        # is under way cannot slip into another session's records.
        """create table sessions (
            no integer primary key autoincrement,
            id text unique collate nocase,
            title text not null,
            created text not null,
            updated text not null,
            records integer not null,
            messages integer not null,
            head blob not null,
            parent text not null,
            parent_records integer not null,
            base integer,
            seal blob not null
        )""",
        "create index sessions_base on sessions (base) where base is not null",
        """create table records (
            id integer primary key,
            kind text not null,
            checksum blob not null,
            record text not null
        )""",
        """create table blobs (
            no integer primary key,
            sha256 text not null unique,
            data blob not null
        )""",
    ),
    (
        # What can be found (see sqlite_index.py). Without the texts, which stand in the records.
        """create virtual table search using fts5(
            text, role, tools, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
        )""",
        "create table searched (no integer primary key, records integer not null)",
    ),
    (
        # What shapes every view from afar is found without reading the log: a session opens at its end.
        """update records set kind = 'system'
            where kind = 'message' and json_extract(record, '$.body.message.role') = 'system'""",
        "create index landmarks on records (id) where kind in ('configuration', 'decision', 'system')",
    ),
    (
        # Summaries are found the same way: whether one was paid for already is asked before each.
        "drop index landmarks",
        "create index landmarks on records (id) where kind in ('configuration', 'decision', 'summary', 'system')",
    ),
    (
        # The times of what the search index has of a session, so that a search by date can pass it over.
        # What is known of none stands for all times: "" is before, "~" after any.
        "alter table searched add column oldest text not null default ''",
        "alter table searched add column newest text not null default '~'",
        # When a blob was last put, in seconds since 1970.
        "alter table blobs add column put_at integer not null default 0",
        "update blobs set put_at = strftime('%s', 'now')",
    ),
    # What sessions cost is found without reading what was said.
    (f"create index usage on records (id) where {_USAGE}",),
    # Sessions that `gc` leaves alone, by number.
    ("create table kept (no integer primary key)",),
    (
        # An encrypted store: the lock that its key is in (see keys.py).
        "create table locks (no integer primary key check (no = 1), lock text not null)",
        # Packed sessions (see sqlite_packs.py). autoincrement: what is remembered of a pack is never another's.
        """create table packs (
            no integer primary key autoincrement,
            session integer not null,
            data blob not null
        )""",
        "create index packs_session on packs (session)",
    ),
    # The same landmarks, by a condition that costs an insert less.
    ("drop index landmarks", f"create index landmarks on records (id) where {_LANDMARKS}"),
    (
        # Words are those of words.py: SQLite's tables of letters end with Unicode 6.1. The next search fills it again.
        # The column has another name, so that a process of an older turnlog that is still at work fails at putting in
        # words as it takes them, which nobody would find again.
        "drop table search",
        "create virtual table search using fts5(words, role, tools, content = '', columnsize = 0, tokenize = 'ascii')",
        "delete from searched",
    ),
    (
        # Words are other ones again (see words.py), and so is the name of the column, for the same reason.
        "drop table search",
        "create virtual table search using fts5(terms, role, tools, content = '', columnsize = 0, tokenize = 'ascii')",
        "delete from searched",
    ),
    (
        # Records of kinds that are rare in a log are found without reading the others.
        "drop index landmarks",
        "drop index usage",
        f"create index records_kind on records (kind) where {RARE.removeprefix('and ')}",
        # A listing of the newest sessions reads no others.
        "create index sessions_updated on sessions (updated) where id is not null",
        # When the records in the search index were made (see times.py). The next search fills the index again. Its
        # column has another name, for the same reason as before.
        "drop table search",
        "create virtual table search using fts5(word, role, tools, content = '', columnsize = 0, tokenize = 'ascii')",
        "drop table searched",
        "create table searched (no integer primary key, records integer not null)",
        """create table searched_times (
            first integer primary key,
            last integer not null,
            records integer not null,
            oldest text not null,
            newest text not null
        )""",
    ),
)
"""Statements that lead from version i to version i + 1. Written once, never edited, only added to."""

SCHEMA_VERSION = len(_UPGRADES)
KINDS_VERSION = 12
"""From this version on there is the index of rare kinds."""

LOCK_VERSION = 8
"""From this version on a store can be encrypted, and sessions of it packed."""

SEARCH_VERSION = 12
"""From this version on there is an index to search by as this turnlog fills it. Without it everything else works as
well."""

KEPT_VERSION = 7
"""From this version on it is known which sessions are kept whatever their age."""

SYSTEM_VERSION = 3
"""From this version on rows of system text are of a kind of their own."""


class SessionRow(NamedTuple):
    """A row of `sessions`, without its seal. `base` owns record number `parent_records`."""

    no: int
    id: str | None
    title: str
    created: str
    updated: str
    records: int
    messages: int
    head: bytes
    parent: str
    parent_records: int
    base: int | None

    def info(self) -> SessionInfo:
        """What a listing says of this session."""
        return SessionInfo(
            id=self.id or "",
            title=self.title,
            created=self.created,
            updated=self.updated,
            records=self.records,
            messages=self.messages,
            parent=self.parent,
            parent_records=self.parent_records,
        )


COLUMNS = ", ".join(SessionRow._fields)


def seal(row: SessionRow) -> bytes:
    """The checksum of a session row."""
    digest = _SHA256.copy()
    digest.update(_encode(row))
    return digest.digest()


def chain(previous: bytes, raw: bytes) -> bytes:
    """The checksum of a record with the bytes `raw`, where `previous` is the one before it."""
    digest = _SHA256.copy()
    digest.update(previous)
    digest.update(raw)
    return digest.digest()


def record_id(session_no: int, n: int) -> int:
    """The row id of record `n` of session `session_no`: records of one session lie side by side."""
    return session_no << 32 | n


def needs_upgrade(db: sqlite3.Connection, path: str) -> bool:
    """Whether the store is older than this version, or empty. Changes nothing.

    To be asked inside a transaction: between two looks others could make the store.
    Raises NewerStore, and StoreError if the database is not a turnlog store.
    """
    version = version_of(db)
    if _pragma(db, "application_id") != APPLICATION_ID:
        if version or db.execute("select 1 from sqlite_master").fetchone():
            raise StoreError(f"{path} is an SQLite database, but not a turnlog store")
        return True
    if version > SCHEMA_VERSION:
        raise NewerStore(
            f"{path} was written by a newer turnlog (store version {version}, this one reads up to "
            f"{SCHEMA_VERSION}); nothing was changed: upgrade turnlog to open it"
        )
    return version < SCHEMA_VERSION


def version_of(db: sqlite3.Connection) -> int:
    """The version of a store's tables."""
    return _pragma(db, "user_version")


def upgrade(db: sqlite3.Connection, path: str, *, to: int | None = None) -> None:
    """Bring the store to this version (or to version `to`), in one transaction. Others may try at the
    same time."""
    to = SCHEMA_VERSION if to is None else to
    db.execute("begin immediate")
    try:
        if needs_upgrade(db, path):
            for statements in _UPGRADES[version_of(db) : to]:
                for statement in statements:
                    db.execute(statement)
            db.execute(f"pragma user_version = {to}")
        db.execute("commit")
    except BaseException:
        if db.in_transaction:
            db.execute("rollback")
        raise


def table_definitions(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """The tables and indexes of `db` as SQLite keeps them."""
    return db.execute("select type, name, tbl_name, sql from sqlite_master order by name").fetchall()


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"pragma {name}").fetchone()[0])
