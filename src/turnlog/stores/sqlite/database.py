"""The SQLite file of a store: opens it, locks it, and shares it between threads and processes.

Each store has one connection, under a lock: SQLite allows only one write at a time anyway, and reads are short batches.
Several processes are coordinated by SQLite itself (WAL, `begin immediate`).
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic

from ..._platform.files import open_handle
from ..._platform.stdlib import LOG, shlex
from ...errors import CorruptRecord, InputError, StoreError, StoreGone, StoreNotFound
from ..folders import FREE_SOME, Durability, advice, make_private, out_of_files
from ..presence import Presence, left_alone
from .packs import check_packs, lend_packs
from .schema import needs_upgrade, upgrade, version_of

try:
    import fcntl
except ImportError:  # Windows: only SQLite's own waiting is used
    fcntl = None  # type: ignore[assignment]

_BUSY_SECONDS = 30.0
_FOLD_WAIT_MS = 1000
_SMALL_FILE_PAGES = 160  # of 4 kB
_SMALL_LOG_PAGES = 100
_LOG_PAGES = 1000  # SQLite's default
_WAL_LIMIT_BYTES = 4 << 20
_PAGE_CACHE_KB = 1000  # half of SQLite's default: the system has the file in memory anyway
_WRITES_BETWEEN_LOOKS = 64
_MAGIC = b"SQLite format 3\0"
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LOCKED_AWAY = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})


class Database:
    """A connection that is opened when needed, and the rules for its use."""

    def __init__(self, path: Path, *, durability: Durability, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.connections = 0
        """How many connections there have been; after a fork there is another one."""
        self._durability = durability
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._presence = Presence(path)
        self._queue: int | None = None
        self._queues = fcntl is not None and durability == "full"
        self._closed = False
        self._transaction = Transaction(self, self._lock)
        with self.reading():
            pass
        with _opening:
            _databases.add(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, for a few fast statements."""
        with self._lock:
            try:
                db = self.connected()
                self._presence.check(writing=False)
                yield db
            except sqlite3.Error as error:
                raise store_error(error, self.path, opened=self._connection is not None) from error
            except UnicodeError as error:  # in SQLite's message about damaged definitions, or in damaged text
                raise _damaged(error, self.path, opened=self._connection is not None) from error

    def writing(self) -> Transaction:
        """The connection in a transaction that is committed at the end, or rolled back after an error."""
        return self._transaction

    @contextmanager
    def fresh(self) -> Iterator[sqlite3.Connection]:
        """A second connection, which reads what is on disk and not what the first one has in memory."""
        with self.reading():
            db = self._connect()
            try:
                yield db
            finally:
                db.close()

    def check_writable(self) -> None:
        """Raises StoreError unless the store is open for writing."""
        if self.read_only or self._closed:
            raise StoreError(f"the store {self.path} is {'closed' if self._closed else 'open for reading only'}")

    def fold_log(self) -> None:
        """Move the write-ahead log into the file and empty it, unless others are using the file at this moment.

        Deleted content remains in the log until this or a later checkpoint is done.
        """
        with self.reading() as db:
            try:
                db.execute(f"pragma busy_timeout = {_FOLD_WAIT_MS}")
                db.execute("pragma wal_checkpoint(truncate)").fetchall()
            finally:
                db.execute(f"pragma busy_timeout = {int(_BUSY_SECONDS * 1000)}")

    def close(self) -> None:
        """Close the file. The last process to close it also moves the write-ahead log into it. Warns if a file is gone
        and no error has said so."""
        with self._lock:
            if not (self._connection is None or self.read_only or self._presence.is_told):
                try:
                    self._presence.check(writing=True)
                except StoreGone as error:
                    LOG.warning("%s", error)
            self._closed = True
            self.release()

    def acquire(self) -> None:
        """Wait until no thread uses the connection, and keep other threads out until `unlock`."""
        self._lock.acquire()

    def release(self) -> None:
        """Close the files; the next use opens them again."""
        if self._connection is not None:
            self._disconnect()
            self._connection = None
        if self._queue is not None:
            os.close(self._queue)
            self._queue = None

    def unlock(self) -> None:
        """Undo `acquire`."""
        self._lock.release()

    def connected(self) -> sqlite3.Connection:
        """The connection, opened if necessary. The caller must hold the lock."""
        if self._closed:
            raise StoreError(f"the store {self.path} is closed")
        if self._connection is None:
            if self.connections:  # it was closed for a fork
                self._presence.check(writing=True, beside=False)
            db = self._open()
            try:
                self._presence.opened()
            except BaseException:
                db.close()
                raise
            self._connection = db
            self.connections += 1
            # The connection refers to itself through its function `unpacked`, which the garbage collector cannot see.
            self._disconnect = weakref.finalize(self, _close, db, self._presence)
            self._disconnect.atexit = False
        return self._connection

    def _open(self) -> sqlite3.Connection:
        with _opening:
            if not os.path.isfile(self.path):
                if (error := left_alone(self.path)) is not None:
                    raise error
                if self.read_only:
                    raise StoreNotFound(self.path)
                _create_file(self.path)
            db = self._connect()
        try:
            db.execute("begin")
            outdated = needs_upgrade(db, str(self.path))
            empty = outdated and not version_of(db)
            db.execute("commit")
            if empty and self.read_only:
                raise StoreError(
                    f"{self.path} is an empty file, not yet a store; import a session into it, or open it in a program "
                    "without read_only"
                )
            if not self.read_only:
                self._prepare(db, outdated)
            check_packs(db)
        except BaseException:
            db.close()
            raise
        return db

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            f"{self.path.absolute().as_uri()}?{self._mode()}",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            db.execute(f"pragma cache_size = {-_PAGE_CACHE_KB}")
            lend_packs(db)
        except BaseException:
            db.close()
            raise
        return db

    def _mode(self) -> str:
        if not self.read_only:
            return "mode=rw"
        # Reading a WAL database needs a file beside it. If that cannot be created and nobody writes
        # (a read-only disk), SQLite must be told that the file does not change.
        wal = self.path.with_name(self.path.name + "-wal")
        if not wal.exists() and not os.access(self.path.parent, os.W_OK):
            return "mode=ro&immutable=1"
        return "mode=ro"

    def _prepare(self, db: sqlite3.Connection, outdated: bool) -> None:
        if outdated:  # takes effect for a file without tables, and when a file is rewritten
            db.execute("pragma auto_vacuum = incremental")
        _begin_log(db)
        db.execute(f"pragma synchronous = {self._durability}")
        db.execute(f"pragma journal_size_limit = {_WAL_LIMIT_BYTES}")
        limit_log(db)
        if outdated:
            upgrade(db, str(self.path))

    def queue_up(self) -> sqlite3.Connection:
        """The connection, for writing. If writes are slow because they are synced, first waits in a queue with other
        processes.

        SQLite's own waiting sleeps and retries, so with slow writes some writers wait for seconds. The queue is only
        for fairness; a disk without such locks is therefore not an error.
        """
        if self.read_only or self._closed:
            self.check_writable()
        if self._queues and fcntl is not None:
            with suppress(OSError):
                if self._queue is None:
                    name = self.path.with_name(self.path.name + "-lock")
                    self._queue = open_handle(name, os.O_RDWR | os.O_CREAT)
                fcntl.flock(self._queue, fcntl.LOCK_EX)
        db = self._connection or self.connected()
        self._presence.check_writing()
        return db

    def leave_queue(self) -> None:
        """Let the next process in the queue write."""
        if self._queue is not None and fcntl is not None:
            with suppress(OSError):
                fcntl.flock(self._queue, fcntl.LOCK_UN)


class Transaction:
    """The context manager of `Database.writing`. One object serves all transactions, because the lock allows only one
    at a time.

    It uses `begin immediate`, because a transaction that begins by reading and then writes fails at once, despite any
    timeout, if somebody else wrote in between. It is a class and not a generator, which would cost as much as one of
    the statements inside.
    """

    def __init__(self, database: Database, lock: threading.RLock) -> None:
        self._database = database
        self._lock = lock
        self._done = 0

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            self._db = self._database.queue_up()
            self._execute = self._db.cursor().execute  # `db.execute` would make a cursor each time
            try:
                self._execute("begin immediate")
            except BaseException:  # a Ctrl-C while waiting is raised only after our transaction has begun
                self._roll_back()
                raise
        except BaseException as error:
            self._leave()
            if isinstance(error, sqlite3.Error):
                raise store_error(error, self._database.path) from error
            raise
        return self._db

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._execute("commit")
                self._done += 1
                if not self._done % _WRITES_BETWEEN_LOOKS:
                    with suppress(sqlite3.Error):  # a committed transaction must not look failed, and be repeated
                        limit_log(self._db)
            else:
                self._roll_back()
        except sqlite3.Error as failure:
            self._roll_back()
            raise store_error(failure, self._database.path) from failure
        finally:
            self._leave()
        if isinstance(error, sqlite3.Error):
            raise store_error(error, self._database.path) from error

    def _roll_back(self) -> None:
        self._execute = self._db.cursor().execute  # the old cursor has a failed statement, which keeps the file open
        if self._db.in_transaction:
            with suppress(sqlite3.Error):  # the error that ended the transaction is raised instead
                self._db.execute("rollback")

    def _leave(self) -> None:
        self._database.leave_queue()
        self._lock.release()


_opening = threading.Lock()
"""Held while a file may be created. Closing any descriptor of a file drops the locks that SQLite holds on it in the
whole process, so no other thread may open the file between its creation and the close."""

_databases: weakref.WeakSet[Database] = weakref.WeakSet()
_forking = threading.local()  # two threads may fork at the same time


def _before_fork() -> None:
    """Close all SQLite connections before a fork, used or not: their locks would not be inherited."""
    with _opening:
        _forking.databases = list(_databases)
    for database in _forking.databases:
        database.acquire()
        database.release()
    _opening.acquire()


def _after_fork() -> None:
    _opening.release()
    for database in _forking.databases:
        database.unlock()
    del _forking.databases


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


def _close(db: sqlite3.Connection, presence: Presence) -> None:
    db.close()
    presence.closed()


def _create_file(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its side files the same mode. Its folder is
    created too, but none above that: a path with two missing folders is probably mistyped."""
    above = path.parent.parent
    if not above.is_dir():
        raise InputError(
            f"store: {path} cannot be created, because the folder {above} does not exist; correct the path, or create "
            f"the folder first: mkdir -p {shlex.quote(str(path.parent))}"
        )
    try:
        make_private(path.parent)
        os.close(open_handle(path, os.O_CREAT | os.O_EXCL | os.O_RDWR))
    except FileExistsError:
        if path.is_dir():
            raise StoreError(f"{path} is a folder; name the store's file in it") from None
    except OSError as error:
        raise StoreError(f"cannot create the store {path}: {error.strerror}{advice(error)}") from error


def _begin_log(db: sqlite3.Connection) -> None:
    """Give a new file a write-ahead log. Where another process does so at this moment, SQLite fails at once, whatever
    its timeout: then wait as for any write, and look again."""
    until = monotonic() + _BUSY_SECONDS
    while db.execute("pragma journal_mode").fetchone()[0] != "wal":
        try:
            db.execute("pragma journal_mode = wal")
            return  # also without one, on a disk that can have none
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > until:
                raise
            db.execute("begin immediate")
            db.execute("rollback")


def limit_log(db: sqlite3.Connection) -> None:
    """Keep the write-ahead log of a small store small; the log of a larger store is left to SQLite.

    Moving the log into the file costs two syncs. Ten times in a store's first thousand appends is cheap; every hundred
    pages for ever would make an average append twice as expensive.
    """
    small = db.execute("pragma page_count").fetchone()[0] < _SMALL_FILE_PAGES
    db.execute(f"pragma wal_autocheckpoint = {_SMALL_LOG_PAGES if small else _LOG_PAGES}")


def store_error(error: sqlite3.Error, path: Path, *, opened: bool = True) -> StoreError:
    """The error of this package for an error of SQLite. `opened`: the file could be opened, so commands can say what is
    readable in it."""
    code = getattr(error, "sqlite_errorcode", None)
    kind = None if code is None else code & 0xFF
    if kind == sqlite3.SQLITE_NOTADB and not _is_database(path):
        return StoreError(
            f"{path} is no turnlog store: {error}; name another file. If it was one, its beginning was overwritten: "
            "restore it from a copy"
        )
    if kind in _DAMAGED:
        return _damaged(error, path, opened=opened)
    if kind == sqlite3.SQLITE_FULL:
        return StoreError(f"{path}: {error}{FREE_SOME}; deleting sessions needs space, too")
    if kind in _LOCKED_AWAY:
        return StoreError(f"{path}: {error}{out_of_files() or '; the file and its folder have to be writable here'}")
    return StoreError(f"{path}: {error}")


def _damaged(error: Exception, path: Path, *, opened: bool) -> CorruptRecord:
    if not opened:  # by `verify` and `salvage` neither
        return CorruptRecord(f"{path}: {error}; the file is damaged and cannot be opened; restore it from a copy")
    remedy = "`turnlog verify` names what cannot be read; or restore the file from a copy"
    return CorruptRecord(f"{path}: {error}; the file is damaged; {remedy}")


def _is_database(path: Path) -> bool:
    """Whether a file begins as an SQLite database does."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False
