"""Turns: opened, lived and closed whatever happens, and told from the log alone."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import turnlog
from agents import chunks, says, session_in
from turnlog.errors import InputError, TurnCancelled
from turnlog.log.messages import Message, Outcome, Part, Reasoning, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import MessageRecord, PartialAnswer, Record, TurnClosed, TurnOpened, UsageRecord
from turnlog.log.store import Draft
from turnlog.log.usage import Usage
from turnlog.session import answer_unfinished
from turnlog.session.operations import follow_records
from turnlog.session.reader import SessionLog
from turnlog.session.session import Session
from turnlog.session.turn import Turn
from turnlog.stores import MemoryStore, open_store
from turnlog.testing import crash
from turnlog.view.turns import TurnInfo, turn_spans, turns_of
from turnlog.workspace.watch import FileRecorder


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


@pytest.fixture
def session(store: MemoryStore) -> Session:
    """A session of it."""
    return session_in(store)


def kinds(session: Session) -> list[str]:
    """What the log holds behind its configuration."""
    return [type(record.body).__name__ for record in session.history()][1:]


def ends(session: Session) -> list[TurnClosed]:
    """The ends of turns on record."""
    return [record.body for record in session.history() if isinstance(record.body, TurnClosed)]


# -- lived -----------------------------------------------------------------------------------------


def test_a_turn_is_on_record_from_the_word_to_the_answer(session: Session) -> None:
    """Everything that a turn is about must be told by the log, in order, and add up."""
    with session.turn("Weather in Oslo?") as turn:
        assert turn.request().body["messages"][-1]["content"] == "Weather in Oslo?"
        answer = turn.receive(says("", "call_1"))
        assert (turn.status, [info.awaits for info in turn.awaiting]) == ("awaiting_tool_result", ["result"])
        with turn.tool(answer.tool_calls[0]) as run:
            run.result("4 degrees")
        assert turn.status == "processing"
        turn.receive(says("Cold.", bill=150))
    assert kinds(session) == [
        "TurnOpened", "MessageRecord", "MessageRecord", "UsageRecord", "ToolStarted", "ToolFinished", "MessageRecord",
        "MessageRecord", "UsageRecord", "TurnClosed",
    ]  # fmt: skip
    (told,) = session.log.turns()
    assert told == turn.info
    assert (told.id, told.first, told.last, told.status, told.reason) == ("2", 2, 11, "completed", "")
    assert (told.input, told.answer) == ("Weather in Oslo?", "Cold.")
    assert [(info.call.name, info.outcome, info.result) for info in told.calls] == [("weather", "ok", 8)]
    assert told.usage == session.usage == Usage(input=250, output=20)
    assert told.cost == session.cost
    assert told.cost.total is not None and told.cost.total > Decimal(0)
    assert told.seconds is not None and told.seconds >= 0 and not told.is_open


@pytest.mark.parametrize(
    "raised, status, reason",
    [
        (ValueError("no luck"), "failed", "ValueError: no luck"),
        (KeyboardInterrupt(), "cancelled", "KeyboardInterrupt"),
        (asyncio.CancelledError(), "cancelled", "CancelledError"),
        (SystemExit(1), "cancelled", "SystemExit: 1"),
    ],
)
def test_what_ends_a_turn_is_kept_and_goes_on(
    session: Session, raised: BaseException, status: str, reason: str
) -> None:
    """An exception that a turn swallowed, or a turn that stayed open behind one, fails here."""
    with pytest.raises(type(raised)), session.turn("go"):
        raise raised
    assert [(turn.status, turn.reason) for turn in session.log.turns()] == [(status, reason)]
    with session.turn("again"):
        pass
    assert [turn.status for turn in session.log.turns()] == [status, "completed"]


def test_an_error_that_cannot_say_what_it_is_ends_a_turn(session: Session) -> None:
    """Errors of other libraries fail at their own text: the turn would never be closed, the next be refused, and what
    had come of an answer be lost."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise AttributeError("no such field")

    def broken() -> Iterator[Any]:
        yield from chunks("It is ")
        raise MuteError

    session.on_event(lambda event: broken().throw(MuteError()))  # listeners may fail so, too
    with pytest.raises(MuteError), session.turn("go") as turn:
        turn.receive(broken())
    assert (turn.status, turn.info.reason) == ("failed", "MuteError")
    with session.turn("go on") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        with pytest.raises(MuteError), turn.tool(call):
            raise MuteError
    assert [(info.outcome, info.reason) for info in turn.info.calls] == [("failed", "MuteError")]
    partials = [record.body for record in session.history() if isinstance(record.body, PartialAnswer)]
    assert [text_of(one.message) for one in partials] == ["It is "]


def test_a_turn_has_failed_after_a_stream_whose_error_was_caught(session: Session) -> None:
    """A program that shows the error and leaves the block: the turn would count as completed with half an answer. One
    that asks again gets an answer, and the turn completes."""

    def broken() -> Iterator[Any]:
        yield from chunks("It is ")
        raise ConnectionError("reset")

    async def also_broken() -> AsyncIterator[Any]:
        for chunk in broken():
            yield chunk

    with session.turn("one") as one, suppress(ConnectionError):
        one.receive(broken())
    with session.turn("two") as two, suppress(ConnectionError):
        asyncio.run(two.areceive(also_broken()))  # type: ignore[arg-type]
    with session.turn("three") as three:
        with suppress(ConnectionError):
            three.receive(broken())
        three.receive(says("It is cold."))
    assert [turn.status for turn in session.log.turns()] == ["failed", "failed", "completed"]
    assert one.info.reason == two.info.reason == "its last answer broke off: ConnectionError: reset"


def test_a_turn_goes_by_its_last_answer_however_it_came(session: Session) -> None:
    """An answer that the session itself received after a broken one, or a stream that nobody read as there was no
    target, made a turn failed though all that was said is whole."""

    def broken() -> Iterator[Any]:
        yield from chunks("It is ")
        raise ConnectionError("reset")

    with session.turn("one") as one:
        with suppress(ConnectionError):
            one.receive(broken())
        session.receive(says("It is cold."))
    aimless = Session(store := MemoryStore(), store.create("s"))
    with aimless.turn("two") as two, pytest.raises(InputError):
        two.receive(broken())
    assert (one.status, two.status) == ("completed", "completed")


def test_a_run_is_of_the_call_that_it_began_with(session: Session) -> None:
    """A tool that takes its arguments apart made its end that of an earlier call of the same id, as Google's are."""
    with session.turn("go") as turn:
        (first,) = turn.receive(says("", "c1")).tool_calls
        with turn.tool(first) as run:
            run.result("one")
        again = says("", "c1")
        again["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"more":1}'
        (second,) = turn.receive(again).tool_calls
        with turn.tool(second) as run:
            second.arguments.clear()
            second.arguments.update(first.arguments)
            run.result("two")
    assert [info.finished > info.started > info.record for info in turn.info.calls] == [True, True]


def test_a_session_that_is_closed_while_a_turn_is_entered(store: MemoryStore) -> None:
    """A listener that closes the session at what was recovered left a turn that nobody could end."""
    session_in(store).turn("hi").__enter__()
    session = Session(store, store.info("s"))
    follow_records(session, lambda made: session.close() if isinstance(made.records[-1].body, TurnClosed) else None)
    with pytest.raises(InputError, match="closed"), session.turn("again"):
        pytest.fail("the block of a turn that never began")
    assert [turn.status for turn in Session(store, store.info("s")).log.turns()] == ["failed"]


def test_a_turn_that_is_cancelled_ends_quietly(session: Session) -> None:
    """Whoever presses stop wants neither a traceback nor another request."""
    with session.turn("go") as turn:
        turn.cancel("the user pressed stop")
        assert turn.status == "cancelled"
        turn.request()
        pytest.fail("the turn went on")
    assert (turn.status, turn.info.reason) == ("cancelled", "the user pressed stop")
    with pytest.raises(TurnCancelled), session.turn("another"):
        raise TurnCancelled("7", "of a turn that is not this one")


def test_a_turn_that_is_cancelled_before_it_begins_asks_nothing(session: Session) -> None:
    """A stop button pressed in the moment before the block is entered would do nothing: the model is asked all the
    same, and its tools run."""
    turn = session.turn("go")
    turn.cancel("too late")
    with turn:
        turn.request()
        pytest.fail("the turn went on")
    assert (turn.status, turn.info.reason) == ("cancelled", "too late")


def test_who_hears_of_a_turn_can_ask_and_cancel_it(session: Session) -> None:
    """A listener that is told of a turn and finds that it has not begun: its cancelling does nothing, and a session
    that it closes puts an end on record of a turn that nobody opened."""
    heard: list[str] = []
    turn = session.turn("go")

    def hear(event: turnlog.session.Event) -> None:
        if event.kind == "turn_started":
            heard.append(turn.info.input)
            turn.cancel("by a listener")

    session.on_event(hear)
    with turn:
        turn.request()
        pytest.fail("the turn went on")
    assert (heard, turn.status) == (["go"], "cancelled")
    session.on_event(lambda event: session.close() if event.kind == "turn_started" else None)
    with session.turn("more"):
        pass
    assert [closed.turn_id for closed in ends(session)] == ["2", "5"]


def test_cancel_stops_a_stream_from_another_thread(session: Session) -> None:
    """A stop button that waits for the end of the answer is none; what had come must stay."""

    def stopped() -> Iterator[Any]:
        yield from chunks("It is ", "rather ")
        stopper = threading.Thread(target=turn.cancel, args=("stopped",))
        stopper.start()
        stopper.join()
        yield from chunks("cold.")

    with session.turn("Weather?") as turn:
        turn.receive(stopped())
    assert turn.info.status == "cancelled"
    partial = next(record.body for record in session.history() if isinstance(record.body, PartialAnswer))
    assert partial.message == Message("assistant", (Text("It is rather "),))


def test_an_asynchronous_turn(session: Session) -> None:
    """`async with`, an asynchronous stream, and a task that is cancelled in its midst."""

    async def stream(forever: bool) -> AsyncIterator[Any]:
        for chunk in chunks("It is ", "cold"):
            yield chunk
        if forever:
            waits.set()
            await asyncio.Event().wait()

    async def live(forever: bool) -> None:
        async with session.turn("Weather?") as turn:
            await turn.areceive(stream(forever))

    async def main() -> None:
        await live(False)
        task = asyncio.create_task(live(True))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    waits = asyncio.Event()
    asyncio.run(main())
    assert [turn.status for turn in session.log.turns()] == ["failed", "cancelled"]
    partials = [record.body for record in session.history() if isinstance(record.body, PartialAnswer)]
    assert [(one.message.parts, one.reason) for one in partials] == [
        ((Text("It is cold"),), "the stream ended before a finish reason came"),
        ((Text("It is cold"),), "CancelledError"),
    ]


def test_a_cancelled_turn_ends_quietly_from_a_task_group(session: Session) -> None:
    """A stop button in a program of tasks: the group's error would go through it all; what else failed must."""

    async def wants(turn: Turn) -> None:
        turn.request()

    async def fails() -> None:
        raise ValueError("of its own")

    async def live(*, also: bool) -> None:
        async with session.turn("go") as turn, asyncio.TaskGroup() as tasks:
            turn.cancel("stopped")
            tasks.create_task(wants(turn))
            if also:
                tasks.create_task(fails())

    asyncio.run(live(also=False))
    with pytest.raises(ExceptionGroup):
        asyncio.run(live(also=True))
    assert [(turn.status, turn.reason) for turn in session.log.turns()] == [("cancelled", "stopped")] * 2


def test_approval_is_asked_given_and_denied(session: Session) -> None:
    """A tool that runs before somebody said yes, or after a no, must not get by unseen; a no is told to the model."""
    with session.turn("go") as turn:
        one, two = turn.receive(says("", "c1", "c2")).tool_calls
        turn.ask_approval(one, reason="it writes")
        assert turn.status == "awaiting_approval"
        with pytest.raises(InputError, match="waits for approval"), turn.tool(one):
            pytest.fail("it ran")
        turn.approve(one, by="kim")
        with turn.tool(one) as run:
            run.result("done")
        turn.deny(two, reason="Not today.")
        with pytest.raises(InputError, match="can no longer be approved"):
            turn.approve(two)
        with pytest.raises(InputError, match="was denied"):
            turn.tool_started(two)
        assert turn.status == "processing"
        assert [m["content"] for m in turn.request().body["messages"][-2:]] == [
            "done",
            "The user did not allow this call; it did not run. Not today.",
        ]
        assert [edit.kind for edit in turn.request().edits] == ["tool"]  # declared from its call, nothing repaired
    first, second = turn.info.calls
    assert (first.approval, first.approved_by, first.outcome) == ("given", "kim", "ok")
    assert (second.approval, second.outcome, second.synthetic) == ("denied", "canceled", True)


def test_an_approval_holds_beyond_its_turn(session: Session) -> None:
    """Asked in one turn, answered in the next: a tool that nobody allowed, or somebody forbade, would run."""
    with session.turn("go") as turn:
        one, two, three = turn.receive(says("", "c1", "c2", "c3")).tool_calls
        turn.ask_approval(one)
        turn.deny(two)
        with turn.tool(three) as run:
            run.result("done")
    with session.turn("well?") as turn:
        for call, said in ((one, "waits for approval"), (two, "was denied"), (three, "has its result already")):
            with pytest.raises(InputError, match=said), turn.tool(call):
                pytest.fail("it ran")
        turn.approve(one)
        with turn.tool(one) as run:
            run.result("done too")
    assert [info.outcome for info in session.log.calls()] == ["ok", "canceled", "ok"]


@pytest.mark.parametrize(
    "raised, outcome",
    [
        (ValueError("x"), "failed"),
        (TimeoutError(), "timeout"),
        (subprocess.TimeoutExpired("make", 2), "timeout"),  # no TimeoutError
        (type("ReadTimeout", (type("TimeoutException", (Exception,), {}),), {})("slow"), "timeout"),  # as httpx has it
        (KeyboardInterrupt(), "aborted"),
    ],
)
def test_how_a_tool_ended_is_on_record(session: Session, raised: BaseException, outcome: str) -> None:
    """A tool that failed, ran out of time or was interrupted is told apart from one that ran."""
    with session.turn("go") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        with pytest.raises(type(raised)), turn.tool(call):
            raise raised
    (info,) = session.log.calls()
    assert (info.outcome, info.reason.split(":")[0]) == (outcome, type(raised).__name__)
    said = session.request().body["messages"][-1]["content"]
    assert said == (f"The tool failed: {info.reason}" if outcome == "failed" else said)
    assert ("It may have run" in said) == (outcome != "failed")  # or a payment would be made twice
    with session.turn("again") as turn:
        turn.tool_result(call, "it came after all")  # takes the place of what was said for it
    assert (session.log.calls()[0].synthetic, session.log.calls()[0].outcome) == (False, "ok")


@pytest.mark.parametrize(
    "said, raised, outcome, told",
    [
        ("ok", KeyboardInterrupt(), "ok", ["4 degrees"]),
        ("ok", ValueError("x"), "failed", ["4 degrees", "The tool failed: ValueError: x"]),
        ("failed", ValueError("x"), "failed", ["4 degrees"]),
    ],
)
def test_a_result_stays_however_its_block_ends(
    session: Session, said: Outcome, raised: BaseException, outcome: str, told: list[str]
) -> None:
    """What a tool gave before Ctrl-C, or said of its failure before it raised, would be lost, and the model told that
    it may have run."""
    with session.turn("go") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        with pytest.raises(type(raised)), turn.tool(call) as run:  # noqa: PT012
            run.result("4 degrees", outcome=said)
            raise raised
    (info,) = session.log.calls()
    assert (info.outcome, info.synthetic, info.reason.split(":")[0]) == (outcome, False, type(raised).__name__)
    (result,) = session.history()[-2].message.parts  # type: ignore[union-attr]
    assert [part.text for part in result.parts] == told


def test_a_call_that_has_its_result_does_not_run_again(session: Session) -> None:
    """A second result would be left out of requests, and its tool would have run for nothing."""
    with session.turn("go") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        with turn.tool(call) as run:
            run.result("once")
        with pytest.raises(InputError, match="has its result already, record 8"):
            turn.tool_started(call)


def test_a_turn_keeps_what_changed_in_files(session: Session, tmp_path: Path) -> None:
    """Changes of a watched folder belong to the turn, also where it fails."""
    turn = session.turn("write", watch=tmp_path).__enter__()
    (tmp_path / "a.txt").write_text("a")
    turn.__exit__(ValueError, ValueError(), None)
    assert turn.status == "failed"
    with session.turn("write more") as other:
        other.files(tmp_path).record("b.txt", None, b"b")
    assert [(change.path, change.action) for change in turn.changes] == [("a.txt", "created")]
    assert [(change.path, change.action) for change in other.changes] == [("b.txt", "created")]
    assert kinds(session)[-1] == "TurnClosed"


def test_a_turn_whose_files_cannot_be_recorded_has_failed(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that is said to be completed, though its block ended in an exception and its changes are not on record."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"), session.turn("write", watch=tmp_path) as turn:  # noqa: PT012
        (tmp_path / "a.txt").write_text("a")
        monkeypatch.setattr(FileRecorder, "changed", full)
    assert (turn.status, turn.info.reason) == ("failed", "OSError: [Errno 28] No space left on device")


def test_mistakes_say_what_to_do(session: Session) -> None:
    """Nested, forgotten, used again, never entered: each with the way out of it."""
    turn = session.turn("never entered")
    with pytest.raises(InputError, match=r"with session.turn\(...\) as turn"):
        turn.request()
    with session.turn("one") as one, pytest.raises(InputError, match="turn '2' is still open: leave its `with`"):
        session.turn("two").__enter__()
    with pytest.raises(InputError, match=r"turn '2' is over \(completed\): open another"):
        one.receive(says("late"))
    with pytest.raises(InputError, match="entered already"):
        one.__enter__()
    with pytest.raises(InputError, match="turns begin with what a user says"):
        session.turn(ToolResult("c1"))
    with session.turn("after all that"):
        pass
    assert [turn.status for turn in session.log.turns()] == ["completed", "completed"]


def test_a_turn_that_is_forgotten_is_no_silence(store: MemoryStore) -> None:
    """Without `with`, what the user said is not on record: a request would be made without it."""
    session = session_in(store)
    heard: list[str] = []
    session.on_event(lambda event: heard.append(f"{event.kind}: {event.text}"))
    session.turn("forgotten")
    with pytest.raises(InputError, match=r"never begun, .*: write `with session.turn\(\.\.\.\) as turn:`"):
        session.request()
    session.user("said otherwise")
    session.request()  # told once
    session.turn("forgotten too")
    session.turn("and this")
    session.close()
    assert [line.partition(",")[0] for line in heard[1:-1]] == ["warning: a turn was made and never begun"] * 2


def test_closing_a_session_closes_its_turn(store: MemoryStore) -> None:
    """A turn that is never left must not look as if it went on."""
    session = session_in(store)
    turn = session.turn("go").__enter__()
    session.close()
    assert (turn.status, turn.info.reason) == ("failed", "the session was closed in the midst of it")


def test_who_hears_of_the_end_of_a_turn_may_close_the_session(store: MemoryStore) -> None:
    """A turn that was completed is told as failed: closed a second time, in the midst of its being closed."""
    session = session_in(store)
    session.on_event(lambda event: session.close() if event.kind == "turn_completed" else None)
    with session.turn("go") as turn:
        pass
    assert (turn.status, len(ends(session))) == ("completed", 1)


def test_a_turn_that_a_crash_left_open_is_closed_at_the_next_opening(store: MemoryStore) -> None:
    """After a kill the turn is not open any more, and what may have run is named."""
    killed = session_in(store)
    turn = killed.turn("go").__enter__()
    (call,) = turn.receive(says("", "c1")).tool_calls
    turn.tool_started(call)
    assert turn.status == "awaiting_tool_result"
    crash(killed)
    session = session_in(store)
    (told,) = session.log.turns()
    assert (told.status, told.id) == ("failed", "2")
    assert told.reason == (
        "left open: the process ended, or the session was forked, in the midst of it; "
        "without a result: weather (c1: started and never ended: it may have run)"
    )
    records = len(session.history())
    session.close()
    assert len(session_in(store).history()) == records  # closed once


@pytest.mark.parametrize("closed", [False, True])
def test_a_long_turn_that_was_left_open_is_found(store: MemoryStore, closed: bool) -> None:
    """Its opening may lie far behind the newest records; one that was closed long ago is left alone."""
    killed = session_in(store)
    turn = killed.turn("go").__enter__()
    if closed:
        turn.__exit__(None, None, None)
    killed.extend([Message("assistant", (Text("so"),))] * 600)
    records = len(killed.history())
    crash(killed)
    session = turnlog.open("s", store=store)
    assert [told.status for told in session.log.turns()] == ["completed" if closed else "failed"]
    assert len(session.history()) == records + (not closed)


def test_a_turn_begins_with_a_look_at_the_one_before(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each looks for one that was left open through all that is recorded, a long session's turns get slow."""
    session, looked_at = session_in(store), 0
    newest = SessionLog.newest

    def counted(self: SessionLog) -> Iterator[Record]:
        nonlocal looked_at
        for record in newest(self):
            looked_at += 1
            yield record

    monkeypatch.setattr(SessionLog, "newest", counted)
    each = []
    for _ in range(40):
        looked_at = 0
        with session.turn("go"):
            each.append(looked_at)
            session.receive(says("so"))
    assert each[1:] == [each[1]] * 39
    assert 0 < each[1] < 10


def test_a_fork_from_the_midst_of_a_turn_may_open_its_own(session: Session) -> None:
    """The fork's log says that a turn is open which nobody in it can close."""
    with session.turn("go") as turn:
        turn.receive(says("", "c1"))
        fork = session.fork("other")
        with fork.turn("another way"):
            fork.receive(says("yes"))
    assert [told.status for told in fork.log.turns()] == ["failed", "completed"]
    assert [(told.status, told.reason) for told in session.log.turns()] == [
        ("completed", "without a result: weather (c1: not on record whether it started)")
    ]


def test_nobody_closes_the_turn_of_another(store: MemoryStore) -> None:
    """Whoever shares a session takes a turn of a living process for one left by a crash, and the model is told that a
    tool which still runs was interrupted."""
    session = session_in(store, shared=True)
    with session.turn("go") as turn:
        with session_in(store, shared=True) as other:
            assert other.resumed is not None and not other.resumed.recovered
            with other.turn("me too"):
                assert ends(session) == []
        session.user("and hurry")
        turn.receive(says("done"))
    assert ends(session) == [TurnClosed("4", "completed"), TurnClosed("2", "completed")]


# -- told from the log -----------------------------------------------------------------------------


def log(*bodies: Any) -> list[Record]:
    """Records of these bodies, a second apart."""
    return [Record(n, f"2026-03-01T09:00:{n:02}.000Z", body) for n, body in enumerate(bodies, 1)]


def user(text: str) -> MessageRecord:
    """What a user says."""
    return MessageRecord(Message("user", (Text(text),)))


def model(*parts: Part) -> MessageRecord:
    """What a model says."""
    return MessageRecord(Message("assistant", parts))


RESULT = MessageRecord(Message("user", (ToolResult("c1"),)))
CALL = model(ToolCall("c1", "ls"))
ANSWER = model(Reasoning("p", text="hm", summary=("thought it over",)), Text("yes"))


def test_turns_are_told_from_messages_where_none_was_recorded() -> None:
    """Imported sessions have no records of turns: each word of the user begins one."""
    bill = UsageRecord("openai-chat", "gpt-4o", Usage(input=5))
    first, second = turns_of(log(user("a"), CALL, bill, RESULT, ANSWER, user("b")))
    assert msgspec.structs.replace(first, calls=()) == TurnInfo(
        id="", first=1, last=5, status="completed", started="2026-03-01T09:00:01.000Z", seconds=4.0, input="a",
        answer="yes", reasoning="thought it over", bills={"gpt-4o": Usage(input=5)},
    )  # fmt: skip
    assert [info.result for info in first.calls] == [4]
    assert (second.first, second.status, second.seconds, second.is_open) == (6, "processing", None, True)


IMPORTED = msgspec.structs.replace(ANSWER, source="line 3")
WAITS = ("awaiting_tool_result", "")


@pytest.mark.parametrize(
    "bodies, expected",
    [
        ((user("a"), CALL), [("awaiting_tool_result", "")]),
        ((user("a"), CALL, RESULT), [("processing", "")]),
        ((user("a"), PartialAnswer(Message("assistant"), "reset")), [("failed", "reset")]),
        ((user("a"), user("b"), ANSWER), [("failed", "the next turn began before this one ended"), ("completed", "")]),
        ((TurnOpened("1"), user("a"), user("more"), ANSWER), [("processing", "")]),
        ((TurnOpened("1"), user("a"), IMPORTED, TurnOpened("4"), user("b"), CALL), [("completed", ""), WAITS]),
        ((TurnOpened("1"), user("a"), IMPORTED), [("completed", "")]),
        (
            (TurnOpened("1"), user("a"), TurnOpened("3"), user("b"), TurnClosed("3", "completed")),
            [("failed", "the next turn began before this one ended"), ("completed", "")],
        ),
        (
            (user("a"), ANSWER, TurnOpened("3"), user("b"), TurnClosed("3", "failed", "x"), user("c")),
            [("completed", ""), ("failed", "x"), ("processing", "")],
        ),
        ((), []),
    ],
)
def test_where_turns_stand(bodies: tuple[Any, ...], expected: list[tuple[str, str]]) -> None:
    """Recorded and unrecorded turns side by side: none is lost, none counted twice."""
    records = log(*bodies)
    told = turns_of(records)
    assert [(turn.status, turn.reason) for turn in told] == expected
    assert turn_spans(records, len(records)) == [(turn.first, turn.last) for turn in told]


def test_turns_run_from_one_input_to_the_next() -> None:
    """A turn that begins with a tool's result, or that ends with the next question, fails here."""
    assert turn_spans(log(user("a"), ANSWER, RESULT, ANSWER, user("b"), ANSWER), 6) == [(1, 4), (5, 6)]
    assert turn_spans([], 9) == []


def test_a_turn_whose_last_answer_broke_off_has_failed(session: Session) -> None:
    """A loop that goes on while there are calls leaves as if it were done; one that asks again may complete."""
    with session.turn("go") as turn:
        assert not turn.receive(iter(chunks("It is "))).complete
    with session.turn("go") as turn:
        turn.receive(iter(chunks("It is ")))
        turn.receive(says("It is cold."))
    told = "its last answer broke off: the stream ended before a finish reason came"
    assert [(one.status, one.reason) for one in session.log.turns()] == [("failed", told), ("completed", "")]


NEEDS = "The call needs approval that nobody has given yet; it has not run."
ALLOWED = "The call was approved; by what is on record it has not run yet."


@pytest.mark.parametrize(
    "decided, said, outcome, standing",
    [
        (("asked",), NEEDS, "canceled", "it waits for approval"),
        (("asked", "given"), ALLOWED, "lost", "it was approved, but not started"),
        (("given",), ALLOWED, "lost", "it was approved, but not started"),
        (("given", "asked"), NEEDS, "canceled", "it waits for approval"),
    ],
    ids=["asked", "asked and given", "given", "given and asked again"],
)
def test_a_call_that_has_not_begun_did_not_run(
    store: MemoryStore, decided: tuple[str, ...], said: str, outcome: str, standing: str
) -> None:
    """A model that is told of a call waiting for approval that it was canceled gives it up; of one that was approved,
    that it may have run, goes to look for what it did."""
    session = session_in(store)
    with session.turn("go") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        for state in decided:
            (turn.ask_approval if state == "asked" else turn.approve)(call)
        prepared = turn.request()
        assert prepared.body["messages"][-1]["content"] == said
        assert prepared.edits[0].detail == f"call of 'weather' (c1) has no result on record: {standing}"
    again = turnlog.open("s", store=store, read_only=True)
    assert again.request().json() == session.preview().json() == prepared.json()
    answer_unfinished(session)
    assert (session.request().json(), session.log.calls()[0].outcome) == (prepared.json(), outcome)


def test_what_is_said_of_a_call_follows_what_became_of_it(store: MemoryStore) -> None:
    """A call that was approved and started of which it is still said that it has not run; or an answer that came
    later beside one that stood in for it."""
    session = session_in(store)
    told = []
    with session.turn("go") as turn:
        (call,) = turn.receive(says("", "c1")).tool_calls
        for step in (
            turn.ask_approval,
            turn.approve,
            turn.tool_started,
            lambda call: turn.tool_result(call, "4 degrees"),
        ):
            step(call)
            told.append(turn.request().body["messages"][-1]["content"])
            again = turnlog.open("s", store=store, read_only=True)
            assert again.request().json() == turn.request().json()
    assert told[:2] == [NEEDS, ALLOWED] and told[2].startswith("The call was interrupted.") and told[3] == "4 degrees"


def test_opening_an_import_closes_no_turn_that_ended(tmp_path: Path) -> None:
    """A finished transcript of which the last turn is said to have failed, after as long as nobody looked at it."""
    for name, answer, status in (("ended", IMPORTED, "completed"), ("open", CALL, "failed")):
        store = open_store(tmp_path / "s.db")
        store.create(name)
        times = [f"2025-01-01T00:00:0{n}.000Z" for n in range(3)]
        store.append(
            name, [Draft(body, at) for body, at in zip((TurnOpened("1"), user("a"), answer), times, strict=True)]
        )
        store.close()
        with turnlog.open(name, store=tmp_path / "s.db") as session:
            (turn,) = session.log.turns()
            assert (turn.status, turn.seconds) == (status, 2.0)
            assert len(session.history()) == (3 if status == "completed" else 4)
