"""Where a store is: paths, URLs, and what is nearly one of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from turnlog.errors import InputError, SessionNotFound, StoreError
from turnlog.stores import default_path, open_store
from turnlog.stores.places import local_path, placed


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, and another one that is worked in."""
    folder, work = tmp_path / "home", tmp_path / "work"
    folder.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.chdir(work)
    return folder


@pytest.mark.parametrize("prefix", ["", "sqlite:///", "files:", "files:///"])
def test_a_tilde_is_the_home_folder(home: Path, prefix: str) -> None:
    """A folder named ~ in the working directory, with the conversations of a user who looks for them at home."""
    open_store(f"{prefix}~/log").close()
    assert (home / "log").exists() and not list(Path().iterdir())
    assert local_path(f"{prefix}~/log") == home / "log"
    assert placed(f"{prefix}~/log", Path("/etc")) == f"{prefix}{home / 'log'}"
    open_store(f"{prefix}./~log").close()
    assert Path("~log").exists()


def test_a_tilde_is_the_home_folder_wherever_a_store_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that `open_store` takes for one place, and `turnlog.open` or a variable for another."""
    turnlog.open("by-open", store="~/log").close()
    turnlog.open("by-path", store=Path("~/log")).close()
    turnlog.open("by-settings", settings=turnlog.Settings(store="~/log")).close()
    monkeypatch.setenv("TURNLOG_STORE", "~/log")
    turnlog.open("by-variable").close()
    store = open_store("~/log")
    assert {info.id for info in store.sessions()} == {"by-open", "by-path", "by-settings", "by-variable"}
    store.close()
    with pytest.raises(InputError, match=r"home folder of a user that does not exist.*is ./~nobody-of-that-name/x"):
        open_store("~nobody-of-that-name/x")


_NEARLY = {
    "file:x": "x (one SQLite file) or files:x",
    "file:///x": "/x (one SQLite file) or files:/x",
    "Files:x": "x (one SQLite file) or files:x",
    "files://x": "x (one SQLite file) or files:x",
    "jsonl:x": "files:x",
    "sqlite:x": "x or sqlite:///x",
    "sqlite:/x": "/x or sqlite:////x",
    "sqlite://x": "x or sqlite:///x",
    "sqlite3:///x": "x or sqlite:///x",
    "sqlite+aiosqlite:///x": "x or sqlite:///x",
    "postgres:/x": "postgresql://USER@HOST/DATABASE",
    "postgres:x": "postgresql://USER@HOST/DATABASE",
    "postgresql:/ann:hunter2@host/x": "postgresql://USER@HOST/DATABASE",
    "Postgres://ann:hunter2@host/x": "postgresql://USER@HOST/DATABASE",
    "postgresql+psycopg://ann:hunter2@host/x": "postgresql://USER@HOST/DATABASE",
    "pg:x?password=hunter2": "postgresql://USER@HOST/DATABASE",
    "memory:": ":memory:",
    ":memory": ":memory:",
    "sqlite::memory:": ":memory:",
    "sqlite:///:memory:": ":memory:",
}


@pytest.mark.parametrize(("place", "right"), _NEARLY.items(), ids=list(_NEARLY))
def test_what_is_nearly_a_url_is_refused_with_the_right_spelling(home: Path, place: str, right: str) -> None:
    """A conversation in a file named `postgres:`, while its user looks into the database."""
    for use in (open_store, lambda place: turnlog.open("s", store=place), lambda place: placed(place, Path())):
        with pytest.raises(InputError) as caught:
            use(place)
        assert f"did you mean {right}" in str(caught.value) and "hunter2" not in str(caught.value)
    assert not list(Path().iterdir())


_UNLIKE = {
    ":memory: ": "white space",
    "log.db ": "white space",
    "files: log": "white space",
    "sqlite:///log.db\n": "white space",
    "logs/": "names a folder; .* files:logs/",
    "sqlite:///logs/": "names a folder",
    "$HOME/log.db": "begins with a variable",
    "files:${DATA}/log": "begins with a variable",
    "%APPDATA%\\log.db": "begins with a variable",
    r"C:\Users\ann\log.db": "path on Windows",
    "C:/Users/ann/log.db": "path on Windows",
    r"\\server\share\log.db": "path on Windows",
}
"""What is hardly meant as the path of a new store, and what is said of it."""


@pytest.mark.skipif(os.name == "nt", reason="paths of this system are paths")
@pytest.mark.parametrize(("place", "why"), _UNLIKE.items(), ids=list(_UNLIKE))
def test_a_path_for_a_shell_or_another_system_makes_no_file(home: Path, place: str, why: str) -> None:
    """A conversation that was to be in memory is in a file named `:memory: `; or a store is in a folder named `$HOME`,
    where nobody looks."""
    for open_it in (open_store, lambda place: turnlog.open("s", store=place)):
        with pytest.raises(InputError, match=rf"^store: .*{why}"):
            open_it(place)
    assert not list(Path().iterdir())


def test_a_store_of_an_unlikely_name_that_is_there_is_opened(home: Path) -> None:
    """A store with a name that is no longer given, whose conversations nobody can read any more."""
    open_store("log.db").close()
    Path("log.db").rename("$log.db ")
    assert open_store("$log.db ").sessions() == []


@given(
    word=st.sampled_from(["postgres", "POSTGRESQL", "sqlite", "Sqlite", "file", "files"]),
    rest=st.text("/:ax.", max_size=6),
)
def test_an_address_is_one_of_its_forms_or_refused(word: str, rest: str) -> None:
    """An address that begins as a URL does, and is taken for a file of that name."""
    place = f"{word}:{rest}"
    forms = ("files:", "sqlite:///", "postgresql://", "postgres://")
    try:
        path = local_path(place)
    except InputError:
        return
    assert place.startswith(forms)
    assert path is None or not str(path).startswith(word)


@pytest.mark.parametrize("place", ["my:notes.db", "2026:11.db", "profiles:x", "./file:x", "C:x"])
def test_a_colon_in_a_name_is_no_url(home: Path, place: str) -> None:
    """A file that cannot be named, because of a colon in its name."""
    open_store(place).close()
    assert Path(place).is_file()


def test_a_path_that_is_mistyped_makes_no_folders(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/srv/dta/agents/log.db` makes folders, and a store that nobody finds; or the user's own store is refused on a
    new machine."""
    with pytest.raises(InputError, match=r"the folder .*/new does not exist.*mkdir -p .*/new/deeper"):
        open_store("new/deeper/log.db")
    with pytest.raises(InputError, match=r"mkdir -p"):
        turnlog.open("s", store="new/deeper/log.db")
    assert not Path("new").exists()
    open_store("new/log.db").close()
    open_store("files:others/deeper/log").close()
    turnlog.open("s", settings=turnlog.Settings(store="settings/deeper/log.db")).close()
    monkeypatch.setenv("TURNLOG_STORE", "variable/deeper/log.db")
    turnlog.open("s").close()
    monkeypatch.delenv("TURNLOG_STORE")
    turnlog.open("s").close()
    assert default_path() == home / ".local" / "share" / "turnlog" / "turnlog.db" and default_path().exists()
    assert {path.name for path in Path().iterdir()} == {"new", "others", "settings", "variable"}


@pytest.mark.parametrize("prefix", ["", "files:"])
def test_a_store_that_is_not_there_has_no_sessions(tmp_path: Path, prefix: str) -> None:
    """A page that lists sessions fails until the first user says something; or goes on saying that there are none."""
    place = f"{prefix}{tmp_path / 'log'}"
    store = open_store(place, read_only=True)
    assert (store.sessions(), store.search("x"), store.usages(), store.used()) == ([], [], {}, 0)
    with pytest.raises(SessionNotFound, match="there is no store at"):
        store.info("s")
    for write in (lambda: store.create("s"), lambda: store.put_blob(b"x")):
        with pytest.raises(StoreError, match="open for reading only"):
            write()
    with pytest.raises(SessionNotFound, match="there is no store at"):
        turnlog.open("s", store=place, read_only=True)
    assert not (tmp_path / "log").exists()
    turnlog.open("s", store=place).close()
    with pytest.raises(StoreError, match="open it again"):
        store.sessions()
    store.close()
