"""The tables of an SQLite store, their numbered upgrades, and the checksums that protect rows.

A session owns the records that were appended to it: numbers `parent_records + 1` to `records`. Their ids are
`no << 32 | n`. In a fork, the earlier records belong to the session `base`. A deleted session that forks still need
keeps its row without an id, and only the records that they need.

A session's row is a `SessionRow` and its seal; each record has its checksum (see `stores/records.py`).
"""

from __future__ import annotations

import sqlite3
from typing import Any

from ...errors import NewerStore, StoreError

APPLICATION_ID = 0x746C6F67
"""`PRAGMA application_id` of a turnlog store ("tlog"), which distinguishes it from other databases."""

FREQUENT = frozenset({"message", "tool_finished", "tool_started"})
"""The kinds of most records in a log. All other kinds are found by an index."""

RARE = "and kind <> 'message' and kind <> 'tool_finished' and kind <> 'tool_started'"
"""The condition of that index, which queries must spell in the same way. Every insert evaluates it: `in` would build a
table of the words each time, which takes an eighth of the time to insert a row."""

INDEXED = "indexed by records_kind"
"""The words with which a query selects that index."""

_LANDMARKS = "(kind = 'configuration' or kind = 'decision' or kind = 'summary' or kind = 'system')"
_USAGE = "kind = 'usage'"

_UPGRADES: tuple[tuple[str, ...], ...] = (
    (
        f"pragma application_id = {APPLICATION_ID}",
        # autoincrement: the number of a deleted session is never used again, so that a reader that
        # is under way cannot read another session's records.
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
        # The search index (see index.py), without the texts, which are in the records.
        """create virtual table search using fts5(
            text, role, tools, content = '', columnsize = 0, tokenize = 'unicode61 remove_diacritics 2'
        )""",
        "create table searched (no integer primary key, records integer not null)",
    ),
    (
        # Records that affect every view, however old they are, are found without reading the log.
        """update records set kind = 'system'
            where kind = 'message' and json_extract(record, '$.body.message.role') = 'system'""",
        "create index landmarks on records (id) where kind in ('configuration', 'decision', 'system')",
    ),
    (
        # Summaries are found the same way: before each new one, turnlog checks whether it was paid for already.
        "drop index landmarks",
        "create index landmarks on records (id) where kind in ('configuration', 'decision', 'summary', 'system')",
    ),
    (
        # The times of a session's indexed records, so that a search by date can skip the session.
        # If they are unknown, the defaults cover all times: "" is before, "~" after any time.
        "alter table searched add column oldest text not null default ''",
        "alter table searched add column newest text not null default '~'",
        # When a blob was last put, in seconds since 1970.
        "alter table blobs add column put_at integer not null default 0",
        "update blobs set put_at = strftime('%s', 'now')",
    ),
    # Usage is found without reading the messages.
    (f"create index usage on records (id) where {_USAGE}",),
    # Sessions protected from `gc`, by number.
    ("create table kept (no integer primary key)",),
    (
        # An encrypted store: the lock that contains its key (see encrypted/keys.py).
        "create table locks (no integer primary key check (no = 1), lock text not null)",
        # Packed sessions (see packs.py). autoincrement: a cached pack is never mistaken for another one.
        """create table packs (
            no integer primary key autoincrement,
            session integer not null,
            data blob not null
        )""",
        "create index packs_session on packs (session)",
    ),
    # The same landmarks, with a condition that makes inserts cheaper.
    ("drop index landmarks", f"create index landmarks on records (id) where {_LANDMARKS}"),
    (
        # Words are those of words.py, as SQLite's tables of letters end with Unicode 6.1. The next search fills the
        # index again. The column has another name, so that a process of an older turnlog that is still running fails
        # to put in its own kind of words, which no search would find.
        "drop table search",
        "create virtual table search using fts5(words, role, tools, content = '', columnsize = 0, tokenize = 'ascii')",
        "delete from searched",
    ),
    (
        # Words have changed again (see words.py), and so has the name of the column, for the same reason.
        "drop table search",
        "create virtual table search using fts5(terms, role, tools, content = '', columnsize = 0, tokenize = 'ascii')",
        "delete from searched",
    ),
    (
        # Records of rare kinds are found without reading the others.
        "drop index landmarks",
        "drop index usage",
        f"create index records_kind on records (kind) where {RARE.removeprefix('and ')}",
        # The newest sessions are listed without reading the others.
        "create index sessions_updated on sessions (updated) where id is not null",
        # The times of the records in the search index (see times.py). The next search fills the index again. Its
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
    # The index of labels (see labels.py). The next question for labels fills it.
    (
        """create table labelled (
            no integer primary key,
            records integer not null,
            head blob not null,
            labels text not null
        )""",
    ),
)
"""The statements that upgrade version i to version i + 1. Entries are only added, never edited."""

SCHEMA_VERSION = len(_UPGRADES)
KINDS_VERSION = 12
"""The first version with the index of rare kinds."""

LOCK_VERSION = 8
"""The first version in which a store can be encrypted and its sessions packed."""

SEARCH_VERSION = 12
"""The first version with a search index as this turnlog fills it. Everything else works without it, too."""

LABELS_VERSION = 13
"""The first version with an index of labels. Without it, notes are read."""

KEPT_VERSION = 7
"""The first version that stores which sessions are protected from `gc`."""

SYSTEM_VERSION = 3
"""The first version in which rows of system text have their own kind."""


def record_id(session_no: int, n: int) -> int:
    """The row id of record `n` of session `session_no`. The records of one session have consecutive ids."""
    return session_no << 32 | n


def needs_upgrade(db: sqlite3.Connection, path: str) -> bool:
    """Whether the store is older than this version, or empty. Changes nothing.

    Must be called inside a transaction, because others could create the store in the middle of the check. Raises
    NewerStore, and StoreError if the database is not a turnlog store.
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
    """Upgrade the store to this version (or to version `to`) in one transaction. Other processes may try to do so at
    the same time."""
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
    """The definitions of the tables and indexes of `db`, as stored by SQLite."""
    return db.execute("select type, name, tbl_name, sql from sqlite_master order by name").fetchall()


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"pragma {name}").fetchone()[0])
