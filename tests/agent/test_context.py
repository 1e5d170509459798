"""What a tool sees of its call, and how far it says it is; the events of a run and their types."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any

import pytest

import turnlog
from turnlog import Text, ToolCall, ToolResult, agent
from turnlog.agent import DoneEvent, LoopEvent, ToolContext
from turnlog.agent.running import Options
from turnlog.errors import InputError
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "google", "google-interactions")
CALL = ToolCall("c1", "look", {"at": "x"})


class Shop:
    """What an application gives to its tools."""

    name = "of flowers"


def opened(provider: str = "openai-chat", **given: Any) -> Session:
    """A new session."""
    return turnlog.open("s", store=MemoryStore(), target=turnlog.target(provider, DEMO_MODEL), **given)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_a_tool_sees_its_call_and_no_model_sees_that(provider: str, asynchronous: bool) -> None:
    """A tool that needs a database or the user's name would find it in a global variable, or ask the model for it."""
    seen: list[Any] = []

    def note(context: ToolContext[Shop]) -> str:
        seen.append((context.session_id, context.call_id, context.labels, context.deps.name, context.cancelled))
        return "seen"

    async def alook(context: ToolContext[Shop], at: str) -> str:
        """Look."""
        return note(context)

    def look(at: str, *, context: ToolContext[Shop]) -> str:
        """Look."""
        return note(context)

    session, runner = opened(provider, labels={"user": "ann"}), ScriptedRunner([CALL, "so"])
    tool = agent.tool("look", call=alook if asynchronous else look)
    assert agent.run(session, "go", runner, tools=[tool], deps=Shop()).turn.calls[0].outcome == "ok"
    assert seen == [("s", "c1", {"user": "ann"}, "of flowers", False)]
    assert "context" not in str(runner.requests[0].body)
    assert tool.declaration.parameters is not None and list(tool.declaration.parameters["properties"]) == ["at"]


def test_a_tool_with_a_schema_of_its_own_sees_its_call() -> None:
    """A model's argument of the same name would stand in place of the context."""

    def look(context: ToolContext, **given: Any) -> str:
        return f"{context.call_id} {given}"

    tool = agent.tool("look", parameters={"properties": {"at": {"type": "string"}}}, call=look)
    assert asyncio.run(tool.run(tool.read(CALL), ToolContext("s", "c1"))) == "c1 {'at': 'x'}"
    with pytest.raises(InputError, match="Object contains unknown field `context`"):
        tool.read(ToolCall("c1", "look", {"context": "mine"}))
    with pytest.raises(InputError, match="its schema declares 'context', which the function does not take"):
        agent.tool("look", parameters={"properties": {"context": {"type": "string"}}}, call=look)


def _of_note(c: Annotated[ToolContext, "what is known"]) -> str:
    return c.call_id


def _or_none(c: ToolContext | None = None) -> str:
    return "" if c is None else c.call_id


def _of_deps(c: ToolContext[Shop]) -> str:
    return c.call_id


def _of_more(c: ToolContext, city: str) -> str:
    return c.call_id


class _Called:
    async def __call__(self, c: ToolContext) -> str:
        return c.call_id


@pytest.mark.parametrize("function", [_of_note, _or_none, _of_deps, partial(_of_more, city="Oslo"), _Called()])
def test_every_spelling_of_the_type_gives_the_context(function: Any) -> None:
    """A parameter that is not known as the context's would be asked of the model."""
    tool = agent.FunctionTool(function, name="f")
    assert "c" not in (tool.declaration.parameters or {})["properties"]
    assert asyncio.run(tool.run({}, ToolContext(call_id="c9"))) == "c9"
    with pytest.raises(InputError, match=r"context must be a turnlog.agent.ToolContext: tool .* takes one, not None"):
        asyncio.run(tool.run({}))


def test_one_context_is_enough() -> None:
    """Which of two parameters gets it would be a guess."""

    def two(a: ToolContext, b: ToolContext) -> None: ...

    with pytest.raises(InputError, match="tool 'two': 'b' is a second ToolContext: a call has one"):
        agent.FunctionTool(two)


# -- progress --------------------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [True, False])
def test_progress_is_an_event_in_its_place_and_not_on_record(asynchronous: bool) -> None:
    """A display that is told after the result, or in the wrong order, shows a tool at work that has ended."""

    def look(at: str, context: ToolContext) -> str:
        """Look."""
        context.progress("half")
        context.progress("all")
        return "seen"

    async def alook(at: str, context: ToolContext) -> str:
        """Look."""
        return look(at, context)

    session = opened()
    tool = agent.tool("look", call=alook if asynchronous else look)
    heard = [
        (event.kind, event.text)
        for event in agent.stream(session, "go", ScriptedRunner([CALL, "so"]), tools=[tool])
        if event.call is not None
    ]
    assert heard == [
        ("tool_call", ""),
        ("tool_started", ""),
        ("progress", "half"),
        ("progress", "all"),
        ("tool_result", "seen"),
    ]
    assert "half" not in str(session.history())


def test_progress_after_the_end_is_told_to_nobody() -> None:
    """A thread that outlives its run would write to an event loop that is closed."""
    kept: list[ToolContext] = []

    def look(at: str, context: ToolContext) -> None:
        """Look."""
        kept.append(context)

    events: list[LoopEvent | DoneEvent] = []

    async def main() -> None:
        async for event in agent.astream(opened(), "go", ScriptedRunner([CALL, "so"]), tools=[look]):
            events.append(event)

    asyncio.run(main())
    kept[0].progress("late")
    assert (kept[0].cancelled, [event.kind for event in events if event.text == "late"]) == (False, [])
    with pytest.raises(InputError, match="text must be a string, not int"):
        kept[0].progress(7)  # type: ignore[arg-type]


def test_a_function_asks_in_the_middle_of_its_call() -> None:
    """A question that nobody hears, or that is taken for the one before the call."""
    fields, asked = {"properties": {"size": {"type": "string"}}}, []

    async def order(context: ToolContext) -> Any:
        """Order."""
        return ToolResult("", parts=(Text(str(await context.ask("Which?", fields))),), outcome="failed")

    def approve(question: agent.Question) -> Any:
        asked.append((question.call.id, question.reason, question.fields, question.may_have_run))
        return {"size": "L"}

    session = opened()
    told = []
    for options in ({"approve": approve}, {}):
        runner = ScriptedRunner([ToolCall("c", "order"), "so"])
        heard = agent.stream(session, f"go {len(options)}", runner, tools=[order], **options)
        told += [(event.outcome, event.text) for event in heard if event.kind == "tool_result"]
    assert told == [("failed", "{'size': 'L'}"), ("failed", "None")]
    assert asked == [("c", "Which?", fields, False)]


# -- cancelled -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["turn", "run", "tool"])
def test_a_thread_learns_that_nobody_waits(way: str) -> None:
    """A plain function cannot be ended: it would go on to the end of its work for a turn that is over."""
    left = threading.Event()

    def look(at: str, context: ToolContext[Session]) -> str:
        """Look."""
        if way == "turn":
            turn = context.deps._turn.turn  # type: ignore[attr-defined]
            turn.cancel("enough")
        for _ in iter(lambda: context.cancelled, True):
            left.wait(0.001)
        context.progress("too late")
        left.set()
        return "left"

    session = opened()
    tool = agent.tool("look", call=look, seconds=0.02 if way == "tool" else None)
    limit = {"max_seconds": 0.05} if way == "run" else {}
    heard = list(agent.stream(session, "go", ScriptedRunner([CALL, "so"]), tools=[tool], deps=session, **limit))
    assert left.wait(30)
    assert "progress" not in [event.kind for event in heard]
    assert session.log.turns()[0].status == ("completed" if way == "tool" else "cancelled")


# -- what is said of a run -------------------------------------------------------------------------


@pytest.mark.parametrize("function", [agent.run, agent.arun, agent.stream, agent.astream, turnlog.run, turnlog.arun])
def test_help_says_what_a_run_does(function: Any) -> None:
    """`help(turnlog.run)` said "As `arun`", and an editor showed nothing of the options."""
    text = inspect.getdoc(function) or ""
    assert text.startswith("Say `text` to an agent and run the tools that its model calls")
    assert [name for name in Options.__annotations__ if f"`{name}`" not in text] == []
    assert "RunResult" in text or "DoneEvent" in text
    assert "Raises InputError" in text or "errors" in text


def test_the_last_event_has_the_result() -> None:
    """Whoever reads `event.result.text` at the end needs no question whether there is one."""
    *others, last = agent.stream(opened(), "go", ScriptedRunner(["so"]))
    assert isinstance(last, DoneEvent) and last.result.text == "so"
    assert all(isinstance(event, LoopEvent) and event.result is None for event in others)
    assert isinstance(last, agent.AgentEvent)


TYPED = """
from typing import Any, assert_type
import turnlog
from turnlog import agent
from turnlog.agent import AgentEvent, FunctionTool, RunResult, ToolContext
from turnlog.runners import Runner

class Shop:
    name: str = ""

def look(context: ToolContext[Shop], at: str) -> str:
    assert_type(context.deps, Shop)
    return context.deps.name

def bare(context: ToolContext) -> None: ...

def follow(session: turnlog.Session, runner: Runner) -> None:
    for event in agent.stream(session, "go", runner, tools=[look], deps=Shop()):
        if event.kind == "done":
            assert_type(event.result, RunResult[Any])
        else:
            assert_type(event.result, None)
        shown(event)

def shown(event: AgentEvent) -> str:
    return event.text

assert_type(agent.tool(look), FunctionTool)
assert_type(agent.tool("look", "Look.", parameters={}, call=look), FunctionTool)
assert_type(agent.tool(name="look", needs_approval=True)(look), FunctionTool)
assert_type(agent.tool(turnlog.Tool("look"), call=look, seconds=3), FunctionTool)
"""


@pytest.mark.slow
def test_type_checkers_know_the_events_and_the_context(tmp_path: Path) -> None:
    """An editor that says `result` may be None makes everybody write a check that never fails."""
    file = tmp_path / "typed.py"
    file.write_text(dedent(TYPED))
    source = str(Path(turnlog.__file__).parents[1])
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--no-error-summary", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env={"MYPYPATH": source})
    assert (done.stdout, done.returncode) == ("", 0)


def test_a_window_says_its_figures() -> None:
    """`session.window` at a prompt printed a class and an id."""
    session = opened()
    session.user("hello")
    window = session.window
    shown = repr(window)
    assert shown.startswith(f"WindowUse('s', {window.tokens} of ")
    assert shown.endswith(f" tokens, {window.available:,} available)")
    without = turnlog.open("t", store=MemoryStore())
    assert repr(without.window) == "WindowUse('t')"
    without.close()
    assert repr(without.window) == "WindowUse('t')"
