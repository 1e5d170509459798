"""Events: everything that happens is told, to everybody who listens, and no listener breaks anything."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import CHAT, chunks, says, session_in
from turnlog.codec import encode_record
from turnlog.content import Message, Text
from turnlog.errors import InputError
from turnlog.events import Event, Events
from turnlog.session import Session
from turnlog.stores import MemoryStore


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


def lived(session: Session, folder: Path) -> None:
    """One of everything that is told."""
    with session.turn("go", watch=folder) as turn:
        one, two = turn.receive(says("", "c1", "c2")).tool_calls
        turn.ask_approval(one)
        turn.approve(one)
        with turn.tool(one) as run:
            (folder / "a.txt").write_text("a")
            run.result("done")
        turn.deny(two)
        turn.receive(chunks("half"))
    with session.turn("stop") as turn:
        turn.cancel()
    with pytest.raises(ValueError), session.turn("fail"):
        raise ValueError
    for n in range(12):
        session.user(f"word {n} " + "so " * 200)
        session.assistant("yes")
    session.compact(keep=1)
    session.close()


KINDS = [
    "session_opened", "turn_started", "approval_asked", "approval_given", "tool_started", "tool_finished",
    "approval_denied", "warning", "diff", "turn_completed", "turn_started", "turn_cancelled", "turn_started",
    "turn_failed", "compacted", "session_closed",
]  # fmt: skip


def test_everything_that_happens_is_told(store: MemoryStore, tmp_path: Path) -> None:
    """A user interface follows a session by events alone: one that is missing is a state never shown."""
    session = session_in(store)
    heard: list[Event] = []
    session.on_event(heard.append)
    feed = session.events()
    lived(session, tmp_path)
    kinds = [event.kind for event in heard]
    assert [kind for i, kind in enumerate(kinds) if kinds[i - 1 : i] != [kind]] == KINDS
    assert heard[1:] == list(feed)  # the first who listened was told of the opening
    assert {event.session for event in heard} == {"s"}
    kept = {encode_record(record) for record in session.history()}
    assert {encode_record(event.record) for event in heard if event.record is not None} <= kept


def test_resuming_is_told_with_what_was_left_open(store: MemoryStore) -> None:
    """Whoever opens a session after a crash hears of it, though it happened before anybody could listen."""
    session_in(store).turn("go").__enter__()
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
    assert [turn.status for turn in session.turns()] == ["completed"]
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
    assert [turn.status for turn in session.turns()] == ["completed"]


def test_events_go_to_the_logger(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    """One logger for who wants lines in a file; no handler of ours on it."""
    with caplog.at_level(logging.INFO, logger="turnlog"):
        session = session_in(store)
        with pytest.raises(ValueError), session.turn("go"):
            raise ValueError("two\nlines")
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "s: session opened"),
        ("INFO", "s: turn 2 started"),
        ("WARNING", "s: turn 2 failed: ValueError: two lines"),
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
