"""Sessions that are opened by the same path use one store object, for as long as the path leads to the same file."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from turnlog.errors import StoreError, StoreGone
from turnlog.stores import sharing

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


@needs_proc
@pytest.mark.parametrize("place", ["{}/s.db", "files:{}/logs"])
def test_a_session_more_costs_two_descriptors(tmp_path: Path, place: str) -> None:
    """A server with a thousand open sessions would end at the usual limit of 1,024 files with a quarter of them."""
    before = descriptors()
    sessions = [turnlog.open(f"s{n}", store=place.format(tmp_path)) for n in range(40)]
    assert descriptors() - before <= 2 * 40 + 20
    for session in sessions:
        session.user("hello")
        session.close()
    assert descriptors() == before
    assert not sharing._opened


@needs_proc
def test_a_session_that_is_dropped_gives_its_share_up(tmp_path: Path) -> None:
    """A program that forgets to close sessions would keep their store open for ever."""
    before = descriptors()
    turnlog.open("s", store=tmp_path / "s.db").user("hello")
    gc.collect()
    assert descriptors() == before


def test_the_last_to_close_closes_the_store(tmp_path: Path) -> None:
    """Closing one session would take the store away from the others, or the last one would leave the log behind."""
    place = tmp_path / "s.db"
    first, second = (turnlog.open(name, store=place) for name in ("a", "b"))
    first.close()
    first.close()
    second.user("hello")
    assert (tmp_path / "s.db-wal").exists()
    second.close()
    assert not (tmp_path / "s.db-wal").exists()
    with turnlog.open("a", store=place) as again:
        again.user("more")


def test_a_file_that_took_the_place_of_another_is_opened_anew(tmp_path: Path) -> None:
    """The session would be looked for in the file that was moved away."""
    place = tmp_path / "s.db"
    with turnlog.open("s", store=place) as old:
        old.user("hello")
        for path in tmp_path.glob("s.db*"):
            if path.is_file():
                path.rename(tmp_path / f"moved-{path.name}")
        with turnlog.open("t", store=place) as new:
            new.user("other")
            assert [info.id for info in new._store.sessions()] == ["t"]
        with pytest.raises(StoreGone):
            old.user("lost")


def test_ways_to_open_a_store_do_not_mix(tmp_path: Path) -> None:
    """A session that asked for durable appends would get those of another that did not."""
    settings = turnlog.Settings(durability="full")
    with turnlog.open("a", store=tmp_path / "s.db"), turnlog.open("b", store=tmp_path / "s.db", settings=settings):
        assert sorted(key[1].partition(" ")[0] for key in sharing._opened) == ["full", "normal"]


_FORKED = """
import os, sys, turnlog
parent = turnlog.open("p", store=sys.argv[1])
child = os.fork()
if child == 0:
    with turnlog.open("c", store=sys.argv[1]) as session:
        session.user("from the child")
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
parent.user("from the parent")
parent.close()
with turnlog.open("c", store=sys.argv[1], read_only=True) as session:
    assert [m.n for m in session.history() if m.message] != []
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_opens_the_store_for_itself(tmp_path: Path) -> None:
    """SQLite's connections do not survive a fork: both processes would damage the file."""
    subprocess.run([sys.executable, "-c", _FORKED, str(tmp_path / "s.db")], check=True, timeout=60)


@needs_proc
@pytest.mark.parametrize("name", ["s.db", "{}.db"])
def test_the_error_at_the_limit_says_how_to_raise_it(tmp_path: Path, name: str) -> None:
    """Too many open files look like damage, or like a permission that is missing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors() + 30, hard))
    try:
        with pytest.raises(StoreError, match="ulimit -n"):
            [turnlog.open(f"s{n}", store=tmp_path / name.format(n)) for n in range(100)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        gc.collect()
