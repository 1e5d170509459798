"""An agent with parallel tools, killed with SIGKILL at random instants and started again: what became of its work.

An agent does several tasks, each with calls that run side by side and have effects outside of the log, over four
providers in turn. It is killed and started again until the work is done; then the next agent begins. A third of the
agents have nobody to ask, a third ask somebody who allows everything, a third somebody who says no to every other
question. In the end:

- each task is one turn, completed, with the right answer, and the log does not contradict itself
- no effect happened twice unless somebody was asked and said yes; none without approval, where that is needed
- no answer is lost: whatever the process was told is there; a call that is said to have run did run
- every request was valid
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import random
import select
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import turnlog
from draws import draws
from judging import errors_of
from turnlog import ToolCall, agent
from turnlog.log.messages import ToolResult
from turnlog.requests.request import Request
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.stores import open_store

PROVIDERS = ("openai-chat", "openai-responses", "anthropic", "google")
PLACES = {"sqlite": "{}/log.db", "files": "files:{}/log"}
TASKS = 3
CALLS = 6  # of each task: 3 and a call to be approved, then 2 more
ASKING = ("nobody", "all", "some")
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

    def lines(self, name: str) -> list[str]:
        """The lines of a file."""
        path = self._folder / name
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
            return [ToolCall(first[4], "pay", {"what": first[4]}), ToolCall(first[5], "later", {"what": first[5]})]
        return f"Task {task} is done."

    return answer


def tools(outside: Outside, draw: random.Random, asks: bool) -> list[Any]:
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

    return [pay, look, burn, later]


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

    done = sum(turn.status == "completed" for turn in session.log.turns())
    for task in range(done, TASKS):
        asks = work.asking != "nobody"
        runner = ScriptedRunner([model(task, judge, outside)] * 20, pause=0.0005)
        stream = agent.astream(
            session,
            f"Do task {task}.",
            runner,
            tools=tools(outside, draw, asks),
            approve=approve if asks else None,
        )
        async for event in stream:
            if event.kind in ("tool_call", "tool_result") and event.call is not None:
                outside.say("heard", event.kind, event.call.id, event.outcome or "")
            elif event.result is not None:
                outside.say("heard", "done", task, event.result.stop, event.result.text)
    session.close()


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
    log = turnlog.session.SessionLog(store, "work")
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
            elif info.outcome == "ok" and not info.synthetic and not effects[info.call.id]:
                yield f"{info.call.id} is said to have run and did not"
    for line in outside.lines("heard"):
        word, first, *_ = line.split()
        if word != "done" and first not in calls:
            yield f"an answer that was told of is lost: {first}"
    store.close()


async def warm_up(provider: str, judge: Judge) -> None:
    """Load what the first use of a provider loads: each process is forked from this one."""
    importlib.import_module("turnlog.agent.running")
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
        ended = False
        if number == 0:  # how long a whole life takes
            ended, whole = run(work, judge, 1, None)
        while not ended:
            left = 1 - sum(line.startswith("done") for line in work.outside.lines("heard")) / TASKS
            opened = draw.random() < 0.9  # some are killed while the session is opened
            after = draw.uniform(0, whole * max(left, 1 / TASKS) if opened else 0.1)
            ended, _ = run(work, judge, draw.randrange(1 << 30), after, opened=opened)
            if not ended:
                counts["kills"] += 1
                where[last_record(work)] += 1
        found += [f"agent {number} ({provider}, asks {asking}): {one}" for one in findings(work)]
        counts["questions"] += len(work.outside.lines("asked"))
        effects = Counter(line for line in work.outside.lines("effects") if not line.endswith("c2"))
        counts["effects repeated by permission"] += sum(times - 1 for times in effects.values())
    record_property("kills", {**counts, "after a record of": dict(where)})
    assert found == []
