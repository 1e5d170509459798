"""The tables of a PostgreSQL store, and their numbered upgrades.

A session owns the records that were appended to it: numbers `parent_records + 1` to `records`, with its number in the
column `log`. In a fork, the earlier records belong to the session `base`. A deleted session that forks still need keeps
its row without an id, and only the records that they need. A session's row is a `SessionRow` and its seal; each record
has its checksum (see `stores/records.py`).

The tables are in the first schema of the connection's `search_path`. Texts are in the order of their bytes
(`collate "C"`), so that every server lists sessions in the same order.
"""

from __future__ import annotations

import os
from typing import Any

import psycopg

from ...errors import NewerStore, StoreError, StoreNotFound
from .address import Address

Db = psycopg.Connection[tuple[Any, ...]]
"""A connection whose rows are tuples."""

_LOCK = 0x746C6F67
"""The advisory lock ("tlog") of processes that create or upgrade tables."""

_UPGRADES: tuple[tuple[str, ...], ...] = (
    (
        "create table turnlog_version (no integer primary key check (no = 1), version integer not null, store text)",
        """create table turnlog_sessions (
            no bigint primary key generated always as identity,
            folded text collate "C" unique,
            id text collate "C",
            title text collate "C" not null,
            created text collate "C" not null,
            updated text collate "C" not null,
            records bigint not null,
            messages bigint not null,
            head bytea not null,
            parent text collate "C" not null,
            parent_records bigint not null,
            base bigint,
            seal bytea not null,
            size bigint not null default 0,
            kept boolean not null default false,
            owner bigint not null default 0
        )""",
        "create index turnlog_sessions_base on turnlog_sessions (base) where base is not null",
        "create index turnlog_sessions_updated on turnlog_sessions (updated, no) where id is not null",
        """create table turnlog_records (
            log bigint,
            n bigint,
            kind text collate "C" not null,
            checksum bytea not null,
            record bytea not null,
            primary key (log, n)
        )""",
        "create index turnlog_records_kind on turnlog_records (log, kind, n)",
        """create table turnlog_blobs (
            name text collate "C" primary key,
            put_at double precision not null,
            data bytea not null
        )""",
        "alter table turnlog_blobs alter column data set storage external",  # media are compressed already
        # Who has a session, for people: a lock counts, its row only says whose it is. Not logged, as a server that
        # crashes frees all locks.
        """create unlogged table turnlog_owners (
            token bigint primary key,
            lock bigint not null,
            backend integer not null,
            process bigint not null,
            host text not null,
            thread text not null,
            since text not null
        )""",
        "create index turnlog_owners_lock on turnlog_owners (lock)",
        # An encrypted store: the lock that contains its key (see encrypted/keys.py).
        "create table turnlog_keys (no integer primary key check (no = 1), lock bytea not null)",
    ),
    # The index of labels (see labels.py). The next question for labels fills it.
    (
        """create table turnlog_labels (
            no bigint primary key,
            records bigint not null,
            head bytea not null,
            labels text collate "C" not null
        )""",
    ),
)
"""The statements that upgrade version i to version i + 1. Entries are only added, never edited."""

SCHEMA_VERSION = len(_UPGRADES)
LABELS_VERSION = 2
"""The first version with an index of labels. Without it, notes are read."""

# Not `to_regclass`, which does not see what another created while this one waited for the advisory lock.
_WHERE = """select current_schema(), (
    select tablename from pg_tables where schemaname = current_schema() and tablename = 'turnlog_version')"""

TABLES = ("turnlog_sessions", "turnlog_records", "turnlog_blobs", "turnlog_labels")
"""The tables that grow."""


def version_of(db: Db, address: Address) -> int:
    """The version of a store's tables; 0 if there are none. Raises StoreError if the database cannot hold a store."""
    encoding = db.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreError(f"{address}: the database has the encoding {encoding}; create one with the encoding UTF8")
    schema, table = db.execute(_WHERE).fetchone() or (None, None)
    if schema is None:
        raise StoreError(
            f"{address}: no usable schema is on the search_path; create one (`create schema "
            "NAME`) or grant its usage, or name another: ?options=-csearch_path%3DNAME"
        )
    row = None if table is None else db.execute("select version from turnlog_version").fetchone()
    return 0 if row is None else int(row[0])


def prepare(db: Db, address: Address, *, read_only: bool) -> None:
    """Create the tables of a store, or upgrade them to this version. Other processes may try to do so at the same time.

    Raises NewerStore; StoreError if `read_only` and there is no store.
    """
    version = version_of(db, address)
    if version > SCHEMA_VERSION:
        raise NewerStore(
            f"{address} was written by a newer turnlog (store version {version}, this one reads up to "
            f"{SCHEMA_VERSION}); nothing was changed: upgrade turnlog to open it"
        )
    if version == SCHEMA_VERSION or (version and read_only):  # everything but an index is in older ones, too
        return
    if read_only:
        raise StoreNotFound(address)
    with db.transaction():
        db.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
        version = version_of(db, address)
        for statements in _UPGRADES[version:]:
            for statement in statements:
                db.execute(statement)
        if not version:
            db.execute("insert into turnlog_version values (1, 0, %s)", (os.urandom(16).hex(),))
        db.execute("update turnlog_version set version = %s", (SCHEMA_VERSION,))


def store_name(db: Db) -> str:
    """The name that distinguishes a store from others in the same database."""
    row = db.execute("select store from turnlog_version").fetchone()
    return "" if row is None else str(row[0])


def to_column(text: str) -> str:
    """`text` as PostgreSQL can keep it: a NUL character is written as a backslash and 0."""
    return text.replace("\\", "\\\\").replace("\0", "\\0") if "\\" in text or "\0" in text else text


def from_column(text: str) -> str:
    """The text that `to_column` wrote."""
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\")) if "\\" in text else text
