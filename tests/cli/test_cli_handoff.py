"""`turnlog handoff`: the prompt in a terminal and in a pipe, a session file, and a program that is started."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from commands import Command
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft
from turnlog.stores import open_store

PROGRAM = f"""#!{sys.executable}
import json, pathlib, sys
place = sys.argv[sys.argv.index("--session-file") + 1] if "--session-file" in sys.argv else None
pathlib.Path("started.json").write_text(json.dumps([sys.argv[1:], place and pathlib.Path(place).read_text()]))
sys.exit(9)
"""


@pytest.fixture
def store(tmp_path: Path) -> None:
    """A session with a question that was not answered."""
    made = open_store(tmp_path / "log.db")
    made.create("s")
    made.append("s", [Draft(MessageRecord(Message("user", (Text("Fix a.py, not b.py.\x1b[2J"),))))])
    made.close()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of these names on the PATH that write down what they were started with."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("codex", "gemini"):
        (folder / name).write_text(PROGRAM)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return tmp_path / "started.json"


@pytest.mark.usefixtures("store")
def test_the_prompt_is_printed(turnlog: Command) -> None:
    """A prompt that another program cannot read from a pipe, or without what was asked."""
    ended = turnlog("handoff", "s", "--to", "codex")
    assert ended.code == 0 and ended.err.startswith("1 record in ") and "Fix a.py, not b.py." in ended.out
    [row] = turnlog("handoff", "s", "--to", "claude", "--now", "Go.", "--json").rows
    assert (row["to"], row["now"], row["records"]) == ("claude", "Go.", 1) and row["prompt"].endswith("## Now\n\nGo.")
    assert turnlog("handoff", "none", "--to", "codex").code == 4
    assert turnlog("handoff", "s").code == turnlog("handoff", "s", "--to", "codex", "--budget", "5").code == 2
    assert "session files are for gemini" in turnlog("handoff", "s", "--to", "codex", "--session-file", "x").err


@pytest.mark.usefixtures("store")
def test_a_program_is_started(turnlog: Command, programs: Path) -> None:
    """A program that starts without the prompt, or whose failure passes for success."""
    assert turnlog("handoff", "s", "--to", "codex", "--start").code == 9
    [prompt], _ = json.loads(programs.read_text())
    assert prompt == turnlog("handoff", "s", "--to", "codex", "--json").rows[0]["prompt"]
    assert turnlog("handoff", "s", "--to", "gemini", "--start", "--now", "Go.").code == 9
    [option, place, also, now], file = json.loads(programs.read_text())
    assert (option, also, now) == ("--session-file", "-i", "Go.") and not Path(place).exists()
    assert "Fix a.py" in json.loads(file.splitlines()[1])["content"][0]["text"]
    ended = turnlog("handoff", "s", "--to", "claude", "--start")
    assert ended.code == 3 and "claude is not installed; install it with: npm install -g" in ended.err


@pytest.mark.usefixtures("store")
def test_a_session_file_is_written(turnlog: Command, tmp_path: Path) -> None:
    """A file that is not written, or without the session."""
    ended = turnlog("handoff", "s", "--to", "gemini", "--session-file", str(tmp_path / "s.jsonl"), "--now", "Go.")
    assert (ended.code, ended.out) == (0, "Go.\n")
    assert "Fix a.py" in (tmp_path / "s.jsonl").read_text()
