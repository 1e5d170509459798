"""A turn that did not come to its end goes on: from a kill at every record, with each choice for its calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import turnlog
from agents import chunks, says, session_in
from turnlog.errors import InputError
from turnlog.log.messages import ToolCall, ToolResult
from turnlog.log.records import Approval, Record, ToolStarted, TurnResumed
from turnlog.log.store import Draft
from turnlog.session.operations import interrupted_turn
from turnlog.session.recovery import Calls, Recovered
from turnlog.session.session import Session
from turnlog.session.turn import Turn
from turnlog.stores import MemoryStore
from turnlog.testing import crash

CHOICES: tuple[Calls, ...] = ("answer", "run", "ask")
TASK = "Sweep, mop, burn the letters."


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


def lived(session: Session) -> None:
    """A turn with parallel calls, one that needs approval, a failure, and two rounds."""
    with session.turn(TASK) as turn:
        session.request()
        sweep, mop, burn, dust = turn.receive(says("At once.", "sweep", "mop", "burn", "dust")).tool_calls
        turn.ask_approval(burn, reason="fire")
        turn.tool_started(sweep)
        turn.tool_started(mop)
        turn.approve(burn, by="kim")
        session.tool_finished(sweep, seconds=0.1)
        turn.tool_result(sweep, "swept")
        with turn.tool(burn) as run:
            run.result("burnt")
        session.tool_finished(mop)
        turn.tool_result(mop, "mopped")
        with pytest.raises(OSError), turn.tool(dust):
            raise OSError("no duster")
        session.request()
        (again,) = turn.receive(says("", "again")).tool_calls
        with turn.tool(again) as run:
            run.result("dusted")
        turn.receive(says("All done."))


def killed_after(records: list[Record], n: int) -> tuple[MemoryStore, Session]:
    """The session as whoever comes after a kill opens it: only the first `n` records were written."""
    store = MemoryStore()
    store.create("s")
    store.append("s", [Draft.of(record) for record in records[:n]])
    return store, turnlog.open("s", store=store)


def started(session: Session) -> list[str]:
    """The calls that began, once for each time."""
    return [record.body.call_id for record in session.history() if isinstance(record.body, ToolStarted)]


def finish(session: Session, calls: Calls, approves: Callable[[ToolCall], bool]) -> Turn:
    """Go on, run what is to be run, and come to the end."""
    with session.turn(calls=calls) as turn:
        for info in turn.awaiting:
            if info.awaits == "approval":
                with pytest.raises(InputError, match="waits for approval"):
                    turn.tool_started(info.call)
                if not approves(info.call):
                    turn.deny(info.call, reason="Leave it.")
                    continue
                turn.approve(info.call)
            with turn.tool(info.call) as run:
                run.result(f"{info.call.id} at last")
        session.request()
        if not turn.info.answer:
            turn.receive(says("Done after all."))
    return turn


def check(session: Session, turn: Turn) -> None:
    """What holds of every turn that went on and came to its end."""
    (info,) = session.log.turns()
    assert (info.id, info.status, info.input) == (turn.id, "completed", TASK)
    assert info.answer in ("Done after all.", "All done.")
    assert session.log.validate() == []
    assert session.log.unfinished() == []
    session.close()
    assert turnlog.open("s", store=session._store).resumed.recovered == Recovered()  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("calls", CHOICES)
def test_a_turn_goes_on_from_a_kill_at_every_record(store: MemoryStore, calls: Calls) -> None:
    """A turn that cannot go on from some place, that goes on as another one, that runs again what may have run without
    being told to, or that loses what was done before."""
    session = session_in(store)
    lived(session)
    records = session.history()
    went_on = 0
    for n in range(2, len(records) + 1):
        _, session = killed_after(records, n)
        if interrupted_turn(session) is None:
            assert n in (2, len(records)) or n < 3  # it had not begun, or had come to its end
            with pytest.raises(InputError, match="there is no turn to go on with"):
                session.turn(calls=calls).__enter__()
            continue
        if n == 2:  # the turn was opened; what the user said was not
            continue
        went_on += 1
        ran = started(session)
        may_have_run = {info.call.id for info in session.log.unfinished() if info.started}
        turn = finish(session, calls, approves=lambda call: call.id != "mop")
        info = {one.call.id: one for one in turn.info.calls}
        again = {one for one in started(session) if started(session).count(one) > 1}
        if calls == "answer":
            assert started(session) == ran
            assert all(info[one].synthetic for one in may_have_run)
        elif calls == "run":
            assert may_have_run <= again
        else:
            asked = {r.body.call_id for r in session.history() if isinstance(r.body, Approval) and r.n > n}
            assert again <= asked and may_have_run <= asked
            assert "mop" not in again
            if "mop" in may_have_run:
                assert info["mop"].outcome != "canceled"  # it is not said that it did not run
        check(session, turn)
    assert went_on > 15


def test_what_is_answered_is_what_requests_said(store: MemoryStore) -> None:
    """A model that is told another story of the same call when the turn goes on."""
    session = session_in(store)
    lived(session)
    records = session.history()
    for n in range(4, len(records)):
        _, session = killed_after(records, n)
        before = session.request().body["messages"]
        with session.turn() as turn:
            after = turn.request().body["messages"]
            assert sorted(after, key=str) == sorted(before, key=str)  # results come in the order of their records
            assert turn.awaiting == ()


@pytest.mark.slow
@pytest.mark.parametrize("calls", CHOICES)
def test_a_turn_that_goes_on_can_be_killed_again(store: MemoryStore, calls: Calls) -> None:
    """A second crash in a turn that goes on, at every record of it."""
    session = session_in(store)
    lived(session)
    records = session.history()
    at = next(r.n for r in records if isinstance(r.body, ToolStarted) and r.body.call_id == "mop")
    _, session = killed_after(records, at)
    finish(session, calls, approves=lambda call: True)
    twice = session.history()
    for n in range(at + 1, len(twice)):
        _, session = killed_after(twice, n)
        check(session, finish(session, calls, approves=lambda call: call.id == "sweep"))


def test_late_results_hold(store: MemoryStore) -> None:
    """A tool that outlived its process tells its result after the call was answered with what was known."""
    session = session_in(store)
    turn = session.turn("go").__enter__()
    (call,) = turn.receive(says("", "c1")).tool_calls
    turn.tool_started(call)
    crash(session)
    again = turnlog.open("s", store=store)
    with again.turn() as turn:
        assert "may have run" in turn.request().body["messages"][-1]["content"]
        turn.tool_result(call, "4 degrees")
        assert turn.request().body["messages"][-1]["content"] == "4 degrees"
        assert [info.synthetic for info in turn.info.calls] == [False]


def test_an_answer_that_was_streamed_goes_on(store: MemoryStore) -> None:
    """What had come of an answer stays, and the model is asked again."""
    session = turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"))
    turn = session.turn("go").__enter__()
    with pytest.raises(ConnectionError):
        turn.receive(broken())
    crash(session)
    again = turnlog.open("s", store=store)
    with again.turn() as turn:
        assert "Half of" in str(turn.request().body)
        turn.receive(says("All of it."))
    assert [info.answer for info in again.log.turns()] == ["All of it."]


def broken() -> Iterator[Any]:
    """A stream that breaks."""
    yield from chunks("Half of ")
    raise ConnectionError("gone")


def test_errors_and_cancellations_can_be_gone_on_from(store: MemoryStore) -> None:
    """A rate limit ends a turn as well as a crash does; so does Ctrl-C."""
    session = session_in(store)
    for ending in (TimeoutError("slow"), KeyboardInterrupt()):
        with pytest.raises(type(ending)), session.turn("go") as turn:
            raise ending
        with session.turn() as again:
            assert (again.id, again.status) == (turn.id, "processing")
            again.receive(says("there"))
    assert [info.status for info in session.log.turns()] == ["completed", "completed"]
    assert [event.kind for event in session.events().waiting() if event.kind == "turn_resumed"] == []


def test_listeners_hear_of_it(store: MemoryStore) -> None:
    """A display that shows a turn as failed has to show that it goes on."""
    session = session_in(store)
    with pytest.raises(OSError), session.turn("go"):
        raise OSError("x")
    heard: list[str] = []
    session.on_event(lambda event: heard.append(event.text))
    with session.turn():
        pass
    assert [text.partition(" after")[0] for text in heard[-2:]] == ["turn 2 goes on", "turn 2 completed"]


@pytest.mark.parametrize("what", ["nothing", "completed", "said since", "taken back", "cleared", "open"])
def test_what_cannot_go_on_says_why(store: MemoryStore, what: str) -> None:
    """A turn that quietly goes on where nobody expects it would answer the wrong question."""
    session = session_in(store)
    if what != "nothing":
        turn = session.turn("go")
        if what in ("completed",):
            with turn:
                turn.receive(says("so"))
        else:
            with pytest.raises(OSError), turn:
                raise OSError("x")
    match what:
        case "said since":
            session.user("Something else.")
        case "taken back":
            session.rewind(turns=1)
        case "cleared":
            session.clear()
    reasons = {
        "nothing": "there is no turn to go on with: the log has no recorded turn; session.turn\\(TEXT\\) begins a turn",
        "completed": "turn 2 is completed",
        "said since": "after turn 2, the user said something else \\(record 5\\)",
        "taken back": "turn 2 was taken back by decision 5",
        "cleared": "turn 2 was cleared by decision 5",
        "open": "turn '2' is still open",
    }
    if what == "open":
        with session.turn(), pytest.raises(InputError, match=reasons[what]):
            session.turn().__enter__()
        return
    records = len(session.history())
    assert interrupted_turn(session) is None
    with pytest.raises(InputError, match=reasons[what]):
        session.turn().__enter__()
    assert len(session.history()) == records
    assert not any(isinstance(record.body, TurnResumed) for record in session.history())
    with session.turn("A new one.") as turn:  # the session is not blocked
        turn.receive(says("yes"))


def test_a_wrong_choice_is_refused(store: MemoryStore) -> None:
    """A typing error would run calls again, or not."""
    with pytest.raises(InputError, match="calls must be 'answer', 'run' or 'ask', not 'again'"):
        session_in(store).turn(calls="again")  # type: ignore[arg-type]


def test_a_call_that_may_not_run_again_is_not_said_to_have_not_run(store: MemoryStore) -> None:
    """The model would do by another way what was already done."""
    session = session_in(store)
    turn = session.turn("go").__enter__()
    (call,) = turn.receive(says("", "c1")).tool_calls
    turn.tool_started(call)
    crash(session)
    again = turnlog.open("s", store=store)
    with again.turn(calls="ask") as turn:
        (info,) = turn.awaiting
        assert (turn.status, info.standing) == ("awaiting_approval", "may have run; waits for approval to run again")
        assert "may have run" in turn.request().body["messages"][-1]["content"]
        turn.deny(call, reason="Twice is too much.")
        said = turn.request().body["messages"][-1]["content"]
    assert said == (
        "The call was interrupted. It may have run, wholly or in part; the user did not allow it to run again. "
        "Twice is too much."
    )
    (result,) = (part for r in again.history() if r.message for part in r.message.parts if isinstance(part, ToolResult))
    assert (result.outcome, result.synthetic) == ("aborted", True)
    assert [info.outcome for info in turn.info.calls] == ["aborted"]
