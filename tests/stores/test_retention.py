"""`collect`: what goes, what never goes, and what a crash on the way leaves."""

from __future__ import annotations

import errno
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.errors import BlobMissing, CorruptRecord, InputError, StoreError
from turnlog.log.messages import Media, Message
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft, Held, Inventory, SessionInfo, Store, StoredPiece
from turnlog.session.collect import collect
from turnlog.stores import FilesStore, MemoryStore, SqliteStore, open_store
from turnlog.stores.locks import HoldFolder
from turnlog.stores.retention import Limits, is_over, plan

NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda path: MemoryStore(),
    "sqlite": lambda path: SqliteStore(path / "s.db"),
    "files": lambda path: FilesStore(path / "folder"),
    "sealed-sqlite": lambda path: open_store(path / "s.db", key=b"k" * 32),
    "sealed-files": lambda path: open_store(f"files:{path / 'folder'}", key=b"k" * 32),
}
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    with closing(STORES[request.param](tmp_path)) as made:
        yield made


def add(store: Store, name: str, *, days: float = 0, size: int = 1_000) -> None:
    """Say something of that size in a session, made if it is not there, so many days ago."""
    time = (NOW - days * DAY).isoformat()
    if name not in names(store):
        store.create(name, created=time)
    store.append(name, [Draft(Note("x", "x" * size), time)])


def forked(store: Store, name: str, new: str, *, days: float) -> None:
    """Fork a session, so many days ago."""
    with patch("turnlog.log.store.time_ns", lambda: int((NOW - days * DAY).timestamp()) * 10**9):
        store.fork(name, new)


def names(store: Store) -> list[str]:
    """The sessions that there are."""
    return sorted(info.id for info in store.sessions())


def held(store: Store, name: str) -> Held:
    """A hold of a session."""
    hold = store.hold(name)
    assert hold is not None
    return hold


# -- limits ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_limit_takes_the_oldest(store: Store) -> None:
    """A limit that does nothing, or takes others than those that it is about."""
    for n in range(6):
        add(store, f"s{n}", days=n, size=2_000_000)
    assert [gone.session for gone in collect(store, Limits(max_age=DAY * 4.5), now=NOW).gone] == ["s5"]
    assert [gone.session for gone in collect(store, Limits(max_sessions=4), now=NOW).gone] == ["s4"]
    found = collect(store, Limits(max_disk=5_500_000), now=NOW)
    assert [gone.session for gone in found.gone] == ["s3", "s2"]
    assert (names(store), found.over) == (["s0", "s1"], ())
    assert found.after == store.used() <= 5_500_000
    assert store.verify() == []


@pytest.mark.slow
def test_limits_together_take_what_any_of_them_takes(store: Store) -> None:
    """Limits of which only the first is looked at."""
    for n in range(6):
        add(store, f"s{n}", days=n, size=2_000_000)
    found = collect(store, Limits(max_age=DAY * 4.5, max_sessions=4, max_disk=5_500_000), now=NOW)
    assert [gone.session for gone in found.gone] == ["s5", "s4", "s3", "s2"]
    assert [gone.why for gone in found.gone] == ["older than 108h", "more than 4 sessions", *["more than 5.50 MB"] * 2]


def test_ages_are_counted_to_the_time_that_is_given(store: Store) -> None:
    """A session that goes by the clock of whoever happens to run this."""
    add(store, "s", days=1)
    limits = Limits(max_age=DAY)
    assert not is_over(store, limits, NOW)
    assert collect(store, limits, now=NOW).gone == ()
    assert is_over(store, limits, NOW + timedelta(seconds=1))
    assert len(collect(store, limits, now=NOW + timedelta(seconds=1)).gone) == 1


def test_a_dry_run_changes_nothing_and_says_what_would_go(tmp_path: Path) -> None:
    """A look that deletes, or that does not agree with what is done then."""
    for kind in ("sqlite", "files"):
        with closing(STORES[kind](tmp_path)) as store:
            for n in range(4):
                add(store, f"s{n}", days=n, size=100_000)
    for place in (tmp_path / "s.db", f"files:{tmp_path}/folder"):
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        look = collect(place, Limits(max_sessions=1), now=NOW, dry_run=True)
        now = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert {path: now[path] for path in before} == before
        done = collect(place, Limits(max_sessions=1), now=NOW)
        assert look.gone == done.gone
        assert (look.dry_run, done.dry_run) == (True, False)
        assert [gone.session for gone in look.gone] == ["s3", "s2", "s1"]
        assert abs(look.after - done.after) < 40_000  # a page here and there
        assert look.before == done.before


def test_without_a_limit_nothing_is_done(store: Store) -> None:
    """A `gc` that deletes by limits that nobody gave, or says that it did something."""
    add(store, "s", days=900)
    with pytest.raises(InputError, match="no limit is set"):
        collect(store, now=NOW)
    with pytest.raises(InputError, match="no limit is set"):
        collect(store, Limits(), now=NOW)


def test_limits_of_the_configuration_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`collect()` that looks at another store, or has no limits, though both are configured."""
    monkeypatch.setenv("TURNLOG_STORE", str(tmp_path / "s.db"))
    monkeypatch.setenv("TURNLOG_MAX_SESSIONS", "1")
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        add(store, "a", days=2)
        add(store, "b", days=1)
        assert [gone.session for gone in collect(now=NOW).gone] == ["a"]


@pytest.mark.parametrize(
    "wrong", [{"max_age": 30}, {"max_disk": 0}, {"max_sessions": 0}, {"max_sessions": True}, {"max_age": timedelta(0)}]
)
def test_a_limit_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    """A limit that everything is over: whoever writes 0 often means that there is none."""
    with pytest.raises(InputError, match=f"{next(iter(wrong))}: .* is not allowed; allowed:"):
        Limits(**wrong)


@pytest.mark.parametrize("wrong", [NOW.replace(tzinfo=None), "2026-06-30"])
def test_a_time_without_its_zone_is_refused(wrong: Any, store: Store) -> None:
    """Ages that are counted to a time hours away, or a bare error of Python's."""
    add(store, "s", days=9)
    with pytest.raises(InputError, match=r"now must be a datetime with its time zone"):
        collect(store, Limits(max_age=DAY), now=wrong)
    assert names(store) == ["s"]


def test_limits_are_given_as_they_are_written() -> None:
    """A limit in words that is compared as text."""
    assert Limits("30d", "2kB", 3) == Limits(DAY * 30, 2_000, 3)  # type: ignore[arg-type]


# -- files of others ----------------------------------------------------------------------------------


def _open_folder(kind: str, tmp_path: Path) -> Path:
    """Where a store of that kind has its holds."""
    return {"sqlite": tmp_path / "s.db-open", "files": tmp_path / "folder" / "open"}[kind]


@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_stray_files_do_not_stop_it(kind: str, tmp_path: Path) -> None:
    """A desktop's or an editor's file among the holds that ends every `gc`, or is taken for a session's."""
    with closing(STORES[kind](tmp_path)) as store:
        add(store, "a", days=2)
        add(store, "b", days=1)
        folder = _open_folder(kind, tmp_path)
        folder.mkdir(exist_ok=True)
        for name in (".DS_Store", "notes~", "con"):
            (folder / name).write_text("mine")
        (folder / "directory").mkdir()
        assert store.inventory().in_use == frozenset()
        assert [gone.session for gone in collect(store, Limits(max_sessions=1), now=NOW).gone] == ["a"]
        assert sorted(os.listdir(folder)) == [".DS_Store", "con", "directory", "notes~"]


@needs_fork
@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("whole", [False, True], ids=["file", "folder"])
def test_a_hold_that_is_a_link_is_refused(whole: bool, kind: str, tmp_path: Path) -> None:
    """Opening that waits for ever for a file that cannot be made, or makes one elsewhere."""
    with closing(STORES[kind](tmp_path)) as store:
        folder = _open_folder(kind, tmp_path)
        at = folder if whole else folder / "s"
        at.parent.mkdir(exist_ok=True)
        for to in ("nowhere/x", "x"):
            at.unlink(missing_ok=True)
            at.symlink_to(tmp_path / to)
            with pytest.raises(StoreError, match=re.escape(str(at))):
                turnlog.open("s", store=store)
        assert not (tmp_path / "x").exists()


@needs_fork
@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_what_says_that_a_session_is_in_use_goes_with_the_last(kind: str, tmp_path: Path) -> None:
    """A folder that stays beside every store for nothing, or one that is taken away from who has a session open."""
    place = {"sqlite": f"{tmp_path}/s.db", "files": f"files:{tmp_path}/folder"}[kind]
    folder = _open_folder(kind, tmp_path)
    with turnlog.open("a", store=place):
        with turnlog.open("b", store=place):
            assert sorted(os.listdir(folder)) == ["a", "a+lease", "b", "b+lease"]
        assert sorted(os.listdir(folder)) == ["a", "a+lease"]
        with closing(open_store(place, read_only=True)) as store:
            assert store.inventory().in_use == {"a"}
    assert not folder.exists()
    folder.mkdir()
    open_store(place, read_only=True).close()
    assert folder.exists()


@needs_fork
def test_a_folder_that_others_take_away_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening that fails because another process opened, or closed its store, at the same moment."""
    folder, times, make = tmp_path / "open", [], os.mkdir

    def disturbed(path: Path, mode: int) -> None:
        times.append(path)
        if len(times) == 1:  # made by another just before, and taken away just after
            raise FileExistsError(errno.EEXIST, "File exists")
        make(path, mode)
        if len(times) == 2:  # taken away before the file is made in it
            path.rmdir()
        if len(times) == 3:  # made by another just before
            raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "mkdir", disturbed)
    hold = HoldFolder(folder).take("s")
    assert hold is not None and HoldFolder(folder).taken() == {"s"} and len(times) == 3
    hold.close()
    assert os.listdir(folder) == []


# -- what stays --------------------------------------------------------------------------------------


def test_a_session_in_use_stays(store: Store) -> None:
    """A session that is taken away from under who works with it, in this process."""
    add(store, "s", days=100)
    with turnlog.open("s", store=store) as session:
        fork = session.fork("t")
        found = collect(store, Limits(max_sessions=1), now=NOW + DAY * 99)
        assert [spared.why for spared in found.spared] == ["it is in use"] * 2
        assert (names(store), found.over) == (["s", "t"], ("max_sessions",))
        fork.close()
        session.user("go on")
    assert len(collect(store, Limits(max_age=DAY), now=datetime.now(UTC) + DAY * 99).gone) == 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "files"])
@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_session_that_another_process_uses_stays(kind: str, how: str, tmp_path: Path) -> None:
    """A session that another process has open and loses, or one that stays for ever because its process was killed."""
    place = {"sqlite": f"{tmp_path}/s.db", "files": f"files:{tmp_path}/folder"}[kind]
    script = (
        "import sys, turnlog\nwith turnlog.open('s', store=sys.argv[1]) as s:\n print('open', flush=True)\n input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    later = datetime.now(UTC) + DAY * 99
    with closing(open_store(place)) as store:
        found = collect(store, Limits(max_age=DAY), now=later)
        assert (found.gone, [spared.why for spared in found.spared]) == ((), ["it is in use"])
        if how == "killed":
            process.send_signal(signal.SIGKILL)
        process.communicate("\n")
        assert len(collect(store, Limits(max_age=DAY), now=later).gone) == 1
        assert names(store) == []
    left = {path.name for path in tmp_path.rglob("*") if path.is_dir()}
    assert left == ({"folder", "sessions"} if kind == "files" else set())


@needs_fork
def test_a_forked_child_does_not_let_go_for_its_parent(tmp_path: Path) -> None:
    """A child process that ends, and the session its parent works with is no longer in use."""
    with closing(SqliteStore(tmp_path / "s.db")) as store:
        hold = held(store, "s")
        child = os.fork()
        if not child:
            hold.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert store.inventory().in_use == {"s"}
        hold.close()
        assert store.inventory().in_use == frozenset()


@pytest.mark.slow
def test_a_session_that_nobody_refers_to_any_more_is_not_in_use(store: Store) -> None:
    """A session that was opened, never closed and forgotten, and that stays for ever."""
    with turnlog.open("s", store=store) as session:
        session.fork("t")
        import gc

        gc.collect()
        assert store.inventory().in_use == {"s"}


def test_a_session_that_is_kept_stays(store: Store) -> None:
    """A session that was marked to be kept and went."""
    for name in "ab":
        add(store, name, days=50)
    store.keep("a")
    found = collect(store, Limits(max_age=DAY), now=NOW)
    assert ([gone.session for gone in found.gone], names(store)) == (["b"], ["a"])
    assert [(spared.session, spared.why) for spared in found.spared] == [("a", "it is protected from gc")]
    store.keep("a", kept=False)
    assert len(collect(store, Limits(max_age=DAY), now=NOW).gone) == 1


def test_subagents_stay_and_go_with_their_session(store: Store) -> None:
    """A session that waits for its agent after a crash asked it all over, as what it had done was deleted; or agents
    stayed for ever after their session, and a copy that somebody went on with was deleted with the original."""
    add(store, "a", days=1)
    for name, parent in (("a.agent-x", "a"), ("a.agent-x.agent-y", "a.agent-x"), ("copy", "a"), ("b", "gone")):
        store.create(name, created=(NOW - 9 * DAY).isoformat(), parent=parent)
        add(store, name, days=9)
    old = Limits(max_age=5 * DAY)
    assert is_over(store, old, NOW)
    done = collect(store, old, now=NOW, grace=0)
    assert sorted(gone.session for gone in done.gone) == ["b", "copy"] and not is_over(store, old, NOW)
    hold = held(store, "a.agent-x.agent-y")
    spared = collect(store, Limits(max_age=timedelta(hours=1)), now=NOW, grace=0).spared
    assert [(each.session, each.why) for each in spared if each.session == "a"] == [
        ("a", "its subagent a.agent-x.agent-y stays: it is in use")
    ]
    hold.close()
    done = collect(store, Limits(max_age=timedelta(hours=1)), now=NOW, grace=0)
    assert [gone.session for gone in done.gone] == ["a", "a.agent-x", "a.agent-x.agent-y"] and names(store) == []


def test_what_a_fork_reads_stays_until_the_fork_goes(store: Store) -> None:
    """A parent that goes while a fork that stays reads its records; or one that never goes."""
    add(store, "a", days=90)
    forked(store, "a", "b", days=80)
    add(store, "b", days=80)
    forked(store, "b", "c", days=3)
    add(store, "c", days=3)
    add(store, "d", days=70)
    found = collect(store, Limits(max_age=DAY * 60), now=NOW)
    assert ([gone.session for gone in found.gone], names(store)) == (["d"], ["a", "b", "c"])
    assert {spared.session for spared in found.spared} == {"a", "b"}
    assert found.spared[0].why.startswith("its records are read by ")
    found = collect(store, Limits(max_age=DAY * 2), now=NOW)
    assert [gone.session for gone in found.gone] == ["c", "b", "a"]  # no fork is ever without what it reads
    assert (names(store), store.verify()) == ([], [])


def test_a_fork_whose_parent_was_deleted_keeps_what_it_reads(store: Store) -> None:
    """A fork that rests on the parent of its deleted parent, and loses that."""
    add(store, "a", days=90)
    store.fork("a", "b")
    store.fork("b", "c")
    add(store, "c", days=3)
    store.delete("b")
    assert collect(store, Limits(max_age=DAY * 60), now=NOW).gone == ()
    assert len(list(store.read("c"))) == 2


def test_a_session_of_an_unknown_time_stays(store: Store) -> None:
    """A session that goes because nobody can read how old it is."""
    store.create("s", created="yesterday")
    found = collect(store, Limits(max_age=DAY), now=NOW)
    assert (found.gone, names(store)) == ((), ["s"])


def test_where_locks_are_unknown_a_session_of_today_stays() -> None:
    """A session that goes while it is in use, on a system that cannot tell."""
    infos = [
        SessionInfo("old", "", "", (NOW - DAY * 2).isoformat(), 1, 1),
        SessionInfo("new", "", "", (NOW - DAY / 2).isoformat(), 1, 1),
    ]
    made = plan(infos, Inventory((), {}, frozenset(), None), Limits(max_age=DAY / 4), used=0, now=NOW)
    assert [gone.session for gone in made.gone] == ["old"]
    assert made.spared[0].why.startswith("it may be in use")


class _Busy(MemoryStore):
    """A session is opened, or gone on with, between the plan and the deletion of it."""

    meanwhile: Callable[[], object] = staticmethod(lambda: None)

    def inventory(self) -> Inventory:
        found = super().inventory()
        doing, self.meanwhile = self.meanwhile, lambda: None
        doing()
        return found


def test_what_changed_since_the_plan_stays() -> None:
    """A session that goes because it was old a moment ago."""
    for what in ("opened", "gone on with", "deleted"):
        store = _Busy()
        add(store, "a", days=9)
        add(store, "b", days=8)
        holds: list[Held] = []
        store.meanwhile = {
            "opened": lambda store=store, holds=holds: holds.append(held(store, "a")),  # type: ignore[misc]
            "gone on with": lambda store=store: add(store, "a"),  # type: ignore[misc]
            "deleted": lambda store=store: store.delete("a"),  # type: ignore[misc]
        }[what]
        found = collect(store, Limits(max_age=DAY), now=NOW)
        assert [gone.session for gone in found.gone] == ["b"], what
        assert names(store) == ([] if what == "deleted" else ["a"])


# -- media and room ----------------------------------------------------------------------------------


def test_media_stay_while_anything_refers_to_them(store: Store) -> None:
    """A picture that goes with one of two sessions that show it, or that stays when both have gone."""
    shared, own = store.put_blob(b"shared" * 20_000), store.put_blob(b"own" * 20_000)
    for name, days, blobs in (("a", 9, (shared, own)), ("b", 5, (shared,))):
        time = (NOW - DAY * days).isoformat()
        store.create(name, created=time)
        parts = tuple(Media("image", sha256=blob) for blob in blobs)
        store.append(name, [Draft(MessageRecord(Message("user", parts)), time)])
    assert collect(store, Limits(max_age=DAY * 7), now=NOW).swept.recent == 1  # put just now
    assert store.get_blob(own)
    add(store, "c", days=9)
    found = collect(store, Limits(max_age=DAY * 7), now=NOW, grace=0)
    assert (found.swept.removed, found.swept.size) == (1, 60_000)
    assert store.get_blob(shared)
    with pytest.raises(BlobMissing):
        store.get_blob(own)
    found = collect(store, Limits(max_age=DAY), now=NOW, grace=0)
    assert found.gone[0].size >= 120_000
    assert found.swept.removed == 1
    with pytest.raises(BlobMissing):
        store.get_blob(shared)


@pytest.mark.parametrize("older", [False, True])
def test_the_file_becomes_smaller(older: bool, tmp_path: Path) -> None:
    """A store that frees pages and gives none back; one made by an older turnlog too."""
    path = tmp_path / "s.db"
    with closing(SqliteStore(path)) as store:
        for n in range(10):
            add(store, f"s{n}", days=n, size=200_000)
    if older:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("pragma auto_vacuum = none")
            db.execute("vacuum")
            assert db.execute("pragma auto_vacuum").fetchone() == (0,)
    with closing(SqliteStore(path)) as store:
        before = path.stat().st_size
        found = collect(store, Limits(max_sessions=1), now=NOW)
        after = path.stat().st_size
        assert (found.before, found.after) == (before, after)
        assert before > 2_000_000
        assert after < 400_000
        assert store.verify() == []
        assert len(list(store.read("s0"))) == 1


def test_damage_stops_it(tmp_path: Path) -> None:
    """Sessions that go although nobody can tell what others need of them."""
    with closing(FilesStore(tmp_path)) as store:
        add(store, "a", days=9)
        add(store, "b", days=9)
        (tmp_path / "sessions" / "a.json").write_bytes(b"{}")
        with pytest.raises(CorruptRecord, match=r"a\.json"):
            collect(store, Limits(max_age=DAY), now=NOW)
        assert len(list(store.read("b"))) == 1


# -- crashes -----------------------------------------------------------------------------------------


def _filled(store: Store) -> dict[str, list[bytes | None]]:
    """Sessions with forks and media; what each says."""
    picture = store.put_blob(b"picture" * 20_000)
    for n in range(3):
        add(store, f"old{n}", days=90)
        store.append(
            f"old{n}", [Draft(MessageRecord(Message("user", (Media("image", sha256=picture),))), "2026-01-01")]
        )
        forked(store, f"old{n}", f"twig{n}", days=90)
        store.append(f"twig{n}", [Draft(Note("x", "x" * 500), "2026-01-01T00:00:00Z")])
    store.fork("old2", "new")
    add(store, "new", days=0)
    return {info.id: [record.raw for record in store.read(info.id)] for info in store.sessions()}


def _dying(kind: str, store: Store, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """This process ends at the step of that number: a statement of SQLite, or a call of the system on a file."""
    left = [at]

    def step(*_: object, **__: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            os._exit(9)

    if isinstance(store, SqliteStore):
        store._database.connected().set_trace_callback(step)
        return
    for name in ("unlink", "replace", "ftruncate", "rmdir", "write"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, real=real, **k: (step(), real(*a, **k))[1])


@pytest.mark.slow
@needs_fork
@pytest.mark.parametrize("kind, stride", [("sqlite", 9), ("files", 5)])
def test_a_crash_on_the_way_loses_nothing_else(
    kind: str, stride: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed at any step of it, and a session that stays has lost something or is half there."""
    for at in range(0, 2_000, 1 if os.environ.get("TURNLOG_EXAMPLES") == "long" else stride):
        folder = tmp_path / str(at)
        folder.mkdir()
        with closing(STORES[kind](folder)) as store:
            said = _filled(store)
        child = os.fork()
        if not child:
            with closing(STORES[kind](folder)) as store:
                _dying(kind, store, at, monkeypatch)
                collect(store, Limits(max_age=DAY), now=NOW, grace=0)
                os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with closing(STORES[kind](folder)) as store:
            assert {name: [record.raw for record in store.read(name)] for name in names(store)}.items() <= said.items()
            assert {"new", "old2"} <= set(names(store))
            assert store.verify() == []
            collect(store, Limits(max_age=DAY), now=NOW, grace=0)  # and what it left is done now
            assert (names(store), store.verify()) == (["new", "old2"], [])
            assert len(store.inventory().pieces) == 2
        if not ended:
            assert at > 20
            return
    raise AssertionError("it never came to its end")


# -- laws --------------------------------------------------------------------------------------------


@st.composite
def _stores(draw: st.DrawFn) -> tuple[list[SessionInfo], Inventory]:
    """What any store may say of itself: forks of forks, deleted parents, shared media."""
    number = draw(st.integers(1, 8))
    infos, base, pieces = [], {}, []
    for n in range(number):
        time = NOW - draw(st.integers(0, 9)) * DAY
        infos.append(SessionInfo(f"s{n}", "", "", time.isoformat(), 1, 1))
        base[n] = draw(st.none() | st.integers(0, n - 1)) if n else None
    deleted = draw(st.sets(st.integers(0, number - 1), max_size=number - 1))
    readers: dict[int, set[str]] = {n: set() for n in range(number)}
    for n in set(range(number)) - deleted:
        at: int | None = n
        while at is not None:
            readers[at].add(f"s{n}")
            at = base[at]
    for n in range(number):
        owner = "" if n in deleted else f"s{n}"
        blobs = frozenset(draw(st.sets(st.sampled_from("xyz"), max_size=2)))
        pieces.append(StoredPiece(owner, frozenset(readers[n]), draw(st.integers(0, 500)), blobs))
    alive = [info for n, info in enumerate(infos) if n not in deleted]
    some = st.frozensets(st.sampled_from([info.id for info in alive]), max_size=2)
    inventory = Inventory(tuple(pieces), {name: 300 for name in "xyz"}, draw(some), draw(some))
    return alive, inventory


_LIMITS = st.builds(
    Limits,
    st.none() | st.integers(1, 9).map(lambda n: DAY * n),
    st.none() | st.integers(1, 3_000),
    st.none() | st.integers(1, 8),
)


@given(_stores(), _LIMITS, st.none() | st.frozensets(st.sampled_from([f"s{n}" for n in range(8)])))
def test_laws_of_every_plan(
    given_: tuple[list[SessionInfo], Inventory], limits: Limits, among: frozenset[str] | None
) -> None:
    """A plan that takes what must stay or nobody agreed to, leaves what must go, or leaves a fork without what it
    reads on the way."""
    infos, inventory = given_
    used = sum(piece.size for piece in inventory.pieces) + sum(inventory.blobs.values())
    made = plan(infos, inventory, limits, used=used, now=NOW, among=among)
    left = {info.id for info in infos}
    may_not = inventory.kept | (inventory.in_use or frozenset()) | (frozenset() if among is None else left - among)
    for gone in made.gone:
        assert gone.session in left - may_not
        forks = {reader for piece in inventory.pieces if piece.owner == gone.session for reader in piece.readers}
        assert forks & left <= {gone.session}, "a fork was left without what it reads"
        left.remove(gone.session)
    assert plan(infos, inventory, limits, used=used, now=NOW, among=among) == made

    bound = {name for name in left if name in may_not}
    while (
        more := {
            piece.owner for piece in inventory.pieces if piece.owner in left and piece.readers & (bound - {piece.owner})
        }
        - bound
    ):
        bound |= more
    free = left - bound
    ages = {info.id: NOW - datetime.fromisoformat(info.updated) for info in infos}
    if limits.max_age is not None:
        young = {name for name in left if ages[name] <= limits.max_age}
        fixed = bound | young | {piece.owner for piece in inventory.pieces if piece.readers & (young - {piece.owner})}
        assert free <= fixed, "a session that is too old and that nothing holds stays"
    if limits.max_sessions is not None:
        assert len(left) <= limits.max_sessions or not free
    named = {name for piece in inventory.pieces if piece.readers & left for name in piece.blobs}
    size = sum(piece.size for piece in inventory.pieces if piece.readers & left) + 300 * len(named)
    unread = sum(piece.size for piece in inventory.pieces if not piece.readers)
    if limits.max_disk is not None:
        assert size + unread <= limits.max_disk or not free
    assert not (left and not limits and made.gone)
