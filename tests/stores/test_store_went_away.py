"""A store whose file or folder is deleted, moved or replaced while it is open acknowledges nothing that is then
gone."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_parts import filled, said, texts

import turnlog
from turnlog.errors import CorruptRecord, SessionNotFound, StoreError, StoreGone
from turnlog.log.store import Store
from turnlog.stores import FilesStore, SqliteStore, open_store

_BESIDE = ("", "-wal", "-shm")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is."""
    return tmp_path / "log.db"


def _move(path: Path, to: Path) -> None:
    for ending in _BESIDE:
        if (file := path.with_name(path.name + ending)).exists():
            file.rename(to.with_name(to.name + ending))


@pytest.mark.parametrize("how", ["deleted", "moved", "moved with its log", "in a folder that was renamed"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path: Path, how: str) -> None:
    """Records that SQLite writes to a file without a name, and that nobody finds again; from the first one on."""
    path = tmp_path / "folder" / "log.db"
    store = SqliteStore(path)
    filled(store, "s", 3)
    if how == "deleted":
        path.unlink()
    elif how == "moved":
        path.rename(path.with_name("elsewhere.db"))
    elif how == "moved with its log":
        _move(path, path.with_name("elsewhere.db"))
    else:
        path.parent.rename(tmp_path / "renamed")
    for write in (
        lambda: store.append("s", [said("lost otherwise")]),
        lambda: store.create("t"),
        lambda: store.put_blob(b"x"),
        lambda: store.delete("s"),
    ):
        with pytest.raises(StoreGone, match=r"was deleted or moved while.*move it back"):
            write()
    assert texts(store.read("s")) == ["1", "2", "3"]  # for an export
    store.close()


def test_a_session_says_that_its_store_is_gone(path: Path) -> None:
    """A message that the program takes for recorded."""
    with turnlog.open("s", store=path) as session:
        session.user("one")
        path.unlink()
        with pytest.raises(StoreGone):
            session.user("two")
        assert [record.message is not None for record in session.log.newest()] == [True]


@pytest.mark.parametrize("how", ["moved", "moved with its log"])
def test_a_file_that_is_back_is_written_to_again(path: Path, how: str) -> None:
    """A sync program that takes a file away for a moment ends a session for good, or a record of before is lost."""
    elsewhere = path.with_name("elsewhere.db")
    store = SqliteStore(path)
    filled(store, "s", 3)
    _move(path, elsewhere) if how == "moved with its log" else path.rename(elsewhere)
    with pytest.raises(StoreGone):
        store.append("s", [said("refused")])
    _move(elsewhere, path)
    store.append("s", [said("4")])
    store.close()
    again = SqliteStore(path)
    assert texts(again.read("s")) == ["1", "2", "3", "4"]
    assert again.verify() == []
    again.close()


def test_a_file_that_comes_back_changed_is_not_gone_on_with(path: Path) -> None:
    """Pages that another program wrote while the file had another name are overwritten with older ones."""
    store = SqliteStore(path)
    filled(store, "s", 3)
    elsewhere = path.with_name("elsewhere.db")
    path.rename(elsewhere)
    with pytest.raises(StoreGone):
        store.append("s", [said("refused")])
    os.utime(elsewhere, ns=(1, 1))
    elsewhere.rename(path)
    with pytest.raises(StoreGone, match=r"not as it was last seen here.*open the store again"):
        store.append("s", [said("refused")])
    with pytest.raises(StoreGone, match="not as it was last seen"):
        list(store.read("s"))
    store.close()


def test_a_file_that_another_took_the_place_of_is_not_used(path: Path) -> None:
    """Both share SQLite's files beside it: what is read is a mixture of the two, and what is written is lost."""
    other = SqliteStore(path.with_name("other.db"))
    filled(other, "other", 1)
    other.close()
    store = SqliteStore(path)
    filled(store, "s", 3)
    os.replace(path.with_name("other.db"), path)
    with pytest.raises(StoreGone, match="replaced by another file"):
        store.append("s", [said("lost otherwise")])
    with pytest.raises(StoreGone, match="replaced by another file"):
        list(store.read("s"))
    store.close()


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_log_that_is_gone_is_told_and_closing_saves_it(path: Path, ending: str) -> None:
    """A cleaner removes the files beside a store: appends go to a log without a name, unseen by other processes, and
    are lost if the process is killed."""
    store = SqliteStore(path)
    filled(store, "s", 3)
    path.with_name(path.name + ending).unlink()
    with pytest.raises(StoreGone, match=f"log.db{ending} was deleted or moved.*close the store"):
        store.append("s", [said("lost otherwise")])
    store.close()
    again = SqliteStore(path)
    assert texts(again.read("s")) == ["1", "2", "3"]
    again.close()


@pytest.mark.slow
def test_a_store_is_not_begun_anew_on_the_log_of_another(path: Path) -> None:
    """SQLite deletes the log beside a new file: with it the newest records of the file that was moved."""
    program = (
        "import os, sys, turnlog\n"
        "session = turnlog.open('s', store=sys.argv[1])\n"
        "session.user('one')\n"
        "os.rename(sys.argv[1], sys.argv[1] + '.moved')\n"
        f"os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)]).returncode == -signal.SIGKILL
    for read_only in (False, True):
        with pytest.raises(StoreGone, match=r"log\.db is not there, but .*log\.db-wal is.*move the store's file back"):
            open_store(path, read_only=read_only)
    path.with_name("log.db.moved").rename(path)
    with turnlog.open("s", store=path, read_only=True) as session:
        assert texts(session.history()) == ["one"]


def test_a_fork_makes_no_new_file(path: Path) -> None:
    """Before a fork, files are closed; after it, a file that was deleted meanwhile is made again, empty, in silence."""
    store = SqliteStore(path)
    filled(store, "s", 1)
    for file in path.parent.glob("log.db*"):
        if file.is_file():
            file.unlink()
    child = os.fork()
    if not child:
        try:
            store.create("t")
        except StoreGone:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with pytest.raises(StoreGone):
        store.create("t")
    assert not path.exists()


def test_closing_says_that_records_are_gone(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A program that appends nothing after the file went ends as if all were well; or one that only reads complains."""
    store, reader = SqliteStore(path), SqliteStore(path, read_only=True)
    filled(store, "s", 1)
    assert texts(reader.read("s")) == ["1"]
    path.rename(path.with_name("elsewhere.db"))
    reader.close()
    assert caplog.records == []
    store.close()
    assert [(record.levelname, "was deleted or moved" in record.message) for record in caplog.records] == [
        ("WARNING", True)
    ]
    caplog.clear()
    store.close()
    assert caplog.records == []


def test_a_folder_that_is_gone_is_no_empty_store(tmp_path: Path) -> None:
    """A listing without sessions, or an append that makes the folder anew."""
    folder = tmp_path / "log"
    store = FilesStore(folder)
    filled(store, "s", 2)
    folder.rename(tmp_path / "elsewhere")
    uses: list[Callable[[], object]] = [
        lambda: store.append("s", [said("3")]),
        lambda: store.create("t"),
        store.sessions,
        lambda: list(store.read("s")),
        lambda: store.info("s"),
        lambda: store.search("1"),
        lambda: store.lease("s"),
        lambda: turnlog.open("t", store=store),
    ]
    for use in uses:
        with pytest.raises(StoreGone, match=r"was deleted or moved while .*move it back"):
            use()
    assert not folder.exists()
    (tmp_path / "elsewhere").rename(folder)
    store.append("s", [said("3")])
    assert texts(store.read("s")) == ["1", "2", "3"]
    other = FilesStore(tmp_path / "other")
    other.close()
    folder.rename(tmp_path / "elsewhere")
    (tmp_path / "other").rename(folder)
    with pytest.raises(StoreGone, match="replaced by another"):
        store.sessions()
    store.close()


@pytest.mark.parametrize("key", [None, bytes(32)], ids=["plain", "encrypted"])
def test_a_folder_that_is_no_store_any_more_takes_no_records(
    tmp_path: Path, key: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    """Without `turnlog.json` nobody opens the folder, and nobody has the key of an encrypted store any more: what was
    acknowledged since then is lost."""
    place = f"files:{tmp_path / 'log'}"
    store = open_store(place, key=key)
    filled(store, "s", 2)
    marker = tmp_path / "log" / "turnlog.json"
    marker.rename(tmp_path / "elsewhere")
    for use in (lambda: store.append("s", [said("3")]), lambda: store.create("t")):
        with pytest.raises(StoreGone, match=r"turnlog\.json was deleted or moved while .*move it back"):
            use()
    assert texts(store.read("s")) == ["1", "2"]
    (tmp_path / "elsewhere").rename(marker)
    store.append("s", [said("3")])
    store.close()
    assert not caplog.records
    again = open_store(place, key=key)
    assert texts(again.read("s")) == ["1", "2", "3"]
    again.close()


@pytest.mark.parametrize("kind", ["jsonl", "json"])
def test_a_file_of_a_session_that_is_gone_is_told(tmp_path: Path, kind: str) -> None:
    """A session whose card or log somebody removed is taken for one that never was, and begun anew under its id."""
    store = FilesStore(tmp_path / "log")
    filled(store, "s", 2)
    (tmp_path / "log" / "sessions" / f"s.{kind}").unlink()
    for use in (lambda: store.append("s", [said("3")]), lambda: turnlog.open("s", store=store)):
        with pytest.raises(CorruptRecord, match=rf"s\.{kind} is missing.*restore"):
            use()
    assert [info.id for info in store.sessions()] == ["s"]
    store.close()


class _Told(logging.Handler):
    """Counts what is said: errors that were raised, and warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1

    @contextmanager
    def hears(self) -> Iterator[None]:
        """A StoreError is told, and goes no further."""
        try:
            yield
        except StoreError:
            self.count += 1


class _Work:
    """A store that is worked with while its files are moved and deleted."""

    def __init__(self, folder: Path, prefix: str) -> None:
        self.here, self.there = folder / "log", folder / "elsewhere"
        self._prefix = prefix
        self.told = _Told()
        self.store: Store | None = None
        self.acknowledged: list[str] = []
        self.is_destroyed = False
        self.reopen()

    def reopen(self) -> None:
        """The program ends, and begins again."""
        self.close()
        with self.told.hears():
            self.store = open_store(f"{self._prefix}{self.here}")

    def close(self) -> None:
        """The program ends."""
        if self.store is not None:
            self.store.close()
        self.store = None

    def append(self) -> None:
        """One more record, which is acknowledged or not."""
        if self.store is None:
            return
        text = str(len(self.acknowledged))
        with self.told.hears():
            try:
                self.store.append("s", [said(text)])
            except SessionNotFound:
                self.store.create("s")
                self.store.append("s", [said(text)])
            self.acknowledged.append(text)

    def move(self) -> None:
        """The file or folder alone."""
        if self.here.exists() and not self.there.exists():
            self.here.rename(self.there)

    def move_all(self) -> None:
        """With all that is beside it."""
        if self.here.exists() and not any(self._at(self.there)):
            for file in self._at(self.here):
                file.rename(self._twin(file, self.there))

    def move_back(self) -> None:
        """What was moved, if its place is free."""
        for file in [] if self.here.exists() else self._at(self.there):
            if not self._twin(file, self.here).exists():
                file.rename(self._twin(file, self.here))

    def delete(self) -> None:
        """The file or folder."""
        if self.here.exists():
            self.is_destroyed = True
            shutil.rmtree(self.here) if self.here.is_dir() else self.here.unlink()

    def delete_beside(self) -> None:
        """The log of an SQLite file."""
        if (log := self.here.with_name("log-wal")).exists():
            self.is_destroyed = True
            log.unlink()

    def _at(self, place: Path) -> list[Path]:
        names = (place.with_name(place.name + ending) for ending in _BESIDE)
        return [file for file in names if file.exists()]

    def _twin(self, file: Path, place: Path) -> Path:
        own = self.here if file.name.startswith(self.here.name) else self.there
        return place.with_name(place.name + file.name.removeprefix(own.name))

    def found(self) -> set[str]:
        """Every record that is there in the end, in both places."""
        kept: set[str] = set()
        for place in (self.here, self.there):
            with self.told.hears():
                store = open_store(f"{self._prefix}{place}", read_only=True)
                kept.update(*(texts(store.read(info.id)) for info in store.sessions()))
                store.close()
        return kept


_STEPS = ["append", "append", "move", "move_all", "move_back", "delete", "delete_beside", "reopen"]


@pytest.mark.parametrize("prefix", ["", "files:"])
@given(steps=st.lists(st.sampled_from(_STEPS), max_size=14))
def test_nothing_acknowledged_is_missing_without_an_error(prefix: str, steps: list[str]) -> None:
    """A record that the program was told is kept, and that is nowhere, although nobody was told of anything; or one
    that was only moved, and is not there when its files are back."""
    log = logging.getLogger("turnlog")
    with tempfile.TemporaryDirectory() as folder:
        work = _Work(Path(folder), prefix)
        log.addHandler(work.told)
        try:
            for step in steps:
                getattr(work, step)()
            work.close()
            work.move_back()
            told = work.told.count
            missing = {*work.acknowledged} - work.found()
        finally:
            work.close()
            log.removeHandler(work.told)
        assert not missing or (work.is_destroyed and told), (missing, told)
