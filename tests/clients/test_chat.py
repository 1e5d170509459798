"""`turnlog chat` in a real terminal (tmux): keys, sizes, stops, pastes, and a provider that fails."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from turnlog.stores import open_store

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="no tmux on the PATH: no real terminal to look at"),
]
WAIT = 60.0


class Terminal:
    """A chat in a window of tmux."""

    def __init__(self, folder: Path, columns: int, options: str, **more: str) -> None:
        self.name = f"turnlog{uuid4().hex[:8]}"
        turnlog = Path(sys.executable).parent / "turnlog"
        environment = " ".join(f"{key}={value}" for key, value in {"HOME": str(folder), **more}.items())
        command = f"{environment} {turnlog} chat --store s.db --session s {options}; echo ended with $?; cat"
        self.tmux("new-session", "-d", "-s", self.name, "-x", f"{columns}", "-y", "40", "-c", str(folder), command)

    def tmux(self, *arguments: str) -> str:
        """What a command of tmux prints. Each terminal has a server of its own."""
        command = ["tmux", "-L", self.name, *arguments]
        environment = {**os.environ, "TERM": "xterm-256color"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    @property
    def screen(self) -> str:
        """What is on the screen and above it."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-2000", "-t", self.name)

    def waits_for(self, text: str, times: int = 1) -> str:
        """The screen, once it has this text; a failure if it never has."""
        until = time.monotonic() + WAIT
        while (screen := self.screen).count(text) < times:
            assert time.monotonic() < until, f"no {text!r} on the screen:\n{screen}"
            time.sleep(0.05)
        assert "Traceback" not in screen
        return screen

    def types(self, text: str, *keys: str) -> None:
        """Type a text, then these keys."""
        self.tmux("send-keys", "-t", self.name, "-l", text)
        for key in keys:
            self.tmux("send-keys", "-t", self.name, key)

    def close(self) -> None:
        """End it, however it is."""
        self.tmux("kill-server")


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[list[Terminal]]:
    """Terminals that are closed at the end."""
    made: list[Terminal] = []
    yield made
    for one in made:
        one.close()


def opened(
    terminals: list[Terminal], folder: Path, options: str = "--model scripted/demo", columns: int = 100, **more: str
) -> Terminal:
    """A terminal whose chat is ready."""
    made = Terminal(folder, columns, options, **more)
    terminals.append(made)
    made.waits_for("/help lists the commands")
    made.waits_for("\n>")  # before it asks, the terminal takes a paste for typed lines
    return made


def test_a_conversation_with_a_tool_commands_and_an_end(terminals: list[Terminal], tmp_path: Path) -> None:
    """The whole way: an answer, a question before a tool runs, the files it changed, each command, and the end."""
    chat = opened(terminals, tmp_path)
    chat.types("Say **this**", "Enter")
    chat.waits_for("You said: Say this")
    chat.types('CALL run_command {"command": "echo made > new.txt"}', "Enter")
    chat.waits_for("[y]es, [n]o, [a]lways, or why not:")
    chat.types("y", "Enter")
    chat.waits_for("created new.txt +1 -0")
    for command in ("model", "context", "compact", "why", "history", "cost", "sessions", "diff", "save a", "restore a"):
        chat.types(f"/{command}", "Enter")
        chat.waits_for(f"> /{command}\n")
    for command, answer in (("rewind", "taken back"), ("fork other", "goes on in session other"), ("resume s", "s.")):
        chat.types(f"/{command}", "Enter")
        chat.waits_for(answer)
    for command, answer in (
        ("export json out.json", "Written to"),
        ("clear", "sees nothing"),
        ("nonsense", "no command"),
    ):
        chat.types(f"/{command}", "Enter")
        chat.waits_for(answer)
    chat.types("/he", "Tab")
    chat.waits_for("list the commands")
    chat.types("", "C-c", "C-d")
    chat.waits_for("ended with 0")
    assert (tmp_path / "out.json").exists() and (tmp_path / "new.txt").read_text() == "made\n"


def test_an_answer_is_stopped_and_kept(terminals: list[Terminal], tmp_path: Path) -> None:
    """Ctrl-C in an answer or in a tool ends the chat, or loses what had come."""
    chat = opened(terminals, tmp_path, options="--model scripted/demo --allow all")
    chat.types("word " * 400, "Enter")
    chat.waits_for("answering, Ctrl-C stops")
    chat.types("typed meanwhile", "C-c")
    chat.waits_for("stopped; what had come is kept")
    chat.waits_for("> typed meanwhile")
    chat.types("", "C-c")
    chat.types('CALL run_command {"command": "sleep 600"}', "Enter")
    chat.waits_for("working, Ctrl-C stops")
    chat.types("", "C-c")
    chat.waits_for("stopped; what had come is kept", 2)
    chat.types("", "C-d")
    chat.waits_for("ended with 0")
    store = open_store(tmp_path / "s.db", read_only=True)
    [partial] = store.of_kinds("s", ("partial",))
    store.close()
    assert partial.message is not None


def test_a_long_paste_in_forty_columns_without_colour(terminals: list[Terminal], tmp_path: Path) -> None:
    """A paste that is said line by line, or that fills the screen; a terminal that is narrow, and changes its size."""
    chat = opened(terminals, tmp_path, columns=40, NO_COLOR="1")
    paste = tmp_path / "paste.txt"
    paste.write_text("\n".join(f"line {n}" for n in range(10_000)))
    chat.tmux("load-buffer", str(paste))
    chat.tmux("paste-buffer", "-p", "-t", chat.name)
    chat.waits_for("[paste 1: 10,000 lines]")
    chat.tmux("resize-window", "-t", chat.name, "-x", "120", "-y", "30")
    chat.types("", "Enter")
    chat.waits_for("[... 9,989 more lines ...]")
    chat.types("", "C-c")
    chat.types("/history", "Enter")
    chat.waits_for("user: line 0 line 1")
    assert re.search(r"\x1b\[[349][0-7]m", chat.tmux("capture-pane", "-p", "-e", "-t", chat.name)) is None


def test_a_provider_that_fails(terminals: list[Terminal], tmp_path: Path) -> None:
    """An error of the provider ends the chat, or its text is lost."""
    chat = opened(terminals, tmp_path, options="--model openai/gpt-4o --base-url http://127.0.0.1:9/v1")
    chat.types("hello", "Enter")
    chat.waits_for("Connection error")
    chat.waits_for("is there a server at")
    chat.types("/export json /nowhere/at/all.json", "Enter")
    chat.waits_for("No such file")
    chat.types("/model scripted/demo", "Enter")
    chat.waits_for("The next answer is from")
    chat.types("again", "Enter")
    chat.waits_for("You said: again")


def test_a_session_that_is_open_elsewhere_is_told(terminals: list[Terminal], tmp_path: Path) -> None:
    """Two chats in one session mix up their answers, or the second ends in a traceback."""
    chat = opened(terminals, tmp_path)
    command = [str(Path(sys.executable).parent / "turnlog"), "chat", "--store", "s.db", "--model", "scripted/demo"]
    second = [*command, "--session", "s", "-p", "hello"]
    run = subprocess.run(second, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 3 and run.stderr.startswith("turnlog: session 's' is in use") and run.stdout == ""
    subprocess.run([*command, "--session", "other", "-p", "hello"], cwd=tmp_path, capture_output=True, check=True)
    chat.types("/resume other", "Enter")
    chat.waits_for("You said: hello")
