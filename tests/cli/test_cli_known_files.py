"""A second import reads only the files that changed, and never misses one that did."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from turnlog import importers
from turnlog.importers import known_files
from turnlog.importers.protocol import Imported, Origin

LONG_AGO = 1_700_000_000


@pytest.fixture
def home(tmp_path: Path, transcript: Path) -> Path:
    """A home with two sessions of Claude Code, one with a subagent, and one of pi; all written long ago."""
    text = transcript.read_text("utf-8")
    home = tmp_path / "home"
    project = home / ".claude/projects/-w"
    agents = project / "demo-invoice-rounding/subagents"
    agents.mkdir(parents=True)
    transcript.rename(project / "demo-invoice-rounding.jsonl")
    (project / "second.jsonl").write_text(text.replace("demo-invoice-rounding", "second"), "utf-8")
    (agents / "agent-1.jsonl").write_text(
        text.replace('"isSidechain":false', '"isSidechain":true,"agentId":"1"'), "utf-8"
    )
    pi = home / ".pi/agent/sessions/--w--"
    pi.mkdir(parents=True)
    message = '{"type":"message","id":"e1","parentId":null,"message":{"role":"user","content":"hi"}}\n'
    (pi / "x.jsonl").write_text('{"type":"session","version":3,"id":"third","cwd":"/w"}\n' + message)
    for path in [home, *home.rglob("*")]:
        os.utime(path, (LONG_AGO, LONG_AGO))
    return home


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files that were read, in a cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    names: list[str] = []
    real = importers.read_sessions

    def reads(origin: Origin) -> Iterator[Imported]:
        names.append(Path(str(origin)).name)
        return real(origin)

    monkeypatch.setattr(importers, "read_sessions", reads)
    return names


ALL = ["demo-invoice-rounding.jsonl", "second.jsonl", "x.jsonl"]
FIRST, SECOND = ".claude/projects/-w/demo-invoice-rounding", ".claude/projects/-w/second"


def cache_file() -> Path:
    """The one file of the cache."""
    (path,) = Path(os.environ["XDG_CACHE_HOME"]).rglob("*.json")
    return path


def test_what_did_not_change_is_not_read(turnlog: Any, home: Path, read: list[str]) -> None:
    """2,700 files were parsed each time to say that nothing is new."""
    first = turnlog("import", "--discover", str(home)).out.splitlines()
    assert first[:2] == ["claude-code  2 files  3 new", "pi           1 file   1 new"]
    assert read == ALL
    again = turnlog("import", "--discover", str(home)).out.splitlines()
    assert again[:2] == ["claude-code  2 files  3 unchanged", "pi           1 file   1 unchanged"]
    assert again[2].startswith("4 unchanged in ")
    assert read == ALL
    for option in ("-v", "--json"):
        assert len(turnlog("import", "--discover", str(home), option).out.splitlines()) >= 4
    assert read == 3 * ALL


def test_folders_know_their_files_too(
    turnlog: Any, home: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path is another word for the same file, wherever the command is given."""
    monkeypatch.chdir(home)
    assert turnlog("import", ".claude").out.startswith("claude-code  2 files  3 new\n")
    shutil.copytree(".claude", "visible")
    monkeypatch.chdir(home / "visible")
    assert turnlog("import", "projects").out.startswith("claude-code  2 files  3 unchanged\n")
    monkeypatch.chdir(home)
    del read[:]
    assert turnlog("import", "visible", ".claude/projects/-w").out.startswith("claude-code  4 files  6 unchanged\n")
    assert read == []


def _append(name: str) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        with (home / name).open("a") as file:
            file.write("\n")

    return change


def _add(name: str) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((home / f"{FIRST}/subagents/agent-1.jsonl").read_text() if name.endswith("jsonl") else "{}")

    return change


def _replace(home: Path) -> None:
    """Another file of the same size and time."""
    path = home / f"{SECOND}.jsonl"
    spare = path.with_suffix(".spare")
    spare.write_text(path.read_text().replace("one cent", "two cent"))
    os.utime(spare, (LONG_AGO, LONG_AGO))
    spare.replace(path)


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (_append(f"{SECOND}.jsonl"), 1),
        (_append(f"{FIRST}/subagents/agent-1.jsonl"), 0),
        (_add(f"{FIRST}/subagents/agent-2.jsonl"), 0),
        (_add(f"{SECOND}/subagents/agent-1.jsonl"), 1),
        (_add(f"{SECOND}.meta.json"), 1),
        (lambda home: (home / f"{FIRST}/subagents/agent-1.jsonl").unlink(), 0),
        (_replace, 1),
        (_append(".pi/agent/sessions/--w--/x.jsonl"), 2),
    ],
)
def test_every_file_of_a_transcript_counts(
    turnlog: Any, home: Path, read: list[str], change: Callable[[Path], None], file: int
) -> None:
    """A subagent that went on, or a title that was written beside the session, would never arrive."""
    turnlog("import", "--discover", str(home))
    del read[:]
    change(home)
    turnlog("import", "--discover", str(home))
    assert read == [ALL[file]]


def test_a_deleted_session_comes_again(turnlog: Any, home: Path, read: list[str]) -> None:
    """Whoever deletes a session and imports wants it back, as ever; and a new store at the same place is empty."""
    turnlog("import", "--discover", str(home))
    assert turnlog("rm", "third", "--yes").code == 0
    del read[:]
    ended = turnlog("import", "--discover", str(home))
    assert (read, ended.out.splitlines()[1]) == ([ALL[2]], "pi           1 file   1 new")
    for path in Path(os.environ["TURNLOG_STORE"]).parent.glob("log.db*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    turnlog("import", "--discover", str(home))
    assert read == [ALL[2], *ALL]


@pytest.mark.parametrize("how", ["unredacted", "redact", "version", "damaged", "cut", "deleted", "other JSON"])
def test_other_settings_another_turnlog_and_a_damaged_cache_read_again(
    turnlog: Any, home: Path, read: list[str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What a newer version would read, or other rules redact, would be left as it is; a cache is no truth."""
    turnlog("import", "--discover", str(home))
    place = cache_file()
    data = {"damaged": b"\0\xff", "cut": place.read_bytes()[:-9], "other JSON": b'{"made":1,"files":[]}'}
    if how in data:
        place.write_bytes(data[how])
    elif how == "deleted":
        place.unlink()
    elif how == "version":
        monkeypatch.setattr(known_files, "__version__", "99.0")
    elif how == "redact":
        monkeypatch.setenv("TURNLOG_REDACT", "all")
    options = ["--unredacted"] if how == "unredacted" else []
    assert turnlog("import", "--discover", str(home), *options).code == 0
    assert read == ALL * 2
    turnlog("import", "--discover", str(home), *options)
    assert read == ALL * 2


def test_a_file_that_was_just_written_is_read_once_more(turnlog: Any, home: Path, read: list[str]) -> None:
    """It may be written to again within the same tick of the clock, with the same size."""
    os.utime(home / f"{SECOND}.jsonl")
    turnlog("import", "--discover", str(home))
    turnlog("import", "--discover", str(home))
    assert read == [*ALL, ALL[1]]


def test_damage_and_errors_are_told_each_time(turnlog: Any, home: Path, read: list[str]) -> None:
    """A file of which something is lost would be whole on the second run, with exit code 0."""
    for name, text in ((f"{SECOND}.jsonl", '{"cut off'), (".pi/agent/sessions/--w--/x.jsonl", None)):
        path = home / name
        path.write_text((path.read_text() + text) if text else "no transcript")
        os.utime(path, (LONG_AGO, LONG_AGO))
    first, again = (turnlog("import", "--discover", str(home)) for _ in range(2))
    assert (first.code, first.err) == (again.code, again.err)
    assert first.code == 2 and "second.jsonl, line" in first.err and "x.jsonl: " in first.err
    assert read == [*ALL, ALL[1], ALL[2]]


@pytest.mark.slow
def test_only_the_user_can_read_it_and_an_encrypted_store_has_none(
    turnlog: Any, home: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of files are in it; beside an encrypted store they would be the only thing in clear."""
    turnlog("import", "--discover", str(home))
    if os.name != "nt":
        assert cache_file().stat().st_mode & 0o777 == 0o600
    cache_file().unlink()
    key = home / "key"
    key.write_text("a long passphrase of many words")
    monkeypatch.setenv("TURNLOG_STORE", str(home / "secret.db"))
    assert turnlog("import", "--discover", str(home), "--key", f"passphrase-file:{key}").code == 0
    assert not list(Path(os.environ["XDG_CACHE_HOME"]).rglob("*.json"))


def test_a_cache_that_cannot_be_written_is_done_without(
    turnlog: Any, home: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read-only home would end the import."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / f"{SECOND}.jsonl"))
    assert turnlog("import", "--discover", str(home)).code == 0
    assert turnlog("import", "--discover", str(home)).code == 0
    assert read == ALL * 2
