"""Events: everything that happens is told, to everybody who listens, and no listener breaks anything."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from weakref import WeakSet

import pytest

import turnlog
from agents import CHAT, chunks, says, session_in
from turnlog.errors import InputError
from turnlog.log.codec import encode_record
from turnlog.log.messages import Message, Text
from turnlog.session.events import Appended, Events
from turnlog.session.operations import follow_records
from turnlog.session.session import Session
from turnlog.session.telling import Event, EventKind
from turnlog.stores import MemoryStore
from turnlog.testing import crash

OTHER = turnlog.target("anthropic", "claude-sonnet-4-5")


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


def answered(session: Session, _: Path) -> None:
    """A turn with a tool that was approved, one that was denied, and a file that changed."""
    with session.turn("go") as turn:
        one, two = turn.receive(says("", "c1", "c2")).tool_calls
        turn.ask_approval(one, reason="it costs")
        turn.approve(one, by="kim")
        with turn.tool(one) as run:
            run.result("4 degrees")
        turn.deny(two, reason="Not that.")
        session.files(".").record("a.txt", None, b"a")
        turn.receive(says("done"))


def interrupted(session: Session, _: Path) -> None:
    """An answer that breaks off, a tool that fails, a turn that fails of it."""
    with contextlib.suppress(TimeoutError), session.turn("again") as turn:
        turn.receive(chunks("half"))
        (call,) = turn.receive(says("", "c3")).tool_calls
        with turn.tool(call):
            raise TimeoutError("too\nslow")


def cancelled(session: Session, _: Path) -> None:
    """A turn that is called off."""
    with session.turn("stop") as turn:
        turn.cancel("enough")


def watched(session: Session, folder: Path) -> None:
    """A turn over which a folder is watched."""
    with session.turn("write", watch=folder):
        (folder / "b.txt").write_text("b")


def compacted(session: Session, _: Path) -> None:
    """A conversation that is made shorter."""
    for n in range(12):
        session.user(f"word {n} " + "so " * 200)
        session.assistant("yes")
    session.compact(keep=1)


def secret(session: Session, _: Path) -> None:
    """Somebody says a key."""
    session.note("login", "with npm_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP")


def gone_back(session: Session, _: Path) -> None:
    """The user takes a turn back, and then does not."""
    session.rewind(turns=1)
    session.undo("rewind")


def forgotten(session: Session, _: Path) -> None:
    """A turn that nobody enters, a service that does not close, a turn that nobody leaves."""

    class Client:
        def close(self) -> None:
            raise OSError("no route")

    session.attach(Client())
    session.turn("left open").__enter__()
    session.turn("never begun")
    with pytest.raises(OSError):
        session.close()


SCRIPT = [
    (answered, [
        ("session_opened", "session opened", ""),
        ("turn_started", "turn 2 started", "TurnOpened"),
        ("approval_asked", "approval of c1 asked: it costs", "Approval"),
        ("approval_given", "approval of c1 given", "Approval"),
        ("tool_started", "weather (c1) started", "ToolStarted"),
        ("tool_finished", "weather (c1) ended: ok", "ToolFinished"),
        ("approval_denied", "approval of c2 denied: Not that.", "Approval"),
        ("diff", "a.txt created", "FileChange"),
        ("turn_diff", "turn 2: 1 file changed, +1 -0", "TurnClosed"),
        ("turn_completed", "turn 2 completed, 200 tokens in, 20 out, $0.0007", "TurnClosed"),
    ]),
    (interrupted, [
        ("turn_started", "turn 17 started", "TurnOpened"),
        ("warning", "the answer was interrupted: the stream ended before a finish reason came", "PartialAnswer"),
        ("tool_started", "weather (c3) started", "ToolStarted"),
        ("tool_finished", "weather (c3) ended: timeout, TimeoutError: too slow", "ToolFinished"),
        ("turn_failed", "turn 17 failed, 100 tokens in, 10 out, $0.0004: TimeoutError: too slow", "TurnClosed"),
    ]),
    (cancelled, [
        ("turn_started", "turn 26 started", "TurnOpened"),
        ("turn_cancelled", "turn 26 cancelled: enough", "TurnClosed"),
    ]),
    (watched, [
        ("turn_started", "turn 29 started", "TurnOpened"),
        ("diff", "b.txt created", "FileChange"),
        ("turn_diff", "turn 29: 1 file changed, +1 -0", "TurnClosed"),
        ("turn_completed", "turn 29 completed", "TurnClosed"),
    ]),
    (compacted, [("compacted", "compact: older turns summarised to fit the budget (N → N tokens)", "Decision")]),
    (gone_back, [
        ("rewound", "records 55 to 57 were taken back: 1 turn taken back", "Decision"),
        ("undone", "decision 58 no longer holds: rewind taken back", "Decision"),
    ]),
    (secret, [("redacted", "record 60: 1 npm-token replaced on disk", "Note")]),
    (forgotten, [
        ("turn_started", "turn 61 started", "TurnOpened"),
        ("warning", "a turn was made and never begun, so what the user said in it is not on record: "
         "write `with session.turn(...) as turn:`", ""),
        ("turn_failed", "turn 61 failed: the session was closed in the midst of it", "TurnClosed"),
        ("warning", "closing test_events.forgotten.<locals>.Client failed: OSError: no route", ""),
        ("session_closed", "session closed", ""),
    ]),
]  # fmt: skip
"""What is done with a session, and all that is told of it: kind, text, kind of record."""

AGAIN = [
    ("session_resumed", "session s resumed at record 63", ""),
    ("turn_resumed", "turn 61 goes on", "TurnResumed"),
    ("turn_completed", "turn 61 completed", "TurnClosed"),
    ("session_closed", "session closed", ""),
]
"""What is told when it is opened again, goes on with its last turn, and is closed."""


def told(event: Event) -> tuple[str, str, str]:
    """An event as the script has it."""
    text = re.sub(r" after [0-9.]+ s", "", event.text)  # nobody knows how long it took
    text = re.sub(r"[0-9,]+ → [0-9,]+", "N → N", text)  # the path of the folder counts
    return event.kind, text, "" if event.record is None else type(event.record.body).__name__


def test_the_end_of_a_tool_is_told_with_its_name(store: MemoryStore) -> None:
    """Ids of calls say nothing to people. No record of an end has the name, nor has a process that saw no start; the
    message with the call may have left the view since."""
    with session_in(store) as first:
        first.user("go")
        calls = first.receive(says("", "c1")).tool_calls
    again, heard = session_in(store), list[str]()
    again.on_event(lambda event: heard.append(event.text))
    again.tool_finished(calls[0], "failed", reason="no route")
    again.clear()
    again.tool_finished(calls[0])
    assert heard[1:] == ["weather (c1) ended: failed, no route", "weather (c1) ended: ok"]


def test_everything_that_happens_is_told(store: MemoryStore, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A user interface follows a session by events alone: one that is missing is a state never shown."""
    caplog.set_level(logging.INFO, logger="turnlog")
    session = session_in(store)
    heard: list[Event] = []
    session.on_event(heard.append)
    feed, afeed = session.events(), session.events()
    done = 0
    for step, expected in SCRIPT:
        step(session, tmp_path)
        assert [told(event) for event in heard[done:]] == expected
        done = len(heard)

    async def follow() -> list[Event]:
        return [event async for event in afeed]

    assert heard[1:] == list(feed) == asyncio.run(follow())  # the first who listened was told of the opening
    assert {event.session for event in heard} == {"s"}
    again = session_in(store)
    again.on_event(heard.append)
    with again.turn():
        pass
    again.close()
    assert [told(event) for event in heard[done:]] == AGAIN
    assert [record.getMessage() for record in caplog.records] == [f"s: {event.text}" for event in heard]
    kept = {encode_record(record) for record in session.history()}
    assert {encode_record(event.record) for event in heard if event.record is not None} <= kept


def test_every_kind_of_event_is_made_by_something() -> None:
    """A kind that nothing tells of is a promise that is not kept."""
    assert {kind for _, expected in [*SCRIPT, (None, AGAIN)] for kind, _, _ in expected} == {*get_args(EventKind)}


def test_records_are_followed(store: MemoryStore) -> None:
    """What mirrors a log needs every record of it, in order, and whose answer one is."""
    session = session_in(store)
    heard: list[Appended] = []
    stop = follow_records(session, heard.append)
    session.user("go")
    session.receive(says("yes"))
    session.receive({"type": "message", "role": "assistant", "content": []}, OTHER)
    stop()
    session.note("unheard")
    assert [record for appended in heard for record in appended.records] == session.history()[1:-1]
    assert [appended.asked for appended in heard] == [None, CHAT, OTHER]
    with pytest.raises(InputError, match=r"follow_records takes a function of what was appended, not str"):
        follow_records(session, "print")  # type: ignore[arg-type]


@pytest.mark.parametrize("follow", [Session.on_event, follow_records])
def test_an_asynchronous_listener_is_refused(follow: Any, store: MemoryStore) -> None:
    """Nobody awaits what it returns: it heard of nothing, and nothing said so."""

    async def heard(event: Any) -> None: ...

    class Heard:
        async def __call__(self, event: Any) -> None: ...

    session = session_in(store)
    for listener in (heard, Heard()):
        with pytest.raises(InputError, match="asynchronous functions are not called: give a plain function"):
            follow(session, listener)


def test_resuming_is_told_with_what_was_left_open(store: MemoryStore) -> None:
    """Whoever opens a session after a crash hears of it, though it happened before anybody could listen."""
    killed = session_in(store)
    killed.turn("go").__enter__()
    crash(killed)
    session = session_in(store)
    feed = session.events()
    assert [event.kind for event in feed.waiting()] == ["session_resumed", "turn_failed"]
    assert session.events().waiting() == []


def test_a_listener_that_fails_breaks_nothing(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    """A mistake in a progress bar must not lose an answer; it must not go unseen either."""
    session = session_in(store)
    heard: list[Event] = []

    def broken(event: Event) -> None:
        raise RuntimeError(f"no {event.kind}\nforged: line")

    session.on_event(broken)
    stop = session.on_event(heard.append)
    feed = session.events()
    with session.turn("go") as turn:
        turn.receive(says("yes"))
    assert [turn.status for turn in session.log.turns()] == ["completed"]
    assert [event.kind for event in heard] == ["warning", "turn_started", "warning", "turn_completed"]
    assert [event.kind for event in feed.waiting()].count("warning") == 2
    assert "broken failed at 'turn_started': RuntimeError: no turn_started forged: line" in heard[0].text
    assert "forged: line" in caplog.text and "\nforged" not in caplog.records[-1].getMessage()
    stop()
    session.note("unheard")
    stop()  # twice is once
    with pytest.raises(InputError, match="function of an event"):
        session.on_event("print")  # type: ignore[arg-type]


def test_all_fail_and_none_breaks(store: MemoryStore) -> None:
    """Two listeners that fail at each other's warnings would go round for ever."""
    session = session_in(store)

    def broken(event: Event) -> None:
        raise RuntimeError

    def broken_too(event: Event) -> None:
        raise RuntimeError

    session.on_event(broken)
    session.on_event(broken_too)
    with session.turn("go"):
        pass
    assert [turn.status for turn in session.log.turns()] == ["completed"]


def test_events_go_to_the_logger(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    """One logger for who wants lines in a file; no handler of ours on it."""
    with caplog.at_level(logging.INFO, logger="turnlog"):
        session = session_in(store)
        with pytest.raises(ValueError), session.turn("go"):
            raise ValueError("two\nlines")
    lines = [re.sub(r"after [0-9.]+ s", "after 0 s", record.getMessage()) for record in caplog.records]
    assert [*zip([record.levelname for record in caplog.records], lines, strict=True)] == [
        ("INFO", "s: session opened"),
        ("INFO", "s: turn 2 started"),
        ("WARNING", "s: turn 2 failed after 0 s: ValueError: two lines"),
    ]
    assert logging.getLogger("turnlog").handlers == []


def test_a_feed_is_followed_from_another_thread(store: MemoryStore) -> None:
    """`for` waits for the next event and ends with the session."""
    session = session_in(store)
    feed, heard = session.events(), list[str]()
    follower = threading.Thread(target=lambda: heard.extend(event.kind for event in feed))
    follower.start()
    with session.turn("go"):
        pass
    session.close()
    follower.join()
    assert heard == ["session_opened", "turn_started", "turn_completed", "session_closed"]
    assert list(session.events()) == []


def test_a_feed_is_followed_from_an_event_loop(store: MemoryStore) -> None:
    """`async for` is woken by what happens in the loop and in threads beside it."""
    session = session_in(store)
    feed = session.events()

    async def follow() -> list[str]:
        return [event.kind async for event in feed]

    async def main() -> list[str]:
        follower = asyncio.create_task(follow())
        await asyncio.sleep(0)
        async with session.turn("go"):
            await asyncio.sleep(0)
        await asyncio.to_thread(session.close)
        return await follower

    assert asyncio.run(main()) == ["session_opened", "turn_started", "turn_completed", "session_closed"]


class Loop(asyncio.SelectorEventLoop):
    """An event loop that knows who waits in it, and is closed just when another thread hands it something."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = WeakSet[asyncio.Future[Any]]()

    def create_future(self) -> asyncio.Future[Any]:
        """What somebody waits for."""
        made = super().create_future()
        self.waits.add(made)
        return made

    def call_soon_threadsafe(self, *call: Any, **named: Any) -> Any:
        """Too late."""
        self.close()
        return super().call_soon_threadsafe(*call, **named)


def test_a_loop_that_ends_while_something_happens(store: MemoryStore) -> None:
    """What was put on record is said to have failed, and done again: somebody listened in a loop that is gone."""
    session, loop = session_in(store), Loop()
    feed = session.events()
    feed.waiting()
    loop.set_exception_handler(lambda *_: None)  # for who waits there still
    waiting = loop.create_task(anext(feed))
    loop.run_until_complete(asyncio.sleep(0))
    with session.turn("go"):
        pass
    assert loop.is_closed()
    assert [event.kind for event in feed.waiting()] == ["turn_started", "turn_completed"]
    assert not waiting.done()


@pytest.mark.slow
def test_waits_that_were_cancelled_are_let_go(store: MemoryStore) -> None:
    """A program that looks for events with a time limit, again and again, fills up while nothing happens."""
    session, loop = session_in(store), Loop()
    feed = session.events()
    feed.waiting()

    async def look() -> None:
        for _ in range(5):
            waiting = asyncio.ensure_future(anext(feed))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])

    loop.run_until_complete(look())
    loop.close()
    gc.collect()
    assert len(loop.waits) == 0


def test_a_feed_that_nobody_has_is_let_go() -> None:
    """A feed that was dropped must not fill up for as long as the session lives."""
    events = Events("s")
    events.feed()
    gc.collect()
    assert list(events._feeds) == []
    for _ in range(3):
        events.emit("warning", "nobody listens")
    assert events.feed().waiting() == []


def test_a_fork_tells_its_own(store: MemoryStore) -> None:
    """What happens in a fork is no news of its parent."""
    session = session_in(store)
    feed = session.events()
    fork = session.fork("other")
    with fork.turn("go"):
        fork.switch(CHAT)
    session.add(Message("user", (Text("hello"),)))
    assert [event.kind for event in feed.waiting()] == ["session_opened"]
