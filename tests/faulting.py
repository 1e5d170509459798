"""A session that is lived in a process of its own, which is killed somewhere in it; and what must be true after that.

The life takes in whatever can be left half-done: streams, tools with effects on disk, approvals, summaries, decisions,
a watched folder. The process says on a pipe which records it has been told are kept: a judge holds it to that.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

import msgspec

import turnlog
from agents import CHAT, says
from judging import errors_of
from turnlog.cli import main
from turnlog.log.messages import ToolCall, ToolResult, text_of
from turnlog.log.records import (
    FileChange,
    PartialAnswer,
    Record,
    StreamCheckpoint,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
)
from turnlog.log.store import Draft, Store
from turnlog.session import answer_unfinished
from turnlog.session.session import Session
from turnlog.session.turn import Turn
from turnlog.stores import open_store
from turnlog.summarize import ModelSummarizer
from turnlog.view.fold import INTERRUPTED

__all__ = ["Heard", "Kill", "PLACES", "heard", "judge", "live", "reopened", "start"]

NAME = "life"
SYSTEM = "You keep house. Be careful."
BUDGET = turnlog.Budget(max_tokens=3_000)
CLAUDE = turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=1000)
SHELL = {
    "name": "shell",
    "description": "Run.",
    "parameters": {"type": "object", "properties": {"x": {"type": "string"}}},
}
AIMS = (CHAT, turnlog.target("openai-responses", "gpt-5"), CLAUDE, turnlog.target("google", "gemini-2.5-pro"))
PLACES = {"sqlite": "{}/log.db", "files": "files:{}/log"}
_SOURCE = str(Path(turnlog.__file__).parent)


class Kill(NamedTuple):
    """Where the process is killed.

    `before` or `after` append `at` (after: before anybody is told); `torn`: half of what append `at` writes to a file
    is there; `paid`: summary `at` is paid for and not received; at line `at` of this package that is run (`line`), or
    of those run inside of an append (`inside`); `time`: the parent kills after `at` microseconds; `never`.
    """

    kind: str
    at: int = 0


class Heard(NamedTuple):
    """What the process said before it ended: records it was told are kept (number, hash), where it was, whether in the
    midst of an append, and the totals of a life that came to its end."""

    kept: list[tuple[int, str]]
    phase: str
    appending: bool
    totals: dict[str, int]


# -- the life --------------------------------------------------------------------------------------


class _Wire:
    """The child's end of the pipe, and the place where it dies."""

    def __init__(self, pipe: int, kill: Kill) -> None:
        self._pipe = pipe
        self.kill = kill
        self.appends = self.lines = self.inside = 0
        self.appending = False
        self._main = threading.get_ident()

    def say(self, *words: object) -> None:
        os.write(self._pipe, (" ".join(map(str, words)) + "\n").encode())

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def reach(self, kind: str, at: int) -> None:
        if self.kill == (kind, at):
            self.die()

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(_SOURCE):
            return None
        if event == "line":
            self.lines += 1
            self.reach("line", self.lines)
            if self.appending:
                self.inside += 1
                self.reach("inside", self.inside)
        return self.trace


class _Told:
    """A store in front of a store that says what has been kept."""

    def __init__(self, store: Store, wire: _Wire) -> None:
        self._store = store
        self._wire = wire

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        wire = self._wire
        wire.appends += 1
        wire.reach("before", wire.appends)
        wire.say("begin")
        wire.appending = True
        with _torn_write(wire) if wire.kill == ("torn", wire.appends) else contextlib.nullcontext():
            records = self._store.append(session_id, drafts, expected=expected)
        wire.appending = False
        wire.reach("after", wire.appends)
        for record in records:
            wire.say("kept", record.n, hashlib.sha256(record.raw or b"").hexdigest())
        return records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@contextlib.contextmanager
def _torn_write(wire: _Wire) -> Iterator[None]:
    whole = os.write

    def half(handle: int, data: bytes) -> int:
        whole(handle, data[: max(1, len(data) * 2 // 3)])
        wire.die()
        return 0

    os.write = half  # type: ignore[assignment]
    try:
        yield
    finally:
        os.write = whole


def start(path: str, folder: Path, kill: Kill) -> tuple[int, int]:
    """Fork a process that lives in the store at `path`, with effects in `folder`: its id, and the pipe it tells on."""
    for name in ("work", "effects", "paid"):
        (folder / name).mkdir(parents=True)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            wire = _Wire(writing, kill)
            if kill.kind in ("line", "inside", "never"):
                sys.settrace(wire.trace)
            live(_Told(open_store(path), wire), folder, wire)  # type: ignore[arg-type]
            sys.settrace(None)
            paid = len(os.listdir(folder / "paid"))
            wire.say(
                "totals",
                json.dumps({"appends": wire.appends, "lines": wire.lines, "inside": wire.inside, "paid": paid}),
            )
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return child, reading


def heard(said: str) -> Heard:
    """What a process said, read from its pipe after it ended."""
    kept, phase, appending, totals = [], "opening", False, {}
    for line in said.splitlines():
        word, _, rest = line.partition(" ")
        if word == "kept":
            n, sha = rest.split()
            kept.append((int(n), sha))
            appending = False
        elif word == "begin":
            appending = True
        elif word == "phase":
            phase = rest
        elif word == "totals":
            totals = json.loads(rest)
    return Heard(kept, phase, appending, totals)


def _paid(folder: Path, wire: _Wire | None = None) -> ModelSummarizer:
    """A summarizer that costs: each prompt that it is asked leaves a receipt."""

    def ask(prompt: str) -> str:
        name, before = hashlib.sha256(prompt.encode()).hexdigest()[:16], len(os.listdir(folder / "paid"))
        (folder / "paid" / f"{name}-{os.getpid()}-{before}").write_text("paid")
        if wire is not None:
            wire.reach("paid", before + 1)
        return "The house was kept: floors, windows, the cellar. Nothing is open."

    return ModelSummarizer(ask, name="small", input_limit=20_000)


def _effect(folder: Path, call: ToolCall) -> None:
    """What a tool does to the world, before anybody hears of it."""
    (folder / "effects" / call.id).write_text("done")


def reopened(store: Store, folder: Path) -> Session:
    """The session as whoever comes after the crash opens it: with nothing but its name."""
    return turnlog.open(NAME, store=store, settings=turnlog.Settings(summarizer=_paid(folder), checkpoint=0.0))


def live(store: Store, folder: Path, wire: _Wire) -> None:
    """The whole life, from opening to closing."""
    session = turnlog.open(
        NAME,
        store=store,
        target=CHAT,
        budget=BUDGET,
        tools=[SHELL],
        settings=turnlog.Settings(system=SYSTEM, summarizer=_paid(folder, wire), checkpoint=0.0),
    )
    wire.say("phase turn")
    with session.turn("Keep the house this week. " + "Begin with the floors. " * 20) as turn:
        turn.receive(_asked(turn, says("I will begin with the floors.")))
    wire.say("phase stream")
    with session.turn("How are the floors?") as turn:
        turn.request()
        turn.receive(_chat_stream("The floors are ", "clean, ", "all of them ", "but one."))
    _parallel_tools(session, folder, wire)
    _approved(session, folder, wire)
    _watched(session, folder, wire)
    _other_provider(session, folder, wire)
    _grows(session, folder, wire)
    _decided(session, folder, wire)
    _without_turns(session, folder, wire)
    wire.say("phase closing")
    session.close()


def _asked(turn: Turn, answer: Any) -> Any:
    turn.request()
    return answer


def _parallel_tools(session: Session, folder: Path, wire: _Wire) -> None:
    wire.say("phase parallel tools")
    with session.turn("Sweep and mop.") as turn:
        calls = turn.receive(_asked(turn, _chat_stream("I sweep ", "and mop.", calls=("sweep", "mop")))).tool_calls
        for call in calls:
            turn.tool_started(call)
        for call in calls:
            _effect(folder, call)
        for call in reversed(calls):
            session.tool_finished(call, seconds=0.1)
            turn.tool_result(call, f"{call.id} done\n" + "dust " * 100)
        turn.receive(_asked(turn, says("Swept and mopped.")))
    with session.turn("And the steps?") as turn, contextlib.suppress(ConnectionError):
        turn.receive(_breaks_off())


def _approved(session: Session, folder: Path, wire: _Wire) -> None:
    wire.say("phase approval")
    with session.turn("Burn the letters, keep the will.") as turn:
        burn, tear = turn.receive(_asked(turn, says("", "burn", "tear", name="shell"))).tool_calls
        turn.ask_approval(burn, reason="it cannot be undone")
        turn.ask_approval(tear)
        turn.approve(burn, by="kim")
        turn.deny(tear, by="kim", reason="Not the will.")
        with turn.tool(burn) as run:
            _effect(folder, burn)
            (folder / "work" / "letters").write_text("ashes")
            turn.files(folder / "work").record("letters", b"letters", b"ashes")
            run.result("burnt")
        turn.receive(_asked(turn, says("Burnt, not torn.")))


def _watched(session: Session, folder: Path, wire: _Wire) -> None:
    wire.say("phase watched folder")
    with session.turn("Write the list.", watch=folder / "work") as turn:
        (call,) = turn.receive(_asked(turn, says("", "write", name="shell"))).tool_calls
        with turn.tool(call) as run:
            _effect(folder, call)
            (folder / "work" / "list").write_text("soap\n")
            run.result("written")
        (folder / "work" / "list2").write_text("bread\n")
        turn.receive(_asked(turn, says("The list is written.")))


def _other_provider(session: Session, folder: Path, wire: _Wire) -> None:
    wire.say("phase other provider")
    session.switch(CLAUDE, reason="a second opinion")
    with session.turn("Is the list complete?") as turn:
        (call,) = turn.receive(_asked(turn, _claude_stream("look"))).tool_calls
        with turn.tool(call) as run:
            _effect(folder, call)
            run.result("soap")
        turn.receive(_asked(turn, _claude_stream("")))
    session.switch(CHAT)


def _grows(session: Session, folder: Path, wire: _Wire) -> None:
    """Turns that outgrow the budget: a summary ahead of need, claimed, paid, decided on."""
    wire.say("phase compaction")
    for n in range(7):
        _room(session, folder, n)


def _room(session: Session, folder: Path, n: int) -> None:
    with session.turn(f"Room {n}. " + "Mind the corners. " * 10) as turn:
        (call,) = turn.receive(_asked(turn, says("", f"room{n}", name="shell"))).tool_calls
        with turn.tool(call) as run:
            _effect(folder, call)
            run.result(f"room {n}: " + f"corner {n} is clean. " * 60)
        turn.receive(_asked(turn, says(f"Room {n} is done.")))


def _decided(session: Session, folder: Path, wire: _Wire) -> None:
    wire.say("phase decisions")
    session.compact(keep=1)
    session.undo("compaction")
    session.configure(strategy="mask", budget=turnlog.Budget(max_tokens=1_600))
    for n in range(7, 11):
        _room(session, folder, n)
    with session.turn("What is left?") as turn:
        turn.receive(_asked(turn, says("The cellar.")))
    session.system(SYSTEM + " Leave the cellar.", replace=True)
    if hasattr(session, "rewind"):
        session.rewind(turns=1)
        session.undo("rewind")
        session.rewind(turns=1)
    session.clear()


def _without_turns(session: Session, folder: Path, wire: _Wire) -> None:
    wire.say("phase without turns")
    session.user("One more thing: the cellar.")
    session.request()
    (call,) = session.receive(says("", "cellar", name="shell")).tool_calls
    session.tool_started(call)
    _effect(folder, call)
    session.tool_finished(call)
    session.tool_result(call, "dark")
    session.request()
    session.receive(_chat_stream("It is ", "dark ", "in the cellar."))


# -- answers ---------------------------------------------------------------------------------------


def _chunk(**delta: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "model": "gpt-4o", "choices": [{"index": 0, "delta": delta}]}


def _chat_stream(*texts: str, calls: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    yield _chunk(role="assistant", content="")
    for text in texts:
        yield _chunk(content=text)
    for i, name in enumerate(calls):
        yield _chunk(
            tool_calls=[{"index": i, "id": name, "type": "function", "function": {"name": "shell", "arguments": ""}}]
        )
        for piece in ('{"x": ', f'"{name} all of ', 'it"}'):
            yield _chunk(tool_calls=[{"index": i, "function": {"arguments": piece}}])
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    yield {"id": "chatcmpl-1", "model": "gpt-4o", "choices": [end]}
    yield {
        "id": "chatcmpl-1",
        "model": "gpt-4o",
        "choices": [],
        "usage": {"prompt_tokens": 200, "completion_tokens": 20},
    }


def _breaks_off() -> Iterator[dict[str, Any]]:
    yield _chunk(role="assistant", content="The steps are ")
    yield _chunk(content="worn and ")
    raise ConnectionError("reset by peer")


def _claude_stream(call: str) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 300, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": CLAUDE.model, "content": [], "usage": usage}
    yield {"type": "message_start", "message": head}
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "Let me think "},
                {"type": "thinking_delta", "thinking": "about soap."},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        (
            {"type": "text", "text": ""},
            [{"type": "text_delta", "text": "I look "}, {"type": "text_delta", "text": "again."}],
        ),
    ]
    if call:
        pieces = ('{"x": ', '"the ', 'list"}')
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        blocks.append(({"type": "tool_use", "id": call, "name": "shell", "input": {}}, deltas))
    for i, (block, deltas) in enumerate(blocks):
        yield {"type": "content_block_start", "index": i, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": i, "delta": delta}
        yield {"type": "content_block_stop", "index": i}
    stop = {"stop_reason": "tool_use" if call else "end_turn"}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 20}}
    yield {"type": "message_stop"}


# -- the judge -------------------------------------------------------------------------------------


class _Before(NamedTuple):
    """What the log says before anybody opens the session again."""

    records: list[Record]
    open_turn: TurnOpened | None
    stream: StreamCheckpoint | None
    started: dict[str, bool]
    """Calls that started and have no result: whether they ended."""
    results: set[str]


def judge(path: str, folder: Path, said: Heard, oracle: ModuleType) -> Iterator[str]:
    """Everything that is not as it must be after a kill. The session is opened twice, used, and closed."""
    store = open_store(path)
    try:
        if NAME not in {info.id for info in store.sessions()}:
            if said.kept:
                yield f"the session is gone, and {len(said.kept)} acknowledged records with it"
            return
        records = list(store.read(NAME))
        yield from _kept(records, said)
        before = _before(records)
        yield from _doctor(path, before)
        with contextlib.closing(reopened(store, folder)) as session:
            yield from _recovered(session, before, folder)
            bodies = [session.request(aim).json() for aim in AIMS]
            yield from _requests(session, oracle, before)
            recovered = session.resumed.recovered if session.resumed else None
            bodies_again = [session.request(aim).json() for aim in AIMS]
            if bodies != bodies_again:
                yield "a second request differs from the first"
        count = store.info(NAME).records
    finally:
        store.close()
    store = open_store(path)
    try:
        with contextlib.closing(reopened(store, folder)) as session:
            yield from _nothing_new(session, count, before, recovered)
            if [session.request(aim).json() for aim in AIMS] != bodies:
                yield "the second opening makes other requests"
            yield from _goes_on(session, oracle)
        yield from (f"verify: {problem}" for problem in store.verify() if "unfinished append" not in problem.what)
    finally:
        store.close()
    paid = [name.partition("-")[0] for name in os.listdir(folder / "paid")]
    yield from (f"summary {name} was paid {paid.count(name)} times" for name in set(paid) if paid.count(name) > 1)


def _kept(records: Sequence[Record], said: Heard) -> Iterator[str]:
    if [record.n for record in records] != list(range(1, len(records) + 1)):
        yield "numbers are not 1 to n"
    hashes = {record.n: hashlib.sha256(record.raw or b"").hexdigest() for record in records}
    for n, sha in said.kept:
        if hashes.get(n) != sha:
            yield f"acknowledged record {n} is {'not the same' if n in hashes else 'lost'}"


def _before(records: Sequence[Record]) -> _Before:
    """Told by other means than the package's own: a plain walk over the records."""
    opened: TurnOpened | None = None
    stream: StreamCheckpoint | None = None
    started: dict[str, bool] = {}
    results: set[str] = set()
    for record in records:
        body = record.body
        if isinstance(body, TurnOpened):
            opened = body
        elif isinstance(body, TurnClosed):
            opened = None
        elif isinstance(body, ToolStarted):
            started[body.call_id] = False
        elif isinstance(body, ToolFinished):
            started[body.call_id] = True
        elif isinstance(body, StreamCheckpoint):
            stream = body
        if record.message is not None:
            if record.message.role == "assistant":
                stream = None
            results |= {p.call_id for p in record.message.parts if isinstance(p, ToolResult)}
    return _Before(list(records), opened, stream, {c: e for c, e in started.items() if c not in results}, results)


def _doctor(path: str, before: _Before) -> Iterator[str]:
    told = _run("doctor", NAME, "--store", path, "--json")
    for call in before.started:
        if not any(f"({call})" in row["detail"] for row in told if row["kind"] == "unfinished"):
            yield f"doctor does not list {call}"
    if before.open_turn and not any(row["kind"] == "turn" for row in told):
        yield "doctor does not list the open turn"
    if before.stream and not any(row["kind"] == "stream" for row in told):
        yield "doctor does not list the interrupted stream"


def _run(*words: str) -> list[dict[str, Any]]:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        main(words)
    return [json.loads(line) for line in out.buffer.getvalue().splitlines()]  # type: ignore[attr-defined]


def _recovered(session: Session, before: _Before, folder: Path) -> Iterator[str]:
    feed = session.events()
    resumed = session.resumed
    events = feed.waiting()
    if resumed is None or [event.found for event in events if event.kind == "session_resumed"] != [resumed]:
        yield f"resuming is not told: {events}"
        return
    found = resumed.recovered
    if (found.turn.id if found.turn else None) != (before.open_turn.turn_id if before.open_turn else None):
        yield f"turn {before.open_turn} was left open, {found.turn} is told"
    if before.open_turn and session.log.turns()[-1].status != "failed":
        yield "the turn that was left open is not closed"
    unfinished = {info.call.id: info for info in session.log.unfinished()}
    for call, ended in before.started.items():
        standing = unfinished[call].standing if call in unfinished else ""
        if ("its result is not on record" if ended else "may have run") not in standing:
            yield f"{call} started and has no result, unfinished() says {standing!r}"
        if call not in {info.call.id for info in found.calls}:
            yield f"{call} started and has no result, resuming does not tell"
    yield from _effects(session, before, folder)
    yield from _stream(session, before)
    configuration = next((r.body for r in reversed(before.records) if type(r.body).__name__ == "Configuration"), None)
    if configuration is not None and session.configuration != configuration:
        yield "the configuration is not the one on record"
    if resumed.changes:
        yield f"changes are told where there are none: {resumed.changes}"


def _effects(session: Session, before: _Before, folder: Path) -> Iterator[str]:
    """What was done to the world is either answered for or may have been done."""
    assert session.resumed is not None
    done = set(os.listdir(folder / "effects"))
    for call in sorted(done - before.results - before.started.keys()):
        yield f"{call} had its effect, and nothing tells of it"
    real = {
        part.call_id
        for record in before.records
        for part in (record.message.parts if record.message else ())
        if isinstance(part, ToolResult) and not part.synthetic
    }
    yield from (f"{call} has a result and had no effect" for call in sorted(real - done))
    opened = before.open_turn
    if opened is not None and opened.watch:
        first = next(record.n for record in before.records if record.body == opened)
        recorded = {r.body.path for r in before.records[first:] if isinstance(r.body, FileChange)}
        touched = {name for name in os.listdir(folder / "work") if name.startswith("list")}
        untold = touched - recorded - set(session.resumed.recovered.files)
        yield from (f"{name} changed in the watched folder, and nothing tells of it" for name in sorted(untold))


def _stream(session: Session, before: _Before) -> Iterator[str]:
    """What was put on record of a stream stands in the log as an interrupted answer, and in the next request."""
    assert session.resumed is not None
    number = session.resumed.recovered.answer
    if before.stream is None:
        if number:
            yield f"record {number} is told as an interrupted answer, and nothing was being streamed"
        return
    body = next((record.body for record in session.log.records() if record.n == number), None)
    if not isinstance(body, PartialAnswer) or body.message != before.stream.message:
        yield f"what had come of the stream is not in record {number}"
    elif body.fragments != before.stream.fragments:
        yield "the fragments of the stream are not kept"
    said = text_of(before.stream.message)
    shown = json.dumps(session.request(CHAT).body, ensure_ascii=False)
    if said and (said.strip() not in shown or INTERRUPTED not in shown):
        yield f"the next request does not show what had come of the stream, with its mark: {said!r}"


def _requests(session: Session, oracle: ModuleType, before: _Before) -> Iterator[str]:
    budget = session.configuration.budget or turnlog.Budget()
    for aim in AIMS:
        request = session.request(aim).body
        yield from (f"{aim.provider}: {error}" for error in errors_of(oracle, aim, request))
        size = turnlog.count(request, model=aim.model).tokens
        if budget.max_tokens and size > budget.max_tokens:
            yield f"{aim.provider}: {size} tokens, the budget is {budget.max_tokens}"
    results = {
        message["tool_call_id"]: message["content"]
        for message in session.request(CHAT).body["messages"]
        if message["role"] == "tool"
    }
    for call, ended in before.started.items():
        wanted = "its result was lost" if ended else "may have run"
        if wanted not in str(results.get(call, "")):
            yield f"{call} started and has no result; the model is told {results.get(call)!r}"


def _nothing_new(session: Session, count: int, before: _Before, first: Any) -> Iterator[str]:
    if session.resumed is None or session.resumed.record != count:
        yield f"the second opening finds another log than the first left: {session.resumed}, {count}"
        return
    second = session.resumed.recovered
    again = msgspec.structs.replace(first, turn=None, answer=0, files=()) if before.open_turn is None else type(first)()
    if second != again:
        yield f"the second opening tells something new: {second}"
    if session.resumed.changes:
        yield f"the second opening tells of changes: {session.resumed.changes}"
    if len(session.history()) != count:
        yield "the second opening put something on record"


def _goes_on(session: Session, oracle: ModuleType) -> Iterator[str]:
    """The session is of use: a late result holds, answers on record end the list, and a turn can be lived."""
    open_calls = session.log.unfinished()
    answer_unfinished(session)
    if session.log.unfinished():
        yield "calls are unfinished though they were answered"
    if session.target is None:
        session.switch(CHAT)
    late = [info.call for info in open_calls if info.started]
    for call in late:
        session.tool_result(call, f"late word of {call.id}")
    shown = json.dumps(session.request(CHAT).body)
    yield from (f"the late result of {call.id} is not shown" for call in late if f"late word of {call.id}" not in shown)
    with session.turn("Go on.") as turn:
        turn.request()
        turn.receive(says("Gladly."), CHAT)
    for aim in AIMS:
        yield from (f"going on, {aim.provider}: {error}" for error in errors_of(oracle, aim, session.request(aim).body))
    yield from (f"validate: {one}" for one in session.log.validate())
