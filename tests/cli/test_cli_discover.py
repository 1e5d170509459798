"""`turnlog import --discover`: everything that the agents of a home keep, and nothing twice."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from turnlog import importers
from turnlog.cli import imports
from turnlog.importers import Imported, read_file
from turnlog.importers.protocol import Origin


@pytest.fixture
def home(tmp_path: Path, transcript: Path) -> Path:
    """A home with two sessions of Claude Code and one of pi."""
    text = transcript.read_text("utf-8")
    home = tmp_path / "home"
    project = home / ".claude/projects/-w"
    project.mkdir(parents=True)
    (project / "a.jsonl").write_text(text, "utf-8")
    (project / "b.jsonl").write_text(text.replace("demo-invoice-rounding", "second"), "utf-8")
    pi = home / ".pi/agent/sessions/--w--"
    pi.mkdir(parents=True)
    message = '{"type":"message","id":"e1","parentId":null,"message":{"role":"user","content":"hi"}}\n'
    (pi / "x.jsonl").write_text('{"type":"session","version":3,"id":"third","cwd":"/w"}\n' + message)
    return home


def statuses(ended: Any) -> list[tuple[str, str]]:
    """What became of which session."""
    return [(row["session"], row["status"]) for row in ended.rows]


def test_what_is_new_is_imported_and_nothing_twice(turnlog: Any, home: Path) -> None:
    """A second run that copies what is there, or a first that misses an agent, fails here."""
    ended = turnlog("import", "--discover", str(home), "--json")
    assert (ended.code, ended.err) == (0, f"found in {home}: claude-code 2 files, pi 1 file\n")
    sessions = ["demo-invoice-rounding", "second", "third"]
    assert statuses(ended) == [(session, "new") for session in sessions]
    with (home / ".pi/agent/sessions/--w--/x.jsonl").open("a") as file:
        file.write('{"type":"message","id":"e2","parentId":"e1","message":{"role":"user","content":"more"}}\n')
    again = turnlog("import", "--discover", str(home), "--json")
    assert statuses(again) == [*((session, "unchanged") for session in sessions[:2]), ("third", "continued")]


def test_ones_own_home_is_the_default(turnlog: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--discover` alone means the home of who runs it."""
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    assert len(turnlog("import", "--discover", "--json").rows) == 3


def test_a_bad_file_costs_itself_alone(turnlog: Any, home: Path) -> None:
    """One broken session must not keep all the others out of the store."""
    (home / ".claude/projects/-w/a.jsonl").write_bytes(b"\0" * 4096)
    ended = turnlog("import", "--discover", str(home), "--json")
    assert (ended.code, statuses(ended)) == (2, [("second", "new"), ("third", "new")])
    assert "a.jsonl" in ended.err and "Traceback" not in ended.err


def test_a_bad_link_costs_itself_alone(turnlog: Any, home: Path) -> None:
    """A link to itself, or to where nobody can look, keeps all that is beside it out of the store."""
    project = home / ".claude/projects/-w"
    loops = [project / "a-loop.jsonl", home / ".claude/projects/loop"]
    for link in loops:
        link.symlink_to(link)
    (project / "far").symlink_to("x" * 300)  # longer than any file system takes: it cannot be followed for root too
    found = turnlog("import", "--discover", str(home), "--json")
    sessions = ["demo-invoice-rounding", "second", "third"]
    assert (found.code, statuses(found)) == (2, [(session, "new") for session in sessions])
    named = [f"turnlog: {link}" for link in loops[::-1]]
    assert [line.split(": cannot")[0] for line in found.err.splitlines()[1:]] == named
    folder = turnlog("import", str(project), "--json")
    assert (folder.code, statuses(folder)) == (2, [(session, "unchanged") for session in sessions[:2]])
    named = [f"turnlog: {project / name}" for name in ("a-loop.jsonl", "far")]
    assert [line.split(": cannot")[0] for line in folder.err.splitlines()] == named


def test_an_error_of_ours_is_a_line_with_the_file(turnlog: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An importer that crashes on one file would end the import of a whole home."""

    def reads(origin: Origin) -> Iterator[Imported]:
        if isinstance(origin, Path) and origin.name == "a.jsonl":
            raise KeyError("type")
        yield from read_file(origin)

    monkeypatch.setattr(importers, "read_sessions", reads)
    ended = turnlog("import", "--discover", str(home), "--json")
    assert (ended.code, statuses(ended)) == (70, [("second", "new"), ("third", "new")])
    line = next(line for line in ended.err.splitlines() if "a.jsonl" in line)
    assert "an error in turnlog itself, please report it: KeyError: 'type' (test_cli_discover, line" in line


def test_an_error_of_ours_while_keeping_is_one_too(turnlog: Any, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that turns out to hold what no store takes must not end the import either."""
    real = imports.sync_session

    def keeps(store: Any, imported: Imported, redactor: Any) -> Any:
        if imported.session_id == "second":
            raise TypeError("no record")
        return real(store, imported, redactor)

    monkeypatch.setattr(imports, "sync_session", keeps)
    ended = turnlog("import", "--discover", str(home), "--json")
    assert (ended.code, statuses(ended)) == (70, [("demo-invoice-rounding", "new"), ("third", "new")])
    assert "b.jsonl: an error in turnlog itself" in ended.err


def test_paths_go_with_it(turnlog: Any, home: Path, transcript: Path) -> None:
    """Files named beside --discover are imported as well."""
    ended = turnlog("import", "--json", str(transcript), "--discover", str(home))
    assert statuses(ended) == [
        ("demo-invoice-rounding", "new"), ("second", "new"), ("third", "new"), ("demo-invoice-rounding", "unchanged"),
    ]  # fmt: skip


def test_nothing_to_import_is_said(turnlog: Any, tmp_path: Path) -> None:
    """An empty command line that ends well would look like a finished import."""
    assert turnlog("import").code == 2
    assert turnlog("import", "--discover", str(tmp_path / "absent")).code == 2
    (tmp_path / "empty").mkdir()
    ended = turnlog("import", "--discover", str(tmp_path / "empty"))
    assert (ended.code, ended.err) == (0, f"found in {tmp_path / 'empty'}: no sessions of agents\n")


def test_what_retention_deleted_need_not_come_again(turnlog: Any, home: Path) -> None:
    """`gc` by age and `import --discover` by turns would delete and import the same old sessions for ever."""
    long_ago = time.time() - 40 * 86_400
    for name in (".claude/projects/-w/a.jsonl", ".pi/agent/sessions/--w--/x.jsonl"):
        os.utime(home / name, (long_ago, long_ago))
    ended = turnlog("import", "--discover", str(home), "--newer-than", "30d", "--json")
    assert statuses(ended) == [("second", "new")]
    told = [f"found in {home}: claude-code 2 files, pi 1 file", "skipped, older: 2 files"]
    assert (ended.code, ended.err.splitlines()) == (0, told)
    everything = turnlog("import", "--discover", str(home), "--newer-than", "50d", "--json")
    assert sorted(statuses(everything)) == [("demo-invoice-rounding", "new"), ("second", "unchanged"), ("third", "new")]


def test_an_age_goes_with_what_is_discovered(turnlog: Any, home: Path) -> None:
    """A file that somebody names is wanted, however old: to pass it over, or the age, in silence is no answer."""
    for arguments in ((str(home), "--newer-than", "30d"), ("--discover", str(home), "--newer-than", "soon")):
        ended = turnlog("import", *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert "--newer-than" in ended.err and "Traceback" not in ended.err


def test_agents_that_are_not_read_are_named_in_one_line(turnlog: Any, home: Path) -> None:
    """A user of such an agent would look for sessions that no import ever brings."""
    for name in (".local/share/zed/threads/threads.db", ".factory/sessions/-w/1.jsonl", ".factory/sessions/-w/2.jsonl"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("{}")
    ended = turnlog("import", "--discover", str(home))
    assert ended.code == 0
    assert "found, not read yet: droid 2 files, zed 1 file\n" in ended.err
