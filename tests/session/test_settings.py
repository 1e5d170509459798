"""Settings: which place wins, what a mistake says, and that every key does something."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

import turnlog
from turnlog._platform.units import age_text, exact_size, read_age, read_size
from turnlog.cli.config import _plain, _toml
from turnlog.config.settings import Settings, keys
from turnlog.errors import InputError
from turnlog.log.budget import Budget
from turnlog.log.messages import Message, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import Note, StreamCheckpoint
from turnlog.log.store import Draft
from turnlog.models.catalog import own_file
from turnlog.session.collect import limits_of
from turnlog.session.settings import loaded, project_file, unknown_variables, user_file
from turnlog.stores import MemoryStore, default_path, open_store

DAY = timedelta(days=1)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a user's configuration, a store and a project in it, which is the working directory."""
    (tmp_path / "project").mkdir()
    (tmp_path / "config" / "turnlog").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TEST_KEY", "ab" * 32)
    return tmp_path


def write(home: Path, *, user: str = "", project: str = "") -> None:
    """The two files."""
    user_file().write_text(user, "utf-8")
    (home / "project" / "turnlog.toml").write_text(project, "utf-8")


# -- every key does something ------------------------------------------------------------------------


def _stored(settings: Settings, folder: Path) -> set[str]:
    with turnlog.open("s", settings=settings) as session:
        session.user("hello")
    return {path.name for path in folder.rglob("*") if path.is_file()}


def _session(look: Callable[[turnlog.Session], object]) -> Callable[[Settings, Path], object]:
    def seen(settings: Settings, folder: Path) -> object:
        with turnlog.open("s", settings=settings) as session:
            return look(session)

    return seen


def _synchronous(session: turnlog.Session) -> object:
    return session._store.store._database.connected().execute("pragma synchronous").fetchone()[0]  # type: ignore[attr-defined]


def _recorded(session: turnlog.Session) -> object:
    record = session.user("It is EMP-004711, password=hunter2-Xk93")
    kept = next(session.log.on_disk.records(record.n)).message
    return text_of(kept) if kept else ""


def _patience(settings: Settings, folder: Path) -> object:
    answer = threading.Event()

    def ask(prompt: str) -> str:
        answer.wait(60)
        return "late"

    with turnlog.open(
        "s", settings=replace(settings, summarizer=ask), target=turnlog.target("openai-chat", "gpt-4o")
    ) as session:
        for n in range(8):
            session.user(f"question {n} " + "word " * 200)
            session.assistant(f"answer {n} " + "word " * 200)
        session.compact(keep=1)
        said = " ".join(str(record.body) for record in session.history())
        answer.set()
        return [f"no answer in {seconds} s" in said for seconds in ("0.01", "0.02")]


def _left(settings: Settings, folder: Path) -> object:
    """The sessions that `collect` leaves of three of 1 MB, made a day apart; the last is of today."""
    now = datetime(2026, 5, 10, tzinfo=UTC)
    store = MemoryStore()
    for n in range(3):
        time = (now - n * DAY).isoformat()
        store.create(f"s{n}", created=time)
        store.append(f"s{n}", [Draft(Note("x", "x" * 1_000_000), time)])
    limits = limits_of(settings)
    if limits:
        turnlog.collect(store, limits, now=now)
    return sorted(info.id for info in store.sessions())


def _loose(settings: Settings, folder: Path) -> object:
    """The sessions that `collect` leaves unpacked of three, made a day apart; the last is of today."""
    now = datetime(2026, 5, 10, tzinfo=UTC)
    with closing(open_store(folder / "s.db")) as store:
        for n in range(3):
            store.create(f"s{n}", created=(now - n * DAY).isoformat())
            store.append(f"s{n}", [Draft(Note("x", "x" * 1_000), (now - n * DAY).isoformat())])
        limits = limits_of(settings)
        if limits:
            turnlog.collect(store, limits, now=now)
        return sorted(store.unpacked())


def _in_the_clear(settings: Settings, folder: Path) -> object:
    """Whether what is said can be read in the store's file."""
    with turnlog.open("s", settings=settings) as session:
        session.user("The launch is on Friday.")
    with turnlog.open("s", settings=settings) as session:
        assert [text_of(record.message) for record in session.history() if record.message] == [
            "The launch is on Friday."
        ]
    return b"Friday" in (folder / "turnlog" / "turnlog.db").read_bytes()


def _opened(settings: Settings, folder: Path) -> object:
    """The sessions that are left when a third one is opened, of two at most."""
    with closing(open_store(folder / "s.db")) as store:
        for name in "ab":
            store.create(name, created="2026-01-01T00:00:00.000Z")
        with turnlog.open("c", store=store, settings=settings):
            return sorted(info.id for info in store.sessions())


def _recalled(settings: Settings, folder: Path) -> object:
    """The sessions of which a model is told that asks for a word in all of them."""
    store = MemoryStore()
    for name, labels in (("s0", {"user": "ann"}), ("s1", {"user": "bob", "team": "x"}), ("s2", {"user": "cy"})):
        turnlog.open(name, store=store, labels=labels).user("I have a cough.")
    with turnlog.open("s", store=store, settings=settings, labels={"user": "ann", "team": "x"}) as session:
        call = ToolCall("c", "recall", {"query": "cough"})
        session.add(turnlog.Message("assistant", (call,)))
        told = repr(session.answer_recall(call).raw)
    return [name for name in ("s0", "s1", "s2") if f"session {name}, record" in told]


def _contradicted(session: turnlog.Session) -> object:
    """How often a session says that a result belongs to no call."""
    feed = session.events()
    with session.turn("go"):
        session.add(Message("user", (ToolResult("c9", "weather", (Text("4 degrees"),)),)))
    return sum("contradicts itself" in event.text for event in feed.waiting())


_TWO = timedelta(days=2) - timedelta(hours=1)
_AIM = {"provider": "anthropic", "model": "claude-sonnet-4-5"}
_AIM_CHAT = {"provider": "openai-chat", "model": "gpt-4o"}


def _summarised(settings: Settings, folder: Path) -> object:
    """Whether the summarizer's words stand in the view once the conversation was made smaller."""
    with turnlog.open("s", settings=settings, target=turnlog.target("openai-chat", "gpt-4o")) as session:
        session.extend([turnlog.Message("user", (turnlog.Text(f"word {n} " * 200),)) for n in range(3)])
        session.compact(keep=1)
        return "in short: all is well" in str(session.view())


def _checkpoints(session: turnlog.Session) -> object:
    """How many checkpoints an answer leaves that is streamed in three pieces."""
    deltas = [{"role": "assistant"}, {"content": "It "}, {"content": "was once upon a time"}]
    session.receive([{"choices": [{"index": 0, "delta": delta}]} for delta in deltas])
    return sum(isinstance(record.body, StreamCheckpoint) for record in session.history())


def _turns_shown(session: turnlog.Session) -> object:
    """Which of four turns a request shows."""
    for n in range(4):
        with session.turn(f"question {n}"):
            session.assistant(f"answer {n}")
    said = str(session.request().body)
    return [n for n in range(4) if f"answer {n}" in said]


EFFECTS: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[Settings, Path], object], object, object]] = {
    # key: (without it, with it, what is looked at, what that is without it, what it is with it)
    "title": ({}, {"title": "Oslo"}, _session(lambda session: session.log.title), "", "Oslo"),
    "system": (
        {},
        {"system": "Be brief."},
        _session(lambda session: [text_of(shown.message) for shown in session.view()]),
        [],
        ["Be brief."],
    ),
    "summarizer": ({}, {"summarizer": lambda prompt: "in short: all is well"}, _summarised, False, True),
    "checkpoint": (_AIM_CHAT, {**_AIM_CHAT, "checkpoint": 0}, _session(_checkpoints), 0, 2),
    "check": (_AIM_CHAT, {**_AIM_CHAT, "check": "warn"}, _session(_contradicted), 0, 1),
    "source": ({}, {"source": "interactive"}, _session(lambda session: session.log.source), "", "interactive"),
    "store": ({}, {"store": "PATH/own.db"}, _stored, {"turnlog.db"}, {"own.db"}),
    "durability": ({}, {"durability": "full"}, _session(_synchronous), 1, 2),
    "key": ({}, {"key": "env:TEST_KEY"}, _in_the_clear, True, False),
    "save_history": ({}, {"save_history": False}, _stored, {"turnlog.db"}, set()),
    "owner": ({}, {"owner": "team"}, _recalled, ["s0"], ["s1"]),
    "provider": (
        {**_AIM, "provider": "openai-chat"},
        _AIM,
        _session(lambda session: session.target and session.target.provider),
        "openai-chat",
        "anthropic",
    ),
    "model": (
        {**_AIM, "model": "claude-opus-4-8"},
        _AIM,
        _session(lambda session: session.target and session.target.model),
        "claude-opus-4-8",
        "claude-sonnet-4-5",
    ),
    "budget": (
        _AIM,
        {**_AIM, "budget": 5_000},
        _session(lambda session: session.configuration.budget),
        None,
        Budget(max_tokens=5_000),
    ),
    "strategy": (
        _AIM,
        {**_AIM, "strategy": "mask"},
        _session(lambda session: session.configuration.strategy and session.configuration.strategy.name),
        None,
        "mask",
    ),
    "summary_timeout": ({"summary_timeout": 0.02}, {"summary_timeout": 0.01}, _patience, [False, True], [True, False]),
    "redact": (
        {},
        {"redact": False},
        _session(_recorded),
        "It is EMP-004711, password=[redacted:password]",
        "It is EMP-004711, password=hunter2-Xk93",
    ),
    "redact_patterns": (
        {},
        {"redact_patterns": {"staff": "EMP-[0-9]+"}},
        _session(_recorded),
        "It is EMP-004711, password=[redacted:password]",
        "It is [redacted:staff], password=[redacted:password]",
    ),
    "sensitive_patterns": (
        {},
        {"sensitive_patterns": ["it is", "EMP-[0-9]+"]},
        _session(_recorded),
        "It is EMP-004711, password=[redacted:password]",
        "It is [redacted:sensitive], password=[redacted:password]",
    ),
    "max_history_turns": (
        _AIM,
        {**_AIM, "max_history_turns": 2},
        _session(_turns_shown),
        [0, 1, 2, 3],
        [2, 3],
    ),
    "max_age": ({}, {"max_age": _TWO}, _left, ["s0", "s1", "s2"], ["s0", "s1"]),
    "max_disk": ({}, {"max_disk": "1.5MB"}, _left, ["s0", "s1", "s2"], ["s0"]),
    "max_sessions": ({}, {"max_sessions": 2}, _left, ["s0", "s1", "s2"], ["s0", "s1"]),
    "compress_after": ({}, {"compress_after": _TWO}, _loose, ["s0", "s1", "s2"], ["s0", "s1"]),
    "gc_on_open": (
        {"max_sessions": 2},
        {"max_sessions": 2, "gc_on_open": True},
        _opened,
        ["a", "b", "c"],
        ["b", "c"],
    ),
}


@pytest.mark.parametrize("key", keys())
def test_every_key_does_something(key: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is read and does nothing fails here, and so does a new one that nobody put into the table."""
    without, given_, look, before, after = EFFECTS[key]
    found = []
    for name, values in (("without", without), ("with", given_)):
        folder = home / name
        folder.mkdir()
        monkeypatch.setenv("XDG_DATA_HOME", str(folder))
        placed = {k: v.replace("PATH", str(folder)) if isinstance(v, str) else v for k, v in values.items()}
        found.append(look(Settings(**placed), folder))
    assert found == [before, after]
    assert before != after


IN_FILES = [key for key, about in keys().items() if about.in_files]


@pytest.mark.parametrize("key", sorted({*keys()} - {*IN_FILES}))
def test_what_only_a_program_knows_stands_in_no_file(key: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file cannot hold a function, and one that somebody else wrote must not say what a model is told to do."""
    said = f"{key} is given by a program alone: load_settings\\({key}=...\\)"
    for places in ({"user": f"{key} = 'x'"}, {"project": f"{key} = 'x'"}):
        write(home, **places)
        with pytest.raises(InputError, match=rf"\.toml: {said}"):
            turnlog.load_settings()
    write(home)
    monkeypatch.setenv(f"TURNLOG_{key.upper()}", "x")
    with pytest.raises(InputError, match=f"TURNLOG_{key.upper()}: {said}"):
        turnlog.load_settings()


def test_settings_that_were_loaded_are_right_for_any_store(home: Path) -> None:
    """A project whose file says `redact = false` of its own store has secrets kept in another, through settings that
    were loaded before it was known which."""
    write(home, project="store = 'own.db'\nredact = false\nstrategy = 'mask'")
    loaded_before = turnlog.load_settings(checkpoint=3)
    assert (loaded_before.redact, loaded_before.strategy) == (False, "mask")
    for store, secret in ((None, "hunter2-Xk93"), (home / "other.db", "[redacted:password]")):
        for settings in (None, loaded_before):
            with turnlog.open(store=store, settings=settings) as session:
                assert secret in str(_recorded(session))


# -- which place wins --------------------------------------------------------------------------------

# values of each key, as a file spells them, and as the environment does
SPELLED: dict[str, tuple[tuple[str, str], ...]] = {
    "durability": (('"full"', "full"), ('"normal"', "normal")),
    "checkpoint": (("3", "3"), ("inf", "inf")),
    "source": (('"interactive"', "interactive"), ('"non-interactive"', "non-interactive")),
    "save_history": (("false", "off"), ("true", "1")),
    "owner": (('"team"', "team"), ('"staff"', "staff")),
    "budget": (("5000", "5000"), ("{max_tokens = 7, goal = 0.3}", "{max_tokens = 7, goal = 0.3}")),
    "strategy": (('"mask"', "mask"), ('"sliding"', "sliding")),
    "summary_timeout": (("2", "2"), ('"1min"', "1min")),
    "key": (('"env:ONE"', "env:ONE"), ('"passphrase-env:TWO"', "passphrase-env:TWO")),
    "redact": (("false", "no"), ("true", "yes")),
    "max_age": (('"30d"', "30d"), ('"none"', "none")),
    "max_disk": (('"500MB"', "500MB"), ('"none"', "none")),
    "max_history_turns": (("7", "7"), ('"none"', "none")),
    "max_sessions": (("3", "3"), ('"none"', "none")),
    "compress_after": (('"30d"', "30d"), ('"none"', "none")),
    "gc_on_open": (("true", "true"), ("false", "false")),
    "store": (('"one.db"', "one.db"), ('"files:two"', "files:two")),
}


@pytest.mark.parametrize("key", SPELLED)
def test_places_win_in_their_order(key: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the user over the project's, a file over the environment, or anything over an argument."""
    (one, as_one), (two, as_two) = SPELLED[key]
    mark = 'store = "x.db"\n' if keys()[key].of_store else ""  # what a project has to say first

    def now(**arguments: Any) -> tuple[object, str]:
        found = loaded(arguments)
        return getattr(found.settings, key), found.origins[key].split()[0]

    usual = now()
    assert usual == (getattr(Settings(), key), "default")
    write(home, user=f"{key} = {one}")
    first = now()
    assert first[1] == "user"
    write(home, user=f"{key} = {one}", project=f"{mark}{key} = {two}")
    second = now()
    assert second[1] == "project"
    assert first[0] != second[0]
    monkeypatch.setenv(f"TURNLOG_{key.upper()}", as_one)
    third = now()
    assert third[1] == f"TURNLOG_{key.upper()}"
    assert third[0] == first[0] or key == "store"  # a file names it from its own folder
    monkeypatch.setenv(f"TURNLOG_{key.upper()}", as_two)
    assert now()[0] == second[0] or key == "store"
    given_ = getattr(Settings(), key) if getattr(Settings(), key) is not None else first[0]
    assert now(**{key: given_}) == (given_, "argument")
    assert now(**{key: None})[1] == f"TURNLOG_{key.upper()}"


def test_who_has_no_home_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container's user without a name, where HOME is not set: whatever asked for a file of the user's ended in a
    RuntimeError, of a target or a conversion too."""

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA", "TURNLOG_CONFIG", "TURNLOG_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", nobody)
    assert user_file() == Path(os.sep, ".config", "turnlog", "config.toml")
    assert default_path().parts[:2] == (os.sep, ".local")
    assert own_file().name == "models.json"


def test_patterns_of_all_places_are_put_together(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project that adds a pattern and thereby takes away the user's own, or puts another in its place."""
    write(home, user='redact_patterns = {a = "a+", b = "b+"}', project='redactPatterns = {b = "B", c = "c"}')
    monkeypatch.setenv("TURNLOG_REDACT_PATTERNS", '{d = "d"}')
    assert turnlog.load_settings().redact_patterns == {"a": "a+", "b": "b+", "c": "c", "d": "d"}


def test_a_file_names_a_store_from_its_own_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is somewhere else in every folder that a program is started in."""
    write(home, user='store = "sqlite:///logs/all.db"')
    assert turnlog.load_settings().store == f"sqlite:///{user_file().parent}/logs/all.db"
    write(home, project='store = "files:logs"')
    assert turnlog.load_settings().store == f"files:{home}/project/logs"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TURNLOG_STORE", "~/x.db")
    assert turnlog.load_settings().store == f"{home}/x.db"


def test_a_projects_file_is_that_of_its_working_tree(home: Path) -> None:
    """A file of another project above it, or none where the working directory is a folder of a project."""
    deep = home / "project" / "src" / "deep"
    deep.mkdir(parents=True)
    write(home, project="durability = 'full'")
    assert project_file(deep) is None  # who knows whose folders these are
    (home / "project" / ".git").mkdir()
    assert project_file(deep) == home / "project" / "turnlog.toml"
    (deep / "turnlog.toml").write_text("")
    assert project_file(deep) == deep / "turnlog.toml"


def test_a_file_names_a_key_from_its_own_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is another one, or none, in every folder that a program is started in."""
    write(home, user='key = "file:own.key"')
    assert turnlog.load_settings().key == f"file:{user_file().parent}/own.key"
    write(home, user='key = "passphrase-file:~/words"')
    monkeypatch.setenv("HOME", str(home))
    assert turnlog.load_settings().key == f"passphrase-file:{home}/words"
    write(home, user='key = "env:KEY"')
    assert turnlog.load_settings().key == "env:KEY"


@pytest.mark.parametrize(
    "line",
    [
        "key = 'env:K'",
        "compress_after = '1d'",
        "gc_on_open = true",
        "max_age = '1d'",
        "max_sessions = 1",
        "redact = false",
    ],
)
def test_a_project_says_nothing_of_the_users_store(line: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever enters a folder that others wrote, and has sessions deleted or secrets kept by what stands there."""
    write(home, project=line)
    with pytest.raises(InputError, match=r"turnlog\.toml: .*only for the project's own store; name one"):
        turnlog.load_settings()
    write(home, project=f"store = '../../other.db'\n{line}")
    with pytest.raises(InputError, match="allowed: a place inside the project's folder"):
        turnlog.load_settings()
    write(home, project=f"store = 'mine.db'\n{line}")
    assert turnlog.load_settings() != Settings(store=f"{home}/project/mine.db")
    monkeypatch.setenv("TURNLOG_STORE", str(home / "other.db"))
    assert turnlog.load_settings() == Settings(store=f"{home}/other.db")


@pytest.mark.parametrize("given_", [str, Path, lambda path: closing(open_store(path))], ids=["str", "Path", "Store"])
def test_a_project_says_nothing_of_a_store_that_is_given(given_: Callable[[Path], Any], home: Path) -> None:
    """Secrets that are stored, and sessions that go, because of a folder that a program happened to be started in."""
    other = home / "other.db"
    with closing(open_store(other)) as store:
        for name in "abc":
            store.create(name, created="2026-01-01T00:00:00.000Z")
    write(home, project="store = 'mine.db'\nredact = false\nmax_sessions = 1\nmax_age = '1d'\ngc_on_open = true")
    with ExitStack() as stack:
        place = given_(other)
        place = stack.enter_context(place) if isinstance(place, closing) else place
        with turnlog.open("d", store=place) as session:
            assert _recorded(session) == "It is EMP-004711, password=[redacted:password]"
        with pytest.raises(InputError, match="no limit is set"):
            turnlog.collect(place)
    with closing(open_store(other)) as store:
        assert sorted(info.id for info in store.sessions()) == ["a", "b", "c", "d"]
    with turnlog.open("d") as session:  # in its own store, what the project says does count
        assert _recorded(session) == "It is EMP-004711, password=hunter2-Xk93"


LINKS = ["files:log/sessions", "files:log/blobs", "files:log/sessions/a.jsonl", "files:log/turnlog.json"] + [
    f"mine.db{end}" for end in ("-blobs", "-open", "-wal", "-open/a")
]


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("link", LINKS)
def test_a_projects_store_leads_nowhere_else(link: str, home: Path) -> None:
    """A store in a folder that others wrote which is the user's own, by links inside or beside it."""
    (home / "theirs").mkdir()
    store = "files:log" if link.startswith("files:") else "mine.db"
    write(home, project=f"store = '{store}'\nmax_sessions = 1\ngc_on_open = true")
    at = home / "project" / link.removeprefix("files:")
    at.parent.mkdir(parents=True, exist_ok=True)
    at.symlink_to(home / "theirs")
    before = sorted(home.rglob("*"))
    for use in (turnlog.load_settings, turnlog.collect, lambda: turnlog.open("s")):
        with pytest.raises(InputError) as raised:
            use()
        assert f"turnlog.toml: store: {at} leads out of the project's folder" in str(raised.value)
    assert sorted(home.rglob("*")) == before


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_links_inside_a_project_are_its_own_matter(home: Path) -> None:
    """A project that is refused its own store because its parts lie in several of its folders."""
    (home / "project" / "parts").mkdir()
    (home / "project" / "log").mkdir()
    (home / "project" / "log" / "sessions").symlink_to(home / "project" / "parts")
    write(home, project="store = 'files:log'")
    with turnlog.open("s") as session:
        session.user("hello")
    assert (home / "project" / "parts" / "s.jsonl").exists()
    (home / "project" / "parts" / "t.jsonl").symlink_to(home / "t.jsonl")
    with pytest.raises(InputError, match=r"log/sessions/t\.jsonl leads out"):
        turnlog.open("s")


# -- mistakes ----------------------------------------------------------------------------------------

BAD: dict[str, str] = {
    "max_dsik = 1": "there is no key 'max_dsik'; did you mean 'max_disk'?",
    "saveHistroy = false": "there is no key 'saveHistroy'; did you mean 'save_history'?",
    "zzz = 1": "there is no key 'zzz'; there are store, durability",
    "maxDisk = '5B'\nmax_disk = '6B'": "max_disk is set twice",
    "max_age = 30": "max_age: 30 is not allowed; allowed: an age such as 30d",
    "max_age = '30'": "max_age: '30' is not allowed; allowed: an age such as 30d",
    "max_age = '0d'": "max_age: '0d' is not allowed; allowed: an age",
    "max_disk = '5 apples'": "max_disk: '5 apples' is not allowed; allowed: a size such as 500MB",
    "max_disk = '1000'": "max_disk: '1000' is not allowed; allowed: a size such as 500MB",
    "max_disk = 1000": "max_disk: 1000 is not allowed; allowed: a size such as 500MB",
    "max_disk = true": "max_disk: True is not allowed; allowed: a size",
    "max_sessions = 0": "max_sessions: 0 is not allowed; allowed: a whole number, at least 1",
    "save_history = 'yes'": "save_history: 'yes' is not allowed; allowed: true or false",
    "durability = 'ful'": "durability: 'ful' is not allowed; allowed: `normal` or `full`",
    "strategy = 'maks'": "did you mean 'mask'?",
    "budget = {max_token = 3}": "no field 'max_token'; did you mean 'max_tokens'?",
    "summary_timeout = 0": "summary_timeout: 0 is not allowed; allowed: seconds",
    "redact_patterns = {a = '('}": "the pattern for 'a' is not a regular expression",
    "redact_patterns = 'x'": "redact_patterns: 'x' is not allowed; allowed: a table",
    "provider = 'openai'\nmodel='x'": "provider: 'openai' is not allowed; allowed: `openai-chat`",
    "model = 'gpt-4o'": "model: found 'gpt-4o', but no `provider`; set both, or neither",
    'store = "\\u0000"': r"store: '\x00' contains a NUL",
    "store = '~no-such-user/x'": "store: '~no-such-user/x' names the home folder of a user that does not exist",
    f"redact_patterns = {{a = '{'(' * 5000}'}}": "the pattern for 'a' is not a regular expression",
    f"redact_patterns = {{a = 'a{{{'9' * 30}}}'}}": "the pattern for 'a' is not a regular expression",
    "store = 5": "store: 5 is not allowed; allowed: a file",
    "key = '5up3r-53cr3t'": "key: the value given (not shown, as it may be a secret) is not allowed; allowed",
    "compress_after = 7": "compress_after: 7 is not allowed; allowed: an age",
    "x": "not TOML: ",
    "x = '\xff'": "not TOML: ",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", BAD)
def test_a_mistake_in_a_file_says_where_and_what(text: str, home: Path) -> None:
    """A mistake that is passed over, or told without the file, the key, what was found and what is allowed."""
    user_file().write_bytes(text.encode("latin-1"))
    if len(text) > 1_000:  # it goes to the limit of recursion: nothing that other tests left can be finalized there
        gc.collect()
    with pytest.raises(InputError) as raised:
        turnlog.load_settings()
    assert str(raised.value).removeprefix("user file ").startswith(f"{user_file()}: ")
    assert BAD[text] in str(raised.value)


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("TURNLOG_MAX_DISK", "lots", "TURNLOG_MAX_DISK: max_disk: 'lots' is not allowed; allowed: a size"),
        ("TURNLOG_SAVE_HISTORY", "never", "TURNLOG_SAVE_HISTORY: save_history: 'never' is not allowed; allowed: true"),
        ("TURNLOG_REDACT_PATTERNS", "{a", "TURNLOG_REDACT_PATTERNS: redact_patterns: '{a' is not allowed; allowed: a"),
        (
            "TURNLOG_SAVE_HISTROY",
            "0",
            "variable TURNLOG_SAVE_HISTROY is set, but turnlog has no such setting; did you mean TURNLOG_SAVE_HISTORY?",
        ),
        (
            "TURNLOG_HISTORY_SAVE_HISTORY",
            "false",
            "HISTORY_SAVE_HISTORY is set, but turnlog has no such setting; did you mean TURNLOG_SAVE_HISTORY?",
        ),
        ("TURNLOG_HISTORY_MAX_SIZE", "1000", "did you mean TURNLOG_MAX_HISTORY_TURNS?"),
        ("TURNLOG_HISTORY", "{save_history = false}", "did you mean TURNLOG_SAVE_HISTORY?"),
        ("TURNLOG_MAXSIZE", "1000", "did you mean TURNLOG_MAX_DISK?"),
        (
            "TURNLOG_Save_History",
            "0",
            "variable TURNLOG_Save_History is set, but turnlog has no such setting; did you mean TURNLOG_SAVE_HISTORY?",
        ),
        (
            "turnlog_config",
            "x",
            "variable turnlog_config is set, but turnlog has no such setting; did you mean TURNLOG_CONFIG?",
        ),
        ("TURNLOG_CONFIG", "/no/such/file", "TURNLOG_CONFIG names this file"),
        ("TURNLOG_CONFIG", "~no-such-user/x", "TURNLOG_CONFIG: '~no-such-user/x' names the home folder"),
        ("TURNLOG_STORE", "~no-such-user/x", "TURNLOG_STORE: store: '~no-such-user/x' names the home folder"),
        ("TURNLOG_REDACT_PATTERNS", "[" * 9_999, "TURNLOG_REDACT_PATTERNS: redact_patterns: '[["),
    ],
)
def test_a_mistake_in_the_environment_says_which_variable(
    name: str, text: str, said: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A history that is kept because a variable was mistyped."""
    monkeypatch.setenv(name, text)
    with pytest.raises(InputError) as raised:
        turnlog.load_settings()
    assert said in str(raised.value)


def test_what_says_nothing_is_no_mistake(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables that are empty, or of other programs and versions, that keep turnlog from working."""
    monkeypatch.setenv("TURNLOG_MAX_DISK", "")
    monkeypatch.setenv("TURNLOG_MAX_SIZE", "")
    monkeypatch.setenv("TURNLOG_HOLOGRAM", "7")
    monkeypatch.setenv("TURNLOG_MODELS", "models.json")
    assert loaded().settings == Settings()
    assert "TURNLOG_HOLOGRAM" in unknown_variables()
    assert "TURNLOG_MODELS" not in unknown_variables()


def test_a_mistake_in_an_argument_names_it() -> None:
    """A wrong argument of `Settings` or `load_settings` that is taken, or not named."""
    with pytest.raises(InputError, match="max_disk: 'x'"):
        Settings(max_disk="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="argument: there is no key 'max_dsik'"):
        turnlog.load_settings(max_dsik=1)


# -- spelling ----------------------------------------------------------------------------------------


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(map(str.capitalize, others))


@pytest.mark.parametrize("key", IN_FILES)
def test_keys_in_camel_case_are_the_same_keys(key: str, home: Path) -> None:
    """maxDisk and saveHistory, as other programs spell them, that are refused or do nothing."""
    value = _toml(_plain(key, Settings(**EFFECTS[key][1])))
    both = "".join(f"{k} = {_toml(v)}\n" for k, v in EFFECTS[key][1].items() if k in _AIM and k != key)
    user_file().write_text(f"{_camel(key)} = {value}\n{both}", "utf-8")
    found = loaded()
    assert found.origins[key].startswith("user file")
    assert _plain(key, found.settings) == _plain(key, Settings(**EFFECTS[key][1])) or key == "store"


_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=20)
_VALUES: dict[str, SearchStrategy[Any]] = {
    "save_history": st.booleans(),
    "max_age": st.none() | st.timedeltas(timedelta(microseconds=1), timedelta(days=9_999)),
    "max_disk": st.none() | st.integers(1, 2**62),
    "max_history_turns": st.none() | st.integers(1, 2**62),
    "sensitive_patterns": st.lists(st.text("abc _-", min_size=1).map(lambda word: f"x{word}")).map(tuple),
    "max_sessions": st.none() | st.integers(1, 2**62),
    "redact_patterns": st.dictionaries(st.from_regex("[a-z0-9]{1,9}", fullmatch=True), _TEXTS.map(re.escape)),
    "summary_timeout": st.floats(0.001, 1e6),
    "checkpoint": st.floats(0, allow_nan=False),
}


@given(st.fixed_dictionaries({}, optional=_VALUES))
def test_what_config_prints_is_a_configuration(values: dict[str, Any]) -> None:
    """`turnlog config > config.toml` that does not say what held before."""
    import tomllib

    settings = Settings(**values)
    plain = {key: _plain(key, settings) for key in IN_FILES}
    text = "\n".join(f"{key} = {_toml(value)}" for key, value in plain.items() if value is not None)
    assert turnlog.load_settings(**tomllib.loads(text)) == settings
    assert all(isinstance(tomllib.loads(text).get(key, ""), str) for key in ("max_disk", "max_age"))  # with a unit


@given(st.timedeltas(timedelta(microseconds=1), timedelta(days=99_999)))
def test_ages_are_read_as_they_are_shown(age: timedelta) -> None:
    """An age that is another one after it was written down."""
    assert abs(read_age(age_text(age)) - age) <= timedelta(microseconds=1)


@pytest.mark.parametrize(
    "text, size",
    [("1B", 1), ("500MB", 500_000_000), ("2 GiB", 2 << 30), ("1.5kb", 1500), ("7k", 7000), ("3TB", 3 * 10**12)],
)
def test_sizes_are_read_in_every_unit(text: str, size: int) -> None:
    """A limit that is a thousand times too small or too large."""
    assert read_size(text) == size
    assert read_size(exact_size(size)) == size


@pytest.mark.parametrize("limit", ["max_disk", "max_age"])
def test_a_limit_beyond_all_numbers_is_named(limit: str) -> None:
    """An OverflowError of Python's own in the place of what is wrong, and where."""
    with pytest.raises(turnlog.InputError, match=f"{limit}: .* is not allowed"):
        turnlog.Limits(**{limit: "9" * 400 + (".0GB" if limit == "max_disk" else ".0d")})


@pytest.mark.parametrize("text, age", [("90s", 90), ("2min", 120), ("1.5h", 5400), ("30d", 2_592_000), ("1w", 604_800)])
def test_ages_are_read_in_every_unit(text: str, age: float) -> None:
    """A limit of days that is taken for one of seconds."""
    assert read_age(text).total_seconds() == age


# -- sessions that are not saved ---------------------------------------------------------------------


def test_a_session_that_is_not_saved_leaves_nothing_on_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`save_history = false` that makes a store, or writes to the one that is there; by every place that can say it."""
    monkeypatch.setenv("TURNLOG_SAVE_HISTORY", "false")
    with turnlog.open("s", target=turnlog.target("openai-chat", "gpt-4o")) as session:
        session.user("hello")
        session.media(b"picture" * 20_000, "image/png")
        fork = session.fork("t")
        fork.user("more")
        assert len(session.request().view) > 0
    assert [path for path in home.rglob("*") if path.is_file()] == []
    monkeypatch.delenv("TURNLOG_SAVE_HISTORY")
    with turnlog.open("s", store=home / "x.db", settings=turnlog.Settings(save_history=False)) as session:
        session.user("hello")
    with turnlog.open("s", store=f"files:{home}/x", settings=Settings(save_history=False)) as session:
        session.user("hello")
    assert [path for path in home.rglob("*") if path.is_file()] == []
    monkeypatch.setenv("TURNLOG_SAVE_HISTORY", "false")
    with turnlog.open("s", store=home / "x.db", settings=turnlog.load_settings(save_history=True)) as session:
        session.user("hello")
    assert (home / "x.db").exists()


@pytest.mark.parametrize("kind", ["", "files:"])
def test_a_saved_session_goes_on_in_memory(kind: str, home: Path) -> None:
    """A session that forgot what was said, or that wrote on, because it is not saved this time."""
    place = f"{kind}{home}/log"
    with turnlog.open("s", store=place, settings=turnlog.Settings(title="First")) as session:
        picture = session.media(b"picture", "image/png")
        session.extend([turnlog.Message("user", (turnlog.Text("hello"), picture))])
        before = session.history()
    files = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    with turnlog.open("s", store=place, settings=turnlog.Settings(save_history=False)) as session:
        assert session.history() == before
        assert session._store.get_blob(picture.sha256) == b"picture"
        session.user("more")
    with closing(open_store(place)) as store:
        with turnlog.open("s", store=store, settings=turnlog.Settings(save_history=False)) as session:
            session.user("more")
        assert [record.raw for record in store.read("s")] == [record.raw for record in before]
    assert {path: path.read_bytes() for path in files} == files


def test_the_page_lists_every_key() -> None:
    """A key that is not documented, or whose default or allowed values are others than the page says."""
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
    rows = []
    for name, key in keys().items():
        value = _plain(name, Settings())
        default = "not set" if value is None else f"`{_toml(value)}`"
        rows.append(f"| `{name}` | {key.kind.allowed} | {default} | {key.meaning} |")
    assert re.findall(r"(?m)^\| `.*$", page) == rows


def test_importing_turnlog_reads_no_configuration(home: Path) -> None:
    """A start that waits for TOML, or fails by a file of somebody's, before anything was asked for."""
    write(home, user="no TOML", project="no TOML")
    script = "import sys, turnlog; print('tomllib' in sys.modules, 'turnlog.config.settings' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users with ids")
def test_the_closed_home_of_another_user_has_no_settings(tmp_path: Path) -> None:
    """In a container that runs as another user, every session failed for a file that nobody had written."""
    (tmp_path / "turnlog").mkdir()
    (tmp_path / "turnlog").chmod(0)
    program = """
import os, turnlog
for _ in range(2):
    with turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o")) as session:
        print(session.user("hi").n)
    if os.geteuid() == 0:  # who may read everything; the modules that a session needs are loaded now
        os.setuid(65534)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": str(tmp_path)},
    )
    (tmp_path / "turnlog").chmod(0o700)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n2\n", "")
