"""The real agent programs against a server: long conversations, and every way to fail."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from program_runners import TARGETS, home_for, program_runner, programs_folder

import turnlog
from answering import received
from turnlog.errors import (
    NotLoggedIn,
    RateLimited,
    RequestTooLong,
    RunnerFailed,
    RunnerNotFound,
    RunnerTimedOut,
)
from turnlog.runners import ProgramRunner
from turnlog.runners.programs.runner import PROGRAMS
from turnlog.stores import MemoryStore

Start = Callable[..., Any]
every = pytest.mark.parametrize("name", TARGETS)
pytestmark = pytest.mark.slow

TURNS = 6 if os.environ.get("CI") else 20
"""Each turn starts a program, which takes seconds; where every change is checked there is no time for twenty."""


@pytest.fixture(scope="session")
def commands() -> Path:
    """The folder with the programs."""
    return programs_folder()


@pytest.fixture
def home() -> Iterator[Path]:
    """A home folder for a program."""
    made = home_for("home")
    yield made
    shutil.rmtree(made, ignore_errors=True)


def opened(name: str) -> turnlog.Session:
    """A session for a program."""
    return turnlog.open("s", store=MemoryStore(), target=TARGETS[name])


@pytest.mark.parametrize("resume", [False, True], ids=["stateless", "resumed"])
@every
def test_a_conversation(name: str, resume: bool, commands: Path, home: Path, fake_server: Start) -> None:
    """A request that the server refuses, a turn without an answer, or one that does not know what was said before fails
    here: with the whole conversation as a prompt each time, and with the program's own resume."""
    server = fake_server()
    runner = program_runner(name, server.url, commands, home, resume=resume)
    session = opened(name)
    for turn in range(1, TURNS + 1):
        session.user(f"Turn {turn}: the word is w{turn * 17}.")
        before = len(server.requests)
        answer = received(session, runner)
        assert answer.complete and answer.text and answer.usage is not None and answer.usage.input > 0
        asked = [json.dumps(one.body) for one in server.requests[before:]]
        held = [body for body in asked if all(f"w{earlier * 17}." in body for earlier in range(1, turn + 1))]
        assert held, f"turn {turn} does not know the earlier ones"
        quoted = sum("## Recent Messages" in body for body in held)
        assert bool(quoted) == (not resume and turn > 1), "resumed or not"
    assert server.rejections() == []


@pytest.mark.parametrize("version", ["0.17.0", "0.35.0"])
def test_an_older_gemini(version: str, home: Path, fake_server: Start) -> None:
    """It ends at an option that it does not know, and the oldest resume nothing: each turn is answered all the same,
    and knows what was said before."""
    server = fake_server()
    commands = programs_folder([f"@google/gemini-cli@{version}"])
    runner, session = program_runner("gemini", server.url, commands, home), opened("gemini")
    for turn in range(2):
        session.user(f"Turn {turn}: the word is w{turn * 17}.")
        before = len(server.requests)
        assert received(session, runner).complete
        asked = [json.dumps(one.body) for one in server.requests[before:]]
        assert any(all(f"w{earlier * 17}." in body for earlier in range(turn + 1)) for body in asked)
    assert server.rejections() == []


@every
def test_what_goes_wrong_is_its_own_error(name: str, commands: Path, home: Path, fake_server: Start) -> None:
    """Missing, not logged in, too long, rate limited, late, killed: a user cannot act on an error that is the same for
    all. After each, the session goes on."""
    server, small = fake_server(), fake_server(context_limit=200)
    late = fake_server([{"text": "late", "delay": 30}] * 9)
    busy = fake_server([{"error": {"status": 429, "message": "Rate limit reached, try again in 3600s"}}] * 99)

    def at(url: str, place: str, **more: Any) -> ProgramRunner:
        return program_runner(name, url, commands, home / place, relaunch=True, **more)

    def refused() -> None:
        session = opened(name)
        session.user("Hello.")
        missing = caught(session, RunnerNotFound, at(server.url, "missing", command=home / "nothing"))
        assert missing.install.startswith("npm install -g ")
        assert caught(session, NotLoggedIn, at(server.url, "nobody", key="")).login == PROGRAMS[name].login
        caught(session, RequestTooLong, at(small.url, "here", timeout=60))
        killed = Killed(home / "killed", commands / name)
        killed.runner = at(late.url, "here", command=killed.command)
        assert caught(session, RunnerFailed, killed).status in (-9, 137)
        goes_on(session, at(server.url, "here"))

    def waiting() -> None:
        session = opened(name)
        session.user("Hello.")
        assert caught(session, RunnerTimedOut, at(late.url, "there", timeout=8)).seconds == 8
        caught(session, (RateLimited, RunnerTimedOut), at(busy.url, "there", timeout=12))
        assert busy.requests
        goes_on(session, at(server.url, "there"))

    with ThreadPoolExecutor() as pool:  # side by side, as one of them waits for nothing to come
        for one in [pool.submit(refused), pool.submit(waiting)]:
            one.result()
    assert server.rejections() == []


def caught(session: turnlog.Session, kind: Any, runner: Any) -> Any:
    """The error in place of the next answer."""
    with pytest.raises(kind) as found:
        received(session, runner)
    return found.value


def goes_on(session: turnlog.Session, runner: ProgramRunner) -> None:
    """The next answer comes."""
    session.user("Go on.")
    assert received(session, runner).complete


class Killed:
    """A runner whose program is killed a second after it was started with `command`, which notes its process."""

    runner: ProgramRunner

    def __init__(self, folder: Path, program: Path) -> None:
        folder.mkdir()
        self.command, self._note = folder / program.name, folder / "process"
        self.command.write_text(f'#!/bin/sh\necho $$ > "{self._note}"\nexec "{program}" "$@"\n', "utf-8")
        self.command.chmod(0o755)

    async def stream(self, request: Any) -> Any:
        """The events until then."""
        task = asyncio.create_task(self._kill())
        async for chunk in self.runner.stream(request):
            yield chunk
        await task

    async def _kill(self) -> None:
        while not self._note.exists() or not (process := self._note.read_text("utf-8")):
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        os.kill(int(process), signal.SIGKILL)
