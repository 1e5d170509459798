"""The real agent programs against a server: long conversations, and every way to fail."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
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
    RunnerError,
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
    session = opened(name)
    session.user("Hello.")

    def caught(kind: type[RunnerError], runner: ProgramRunner) -> Any:
        with pytest.raises(kind) as found:
            received(session, runner)
        return found.value

    server = fake_server()
    assert caught(
        RunnerNotFound, program_runner(name, server.url, commands, home, command=home / "nothing")
    ).install.startswith("npm install -g ")
    nobody = home / "nobody"
    nobody.mkdir()
    assert caught(NotLoggedIn, program_runner(name, server.url, commands, nobody, key="")).login == PROGRAMS[name].login
    small = fake_server(context_limit=200)
    caught(RequestTooLong, program_runner(name, small.url, commands, home, timeout=60))
    late = fake_server([{"text": "late", "delay": 30}] * 9)
    assert caught(RunnerTimedOut, program_runner(name, late.url, commands, home, timeout=8)).seconds == 8
    busy = fake_server([{"error": {"status": 429, "message": "Rate limit reached, try again in 3600s"}}] * 99)
    caught((RateLimited, RunnerTimedOut), program_runner(name, busy.url, commands, home, timeout=20))  # type: ignore[arg-type]
    assert caught(RunnerFailed, _killed(program_runner(name, late.url, commands, home))).status in (-9, 137)
    session.user("Go on.")
    assert received(session, program_runner(name, server.url, commands, home)).complete
    assert server.rejections() == []


def _killed(runner: ProgramRunner) -> Any:
    """A runner whose program is killed as soon as the stream is waiting for it."""
    from turnlog.runners.programs import runner as process

    class Killed:
        async def stream(self, request: Any) -> Any:
            async def kill() -> None:
                while not process._living:
                    await asyncio.sleep(0.05)
                await asyncio.sleep(1)
                for pid in process._living:
                    os.kill(pid, signal.SIGKILL)

            task = asyncio.create_task(kill())
            async for chunk in runner.stream(request):
                yield chunk
            await task

        async def aclose(self) -> None:
            pass

    return Killed()
