"""Approvals that wait: a turn that needs no process, decided from elsewhere, going on wherever it was left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from agents import says, session_in
from turnlog.errors import InputError, SessionBusy
from turnlog.log.messages import Message, ToolResult, text_of
from turnlog.log.records import Approval, MessageRecord, Record
from turnlog.log.store import Draft
from turnlog.session.recovery import Calls, Recovered
from turnlog.session.session import Session
from turnlog.stores import MemoryStore

CHAT = turnlog.target("openai-chat", "gpt-4o")
KEY = bytes(range(32))
PLACES = {"sqlite": "{}/log.db", "files": "files:{}/log", "encrypted": "{}/sealed.db", "postgres": ""}


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


def waiting(session: Session, *others: str) -> list[Any]:
    """A turn that has ended and waits for the approval of `pay`; the calls named besides have their results."""
    with session.turn("Pay the bill.") as turn:
        pay, *done = turn.receive(says("At once.", "pay", *others)).tool_calls
        turn.ask_approval(pay, reason="money")
        for call in done:
            with turn.tool(call) as run:
                run.result("done")
    assert turn.status == "awaiting_approval"
    return [pay, *done]


def answers(session: Session) -> dict[str, str]:
    """The text of the result of each call."""
    parts = [part for record in session.history() if record.message for part in record.message.parts]
    return {part.call_id: text_of(Message("user", part.parts)) for part in parts if isinstance(part, ToolResult)}


def paid(session: Session) -> str:
    """Go on with the turn to its end; returns what the model was told of the call."""
    with session.turn(calls="run") as turn:
        for info in turn.awaiting:
            with turn.tool(info.call) as run:
                run.result("paid")
        turn.request()
        turn.receive(says("It is done."))
    assert turn.status == "completed"
    return answers(session)["pay"]


@pytest.mark.parametrize("kind", PLACES)
def test_it_is_decided_beside_the_owner(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Somebody who says yes an hour later is kept away by the process that asked, or makes it lose records."""
    place = request.getfixturevalue("postgres").new_place() if kind == "postgres" else PLACES[kind].format(tmp_path)
    settings = turnlog.Settings(key=KEY if kind == "encrypted" else None)
    session = turnlog.open("bill", store=place, target=CHAT, settings=settings)
    pay = waiting(session, "look")[0]
    with pytest.raises(SessionBusy):
        turnlog.open("bill", store=place, settings=settings, wait=0.01)
    with turnlog.open("bill", store=place, settings=settings, read_only=True) as beside:
        assert [(info.call, info.reason, info.awaits) for info in beside.pending()] == [(pay, "money", "approval")]
        record = beside.approve(pay.id, by="kim")
        assert (record.body, beside.pending()) == (Approval("pay", "given", 4, "kim"), [])
    assert (session.pending(), paid(session)) == ([], "paid")
    assert session.log.validate(strict=True) == []
    session.close()


def test_another_process_decides(tmp_path: Path) -> None:
    """What works between two objects of one process may not work between two processes."""
    session = turnlog.open("bill", store=tmp_path / "log.db", target=CHAT)
    waiting(session)
    says_no = (
        f"import turnlog; turnlog.open('bill', store={str(tmp_path / 'log.db')!r}, read_only=True)"
        ".deny('pay', 'Too much.')"
    )
    subprocess.run([sys.executable, "-c", says_no], check=True)
    assert paid(session) == "The user did not allow this call; it did not run. Too much."
    session.close()


def test_opening_leaves_it_as_it_is(store: MemoryStore) -> None:
    """A turn that is closed by whoever looks at it, or answered by whoever asks for a request."""
    session = session_in(store)
    waiting(session, "look")
    before, view = session.history(), session.preview().json()
    assert session.active_turn is None
    session.close()
    for _ in range(3):
        with turnlog.open("s", store=store) as again:
            assert again.resumed is not None
            assert (again.resumed.recovered, again.history()) == (Recovered(), before)
            assert [info.call.id for info in again.pending()] == ["pay"]
            assert again.log.turns()[-1].status == "awaiting_approval"
            with pytest.raises(InputError, match=r"approval of weather \(pay\) is waited for, and a request would"):
                again.request()
            assert (again.preview().json(), len(again.view()) > 0) == (view, True)
    with turnlog.open("s", store=store, read_only=True) as reader:
        assert reader.request().json() == view


@pytest.mark.parametrize("calls", ["answer", "run", "ask"])
def test_what_was_denied_elsewhere_is_told_when_it_goes_on(store: MemoryStore, calls: Calls) -> None:
    """A model that is not told of a refusal calls the tool again, or waits for it for ever."""
    session = session_in(store)
    pay = waiting(session)[0]
    session.deny(session.pending()[0], "Too much.", by="kim")
    with session.turn(calls=calls) as turn:
        assert turn.awaiting == ()
        info = turn.info.calls[0]
        assert (info.outcome, info.approved_by, info.synthetic) == ("canceled", "kim", True)
        assert turn.request().body["messages"][-1]["content"] == answers(session)[pay.id]
    assert answers(session)[pay.id] == "The user did not allow this call; it did not run. Too much."


def test_the_first_who_decides_counts(store: MemoryStore) -> None:
    """Two people with the same page: the second one takes back what the first allowed, and nobody knows who did."""
    session = session_in(store)
    pay, look = waiting(session, "look")
    session.approve(pay, by="kim")
    for decide in (session.approve, session.deny):
        with pytest.raises(
            InputError, match=r"'pay' of 'weather' does not wait for approval: it was approved by kim; not started"
        ):
            decide("pay")
    with pytest.raises(InputError, match="'look' of 'weather' does not wait for approval: answered in record 9"):
        session.approve(look)
    with pytest.raises(InputError, match="has no call with the id 'x'; these wait for approval: none"):
        session.deny("x")
    with pytest.raises(InputError, match="by must be a string"):
        session.approve("pay", by=1)  # type: ignore[arg-type]


def test_two_decide_at_the_same_moment(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both look, both find that it waits, both append."""
    session = session_in(store)
    pay = waiting(session)[0]
    other, looked = turnlog.open("s", store=store, read_only=True), session.pending

    def meanwhile() -> Any:
        found = looked()
        monkeypatch.undo()
        other.approve(pay, by="kim")
        return found

    monkeypatch.setattr(session, "pending", meanwhile)
    with pytest.raises(InputError, match="it was approved by kim; not started"):
        session.deny(pay, by="lee")


def test_who_says_something_else_ends_it(store: MemoryStore) -> None:
    """A user who goes on talking is refused, or a call runs that nobody expects any more."""
    session = session_in(store)
    waiting(session)
    with session.turn("Never mind.") as turn:
        turn.request()
        turn.receive(says("Fine."))
    first, second = session.log.turns()
    assert (first.status, second.status, session.pending()) == ("cancelled", "completed", [])
    assert first.reason == (
        "another turn began before anybody said whether its calls may run; "
        "without a result: weather (pay: waits for approval)"
    )
    assert answers(session) == {
        "pay": "The user did not allow this call; it did not run. The conversation went on without it."
    }
    with pytest.raises(InputError, match="'pay' of 'weather' does not wait for approval: answered in record 7"):
        session.approve("pay")
    assert session.log.validate(strict=True) == []


@pytest.mark.parametrize("how", ["rewind", "clear"])
def test_what_is_taken_back_does_not_wait(store: MemoryStore, how: str) -> None:
    """A user who goes back is refused, or somebody allows a call that nobody wants any more."""
    session = session_in(store)
    session.user("Good day.")
    session.assistant("Good day.")
    waiting(session)
    if how == "rewind":
        session.rewind(turns=1)
    else:
        session.clear()
    assert session.pending() == []
    session.request()
    with turnlog.open("s", store=store, read_only=True) as page, pytest.raises(InputError, match="does not wait"):
        page.approve("pay")


def test_a_question_that_ends_with_its_turn_is_told(store: MemoryStore) -> None:
    """Beside a call that nobody asked about, the question is gone without a word."""
    session, events = session_in(store), []
    session.on_event(events.append)
    with session.turn("Pay the bill.") as turn:
        pay, _ = turn.receive(says("", "pay", "look")).tool_calls
        turn.ask_approval(pay)
    warned = [event.text for event in events if event.kind == "warning"]
    assert (len(warned), turn.status, session.pending()) == (1, "completed", [])
    assert "weather (pay: waits for approval); ask for the others too" in warned[0]


def test_a_fork_does_not_wait(store: MemoryStore) -> None:
    """Whoever allows a call in a session and its fork pays twice."""
    session = session_in(store)
    waiting(session)
    with session.fork("other") as fork:
        assert (fork.log.turns()[-1].status, fork.pending()) == ("failed", [])
    assert (len(session.pending()), session.log.turns()[-1].status) == (1, "awaiting_approval")


def test_what_may_have_run_is_closed_and_still_waits(store: MemoryStore) -> None:
    """A crash beside a call that waits: its turn has failed, and the approval is lost with it."""
    session = session_in(store)
    with session.turn("Pay the bill.") as turn:
        pay, look = turn.receive(says("", "pay", "look")).tool_calls
        turn.ask_approval(pay)
        turn.tool_started(look)
        records = session.history()
    copied = MemoryStore()
    copied.create("s")
    copied.append("s", [Draft.of(record) for record in records])
    again = turnlog.open("s", store=copied)
    assert again.resumed is not None
    assert [info.call.id for info in again.resumed.recovered.calls] == ["pay", "look"]
    assert [info.call.id for info in again.pending()] == ["pay"]
    again.approve("pay")
    with again.turn(calls="run") as turn:
        assert [(info.call.id, info.standing) for info in turn.awaiting] == [
            ("pay", "approved, not started"),
            ("look", "started and never ended: it may have run"),
        ]


def test_a_cancelled_turn_waits_for_nobody(store: MemoryStore) -> None:
    """Ctrl-C while somebody is asked: a page goes on asking."""
    session = session_in(store)
    with session.turn("Pay the bill.") as turn:
        turn.ask_approval(turn.receive(says("", "pay")).tool_calls[0])
        turn.cancel("Ctrl-C")
    assert (session.log.turns()[-1].status, session.pending()) == ("cancelled", [])


def test_secrets_in_a_reason_are_replaced(tmp_path: Path) -> None:
    """A reason that is said beside the owner goes round the redaction."""
    secret = "sk-proj-" + "a1B2c3D4" * 6
    settings = turnlog.Settings(redact=True)
    with turnlog.open("bill", store=tmp_path / "log.db", target=CHAT, settings=settings) as session:
        waiting(session)
        with turnlog.open("bill", store=tmp_path / "log.db", settings=settings, read_only=True) as beside:
            beside.deny("pay", f"not with {secret}")
    assert secret.encode() not in (tmp_path / "log.db").read_bytes()


def test_wherever_it_is_killed_it_goes_on(store: MemoryStore) -> None:
    """A kill at every record: what was decided is asked again, lost, or run twice."""
    session = session_in(store)
    waiting(session, "look")
    session.approve("pay", by="kim")
    paid(session)
    records: list[Record] = session.history()
    begun = next(i for i, record in enumerate(records) if isinstance(record.body, Approval))
    ended = next(i for i, record in enumerate(records) if answers_pay(record))
    for n in range(begun + 1, len(records) + 1):
        copied = MemoryStore()
        copied.create("s")
        copied.append("s", [Draft.of(record) for record in records[:n]])
        with turnlog.open("s", store=copied) as again:
            info = next(info for info in again.log.calls() if info.call.id == "pay")
            assert bool(again.pending()) == (info.awaits == "approval")
            assert info.may_have_run == (info.started > 0 and n <= ended), n
            assert info.approval == ("given" if any(is_yes(record) for record in records[:n]) else "asked")


def is_yes(record: Record) -> bool:
    """Whether a call was approved by it."""
    return isinstance(record.body, Approval) and record.body.state == "given"


def answers_pay(record: Record) -> bool:
    """Whether it has the result of the call."""
    parts = record.body.message.parts if isinstance(record.body, MessageRecord) else ()
    return any(isinstance(part, ToolResult) and part.call_id == "pay" for part in parts)


def test_of_two_owners_one_goes_on(store: MemoryStore) -> None:
    """Two workers of one page take up the same turn, and each runs what was allowed once."""
    first = session_in(store, shared=True)
    pay = waiting(first)[0]
    second = session_in(store, shared=True)
    first.approve(pay)
    with first.turn(calls="run") as turn:
        with pytest.raises(InputError, match=r"another owner of the session goes on with turn 2 \(record 8\)"):
            second.turn(calls="run").__enter__()
        with turn.tool(pay) as run:
            run.result("paid")
    assert answers(second)["pay"] == "paid"


def test_a_call_starts_once_in_a_shared_session(store: MemoryStore) -> None:
    """Both owners have the turn before them, and start the same call."""
    first = session_in(store, shared=True)
    second = session_in(store, shared=True)
    with first.turn("Pay the bill.") as turn:
        (pay,) = turn.receive(says("", "pay")).tool_calls
        second.tool_started(pay)
        with pytest.raises(InputError, match="'pay' of 'weather' was started by another owner, record"):
            turn.tool_started(pay)


def test_what_was_shown_is_what_is_decided(store: MemoryStore) -> None:
    """A model that uses an id again: somebody who allowed the first call has allowed another one."""
    session = session_in(store)
    waiting(session)
    (shown,) = session.pending()
    with session.turn("No, the other one.") as turn:
        wanted = says("", "pay")
        wanted["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = '{"city":"Rome"}'
        turn.ask_approval(turn.receive(wanted).tool_calls[0])
    assert [info.call.id for info in session.pending()] == ["pay"]
    for decided in (shown, shown.call):
        with pytest.raises(InputError, match=r"'pay' of 'weather' is another one now \(record 11\): show that"):
            session.approve(decided)
