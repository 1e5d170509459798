"""Configuration files of every kind, the table `[history]`, and the limit on disk that was called `max_size`."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import turnlog
from commands import Command
from turnlog._platform.paths import config_folder, data_folder
from turnlog.config.settings import Settings
from turnlog.errors import InputError
from turnlog.log.records import Note
from turnlog.log.store import Draft
from turnlog.session.settings import loaded, user_file
from turnlog.stores import MemoryStore


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's configuration; a project is the working directory."""
    (tmp_path / "project").mkdir()
    (tmp_path / "config" / "turnlog").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "turnlog"


def camel(key: str) -> str:
    """A key as other programs spell it."""
    first, *others = key.split("_")
    return first + "".join(map(str.capitalize, others))


# -- the limit on disk -------------------------------------------------------------------------------

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
BARE = st.integers(-10, 10**12) | FLOATS | st.booleans() | st.from_regex(r"[0-9]{1,9}", fullmatch=True)
PLACES = ("toml", "yaml", "variable", "load_settings", "Settings", "Limits")


def given_in(place: str, key: str, value: Any) -> turnlog.Limits:
    """The limits, if a key has this value in this place."""
    if place == "Limits":
        return turnlog.Limits(**{key: value})
    settings = Settings(**{key: value}) if place == "Settings" else None
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("XDG_CONFIG_HOME", home)
        (Path(home) / "turnlog").mkdir()
        if place == "variable":
            patch.setenv(f"TURNLOG_{key.upper()}", str(value))
        elif place in ("toml", "yaml"):
            text = f"{key} = {json.dumps(value)}" if place == "toml" else f"{key}: {json.dumps(value)}"
            (Path(home) / "turnlog" / f"config.{place}").write_text(text, "utf-8")
        given = {key: value} if place == "load_settings" else {}
        settings = settings or turnlog.load_settings(**given)
    return turnlog.Limits(max_disk=settings.max_disk)


@given(st.sampled_from(PLACES), st.sampled_from(("max_size", "maxSize")), BARE)
def test_a_thousand_turns_delete_nothing(place: str, key: str, value: object) -> None:
    """`maxSize = 1000`, which means turns in other programs, is taken for a thousand bytes, and every session goes."""
    key = "max_size" if place in ("variable", "Settings", "Limits") else key
    with pytest.raises(InputError) as raised:
        given_in(place, key, value)
    text = str(raised.value)
    assert f"{key}: " in text or f"TURNLOG_{key.upper()}: " in text
    assert "max_disk with a unit" in text.lower() and "max_size in the table [history]" in text


@given(st.sampled_from(PLACES), st.integers(1, 999), st.sampled_from(("B", "kB", "MB", " GB", "TiB")))
def test_a_size_with_a_unit_is_still_read_and_told(place: str, number: int, unit: str) -> None:
    """A configuration of the version before has no limit any more, or nobody is told that its key has another name."""
    value = f"{number}{unit}"
    with pytest.warns(DeprecationWarning, match=r"(?i)^(.*: )?(turnlog_)?max_size is called (turnlog_)?max_disk now"):
        old = given_in(place, "max_size", value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = given_in(place, "max_disk", value)
    assert (old, old.max_size) == (new, None)
    assert old.max_disk is not None


@given(st.sampled_from(("toml", "yaml", "variable")), BARE)
def test_outside_of_programs_a_size_has_a_unit(place: str, value: object) -> None:
    """Bytes are given where a person thinks of something else; a program may give them."""
    with pytest.raises(InputError, match=r"max_disk: .* is not allowed; allowed: a size such as 500MB"):
        given_in(place, "max_disk", value)
    assert (
        given_in("Settings", "max_disk", 1_000).max_disk
        == given_in("load_settings", "max_disk", 1_000).max_disk
        == 1_000
    )


def test_both_spellings_at_once_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two limits holds, and nobody knows which."""
    for make in (Settings, turnlog.Limits):
        with pytest.raises(InputError, match="give one of them"):
            make(max_disk=5, max_size="5B")
    (folder / "config.toml").write_text("max_size = '5B'\nmaxDisk = '6B'")
    with pytest.raises(InputError, match="max_disk is set twice"), pytest.warns(match="max_size is called"):
        turnlog.load_settings()
    (folder / "config.toml").unlink()
    monkeypatch.setenv("TURNLOG_MAX_DISK", "5B")
    monkeypatch.setenv("TURNLOG_MAX_SIZE", "5B")
    with pytest.raises(InputError, match="TURNLOG_MAX_SIZE: max_disk is set twice"):
        turnlog.load_settings()


def test_the_command_line_tells_of_the_old_name_once(turnlog: Command, tmp_path: Path) -> None:
    """A warning that Python does not print, or prints with a line of source for each place that loads settings."""
    ended = turnlog("gc", "--max-size", "1TB", "--yes", "--store", str(tmp_path / "x.db"))
    assert ended.err.splitlines()[0] == "turnlog: --max-size is called --max-disk now; it is read until 0.2"
    (tmp_path / "turnlog.toml").write_text("store = 'own.db'\nmax_size = '1TB'")
    ended = turnlog("gc", "--yes", "--store", str(tmp_path / "own.db"))
    assert ended.err.count("turnlog.toml: max_size is called max_disk now") == 1
    ended = turnlog("gc", "--max-size", "1000")
    assert ended.code == 2 and "write --max-disk with a unit" in ended.err and "[history]" in ended.err


# -- the table -------------------------------------------------------------------------------------

WORDS = st.text("abcdef", min_size=1, max_size=6)
TABLES = st.fixed_dictionaries(
    {},
    optional={
        "max_size": st.integers(1, 10**6) | st.just("none"),
        "save_history": st.booleans(),
        "sensitive_patterns": st.lists(WORDS | st.just("x[0-9]+"), max_size=3),
    },
)


@given(TABLES, st.booleans(), st.sampled_from(("toml", "yaml", "program")))
def test_the_table_of_other_programs_is_read_as_they_mean_it(table: dict[str, Any], is_camel: bool, kind: str) -> None:
    """A key of the table that does nothing, or something else."""
    said = {(camel(key) if is_camel else key): value for key, value in table.items()}
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("XDG_CONFIG_HOME", home)
        (Path(home) / "turnlog").mkdir()
        if kind != "program":
            lines = [f"{key}{' =' if kind == 'toml' else ':'} {json.dumps(value)}" for key, value in said.items()]
            head, indent = ("[history]", "") if kind == "toml" else ("history:" if said else "history: {}", "  ")
            text = "\n".join([head, *(indent + line for line in lines)])
            (Path(home) / "turnlog" / f"config.{kind}").write_text(text, "utf-8")
        found = turnlog.load_settings(**({"history": said} if kind == "program" else {}))
    turns = table.get("max_size")
    assert found == Settings(
        max_history_turns=None if turns == "none" else turns,
        save_history=table.get("save_history", True),
        sensitive_patterns=tuple(table.get("sensitive_patterns", ())),
    )


MISTAKES = {
    "[history]\nmax_sise = 1": "there is no key 'max_sise' in the table 'history'; did you mean 'max_size'?",
    "[history]\nmax_size = '2GB'": "history.max_size: '2GB' is not allowed; allowed: a whole number of turns",
    "[history]\nmaxSize = 0": "history.maxSize: 0 is not allowed; allowed: a whole number of turns",
    "[history]\nsave_history = 'yes'": "history.save_history: 'yes' is not allowed; allowed: true or false",
    "[history]\nsensitive_patterns = 'x'": "history.sensitive_patterns: 'x' is not allowed; allowed: a list of words",
    "[history]\nsensitive_patterns = ['(']": "the sensitive pattern '(' is not a regular expression",
    "[history]\nsensitive_patterns = ['x*']": "the sensitive pattern 'x*' matches an empty text",
    "save_history = true\n[history]\nsave_history = false": "save_history is set twice, also as 'history.save_history'",
    "history = 1000": "history: 1000 is not allowed; allowed: a table with max_size, save_history, sensitive_patterns",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_the_table_is_named(text: str, folder: Path) -> None:
    """A mistake that is passed over, or told under a name that nobody wrote."""
    (folder / "config.toml").write_text(text)
    with pytest.raises(InputError) as raised:
        turnlog.load_settings()
    assert str(raised.value).startswith(f"{folder / 'config.toml'}: ") and MISTAKES[text] in str(raised.value)


def test_sensitive_words_of_a_project_come_in_addition(folder: Path) -> None:
    """A project takes back what its user wants hidden."""
    (folder / "config.toml").write_text("sensitive_patterns = ['badge']")
    Path("turnlog.toml").write_text("[history]\nsensitivePatterns = ['case', 'badge']")
    assert turnlog.load_settings().sensitive_patterns == ("badge", "case")


def test_turns_are_those_of_requests_and_nothing_is_deleted(folder: Path) -> None:
    """The design's limit of turns deletes sessions, or holds for a session that began without it."""
    target = turnlog.target("openai-chat", "gpt-4o")
    with turnlog.open("old", store=str(folder / "x.db"), target=target) as session:
        assert session.configuration.strategy is None
    settings = turnlog.load_settings(history={"max_size": 2}, strategy="mask")
    with turnlog.open("new", store=str(folder / "x.db"), target=target, settings=settings) as session:
        strategy = session.configuration.strategy
        assert strategy is not None and (strategy.name, strategy.max_history_turns) == ("mask", 2)
    with turnlog.open("old", store=str(folder / "x.db"), target=target, settings=settings) as session:
        assert session.configuration.strategy is None
    store = MemoryStore()
    store.create("s", created="2020-01-01T00:00:00.000Z")
    store.append("s", [Draft(Note("x", "x" * 10_000), "2020-01-01T00:00:00.000Z")])
    with pytest.raises(InputError, match="no limit is set"):
        turnlog.collect(store, turnlog.Limits(max_disk=settings.max_disk), now=datetime.now(UTC))


# -- files -----------------------------------------------------------------------------------------

NAMES = ("config.toml", "config.yaml", "config.yml")


@given(st.sets(st.sampled_from((*NAMES, "config.json")), min_size=1), st.booleans())
def test_no_file_is_passed_over(names: set[str], is_link: bool) -> None:
    """Settings that somebody wrote, and that do nothing because another file is there too, or the ending is another."""
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("XDG_CONFIG_HOME", home)
        own = Path(home) / "turnlog"
        own.mkdir()
        for name in names:
            if is_link:
                (own / name).symlink_to(own / "nowhere")
            else:
                (own / name).write_text("")
        if len(names) == 1 and not is_link and "config.json" not in names:
            assert loaded() == loaded(environment={"TURNLOG_CONFIG": os.devnull})
            return
        if is_link and names == {"config.json"}:
            return
        with pytest.raises(InputError) as raised:
            turnlog.load_settings()
    expected = {"config.json"} if "config.json" in names and not is_link else names - {"config.json"}
    assert [name for name in expected if str(own / name) not in str(raised.value)] == []


@pytest.mark.parametrize("name", ["turnlog.json", ".turnlog.toml", ".turnlog.yaml", ".turnlog.yml"])
def test_a_file_that_is_nearly_a_projects_is_named(folder: Path, name: str) -> None:
    """`save_history = false` in a hidden file, which does nothing; or a store's own `turnlog.json` is taken for one."""
    Path(name).write_text("{}")
    with pytest.raises(InputError, match=rf"{name} is not read: write its settings to .*turnlog\.toml"):
        turnlog.load_settings()
    Path(name).unlink()
    turnlog.stores.open_store("files:.").close()
    assert Path("turnlog.json").exists() and turnlog.load_settings().save_history


@pytest.mark.parametrize("name", ["turnlog.toml", "turnlog.yaml"])
def test_the_name_of_a_projects_file_is_not_that_of_the_users(folder: Path, name: str) -> None:
    """The user's settings under the name that a project's file has, which do nothing."""
    own = user_file()
    own.parent.mkdir(parents=True, exist_ok=True)
    (own.parent / name).write_text("")
    with pytest.raises(InputError, match=rf"{name} is not read: write its settings to .*config\.toml"):
        turnlog.load_settings()


def test_two_files_of_a_project_are_refused(folder: Path) -> None:
    """A project's second file is passed over."""
    Path("turnlog.yaml").write_text("strategy: mask")
    assert turnlog.load_settings().strategy == "mask"
    Path("turnlog.toml").write_text("")
    with pytest.raises(InputError, match=r"turnlog\.toml and .*turnlog\.yaml both exist"):
        turnlog.load_settings()


def test_yaml_without_its_parser_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings in YAML do nothing where PyYAML is not installed."""
    (folder / "config.yaml").write_text("save_history: false")
    assert turnlog.load_settings().save_history is False
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match=r"config\.yaml: reading it needs PyYAML, .*config\.toml"):
        turnlog.load_settings()


YAML = {
    "- 1": "expected keys with a value each",
    "5: 6": "expected keys with a value each",
    "save_history: true\nsave_history: false": "save_history is set twice",
    "history:\n  max_size: 5\n  max_size: 6": "max_size is set twice",
    "a: &x [1]\nb: *x": "aliases (*name) are not read here",
    "a: [": "not YAML: ",
    "a: !!python/object/apply:os.getcwd []": "not YAML: ",
    "max_age: 2026-01-01": "max_age: datetime.date(2026, 1, 1) is not allowed; allowed: an age",
    "[" * 1_100: "not YAML: ",
}


@pytest.mark.parametrize("text", YAML)
def test_a_mistake_in_yaml_is_named(text: str, folder: Path) -> None:
    """YAML that is read otherwise than it looks, that runs code, or that ends in an error of its parser."""
    (folder / "config.yaml").write_text(text)
    with pytest.raises(InputError) as raised:
        turnlog.load_settings()
    assert str(raised.value).startswith(f"{folder / 'config.yaml'}: ") and YAML[text] in str(raised.value)


@pytest.mark.skipif(os.name == "nt", reason="other variables count there")
@given(st.sampled_from(("", ".", "config", "./x", "~/config", "../up")))
def test_relative_folders_and_those_of_windows_are_ignored(relative: str) -> None:
    """The store is another one in each working directory, or the one of Windows under WSL."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, relative)
        for name in ("APPDATA", "LOCALAPPDATA"):
            patch.setenv(name, "/mnt/c/Users/ann")
        usual = Path.home() / ".config" / "turnlog", Path.home() / ".local" / "share" / "turnlog"
        assert (config_folder(), data_folder()) == usual
        patch.setenv("XDG_CONFIG_HOME", "/etc/own")
        assert user_file().parent == Path("/etc/own/turnlog")
