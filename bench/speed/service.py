"""A chat service under load: the one of docs/service.md over HTTP, and two hundred conversations in one process.

`http` runs the service of the page under uvicorn, with users who send messages (sometimes two at once), cut streams at
random, and read; the server is killed with SIGKILL and started again. `process` has conversations in one event loop and
one SQLite store, with a scripted model that answers after 0.5 to 1 s, cancelled streams, double submits, and a second
process on the same store that is killed. Both look into the store afterwards: no answer in another's session, no turn
closed by another, questions in order, no answer lost that was received whole. A third process follows all conversations
of `process` by their logs, and is told each event once, in order. `process` also measures turnlog's own CPU time for
each turn, how long each step of the event loop takes, and how late the loop is, beside that of an idle process at the
same time. `--size`: characters of a message, which the model repeats; with `--prose` they are words of the
documentation, drawn at random, of which the model repeats the end; with `--reopen` each turn opens the session anew, as
the program of the page does.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import httpx2 as httpx

import turnlog
from harness import ROOT, Report, bench, quantile
from turnlog.errors import SessionBusy, SessionNotFound
from turnlog.log.messages import text_of
from turnlog.log.records import TurnClosed
from turnlog.runners import DEMO_MODEL, ScriptedRunner
from turnlog.session.answer import Receiving
from turnlog.session.open import _Opening
from turnlog.session.turn import Turn
from turnlog.stores import open_store
from turnlog.view.turns import LEFT_OPEN

_END = 100
"""How many characters of a message a model repeats at least."""

TARGET = turnlog.target("openai-chat", DEMO_MODEL)


def page() -> str:
    """The service as the page shows it."""
    found = re.search(
        r"<!-- file service.py -->\n```python\n(.*?)^```$", (ROOT / "docs/service.md").read_text(), re.S | re.M
    )
    assert found is not None
    return found[1]


def judged(path: str, asked: dict[str, list[str]], whole: dict[str, list[str]], killed: bool) -> Counter[str]:
    """What is wrong in a store: `asked` are the messages of each chat in the order in which they were sent and taken,
    `whole` those whose answer came to its end. Messages hold their chat's name."""
    wrong: Counter[str] = Counter()
    store = open_store(path)
    if problems := store.verify():
        wrong["damage"] = len(problems)
    for info in store.sessions():
        with turnlog.open(info.id, store=store, read_only=True) as session:
            turns, texts = session.log.turns(), [text_of(r.message) for r in session.history() if r.message is not None]
            closings = Counter(r.body.turn_id for r in session.history() if isinstance(r.body, TurnClosed))
            wrong["text of another chat"] += sum(f"<{info.id}>" not in text for text in texts if "<" in text)
            wrong["a turn closed twice"] += sum(count > 1 for count in closings.values())
            left = sum(turn.reason.startswith(LEFT_OPEN) for turn in turns)
            wrong["a turn closed by another"] += 0 if killed else left
            questions = [turn.input for turn in turns]
            sent = asked.get(info.id, [])
            wrong["order"] += [one for one in sent if one in set(questions)] != [
                one for one in questions if one in set(sent)
            ]
            answered = {
                turn.input for turn in turns if turn.status == "completed" and turn.answer.endswith(turn.input[-_END:])
            }
            wrong["an answer lost"] += len(set(whole.get(info.id, [])) - answered)
    store.close()
    return +wrong


# -- over HTTP -------------------------------------------------------------------------------------


class Server:
    """The service of the page, in a process of its own."""

    def __init__(self, folder: str, port: int) -> None:
        Path(folder, "service.py").write_text(page())
        self._folder, self._port = folder, port

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(self._port), "--log-level", "error"]
        environment = {**os.environ, "STORE": "chats.db", "PAUSE": "0.02"}
        self.process = subprocess.Popen(command, cwd=self._folder, env=environment)
        while True:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"http://127.0.0.1:{self._port}/chats", headers={"x-user": "nobody"})
                return
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self.process.wait()


async def user(name: str, port: int, messages: int, draw: random.Random, seen: dict[str, Any]) -> None:
    """A user who talks in one chat."""
    chat, headers = f"{name}/trip", {"x-user": name}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120) as client:

        async def send(text: str, *, cut: bool) -> None:
            seen["asked"].setdefault(chat, []).append(text)
            begun = time.monotonic()
            try:
                async with client.stream("POST", "/chats/trip", json={"text": text}) as response:
                    async for line in response.aiter_lines():
                        if line.startswith("event: done"):
                            seen["whole"].setdefault(chat, []).append(text)
                            seen["counts"]["whole"] += 1
                        elif line.startswith("event: failed"):
                            seen["counts"]["refused"] += 1
                        elif cut and line and draw.random() < 0.3:
                            seen["counts"]["cut"] += 1
                            break
                    else:
                        seen["times"].append(time.monotonic() - begun)
            except httpx.HTTPError:
                seen["counts"]["broken"] += 1
                await asyncio.sleep(1)

        for n in range(messages):
            text = f"<{chat}> message {n} " + "so " * draw.randrange(3, 12) + f"end {n}."
            if draw.random() < 0.15:
                seen["counts"]["double"] += 1
                first = asyncio.create_task(send(text, cut=False))
                await asyncio.sleep(0.05)
                await asyncio.gather(first, send(f"{text} and {n}.", cut=False))
            else:
                await send(text, cut=draw.random() < 0.2)
            with contextlib.suppress(httpx.HTTPError):
                shown = await client.get("/chats/trip")
                seen["counts"]["read"] += shown.status_code == 200


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def over_http(report: Report, users: int, messages: int, kills: int, seed: int) -> None:
    draw, port = random.Random(seed), free_port()
    seen: dict[str, Any] = {"asked": {}, "whole": {}, "counts": Counter(), "times": []}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder, port)
        await asyncio.to_thread(server.start)
        talks = [
            asyncio.create_task(user(f"user{n}", port, messages, random.Random(draw.random()), seen))
            for n in range(users)
        ]
        for _ in range(kills):
            await asyncio.wait(talks, timeout=4)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            seen["counts"]["kills"] += 1
        await asyncio.gather(*talks)
        server.process.send_signal(signal.SIGTERM)
        server.process.wait()
        wrong = judged(f"{folder}/chats.db", seen["asked"], seen["whole"], killed=True)
    report.row("http", dict(sorted(seen["counts"].items())))
    report.row("whole answers", {"s, median": quantile(seen["times"], 0.5), "s, longest": max(seen["times"])})
    report.findings("wrong in the store", [f"{what}: {number}" for what, number in wrong.items()])


# -- in one process --------------------------------------------------------------------------------

_spent: ContextVar[list[float] | None] = ContextVar("spent", default=None)


_blocks: list[float] = []
"""How long each step of the event loop took."""


def timed(holder: Any, name: str, blocks: list[float] | None = None) -> None:
    """Add the CPU time of a function to that of the turn that calls it, in whatever thread; or its time by the clock to
    `blocks`."""
    inner = getattr(holder, name)

    def outer(*given: Any, **named: Any) -> Any:
        spent, clock = (_spent.get(), time.thread_time) if blocks is None else (blocks, time.perf_counter)
        begun = clock()
        try:
            return inner(*given, **named)
        finally:
            if spent is not None:
                spent.append(clock() - begun)

    setattr(holder, name, outer)


async def lateness(found: list[float]) -> None:
    """How late the event loop wakes who sleeps for 5 ms, until it is cancelled."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.005)
        found.append(time.perf_counter() - begun - 0.005)


def idle(pipe: Any) -> None:
    """A process that does nothing but look how late its loop is, until it is told to stop."""
    found: list[float] = []

    async def main() -> None:
        task = asyncio.create_task(lateness(found))
        await asyncio.to_thread(pipe.recv)
        task.cancel()

    asyncio.run(main())
    pipe.send(found)


def intruder(path: str) -> None:
    """Another process on the same store: opens sessions, also those in use, talks in its own, until it is killed."""
    store, draw = open_store(path), random.Random(5)
    while True:
        with contextlib.suppress(SessionBusy), turnlog.open(f"chat{draw.randrange(200)}", store=store, wait=0):
            pass
        with turnlog.open("intruder", store=store, target=TARGET) as session, session.turn("<intruder> x <intruder>"):
            session.assistant("<intruder> x <intruder>")


def onlooker(path: str, conversations: int, pipe: Any) -> None:
    """Another process that follows all conversations by their logs, and says in the end how many events it was told,
    and of which conversations it was told others than are in the log."""
    store, told = open_store(path, read_only=True), dict[str, list[Any]]()
    sessions: list[turnlog.Session] = []

    def plain(event: Any) -> Any:
        return event.kind, event.text, event.record.n

    async def follow(chat: str) -> None:
        while True:
            with contextlib.suppress(SessionNotFound):
                sessions.append(session := turnlog.open(chat, store=store, read_only=True))
                break
            await asyncio.sleep(0.1)
        async for event in session.follow(1):
            told.setdefault(chat, []).append(plain(event))

    async def main() -> None:
        tasks = [asyncio.create_task(follow(f"chat{n}")) for n in range(conversations)]
        await asyncio.to_thread(pipe.recv)
        for session in sessions:
            session.close()
        await asyncio.gather(*tasks)

    asyncio.run(main())
    wrong = []
    for chat, lines in told.items():
        with turnlog.open(chat, store=store, read_only=True) as session:
            wrong += [chat] * ([plain(event) for event in session.follow(1).waiting()] != lines)
    pipe.send((sum(map(len, told.values())), wrong))


class Slow:
    """The scripted model, which answers after half a second to a second, with all that was said or the end of it."""

    def __init__(self, draw: random.Random, *, end: bool) -> None:
        self._draw, self._model = draw, ScriptedRunner([self._end] if end else [])

    @staticmethod
    def _end(request: Any) -> str:
        said = next(shown.message for shown in reversed(request.view) if shown.message.role == "user")
        return f"You said: {text_of(said)[-_END:]}"

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """The chunks of the answer."""
        await asyncio.sleep(self._draw.uniform(0.5, 1.0))
        async for chunk in self._model.stream(request):
            yield chunk


def timing() -> None:
    """Time what turnlog does in a turn, wherever it does it."""
    timed(_Opening, "run")
    timed(turnlog.Session, "request")
    timed(turnlog.Session, "close")
    timed(Turn, "_begin")
    timed(Turn, "__exit__")
    timed(Receiving, "feed")
    timed(Receiving, "end")
    timed(asyncio.events.Handle, "_run", _blocks)


class Load(NamedTuple):
    """What is asked of the one process."""

    conversations: int
    turns: int
    size: int
    prose: bool
    reopen: bool
    seed: int


async def in_process(report: Report, arguments: Load) -> None:
    draw = random.Random(arguments.seed)
    words = [word for page in sorted(ROOT.glob("docs/*.md")) for word in page.read_text().split() if word.isalpha()]
    prose = " ".join(draw.choices(words, k=arguments.size))
    asked: dict[str, list[str]] = {}
    whole: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    spent: list[float] = []
    late: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/chats.db"
        store = open_store(path)
        turnlog.warm(TARGET)

        @contextlib.asynccontextmanager
        async def opened_anew(chat: str, queue: asyncio.Lock) -> AsyncIterator[turnlog.Session]:
            async with queue, await turnlog.aopen(chat, store=store, target=TARGET, wait=60) as session:
                yield session

        async def turn(chat: str, text: str, session: Any) -> None:
            asked.setdefault(chat, []).append(text)
            mine: list[float] = []
            _spent.set(mine)
            async with session() as found, found.turn(text) as opened:
                prepared = await opened.arequest()
                model = Slow(draw, end=arguments.prose)
                async for _ in opened.stream(model.stream(prepared), prepared):
                    pass
            whole.setdefault(chat, []).append(text)
            counts["turns"] += 1
            spent.append(sum(mine))

        async def conversation(number: int) -> None:
            chat, queue = f"chat{number}", asyncio.Lock()
            if arguments.reopen:
                await talk(chat, lambda: opened_anew(chat, queue))
            else:
                async with await turnlog.aopen(chat, store=store, target=TARGET, wait=60) as session:
                    await talk(chat, lambda: contextlib.nullcontext(session))

        async def talk(chat: str, session: Any) -> None:
            for n in range(arguments.turns):
                text = f"<{chat}> message {n} "
                if arguments.prose:
                    at = draw.randrange(len(prose) - arguments.size)
                    text += prose[at : at + arguments.size]
                text = text[: arguments.size].ljust(arguments.size, "x") + f" end {n}."
                task = asyncio.create_task(turn(chat, text, session))
                if draw.random() < 0.1:
                    counts["double"] += 1
                    await asyncio.gather(task, asyncio.create_task(turn(chat, f"{text} and {n}.", session)))
                elif draw.random() < 0.1:
                    counts["cancelled"] += 1
                    await asyncio.wait([task], timeout=draw.uniform(0.0, 1.2))
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                else:
                    await task

        mine, theirs = multiprocessing.get_context("spawn").Pipe()
        control = multiprocessing.get_context("spawn").Process(target=idle, args=(theirs,))
        await asyncio.to_thread(control.start)
        monitor = asyncio.create_task(lateness(late))
        other = multiprocessing.get_context("spawn").Process(target=intruder, args=(path,))
        await asyncio.to_thread(other.start)
        ours, hers = multiprocessing.get_context("spawn").Pipe()
        watcher = multiprocessing.get_context("spawn").Process(
            target=onlooker, args=(path, arguments.conversations, hers)
        )
        await asyncio.to_thread(watcher.start)
        _blocks.clear()
        begun, before = time.monotonic(), time.process_time()
        talks = [asyncio.create_task(conversation(n)) for n in range(arguments.conversations)]
        await asyncio.wait(talks, timeout=8)
        assert other.pid is not None
        os.kill(other.pid, signal.SIGKILL)
        counts["kills"] += 1
        await asyncio.gather(*talks)
        took, cpu = time.monotonic() - begun, time.process_time() - before
        monitor.cancel()
        left = [task for task in asyncio.all_tasks() if task not in (asyncio.current_task(), monitor)]
        mine.send("stop")
        alone = await asyncio.to_thread(mine.recv)
        ours.send("stop")
        counts["events followed"], unlike = await asyncio.to_thread(ours.recv)
        for process in (control, other, watcher):
            process.join()
        store.close()
        wrong = judged(path, asked, whole, killed=False)
        wrong["events told otherwise to a follower"] = len(unlike)
        if left:
            wrong["tasks left"] = len(left)
    report.row("process", {**dict(sorted(counts.items())), "s": took, "s of CPU": cpu})
    report.row("turnlog's CPU for a turn", shares(spent, median=0.5, p99=0.99, longest=1))
    for name, found in (("a step of the loop", _blocks), ("event loop late", late), ("idle process late", alone)):
        report.row(name, shares(found, p99=0.99, p999=0.999, longest=1))
    report.findings("wrong in the store", [f"{what}: {number}" for what, number in (+wrong).items()])


def shares(found: list[float], **parts: float) -> dict[str, float]:
    """Quantiles of times, in milliseconds."""
    return {f"ms, {name}": 1000 * quantile(found, part) for name, part in parts.items()}


@bench(quick={"users": 5, "messages": 3, "kills": 1})
def http(report: Report, *, users: int = 50, messages: int = 12, kills: int = 3, seed: int = 1) -> None:
    """The service of docs/service.md under uvicorn, with users who cut streams, killed and started again."""
    asyncio.run(over_http(report, users, messages, kills, seed))


@bench(quick={"conversations": 20, "turns": 3})
def process(
    report: Report,
    *,
    conversations: int = 200,
    turns: int = 20,
    size: int = 200,
    prose: bool = False,
    reopen: bool = False,
    seed: int = 1,
) -> None:
    """Two hundred conversations in one process and one store: CPU of a turn, lateness of the event loop."""
    timing()
    asyncio.run(in_process(report, Load(conversations, turns, size, prose, reopen, seed)))
