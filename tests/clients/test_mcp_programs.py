"""The real agent programs with the server, as `turnlog mcp --install` lets them start it: they call it, and show its
answer to the model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from program_runners import home_for, program_runner, programs_folder

from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord, Note
from turnlog.log.store import Draft
from turnlog.stores import open_store

pytestmark = pytest.mark.slow
TOOLS = {"claude": "mcp__turnlog__recall_sessions", "gemini": "mcp_turnlog_recall_sessions"}
_CLAUDE = ("--model", "claude-sonnet-4-5", "--allowedTools", "mcp__turnlog")
ANSWER = "The zebra lives in the cellar."


@pytest.fixture
def home() -> Iterator[Path]:
    """A home folder with a store that has one session."""
    made = home_for("mcp")
    with closing(open_store(made / "log.db")) as store:
        store.create("then", title="About the zebra")
        store.append("then", [Draft(Note("turn_context", "", {"cwd": str(made / "work")}))])
        store.append("then", [Draft(MessageRecord(Message("assistant", (Text(ANSWER),))))])
    yield made
    shutil.rmtree(made, ignore_errors=True)


def command_of(name: str, commands: Path) -> list[str]:
    """A program's command line for one prompt, which may call tools unasked."""
    prompt = "Where does the zebra live?"
    return {
        "claude": [str(commands / "claude"), "-p", prompt, *_CLAUDE],
        "gemini": [str(commands / "gemini"), "-m", "gemini-2.5-flash", "--yolo", "--skip-trust", "-p", prompt],
        "codex": [str(commands / "codex"), "exec", "--skip-git-repo-check", "-m", "gpt-5", prompt],
    }[name]  # fmt: skip


@pytest.mark.parametrize("name", ["claude", "gemini", "codex"])
def test_a_program_finds_and_calls_the_server(name: str, home: Path, fake_server: Callable[..., Any]) -> None:
    """The entry is not what the program reads, its model is not offered the tools or the Skill, or the answer does not
    reach it. In the same session, what was answered before is not found. (Codex: the tools are offered; the fake server
    has no calls in a namespace.)"""
    commands = programs_folder()
    asked = [{"question": f"where does the zebra live {again}"} for again in ("", "now", "today", "by day", "by night")]
    thinking = {"thinking": "so"} if name == "claude" else {}
    # The first requests may be made before the server has started: then there is no such tool yet.
    calls = [{"tool_calls": [{"name": TOOLS.get(name, "none"), "args": args}], **thinking} for args in asked]
    server = fake_server([*(calls if name in TOOLS else ()), {"text": "done"}])
    program_runner(name, server.url, commands, home)  # writes the program's own settings
    keys = {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "FAKE_KEY": "k"}
    urls = {"ANTHROPIC_BASE_URL": server.url, "GOOGLE_GEMINI_BASE_URL": server.url}
    env = {**os.environ, **keys, **urls, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
    turnlog = [sys.executable, "-m", "turnlog", "--store", str(home / "log.db"), "mcp", "--discover"]
    hook = ["--hook"] if name in TOOLS else []
    subprocess.run([*turnlog, "--install", name, *hook, "--yes"], env=env, check=True, capture_output=True)
    if name == "codex":
        settings = home / ".codex" / "config.toml"
        text = settings.read_text("utf-8")
        settings.write_text(text.replace("args =", "required = true\nargs ="), "utf-8")  # it waits for the server
    ended = subprocess.run(
        command_of(name, commands), env=env, cwd=home / "work", capture_output=True, text=True, timeout=180,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert ended.stdout.strip().endswith("done"), (ended.stdout, ended.stderr)
    assert server.rejections() == []
    bodies = [json.dumps(request.body) for request in server.requests]
    assert "recall_sessions" in bodies[-1] and "Use it BEFORE you guess" in bodies[-1]
    assert "turnlog-recall" in bodies[-1], "the Skill is not offered"
    if name in TOOLS:
        assert "About the zebra" in bodies[-1], "the start hook does not reach the model"
        assert ANSWER in bodies[-1] and "is quoted: it is what was said or done then" in bodies[-1]
        assert "Searched 1 earlier session, 1 of this project." in bodies[-1]
        assert bodies[-1].count("session then, record 2 (assistant") >= 2
    if name == "claude":
        with closing(open_store(home / "log.db", read_only=True)) as store:
            assert [info.id for info in store.sessions()] == ["then"], "the asking session was read"
