"""`turnlog gc`, `keep` and `config`, and what settings do to other commands."""

from __future__ import annotations

import io
import json
import sys
import tomllib
from contextlib import closing
from pathlib import Path

import pytest

import turnlog as package
from commands import Command
from turnlog.cli import main
from turnlog.log.records import Note
from turnlog.log.store import Draft
from turnlog.session.settings import user_file
from turnlog.stores import new_key, open_store


@pytest.fixture
def six(turnlog: Command, tmp_path: Path) -> Command:
    """A store of six sessions of 100 kB, of a year each: s0 of 2020 to s5 of 2025."""
    with closing(open_store(tmp_path / "log.db")) as store:
        for n in range(6):
            time = f"202{n}-01-01T00:00:00.000Z"
            store.create(f"s{n}", title=f"Year {n}", created=time)
            store.append(f"s{n}", [Draft(Note("x", "x" * 100_000), time)])
    return turnlog


def left(turnlog: Command) -> list[str]:
    """The sessions that there are."""
    return sorted(row["id"] for row in turnlog("ls", "--json").rows)


@pytest.mark.parametrize(
    "words, gone, why",
    [
        (("--max-sessions", "4"), ["s0", "s1"], "more than 4 sessions"),
        (("--max-disk", "540kB"), ["s0", "s1"], "more than 540 kB"),
        (("--older-than", "1w"), ["s0", "s1", "s2", "s3", "s4", "s5"], "older than 1w"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_each_option_deletes_what_it_is_about(
    six: Command, words: tuple[str, ...], gone: list[str], why: str, dry: bool
) -> None:
    """An option of `gc` that does nothing, deletes others, or deletes in a dry run."""
    ended = six("gc", *words, *(["--dry-run"] if dry else ["--yes"]))
    assert ended.code == 0
    rows = ended.out.splitlines()
    assert rows[0].split() == ["ID", "UPDATED", "SIZE", "WHY", "TITLE"]
    assert [row.split()[0] for row in rows[1:]] == gone
    assert all(why in row for row in rows[1:])
    assert "Year 0" in rows[1]
    assert f"{len(gone)} sessions {'would be deleted, about' if dry else 'deleted,'}" in ended.err
    assert left(six) == [name for name in ("s0", "s1", "s2", "s3", "s4", "s5") if dry or name not in gone]


def test_an_option_comes_before_the_configuration(six: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A configured limit that an option cannot change, or an option that takes the others away."""
    monkeypatch.setenv("TURNLOG_MAX_SESSIONS", "2")
    ended = six("gc", "--dry-run", "--json")
    assert [gone["session"] for gone in ended.rows[0]["gone"]] == ["s0", "s1", "s2", "s3"]
    ended = six("gc", "--dry-run", "--json", "--max-sessions", "5")
    assert [gone["session"] for gone in ended.rows[0]["gone"]] == ["s0"]
    ended = six("gc", "--dry-run", "--json", "--max-disk", "1TB")
    assert len(ended.rows[0]["gone"]) == 4


def test_json_says_all(six: Command) -> None:
    """A figure that a program which calls `gc` does not get."""
    [found] = six("gc", "--max-sessions", "5", "--json", "--yes").rows
    assert set(found) == {"dry_run", "gone", "spared", "before", "after", "swept", "over", "compressed"}
    assert found["gone"][0].keys() == {"session", "title", "updated", "records", "size", "why"}
    assert found["before"] - found["after"] >= 90_000


def test_nobody_is_asked_nothing_is_deleted(six: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that are deleted though nobody was asked. What is asked: tests/cli/test_cli_asked.py."""
    ended = six("gc", "--max-sessions", "1")
    assert (ended.code, len(left(six))) == (2, 6)
    assert "add --yes" in ended.err

    class Person(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Person("y\n"))
    assert main(["gc", "--max-sessions", "1"]) == 2  # nobody would see the question: stderr leads elsewhere
    with closing(open_store(tmp_path / "log.db")) as store:
        assert len(store.sessions()) == 6


def test_without_limits_or_a_store_it_says_so(turnlog: Command, six: Command, tmp_path: Path) -> None:
    """A `gc` that is silent where there is nothing that it could do."""
    ended = six("gc")
    assert (ended.code, ended.out) == (2, "")
    assert "no limit is set: give --older-than" in ended.err
    ended = six("gc", "--max-sessions", "1", "--store", "absent.db")
    assert (ended.code, ended.out) == (0, "")
    assert "there is no store at absent.db" in ended.err
    assert not (tmp_path / "absent.db").exists()
    for words in (
        ("--older-than", "30"),
        ("--max-disk", "0B"),
        ("--max-disk", "1000"),
        ("--max-size", "1000"),
        ("--max-sessions", "0"),
        ("--max-sessions", "x"),
    ):
        assert six("gc", *words, "--yes").code == 2
    assert len(left(six)) == 6


def test_kept_sessions_stay(six: Command) -> None:
    """A session that was to be kept and went; or one that stays after it was let go."""
    assert six("keep", "s0", "s1").code == 0
    assert six("keep", "s1", "--undo").code == 0
    ended = six("gc", "--older-than", "1d", "--yes")
    assert left(six) == ["s0"]
    assert "s0 stays: it is protected from gc" in ended.err
    assert six("keep", "s0", "nobody").code == 4


def test_a_session_in_use_stays_and_is_named(six: Command, tmp_path: Path) -> None:
    """A session that goes while a program has it open."""
    with package.open("s3", store=tmp_path / "log.db"):
        ended = six("gc", "--older-than", "1d", "--yes")
        assert "s3 stays: it is in use" in ended.err
        assert left(six) == ["s3"]


def test_a_limit_that_cannot_be_kept_is_said(six: Command) -> None:
    """A store that is still too large, and nobody is told."""
    six("keep", "s0", "s1", "s2")
    ended = six("gc", "--max-sessions", "1", "--max-disk", "1kB", "--yes")
    assert ended.code == 0
    assert "max_sessions is still exceeded" in ended.err
    assert "max_disk is still exceeded" in ended.err


# -- config ------------------------------------------------------------------------------------------


def test_config_prints_what_holds_and_whence(turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is not the one in force, or the wrong place; and output that is no configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user_file().parent.mkdir(parents=True)
    user_file().write_text("maxAge = '30d'\nredact_patterns = {a = 'b\"+'}\n")
    monkeypatch.setenv("TURNLOG_MAX_SESSIONS", "7")
    (tmp_path / "turnlog.toml").write_text("durability = 'full'")
    ended = turnlog("config", "--store", "x.db")
    assert f'max_age = "30d"  # user file {user_file()}' in ended.out.splitlines()
    assert f'durability = "full"  # project file {tmp_path}/turnlog.toml' in ended.out.splitlines()
    assert "max_sessions = 7  # TURNLOG_MAX_SESSIONS" in ended.out.splitlines()
    assert 'store = "x.db"  # argument' in ended.out.splitlines()
    assert "# max_disk is not set  # default" in ended.out.splitlines()
    assert tomllib.loads(ended.out)["redact_patterns"] == {"a": 'b"+'}
    rows = {row["key"]: row for row in turnlog("config", "--json").rows}
    assert rows["max_age"]["value"] == "30d"
    assert rows["max_age"]["from"] == f"user file {user_file()}"
    assert rows["max_disk"] == {**rows["max_disk"], "value": None, "from": "default"}


def test_config_says_where_the_files_are(turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who does not find out which file to write."""
    named = tmp_path / "mine.toml"
    monkeypatch.setenv("TURNLOG_CONFIG", str(named))
    ended = turnlog("config", "--path")
    assert (ended.out, ended.err) == (f"{named}\n", f"{named} does not exist yet\n")
    named.write_text("")
    (tmp_path / "turnlog.toml").write_text("")
    assert turnlog("config", "--path").out == f"{named}\n{tmp_path}/turnlog.toml\n"
    assert turnlog("config", "--path", "--json").rows == [
        {"kind": "user", "path": str(named), "exists": True},
        {"kind": "project", "path": f"{tmp_path}/turnlog.toml", "exists": True},
    ]


@pytest.mark.parametrize("words", [("config",), ("ls",), ("gc", "--yes"), ("import", "-")])
def test_a_mistake_ends_every_command_with_its_place(turnlog: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A traceback, or a command that goes on as if nothing had been configured."""
    (tmp_path / "turnlog.toml").write_text("saveHistroy = false")
    ended = turnlog(*words)
    assert (ended.code, ended.out) == (2, "")
    assert f"{tmp_path}/turnlog.toml: there is no key 'saveHistroy'; did you mean 'save_history'?" in ended.err


def _imported(turnlog: Command, tmp_path: Path, text: str, *words: str) -> str:
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}
    (tmp_path / "body.json").write_text(json.dumps({"session_id": "s", "request": body}))
    assert turnlog("import", "body.json", *words).code == 0
    return turnlog("show", "s", "--records").out


def test_commands_redact_as_it_is_configured(turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret of one's own kind that an import stores, or that `scan` and `scrub` do not find."""
    said = "EMP-004711 has password=hunter2-Xk93"
    monkeypatch.setenv("TURNLOG_REDACT", "false")
    assert said in _imported(turnlog, tmp_path, said)
    assert {row["kind"] for row in turnlog("scan", "--json").rows} == {"password"}
    monkeypatch.setenv("TURNLOG_REDACT_PATTERNS", '{staff = "EMP-[0-9]+"}')
    assert {row["kind"] for row in turnlog("scan", "--json").rows} == {"password", "staff"}
    assert turnlog("scrub", "s", "--yes").code == 0
    assert "[redacted:staff] has password=[redacted:password]" in turnlog("show", "s", "--records").out
    monkeypatch.delenv("TURNLOG_REDACT")
    monkeypatch.setenv("TURNLOG_STORE", str(tmp_path / "other.db"))
    assert "[redacted:staff] has" in _imported(turnlog, tmp_path, said)
    monkeypatch.setenv("TURNLOG_STORE", str(tmp_path / "third.db"))
    assert said in _imported(turnlog, tmp_path, said, "--unredacted")


def test_commands_use_the_configured_store(turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of a program that the command line looks for in another store."""
    monkeypatch.delenv("TURNLOG_STORE")
    (tmp_path / "turnlog.toml").write_text("store = 'files:logs'")
    with package.open("here"):
        pass
    assert left(turnlog) == ["here"]
    assert (tmp_path / "logs" / "sessions" / "here.json").exists()


def test_an_encrypted_store_is_cleared_up_and_packed(
    turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`gc` and `keep` that fail on an encrypted store, or take what is kept; a dry run that packs; a key in a file that
    is not used, or that no argument can take away."""
    (tmp_path / "key").write_text(new_key())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    user_file().parent.mkdir(parents=True)
    user_file().write_text(f'key = "file:{tmp_path / "key"}"\ncompress_after = "1d"\nmax_sessions = 3\n')
    with closing(open_store(tmp_path / "log.db", key=f"file:{tmp_path / 'key'}")) as store:
        for n in range(6):
            time = f"202{n}-01-01T00:00:00.000Z"
            store.create(f"s{n}", title=f"Year {n}", created=time)
            store.append(f"s{n}", [Draft(Note("x", f"word {m} " * 50), time) for m in range(40)])
    assert turnlog("keep", "s0").code == 0
    look = turnlog("gc", "--dry-run")
    assert [row.split()[0] for row in look.out.splitlines()[1:]] == ["s1", "s2", "s3", "s0", "s4", "s5"]
    assert "3 sessions would be compressed" in look.err
    [done] = turnlog("gc", "--yes", "--json").rows
    assert [gone["session"] for gone in done["gone"]] == ["s1", "s2", "s3"]
    assert [one["session"] for one in done["compressed"]] == ["s0", "s4", "s5"]
    assert (left(turnlog), turnlog("verify").code) == (["s0", "s4", "s5"], 0)
    assert "word 7" in turnlog("show", "s0", "--records").out
    assert turnlog("gc").err.splitlines()[-1].startswith("0 sessions deleted")  # nobody is asked for nothing
    assert turnlog("ls", "--key", "none").code == 3
    assert turnlog("ls", "--store", "plain.db", "--key", "none").code in (0, 3)
    assert turnlog("gc", "--compress-after", "soon").code == 2
