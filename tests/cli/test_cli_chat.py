"""`turnlog chat` from the command line, with `-p`: what goes wrong is told to who types, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import turnlog as library
from commands import Command

DEMO = ("chat", "--model", "scripted/demo")


def test_an_answer_is_printed_and_its_session_stays(turnlog: Command) -> None:
    """A prompt that is answered must be there the next day."""
    ended = turnlog(*DEMO, "--session", "s", "-p", "hello")
    assert (ended.code, ended.out) == (0, "You said: hello\n")
    [row] = turnlog("ls", "--json").rows
    assert (row["id"], row["messages"]) == ("s", 2)


def test_it_goes_on_with_the_session_that_is_meant_and_says_so(turnlog: Command) -> None:
    """A short id begins a new, empty session, without a word, and from then on means that one."""
    assert turnlog(*DEMO, "--session", "cc432c40-1f", "-p", "hello").err == "new session cc432c40-1f\n"
    assert turnlog(*DEMO, "--session", "other", "-p", "hi").code == 0
    told = 'going on with cc432c40… "hello" ({} messages)\n'
    for n, words in enumerate((("--session", "cc43"), ("-c",), ("--session", "latest"), ("--continue",)), 1):
        assert turnlog("chat", *words, "-p", "again") == (0, "You said: again\n", told.format(2 * n)), words
    assert turnlog("chat", "--session", "-2", "-p", "x").err == 'going on with other "hi" (2 messages)\n'
    assert turnlog(*DEMO, "--session", "cc99", "-p", "hi").err == "new session cc99\n"
    ended = turnlog("chat", "--session", "cc", "-p", "hi")
    assert (ended.code, ended.out) == (4, "") and "2 ids begin with it" in ended.err
    assert turnlog("chat", "--session", "-9", "-p", "hi").code == 4
    assert {row["id"] for row in turnlog("ls", "--json").rows} == {"cc432c40-1f", "other", "cc99"}


def test_there_is_a_last_session_to_go_on_with_or_an_error(turnlog: Command, tmp_path: Path) -> None:
    """A store is made by `-c`, to say that it is empty."""
    assert turnlog("chat", "-c", "-p", "hi").code == 3 and not (tmp_path / "log.db").exists()


def test_a_new_session_has_the_folder_as_a_label_and_an_old_one_keeps_its_own(
    turnlog: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ls --folder` does not find what was talked about in a folder, or finds what began elsewhere."""
    turnlog(*DEMO, "--session", "s", "-p", "hello")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    turnlog("chat", "-c", "-p", "again")
    [row] = turnlog("ls", "--json", "--label", f"folder={tmp_path}").rows
    assert (row["id"], row["messages"]) == ("s", 4)
    name = tmp_path.name
    asked = (str(tmp_path), name, name[:-1], f"{name[:-1]}…", f"{tmp_path.parent.name}/{name}", "elsewhere", name[1:])
    rows = [len(turnlog("ls", "--json", "--folder", folder).rows) for folder in asked]
    assert rows == [1, 1, 1, 1, 1, 0, 0]
    assert turnlog("ls", "--folder", "").code == 2


@pytest.mark.parametrize("words", [(), ("--session", "new")])
def test_who_does_not_answer_leaves_no_session_and_what_was_said_stays(
    turnlog: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """A list of sessions full of prompts that nobody answered; or one prompt more takes an old session with it."""
    monkeypatch.setenv("PATH", "")
    program = ("chat", "--program", "claude", "-p", "hi")
    ended = turnlog(*program, *words)
    assert (ended.code, ended.out) == (3, "") and "no answer came, so the new session is not kept\n" in ended.err
    assert turnlog("ls", "--json").rows == []
    turnlog(*DEMO, "--session", "s", "-p", "hello")
    assert turnlog(*program, "--session", "s").code == 3
    assert [row["messages"] for row in turnlog("ls", "--json").rows] == [4]


def test_another_model_for_a_session_is_taken(
    turnlog: Command, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A warning of arguments of a function for somebody who names a model; or the old model answers."""
    gpt = library.target("openai-chat", "gpt-4o")
    library.open("s", store=tmp_path / "log.db", target=gpt).close()
    ended = turnlog(*DEMO, "--session", "s", "-p", "hello")
    assert (ended.code, ended.out) == (0, "You said: hello\n")
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []
    with library.open("s", store=tmp_path / "log.db", read_only=True) as session:
        assert session.target is not None and session.target != gpt


def test_a_start_that_fails_leaves_no_session(turnlog: Command) -> None:
    """A list of sessions full of mistyped options."""
    for words in (("--allow", "fly", "-p", "hi"), ("-p", " "), ("--session", "new", "-p", "see @none.png")):
        ended = turnlog(*DEMO, *words)
        assert (ended.code, ended.out) == (2, "") and "turnlog: " in ended.err, words
    assert turnlog("ls", "--json").rows == []
    turnlog(*DEMO, "--session", "s", "-p", "hello")
    turnlog(*DEMO, "--session", "s", "-p", "see @none.png")
    assert [row["messages"] for row in turnlog("ls", "--json").rows] == [2]


@pytest.mark.parametrize(
    ("model", "key"),
    [
        ("openai/gpt-4o", "OPENAI_API_KEY"),
        ("anthropic/claude-opus-4-8", "ANTHROPIC_API_KEY"),
        ("google/gemini-2.5-pro", "GEMINI_API_KEY"),
    ],
)
def test_a_missing_key_is_told_without_python(
    turnlog: Command, monkeypatch: pytest.MonkeyPatch, model: str, key: str
) -> None:
    """Somebody who types a command is told of arguments of classes that he never heard of."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    ended = turnlog("chat", "--model", model, "-p", "hi")
    assert ended.code == 3 and ended.err.strip().endswith(f"; set {key}")
    assert not any(word in ended.err for word in ("api_key", "Runner(", "client", "Traceback"))


def test_a_session_in_use_is_told_without_python(turnlog: Command, tmp_path: Path) -> None:
    """What to do about a session that is open elsewhere, in arguments of a function."""
    with library.open("s", store=tmp_path / "log.db"):
        ended = turnlog(*DEMO, "--session", "s", "-p", "hi")
    assert ended.code == 3 and ended.err.startswith("turnlog: session 's' is in use: ")
    assert ended.err.endswith("has it open; close it there, or talk in another one\n")


def test_a_tool_that_nobody_allowed_is_told_and_binds_nobody(turnlog: Command) -> None:
    """A reason that the program made up is handed on as what the user requires."""
    ended = turnlog(*DEMO, "--session", "s", "-p", 'CALL run_command {"command": "touch made"}')
    assert (
        ended.err == "new session s\nnot run, as nobody could be asked: run_command; `--allow run_command` allows it\n"
    )
    assert turnlog("ls", "--json").rows[0]["messages"] == 4
    prompt = turnlog("handoff", "s", "--to", "claude").out
    assert "## The last messages" in prompt and "## What the user requires" not in prompt
