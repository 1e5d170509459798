"""What users give to a run is called in threads that nobody else needs: it may take any time, and never end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

import turnlog
from turnlog import ToolCall, agent
from turnlog.agent import functions
from turnlog.runners import ScriptedRunner
from turnlog.session.session import Session

MANY = min(32, (os.cpu_count() or 1) + 4) + 1
"""More calls than asyncio's pool has threads, and turnlog's own."""
CALLS = [ToolCall(f"c{n}", "use", {"n": n}) for n in range(MANY)]


def opened(name: str = "s") -> Session:
    """A session of these tests."""
    return turnlog.open(name, store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"))


def ends(name: str = "other") -> tuple[str, str]:
    """How a run without tools ends; "seconds" if it was not asked in half a minute."""
    result = agent.run(opened(name), "hello", ScriptedRunner(["hi"]), max_seconds=30)
    return result.stop, result.text


@pytest.fixture
def left() -> Iterator[threading.Event]:
    """Set at the end of a test, for what would never return."""
    event = threading.Event()
    yield event
    event.set()


def test_tools_that_never_return_stop_nobody(left: threading.Event) -> None:
    """Some stuck tools stop every agent of the process: no model is asked any more, without a word."""

    @agent.tool(seconds=0.05)
    def use(n: int) -> str:
        """Use."""
        left.wait()
        return "late"

    runner = ScriptedRunner([CALLS, "so"])
    result = agent.run(opened(), "go", runner, tools=[use], parallel=MANY, max_seconds=60)
    assert (result.stop, {call.outcome for call in result.turn.calls}) == ("end", {"timeout"})
    assert ends() == ("end", "hi")


def test_tools_run_agents() -> None:
    """Tools that wait for an agent of their own take the threads that this agent needs: all wait for ever."""
    meeting = threading.Barrier(MANY, timeout=30)
    inner: list[tuple[str, str]] = []

    def use(n: int) -> None:
        """Use."""
        meeting.wait()
        inner.append(ends(f"inner{n}"))

    result = agent.run(opened(), "go", ScriptedRunner([CALLS, "so"]), tools=[use], parallel=MANY, max_seconds=60)
    assert (result.stop, inner) == ("end", [("end", "hi")] * MANY)


def test_people_who_think_stop_nobody(left: threading.Event) -> None:
    """While some people think about an approval, nobody else's agent goes on."""
    asked = threading.Barrier(MANY + 1, timeout=30)
    paid: list[int] = []

    def approve(question: agent.Question) -> bool:
        asked.wait()
        return left.wait()

    pay = agent.tool("use", needs_approval=True, call=lambda n: paid.append(n), parameters=_N)
    runs = [
        threading.Thread(
            target=agent.run,
            args=(opened(f"s{n}"), "go", ScriptedRunner([CALLS[n], "so"])),
            kwargs={"tools": [pay], "approve": approve},
        )
        for n in range(MANY)
    ]
    for run in runs:
        run.start()
    asked.wait()
    assert (ends(), paid) == (("end", "hi"), [])
    left.set()
    for run in runs:
        run.join(30)
    assert sorted(paid) == list(range(MANY))


_N = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_a_busy_program_stops_nobody(left: threading.Event) -> None:
    """A program that keeps all threads of asyncio's pool busy for long waits for itself where it awaits an agent."""

    async def main() -> str:
        busy = [asyncio.get_running_loop().run_in_executor(None, left.wait) for _ in range(MANY)]
        try:
            return (await agent.arun(opened(), "hello", ScriptedRunner(["hi"]), max_seconds=30)).stop
        finally:
            left.set()
            await asyncio.gather(*busy)

    assert asyncio.run(main()) == "end"


def test_what_a_call_sees_and_raises() -> None:
    """A tool loses the context of who runs it; an exception that cannot pass to an event loop ends the loop."""
    word: ContextVar[str] = ContextVar("word", default="none")

    def raising(error: type[BaseException]) -> None:
        raise error("enough")

    async def main() -> list[Any]:
        word.set("mine")
        seen = [await functions.called_in_thread(word.get)]
        for kind in (StopIteration, SystemExit, KeyError, KeyboardInterrupt):
            try:
                await functions.called_in_thread(raising, kind)
            except BaseException as error:  # noqa: BLE001 - what is tested
                seen.append(repr(error))
        return seen

    assert asyncio.run(main()) == [
        "mine",
        "RuntimeError('StopIteration: enough')",
        "RuntimeError('SystemExit: enough')",
        "KeyError('enough')",
        "RuntimeError('KeyboardInterrupt: enough')",
    ]


ENDING = """
import asyncio, atexit, hashlib, threading
import turnlog
from turnlog import ToolCall, agent
from turnlog.runners import ScriptedRunner

begun, ending = threading.Event(), threading.Event()

@agent.tool(seconds=0.05)
def stuck() -> None:
    "Never return."
    threading.Event().wait()

def effect() -> None:
    "Have an effect that takes some time."
    begun.set()
    ending.wait()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 300_000)
    print("effect", flush=True)

async def main() -> None:
    session = turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"))
    calls = [ToolCall("a", "stuck", {}), ToolCall("b", "effect", {})]
    run = asyncio.create_task(agent.arun(session, "go", ScriptedRunner([calls, "so"]), tools=[stuck, effect]))
    await asyncio.to_thread(begun.wait)
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    print(run.cancelled(), flush=True)

atexit.register(ending.set)  # called before what was registered before
asyncio.run(main())
"""


@pytest.mark.slow
def test_the_program_ends() -> None:
    """A program with a tool that never returns cannot end; or one that ends cuts an effect in two."""
    ran = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, timeout=60, check=True)
    assert (ran.stdout.split(), ran.stderr) == (["True", "effect"], "")
