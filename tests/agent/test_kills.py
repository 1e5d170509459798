"""An agent with parallel tools, killed with SIGKILL at random instants and started again: what became of its work.

An agent does several tasks, each with calls that run side by side and have effects outside of the log, over four
providers in turn. It is killed and started again until the work is done; then the next agent begins. A quarter of the
agents have nobody to ask, a quarter ask somebody who allows everything, a quarter somebody who says no to every other
question, and a quarter ask nobody: their calls wait until another process, which reads the log, has decided. In the
end:

- each task is one turn, completed, with the right answer, and the log does not contradict itself
- no effect happened twice unless somebody was asked and said yes; none without approval, where that is needed
- no answer is lost: whatever the process was told is there; a call that is said to have run did run
- an agent that a task calls did its work in one session of its own, of which all this is true as well; its calls wait
  for the other process, too
- a server of tools (MCP), which is killed with the agent or outlives it for a moment, did what it is told only once
- every request was valid
- who follows the log from another process was told of each event once, in order
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import turnlog
from draws import draws
from following import Watcher, forked
from judging import errors_of
from turnlog import ToolCall, agent
from turnlog.log.messages import Text, ToolResult
from turnlog.log.store import Store
from turnlog.requests.request import Request
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.session import SessionLog
from turnlog.stores import open_store

pytest.importorskip("mcp", reason="the package mcp is not installed: no agent with a server of tools is killed")
PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "google")
PLACES = {"sqlite": "{}/log.db", "files": "files:{}/log"}
TASKS = 3
CALLS = 7  # of each task: 3 and a call to be approved, then one of an agent and 2 more
SERVER = """
import json, random, sys, time
for line in sys.stdin:
    asked = json.loads(line)
    what, number = asked["method"], asked.get("id")
    if what == "initialize":
        info = {"name": "wires", "version": "1"}
        version = asked["params"]["protocolVersion"]
        said = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif what == "tools/list":
        schema = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
        said = {"tools": [{"name": "wire", "description": "Wire.", "inputSchema": schema}]}
    elif what == "tools/call":
        task = asked["params"]["arguments"]["what"]
        time.sleep(random.uniform(0, 0.02))
        with open(sys.argv[1], "a") as effects:
            effects.write(task + "\\n")
        time.sleep(random.uniform(0, 0.02))
        said = {"content": [{"type": "text", "text": "did " + task}]}
    else:
        said = None
    if number is not None:
        answer = {"error": {"code": -32601, "message": "no such method"}} if said is None else {"result": said}
        print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)
"""
"""A server in a few lines: one with the SDK takes a second to start, and each kill starts another."""
ASKING = ("nobody", "all", "some", "later")
Judge = Callable[[Request], list[str]]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="an agent is killed in a process that is forked")


class Outside:
    """What happens outside of the log: lines in files, which outlive a killed process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def say(self, name: str, *words: object) -> None:
        """Add a line to a file."""
        handle = os.open(self._folder / name, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        os.write(handle, (" ".join(map(str, words)) + "\n").encode())
        os.close(handle)

    def path(self, name: str) -> Path:
        """Where a file is."""
        return self._folder / name

    def lines(self, name: str) -> list[str]:
        """The lines of a file."""
        path = self.path(name)
        return path.read_text("utf-8").splitlines() if path.exists() else []


def model(task: int, judge: Judge, outside: Outside) -> Callable[[Request], Any]:
    """A model that goes by the results that it sees of this task."""

    def answer(request: Request) -> Any:
        for error in judge(request):
            outside.say("invalid", error)
        parts = [part for shown in request.view for part in shown.message.parts]
        seen = {part.call_id for part in parts if isinstance(part, ToolResult)}
        first = [f"t{task}c{n}" for n in range(CALLS)]
        if not set(first[:4]) <= seen:
            pay = [ToolCall(name, "pay", {"what": name}) for name in first[:2]]
            return ["I begin.", *pay, ToolCall(first[2], "look", {"what": first[2]}),
                    ToolCall(first[3], "burn", {"what": first[3]})]  # fmt: skip
        if not set(first) <= seen:
            return [
                ToolCall(first[4], "clerk", {"task": f"Pay {first[4]}."}),
                ToolCall(first[5], "later", {"what": first[5]}),
                ToolCall(first[6], "wire", {"what": first[6]}),
            ]
        return f"Task {task} is done."

    return answer


def clerk(judge: Judge, outside: Outside) -> Callable[[Request], Any]:
    """The model of an agent that pays what it is told to pay, and says what it then sees."""

    def answer(request: Request) -> Any:
        for error in judge(request):
            outside.say("invalid", error)
        parts = [part for shown in request.view for part in shown.message.parts]
        if any(isinstance(part, ToolResult) for part in parts):
            return "That is done."
        what = next(part.text for part in parts if isinstance(part, Text)).removeprefix("Pay ").removesuffix(".")
        return ToolCall(f"{what}pay", "pay", {"what": what})

    return answer


def tools(outside: Outside, draw: random.Random, asks: bool, waits: bool, judge: Judge) -> list[Any]:
    """Tools that take their time before and after their effect."""

    def act(what: str) -> str:
        time.sleep(draw.uniform(0, 0.02))
        outside.say("effects", what)
        time.sleep(draw.uniform(0, 0.02))
        return f"did {what}"

    def pay(what: str) -> str:
        """Pay."""
        return act(what)

    @agent.tool(repeatable=True)
    def look(what: str) -> str:
        """Look."""
        return act(what)

    @agent.tool(needs_approval=asks)
    def burn(what: str) -> str:
        """Burn."""
        return act(what)

    async def later(what: str) -> str:
        """Do it in the event loop."""
        await asyncio.sleep(draw.uniform(0, 0.02))
        outside.say("effects", what)
        await asyncio.sleep(draw.uniform(0, 0.02))
        return f"did {what}"

    @agent.tool(name="pay", needs_approval=waits)
    def pay_for(what: str) -> str:
        """Pay for somebody."""
        return act(what)

    runner = ScriptedRunner([clerk(judge, outside)] * 20, pause=0.0005)
    wires = agent.mcp_server([sys.executable, "-c", SERVER, str(outside.path("effects"))])
    return [pay, look, burn, later, agent.as_tool("clerk", "Pays.", runner=runner, tools=[pay_for]), wires]


class Work(NamedTuple):
    """One agent: where its log is, for which provider, and who is asked."""

    place: str
    outside: Outside
    provider: str
    asking: str


async def live(work: Work, judge: Judge, seed: int, begun: int) -> None:
    """Everything from opening the session to the last answer: the same program after every kill. Says on the pipe
    `begun` that the session is open."""
    outside, draw = work.outside, random.Random(seed)
    session = turnlog.open("work", store=work.place, target=turnlog.target(work.provider, DEMO_MODEL))
    os.write(begun, b".")

    def approve(question: agent.Question) -> bool | str:
        time.sleep(draw.uniform(0, 0.01))
        what = question.call.arguments["what"]
        asked = sum(line.startswith(f"{what} ") for line in outside.lines("asked"))
        says = work.asking == "all" or (asked + len(what) + int(what[-1])) % 2 == 0
        outside.say("asked", what, "yes" if says else "no", "again" if question.may_have_run else "first")
        return says or "Not that."

    asks = work.asking != "nobody"
    decides = agent.LATER if work.asking == "later" else approve if asks else None
    task = sum(turn.status == "completed" for turn in session.log.turns())
    while task < TASKS:
        runner = ScriptedRunner([model(task, judge, outside)] * 20, pause=0.0005)
        given = tools(outside, draw, asks, work.asking == "later", judge)
        stream = agent.astream(session, f"Do task {task}.", runner, tools=given, approve=decides)
        async for event in stream:
            if event.kind in ("tool_call", "tool_result") and event.call is not None:
                outside.say("heard", event.kind, event.call.id, event.outcome or "")
            elif event.result is not None:
                outside.say("heard", event.result.stop, task, event.result.text)
                task += event.result.stop == "end"
        while session.pending():
            await asyncio.sleep(0.002)
    session.close()


def decide(work: Work, seed: int, pipe: int) -> None:
    """Look for calls that wait, and say yes or no to each: what a page does, until it is killed."""
    draw = random.Random(seed)
    with turnlog.open("work", store=work.place, read_only=True) as page:
        while os.getppid() != 1:
            for info in page.pending():
                says = draw.random() < 0.7
                what = info.call.arguments["what"]
                work.outside.say("asked", what, "yes" if says else "no", "again" if info.started else "first")
                (page.approve if says else page.deny)(info)
            time.sleep(draw.uniform(0, 0.004))


def run(work: Work, judge: Judge, seed: int, after: float | None, *, opened: bool = True) -> tuple[bool, float]:
    """Live in a process of its own, killed so many seconds after it has opened the session, or after its start. Returns
    whether it came to its end before, and the seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            asyncio.run(live(work, judge, seed, writing))
            status = 0
        except BaseException as error:  # noqa: BLE001 - told to the parent, as a finding
            work.outside.say("died", f"{type(error).__name__}: {error}".replace("\n", " "))
        finally:
            os._exit(status)
    os.close(writing)
    if opened:
        os.read(reading, 1)
    begun = time.perf_counter()
    ended = False
    while not ended and select.select([reading], [], [], after and max(0.0, begun + after - time.perf_counter()))[0]:
        ended = os.read(reading, 1) == b""  # the other end is closed: the process has ended
    if not ended:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    return ended, time.perf_counter() - begun


def last_record(work: Work) -> str:
    """The kind of the last record that was written."""
    try:
        store = open_store(work.place, read_only=True)
    except turnlog.StoreError:
        return "nothing"
    try:
        return next((type(record.body).__name__ for record in store.read("work", reverse=True)), "nothing")
    except turnlog.StoreError:
        return "nothing"
    finally:
        store.close()


def findings(work: Work) -> Iterator[str]:
    """What is not as it must be after the work is done."""
    outside = work.outside
    yield from (f"the agent died: {line}" for line in outside.lines("died"))
    yield from (f"an invalid request: {line}" for line in outside.lines("invalid"))
    store = open_store(work.place, read_only=True)
    log = SessionLog(store, "work")
    turns, calls = log.turns(), {info.call.id: info for info in log.calls()}
    expected = [(f"Do task {n}.", "completed", f"Task {n} is done.") for n in range(TASKS)]
    if [(turn.input, turn.status, turn.answer) for turn in turns] != expected:
        yield f"the tasks ended otherwise: {turns}"
    yield from (f"the log contradicts itself: {one}" for one in log.validate())
    effects = Counter(outside.lines("effects"))
    yes = Counter(line.split()[0] for line in outside.lines("asked") if line.split()[1] == "yes")
    again = Counter(line.split()[0] for line in outside.lines("asked") if line.split()[1:] == ["yes", "again"])
    for what, times in effects.items():
        if what.endswith("c2"):  # a repeatable tool
            continue
        if times > 1 + again[what]:
            yield f"{what} happened {times} times, and {again[what]} repetitions were allowed"
        if what.endswith("c3") and work.asking != "nobody" and times > yes[what]:
            yield f"{what} happened {times} times and was allowed {yes[what]} times"
    for task in range(TASKS):
        for n in range(CALLS):
            info = calls.get(f"t{task}c{n}")
            if info is None or not info.result:
                yield f"call t{task}c{n} has no result"
            elif info.outcome == "ok" and not (info.synthetic or effects[info.call.id] or info.call.name == "clerk"):
                yield f"{info.call.id} is said to have run and did not"
    yield from of_clerks(store, effects)
    for line in outside.lines("heard"):
        word, first, *_ = line.split()
        if word.startswith("tool") and first not in calls:
            yield f"an answer that was told of is lost: {first}"
    store.close()


def of_clerks(store: Store, effects: Counter[str]) -> Iterator[str]:
    """What is not as it must be in the sessions of agents: one for each task, with one turn and one call."""
    clerks = [SessionLog(store, info.id) for info in store.sessions() if info.parent == "work"]
    if len(clerks) != TASKS:
        yield f"there are {len(clerks)} agents for {TASKS} tasks"
    for log in clerks:
        turns, calls = log.turns(), log.calls()
        if [turn.status for turn in turns] != ["completed"] or len(calls) != 1 or log.validate():
            yield f"an agent ended otherwise: {turns} {calls} {log.validate()}"
        for info in calls:
            if info.outcome == "ok" and not info.synthetic and not effects[info.call.id.removesuffix("pay")]:
                yield f"{info.call.id} is said to have run and did not"


async def warm_up(provider: str, judge: Judge) -> None:
    """Load what the first use of a provider loads: each process is forked from this one."""
    for name in ("turnlog.agent.running", "mcp", "mcp.client.stdio"):
        importlib.import_module(name)
    with turnlog.open(store=":memory:", target=turnlog.target(provider, DEMO_MODEL)) as session:
        async with session.turn("go") as turn:
            request = turn.request()
            judge(request)
            await turn.areceive(ScriptedRunner(["Yes."]).stream(request), request)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("store", PLACES)
def test_whatever_is_killed_goes_on(
    store: str, oracle: ModuleType, tmp_path: Path, caplog: pytest.LogCaptureFixture, record_property: Any
) -> None:
    """An agent that pays twice, forgets what it did, or cannot go on after a crash."""
    caplog.set_level(logging.CRITICAL, "turnlog")

    def judge(request: Request) -> list[str]:
        return errors_of(oracle, request.target, request.body)

    for provider in PROVIDERS:
        asyncio.run(warm_up(provider, judge))
    draw, counts, where, found, whole = random.Random(1), Counter[str](), Counter[str](), list[str](), 60.0
    while counts["kills"] < draws(6, 250) or counts["agents"] < len(PROVIDERS):
        number = counts["agents"]
        folder = tmp_path / f"{number}"
        folder.mkdir()
        provider, asking = PROVIDERS[number % len(PROVIDERS)], ASKING[number // len(PROVIDERS) % len(ASKING)]
        work = Work(PLACES[store].format(folder), Outside(folder), provider, asking)
        counts["agents"] += 1
        turnlog.open("work", store=work.place).close()
        watcher = Watcher(work.place, "work")
        page, pipe = forked(decide, work, number) if asking == "later" else (0, 0)
        ended = False
        if number == 0:  # how long a whole life takes
            ended, whole = run(work, judge, 1, None)
        while not ended:
            left = 1 - sum(line.startswith("end ") for line in work.outside.lines("heard")) / TASKS
            opened = draw.random() < 0.9  # some are killed while the session is opened
            after = draw.uniform(0, whole * max(left, 1 / TASKS) if opened else 0.1)
            ended, _ = run(work, judge, draw.randrange(1 << 30), after, opened=opened)
            if not ended:
                counts["kills"] += 1
                where[last_record(work)] += 1
        if page:
            os.kill(page, signal.SIGKILL)
            os.waitpid(page, 0)
            os.close(pipe)
        found += [f"agent {number} ({provider}, asks {asking}): {one}" for one in findings(work)]
        told, on_record = watcher.end()
        found += [f"agent {number}: a follower was told other events than there were"] * (told != on_record)
        counts["events told in another process"] += len(told)
        questions = work.outside.lines("asked")
        counts["decided by another process" if page else "questions"] += len(questions)
        effects = Counter(line for line in work.outside.lines("effects") if not line.endswith("c2"))
        counts["effects repeated by permission"] += sum(times - 1 for times in effects.values())
    record_property("kills", {**counts, "after a record of": dict(where)})
    assert found == []
