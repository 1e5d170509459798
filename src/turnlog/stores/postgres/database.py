"""The connection of a PostgreSQL store: opens it, shares it between threads, and opens it again when it is lost.

Each store has one connection, under a lock, and each statement is its own transaction unless `write` begins one. A
forked process opens its own connection.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import psycopg

from ...errors import StoreError
from .address import Address
from .schema import Db, prepare

T = TypeVar("T")

_LIMITS = "set lock_timeout = '30s'; set idle_in_transaction_session_timeout = '60s'"
"""Limits, so that nobody waits for a row without end, and a process stopped within a transaction does not block
others."""

_AGAIN = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)


class Database:
    """A connection that is opened when needed, and the rules for its use. Raises StoreError, NewerStore."""

    def __init__(self, address: Address, *, read_only: bool) -> None:
        self.address = address
        self.read_only = read_only
        self.lock = threading.RLock()
        """Held by the thread that uses the connection."""
        self._connection: Db | None = None
        self._in_transaction = False
        self._closed = False
        _databases.add(self)
        self.read(lambda db: None)

    def read(self, work: Callable[[Db], T]) -> T:
        """The result of `work`, which reads. If the connection is lost, it is opened again, and `work` runs again,
        once."""
        with self.lock:
            for last in (False, True):
                db = self._connected()
                try:
                    return work(db)
                except psycopg.Error as error:
                    if db.closed and not last and not self._in_transaction:
                        continue
                    raise self.error(error) from error
            raise AssertionError("unreachable")

    def write(self, work: Callable[[Db], T], *, repeatable: bool = False, piped: bool = False) -> T:
        """The result of `work`, run in a transaction. If the connection is lost before the commit, nothing has
        happened, and `work` runs again, once; if it is lost during the commit, the outcome is unknown, and `work` runs
        again only if `repeatable`. With `piped`, statements whose results are not used are sent together with the next
        one."""
        self.check_writable()
        return self._transaction(work, repeatable, "begin", piped=piped)

    def snapshot(self, work: Callable[[Db], T]) -> T:
        """The result of `work`, which reads the state of one moment."""
        return self._transaction(work, True, "begin isolation level repeatable read read only")

    def _transaction(self, work: Callable[[Db], T], repeatable: bool, begin: str, *, piped: bool = False) -> T:
        with self.lock:
            for last in (False, True):
                db, committing = self._connected(), False
                self._in_transaction = True
                try:
                    with _pipeline(db) if piped else nullcontext():
                        db.execute(begin)
                        result = work(db)
                        committing = True
                        db.execute("commit")
                    return result
                except psycopg.Error as error:
                    self._roll_back(db)
                    undone = repeatable or not committing
                    if not last and undone and (db.closed or isinstance(error, _AGAIN)):
                        continue
                    raise self.error(error, unknown=committing and db.closed) from error
                except BaseException:
                    self._roll_back(db)
                    raise
                finally:
                    self._in_transaction = False
            raise AssertionError("unreachable")

    def _roll_back(self, db: Db) -> None:
        with suppress(psycopg.Error):  # the error that ended the transaction is raised instead
            if not db.closed:
                db.execute("rollback")

    @property
    def is_lost(self) -> bool:
        """Whether there is no connection now."""
        return self._connection is None or self._connection.closed

    def check_writable(self) -> None:
        """Raises StoreError unless the store is open for writing."""
        if self.read_only or self._closed:
            raise StoreError(f"the store {self.address} is {'closed' if self._closed else 'open for reading only'}")

    def connect(self) -> Db:
        """A new connection. Raises StoreError."""
        try:
            db: Db = psycopg.connect(**self.address.options, autocommit=True)
        except psycopg.Error as error:
            raise self._unreachable(error) from error
        try:
            db.execute(_LIMITS)
        except psycopg.Error as error:
            db.close()
            raise self.error(error) from error
        return db

    def _connected(self) -> Db:
        if self._closed:
            raise StoreError(f"the store {self.address} is closed")
        if self._connection is None or (self._connection.closed and not self._in_transaction):
            self._connection = db = self.connect()
            try:
                prepare(db, self.address, read_only=self.read_only)
                if self.read_only:
                    db.execute("set default_transaction_read_only = on")
            except BaseException as error:
                db.close()
                if isinstance(error, psycopg.Error):
                    raise self.error(error) from error
                raise
            self._disconnect = weakref.finalize(self, db.close)
            self._disconnect.atexit = False
        return self._connection

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()

    def leave_to_parent(self) -> None:
        """In a fork: leave the connection to the parent. Closes its socket here and sends the server nothing, so that
        the server notices if the parent ends."""
        self.lock = threading.RLock()
        self._in_transaction = False
        if self._connection is not None:
            abandon(self._connection)
            self._disconnect.detach()
            self._connection = None

    def error(self, error: psycopg.Error, *, unknown: bool = False) -> StoreError:
        """The error of this package for an error of the driver. `unknown`: whether a transaction was committed is not
        known."""
        message = self.address.clean(error.diag.message_primary or str(error)) or type(error).__name__
        if unknown:
            return StoreError(
                f"{self.address}: the connection was lost while a change was being committed ({message}); look "
                "whether it is there before you do it again"
            )
        advice = ""
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            advice = "; the user must own turnlog's tables, and may create them in this schema: grant it, or name "
            advice += "another schema with ?options=-csearch_path%3DNAME"
        elif isinstance(error, psycopg.errors.LockNotAvailable):
            advice = "; another process has been writing for 30 seconds: try again"
        elif isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
            advice = "; this server is a replica: name the one that may be written to"
        elif isinstance(error, psycopg.OperationalError):
            advice = "; check that the server runs and can be reached, then try again"
        return StoreError(f"{self.address}: {message}{advice}")

    def _unreachable(self, error: psycopg.Error) -> StoreError:
        message = self.address.clean(str(error))
        if "password" in message or "authentication" in message or "role" in message:
            advice = "check the user, and the password in ~/.pgpass, PGPASSWORD or the URL"
        elif "does not exist" in message:
            advice = "check the name of the database, or create it with `createdb`"
        else:
            advice = "check that the server runs and can be reached from here"
        return StoreError(f"{self.address}: {message}; {advice}")


_databases: weakref.WeakSet[Database] = weakref.WeakSet()

_left: list[Any] = []
"""Connections of the parent, kept so that the garbage collector does not close them."""


@contextmanager
def _pipeline(db: Db) -> Iterator[None]:
    """The driver's pipeline. It would log a warning if it ended with the error of a lost connection."""
    lost: psycopg.Error | None = None
    with db.pipeline():
        try:
            yield
        except psycopg.Error as error:
            if not db.closed:
                raise
            lost = error
    if lost is not None:
        raise lost


def abandon(db: Db) -> None:
    """Close the socket of a connection, and nothing else."""
    with suppress(psycopg.Error, OSError):
        os.close(db.fileno())
    _left.append(db)


def _in_child() -> None:
    for database in list(_databases):
        database.leave_to_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
