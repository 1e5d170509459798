"""The SQLite store on disk: what is there after closing, killing, forking and upgrading."""

from __future__ import annotations

import gc
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from store_parts import filled, said, texts

from turnlog.errors import Conflict, InputError, NewerStore, SessionNotFound, StoreError
from turnlog.log.records import Decision, Note, SummaryRecord
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore, SqliteStore, open_store
from turnlog.stores.records import COLUMNS, SessionRow, seal
from turnlog.stores.sqlite.schema import INDEXED, RARE, SCHEMA_VERSION, upgrade
from turnlog.stores.sqlite.store import Appender

ROOT = Path(__file__).resolve().parents[2]
FORKS = hasattr(os, "fork")
needs_fork = pytest.mark.skipif(not FORKS, reason="this system has no fork")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store may be made, in a folder that is not there yet."""
    return tmp_path / "folder" / "log.db"


def test_what_is_closed_is_there_again(path: Path) -> None:
    """Records, titles, forks or blobs that do not outlive the store object."""
    store = SqliteStore(path)
    filled(store, "s", 5)
    store.fork("s", "t", at=2, title="T")
    small, large = store.put_blob(b"small"), store.put_blob(b"large" * 20_000)
    before = [store.sessions(), list(store.read("s")), list(store.read("t"))]
    store.close()
    store = SqliteStore(path)
    assert [store.sessions(), list(store.read("s")), list(store.read("t"))] == before
    assert (store.get_blob(small), store.get_blob(large)) == (b"small", b"large" * 20_000)
    assert store.verify() == []
    store.close()


def test_only_the_owner_may_read_the_files(path: Path) -> None:
    """A conversation that other users of the machine can read."""
    store = SqliteStore(path, durability="full")
    filled(store, "s", 1)
    store.put_blob(b"large" * 20_000)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.rglob("*")}
    store.close()
    assert modes.pop("log.db-blobs") == 0o700
    assert set(modes.values()) == {0o600}
    assert {"log.db", "log.db-wal", "log.db-shm", "log.db-lock"} < set(modes)


def test_reading_makes_nothing(path: Path) -> None:
    """A store opened for reading that makes folders or files, or lets something be written."""
    with pytest.raises(StoreError, match="no store"):
        SqliteStore(path, read_only=True)
    assert not path.parent.exists()
    store = SqliteStore(path)
    filled(store, "s", 2)
    store.close()
    before = path.read_bytes()
    store = SqliteStore(path, read_only=True)
    assert texts(store.read("s")) == ["1", "2"]
    for write, values in (
        (store.append, ("s", [said("3")])),
        (store.put_blob, (b"x" * 70_000,)),
        (store.create, ("t",)),
        (store.delete, ("s",)),
    ):
        with pytest.raises(StoreError, match="reading only"):
            write(*values)
    store.close()
    assert path.read_bytes() == before
    assert not path.with_name("log.db-blobs").exists()


def test_a_newer_store_is_left_alone(path: Path) -> None:
    """A store of a newer version that is opened, or changed by the attempt."""
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"pragma user_version = {SCHEMA_VERSION + 1}")
    before = path.read_bytes()
    for read_only in (False, True):
        with pytest.raises(NewerStore, match=f"version {SCHEMA_VERSION + 1}"):
            SqliteStore(path, read_only=read_only)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1, 7])
def test_somebody_elses_database_is_left_alone(path: Path, version: int) -> None:
    """A database of another program that is taken for a store and written into."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute("create table sessions (mine)")
        db.execute(f"pragma user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a turnlog store"):
        SqliteStore(path)
    path.with_name("text.txt").write_text("Dear diary, " * 200)
    with pytest.raises(StoreError) as caught:  # while it is looked at, it holds on to what was not closed
        SqliteStore(path.with_name("text.txt"))
    opened = Path("/proc/self/fd")  # where the system has that
    assert str(path.with_name("text.txt")) not in [
        os.path.realpath(each) for each in (opened.iterdir() if opened.is_dir() else ())
    ]
    assert "not a database" in str(caught.value)
    assert path.read_bytes() == before
    assert path.with_name("text.txt").read_text() == "Dear diary, " * 200


def test_a_failed_upgrade_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade that stops half way and leaves half of its tables, or cannot be tried again."""
    store = SqliteStore(path)
    filled(store, "s", 2)
    store.close()
    good = "create table extra (x)"
    upgrades = sys.modules["turnlog.stores.sqlite.schema"]._UPGRADES
    for statements, done in (((good, "create nonsense"), 0), ((good,), 1)):
        with monkeypatch.context() as patch:
            patch.setattr("turnlog.stores.sqlite.schema._UPGRADES", (*upgrades, statements))
            patch.setattr("turnlog.stores.sqlite.schema.SCHEMA_VERSION", SCHEMA_VERSION + 1)
            if not done:
                with pytest.raises(StoreError):
                    SqliteStore(path)
            else:
                store = SqliteStore(path)
                assert texts(store.read("s")) == ["1", "2"]
                assert store.verify() == []
                store.close()
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("pragma user_version").fetchone() == (SCHEMA_VERSION + done,)
            assert db.execute("select count(*) from sqlite_master where name = 'extra'").fetchone() == (done,)


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_an_older_store_is_read_as_it_is_and_upgraded_when_written(path: Path, version: int) -> None:
    """An older store that cannot be looked into without changing it, or that is not brought to this version."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        upgrade(db, str(path), to=version)
        db.execute("pragma journal_mode = wal")
    row = SessionRow(1, "s", "T", "2026", "2026", 0, 0, bytes(32), "", 0, None)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        marks = ", ".join("?" for _ in row)
        db.execute(f"insert into sessions ({COLUMNS}, seal) values ({marks}, ?)", (*row, seal(row)))
    before = path.read_bytes()
    store = SqliteStore(path, read_only=True)
    assert (store.info("s").title, store.verify()) == ("T", [])
    assert store.search("word") == store.search("word", since="2026") == []
    store.close()
    assert path.read_bytes() == before
    store = SqliteStore(path)
    store.append("s", [said("a word")])
    assert ([hit.record for hit in store.search("word", since="2026")], store.verify()) == ([1], [])
    store.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("pragma user_version").fetchone() == (SCHEMA_VERSION,)


@pytest.mark.parametrize("version", [1, 3, 9, SCHEMA_VERSION])
def test_rare_kinds_are_found_in_a_store_of_any_version(path: Path, version: int) -> None:
    """An index of kinds that older stores do not have, asked for there: records missed, or a store changed by reading.
    In a new one, every opening of a session would go through all of its records."""
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        upgrade(db, str(path), to=version)
        db.execute("pragma journal_mode = wal")
        row = SessionRow(1, "s", "T", "2026", "2026", 0, 0, bytes(32), "", 0, None)
        marks = ", ".join("?" for _ in row)
        db.execute(f"insert into sessions ({COLUMNS}, seal) values ({marks}, ?)", (*row, seal(row)))
        Appender().append(db, "s", [said("1"), Draft(SummaryRecord("k", "claimed")), Draft(Decision("clear"))], None)
    before = path.read_bytes()
    for read_only in (True, False):
        with closing(SqliteStore(path, read_only=read_only)) as store:
            assert [record.n for record in store.of_kinds("s", ("decision", "summary"))] == [2, 3]
            assert [record.n for record in store.of_kinds("s", ("decision", "message"), reverse=True)] == [3, 1]
            assert store.verify() == []
        assert not read_only or path.read_bytes() == before
    with closing(sqlite3.connect(path)) as db:
        query = f"select id from records {INDEXED} where kind = 'decision' {RARE} and id between 1 and 9 order by id"
        plan = db.execute(f"explain query plan {query}").fetchall()
    assert ["COVERING INDEX records_kind (kind=? AND rowid>? AND rowid<?)" in step[-1] for step in plan] == [True]


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path, URL or `:memory:` that opens something else, and places that are none."""
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_store(":memory:"), MemoryStore)
    for place in ("a b%20?#.db", Path("c.db"), "sqlite:///d.db", f"sqlite:///{tmp_path}/e.db"):
        open_store(place).close()
    assert {file.name for file in tmp_path.iterdir()} == {"a b%20?#.db", "c.db", "d.db", "e.db"}
    for place in ("redis://x", "", "sqlite:///"):
        with pytest.raises(InputError):
            open_store(place)
    with pytest.raises(InputError, match="durability"):
        open_store("f.db", durability="maximal")  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="folder"):
        open_store(tmp_path)
    assert not (tmp_path / "f.db").exists()


def test_a_closed_store_says_so(path: Path) -> None:
    """A closed store that opens its file again, or fails with an error of SQLite."""
    store = SqliteStore(path)
    filled(store, "s", 300)
    reader = store.read("s")
    next(reader)
    store.close()
    for use in (lambda: store.append("s", [said("x")]), lambda: store.info("s"), lambda: list(reader), store.verify):
        with pytest.raises(StoreError, match="closed"):
            use()


def test_a_full_disk_loses_only_the_append(path: Path) -> None:
    """A failed write that leaves part of itself, or a transaction that nobody ends."""
    store = SqliteStore(path)
    filled(store, "s", 2)
    with store._database.reading() as db:
        pages = db.execute("pragma page_count").fetchone()[0]
        db.execute(f"pragma max_page_count = {pages}")
    with pytest.raises(StoreError, match="full"):
        store.append("s", [said("3"), said("x" * 100_000)])
    assert texts(store.read("s")) == ["1", "2"]
    with store._database.reading() as db:
        db.execute("pragma max_page_count = 100000")
    assert store.append("s", [said("3")])[0].n == 3
    assert store.verify() == []
    store.close()


def test_what_is_deleted_is_overwritten(path: Path) -> None:
    """Words of a deleted session that can still be found in the files."""
    store = SqliteStore(path)
    filled(store, "a", 3)
    store.append("a", [said("shared-secret"), said("own-secret"), said("long-secret" * 1000)])
    store.fork("a", "b", at=4)
    store.delete("a")

    def bytes_on_disk() -> bytes:
        files = (file for file in path.parent.iterdir() if file.is_file() and "shm" not in file.name)
        return b"".join(file.read_bytes() for file in files)

    assert b"own-secret" not in bytes_on_disk()
    assert b"long-secret" not in bytes_on_disk()
    assert b"shared-secret" in bytes_on_disk()
    store.delete("b")
    assert b"shared-secret" not in bytes_on_disk()
    store.close()


def test_a_fork_copies_nothing(path: Path) -> None:
    """A fork that stores records of its parent again."""
    store = SqliteStore(path)
    filled(store, "a", 500)
    with store._database.reading() as db:
        before = db.execute("select count(*) from records").fetchone()
    for name in ("b", "c"):
        store.fork("a", name)
    with store._database.reading() as db:
        assert db.execute("select count(*) from records").fetchone() == before
    store.close()


def test_deleting_under_a_reader(path: Path) -> None:
    """A reader that goes on into other records when its session is deleted and made anew."""
    store = SqliteStore(path)
    filled(store, "a", 300)
    reader = store.read("a")
    seen = [next(reader).n for _ in range(10)]
    store.delete("a")
    filled(store, "a", 300)
    with pytest.raises(SessionNotFound, match="deleted"):
        seen += [record.n for record in reader]
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) < 300
    store.close()


def test_the_last_records_are_read_alone(path: Path) -> None:
    """Reading the end of a long log that fetches all of it."""
    store = SqliteStore(path)
    filled(store, "s", 5000)
    fetched = []
    with store._database.reading() as db:
        db.set_trace_callback(fetched.append)
    assert [record.n for record in store.read("s", first=4999, reverse=True)] == [5000, 4999]
    assert next(store.read("s", reverse=True)).n == 5000
    with store._database.reading() as db:
        db.set_trace_callback(None)
    queries = [sql for sql in fetched if "from records" in sql]
    assert len(queries) == 2
    assert all("limit 32" in sql for sql in queries)
    store.close()


def test_400_turns_take_less_than_a_megabyte(path: Path) -> None:
    """A layout that wastes the disk, or a write-ahead log that makes a small store a large one."""
    store = SqliteStore(path)
    store.create("s")
    for turn in range(400):
        store.append("s", [said(f"{turn:800}")])
    assert sum(file.stat().st_size for file in path.parent.iterdir()) < 1_000_000
    for turn in range(400):
        store.append("s", [said(f"{turn:800}")])
    store.close()
    assert path.stat().st_size < 1_000_000


def test_a_remembered_row_is_not_believed(path: Path) -> None:
    """An append that goes on from what this store wrote last, when another has written since."""
    store, other = SqliteStore(path), SqliteStore(path)
    filled(store, "s", 2)
    for number, writer in enumerate((other, store, store, other, other, store), 3):
        assert writer.append("s", [said(str(number))])[0].n == number
    other.rename("s", "Another title")
    store.append("s", [said("9")], expected=8)
    assert (store.info("s").title, len(list(other.read("s")))) == ("Another title", 9)
    with pytest.raises(Conflict):
        other.append("s", [said("x")], expected=8)
    other.delete("s")
    with pytest.raises(SessionNotFound):
        store.append("s", [said("x")])
    other.create("s")
    assert (store.append("s", [said("new")])[0].n, store.verify()) == (1, [])
    store.close()
    other.close()


def _write(path: Path, name: str, durability: str) -> None:
    store = SqliteStore(path, durability=durability)  # type: ignore[arg-type]
    for count in range(200):
        store.append("s", [said(f"{name} {count}")])
    store.close()


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_four_processes_append_to_one_session(path: Path, durability: str) -> None:
    """Records that are lost, doubled or misnumbered when several processes write at once."""
    store = SqliteStore(path)
    store.create("s")
    store.close()
    fork = multiprocessing.get_context("fork")
    writers = [fork.Process(target=_write, args=(path, name, durability)) for name in "abcd"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    store = SqliteStore(path)
    records = list(store.read("s"))
    assert [record.n for record in records] == list(range(1, 801))
    assert Counter(texts(records)) == {f"{name} {count}": 1 for name in "abcd" for count in range(200)}
    assert store.verify() == []
    store.close()


def _open_and_create(path: Path, name: str) -> None:
    store = SqliteStore(path)
    store.create(name)
    store.close()


@needs_fork
def test_many_processes_make_one_store(path: Path) -> None:
    """Processes that start at the same time on a store that is not there yet, and fail or undo each other."""
    fork = multiprocessing.get_context("fork")
    makers = [fork.Process(target=_open_and_create, args=(path, f"s{number}")) for number in range(12)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert [maker.exitcode for maker in makers] == [0] * 12
    store = SqliteStore(path)
    assert len(store.sessions()) == 12
    assert store.verify() == []
    store.close()


def test_a_store_that_another_process_begins_at_this_moment(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers that start together: one gets "database is locked" at once, however long SQLite may wait."""
    path.parent.mkdir()
    path.touch()
    other = sqlite3.connect(path, isolation_level=None)
    others = ["pragma user_version = 0", "begin immediate"]

    class Late(sqlite3.Connection):
        """A connection that comes later than the other one, and waits for it where it says so."""

        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            while sql == "pragma journal_mode = wal" and others:
                other.execute(others.pop())
            if sql == "begin immediate" and other.in_transaction:
                other.execute("commit")
            return super().execute(sql, *values)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Late))
    with closing(SqliteStore(path)) as store, closing(other):
        store.create("s")
        assert (others, other.execute("pragma journal_mode").fetchone()) == ([], ("wal",))


@pytest.mark.slow
def test_a_store_that_nobody_has_any_more_is_closed(path: Path) -> None:
    """A server that closes no session runs out of files: three for each store, open as long as the process lives."""
    filled(SqliteStore(path), "s", 3)
    gc.collect()
    assert not path.with_name(f"{path.name}-wal").exists()  # goes with the last connection


@needs_fork
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_an_open_store_crosses_a_fork(path: Path, durability: str) -> None:
    """A store that was open when the process forked, and loses what parent or child append after."""
    store = SqliteStore(path, durability=durability)  # type: ignore[arg-type]
    filled(store, "s", 200)
    reader = store.read("s")
    next(reader)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(reading, 1)  # until the parent has closed its store
            store.append("s", [said("child")])
            os._exit(0 if len(list(reader)) == 199 else 2)
        finally:
            os._exit(1)
    store.append("s", [said("parent")])
    assert len(list(reader)) == 199
    store.close()
    os.write(writing, b".")
    assert os.waitpid(child, 0)[1] == 0
    os.close(reading)
    os.close(writing)
    store = SqliteStore(path)
    assert texts(store.read("s", first=201)) == ["parent", "child"]
    assert store.verify() == []
    store.close()


def test_importing_opens_nothing(tmp_path: Path) -> None:
    """An import that makes a file, a folder or a connection."""
    script = """if True:
        import sys
        seen = []
        sys.addaudithook(lambda event, args: seen.append(event))
        import turnlog, turnlog.stores, turnlog.testing
        print({event for event in seen if event.startswith(("sqlite3.connect", "os.mkdir", "socket.", "os.fork"))})
    """
    command = [sys.executable, "-B", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stdout, list(tmp_path.iterdir())) == ("set()\n", [])


def test_records_can_be_read_with_any_sqlite(path: Path) -> None:
    """Records that are not plain JSON text to whoever opens the file without turnlog."""
    store = SqliteStore(path)
    store.create("s")
    store.append("s", [Draft(Note("topic", "Grüße"))])
    store.close()
    with closing(sqlite3.connect(path)) as db:
        found = db.execute("select kind, typeof(record), json_extract(record, '$.body.text') from records").fetchone()
    assert found == ("note", "text", "Grüße")


def test_media_that_cannot_be_written_are_a_clear_error(path: Path) -> None:
    """A bare OSError, and a traceback, where the disk is full or the folder of media may not be written to."""
    store = SqliteStore(path)
    path.with_name(path.name + "-blobs").write_bytes(b"")
    with pytest.raises(StoreError, match="-blobs"):
        store.put_blob(b"a" * 100_000)
    with pytest.raises(StoreError, match="-blobs"):
        store.get_blob("0" * 64)
    store.close()


def test_a_full_disk_is_told_with_what_to_do(path: Path) -> None:
    """`database or disk is full`, and no word of what to do."""
    with closing(SqliteStore(path)) as store:
        filled(store, "s", 3)
        with store._database.reading() as db:
            db.execute("pragma max_page_count = 1")  # SQLite takes the present size, if that is larger
        with pytest.raises(StoreError, match="disk is full; free some space on this disk, then try again; deleting"):
            store.append("s", [said("a" * 100_000)])
        assert len(texts(store.read("s"))) == 3


def test_a_write_that_failed_keeps_no_file_open(path: Path) -> None:
    """Three open files and a write-ahead log for as long as a program refers to what it closed, where the last append
    failed: what is deleted to make room gives none."""
    resource = pytest.importorskip("resource")
    store = SqliteStore(path)
    filled(store, "s", 3)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name("log.db-wal").stat().st_size, hard))
    try:
        with pytest.raises(StoreError):
            store.append("s", [said("a" * 100_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    store.close()
    assert [file.name for file in path.parent.iterdir()] == ["log.db"]
    with closing(SqliteStore(path)) as again:
        assert len(texts(again.read("s"))) == 3 and again.verify() == []


def test_a_store_that_cannot_be_written_beside_is_told_why(path: Path) -> None:
    """`unable to open database file` for a file on a read-only disk, which is there and can be read."""
    SqliteStore(path).close()
    path.with_name(path.name + "-wal").mkdir()
    with pytest.raises(StoreError, match="the file and its folder have to be writable"):
        SqliteStore(path)


def test_a_search_needs_no_room_for_its_index(path: Path) -> None:
    """No search on a full disk, where it is looked for what may go."""
    store = SqliteStore(path)
    filled(store, "s", 3)
    store.append("s", [said(" ".join(["needle", *(f"w{n:x}" for n in range(k, k + 99))])) for k in range(0, 9000, 100)])
    with store._database.reading() as db:
        db.execute(f"pragma max_page_count = {db.execute('pragma page_count').fetchone()[0]}")
    assert len(store.search("needle", limit=None)) == 90
    store.close()


@pytest.mark.slow
def test_a_store_that_is_linked_to_is_one_store(tmp_path: Path) -> None:
    """Media that are put beside the link, where nobody finds them who opens the store itself; and a scrub that looks
    for old bytes in a write-ahead log that is not there, and says that none are left."""
    path, link = tmp_path / "disk" / "log.db", tmp_path / "home" / "log.db"
    SqliteStore(path).close()
    link.parent.mkdir()
    link.symlink_to(path)
    store = SqliteStore(link)
    filled(store, "s", 2)
    blob = store.put_blob(b"a" * 100_000)
    assert [entry.name for entry in link.parent.iterdir()] == ["log.db"]
    other = SqliteStore(path, read_only=True)
    assert other.get_blob(blob) == b"a" * 100_000
    with other._database.reading() as db:
        db.execute("begin")
        db.execute("select count(*) from records").fetchone()
        with pytest.raises(StoreError, match="scrub"):
            store.rewrite("s", {})
        db.execute("commit")
    other.close()
    store.close()
