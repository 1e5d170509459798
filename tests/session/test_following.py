"""Following a session by its log: each event once, in order, the same as for who listens where it happens."""

from __future__ import annotations

import asyncio
import os
import random
import select
import signal
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from agents import CHAT, chunks, says, session_in
from draws import examples, seeds
from following import PATIENCE_SECONDS, Watcher, forked
from turnlog.errors import InputError, SessionNotFound
from turnlog.log.codec import encode_record
from turnlog.session.session import Session
from turnlog.session.telling import Event
from turnlog.stores import MemoryStore, open_store
from turnlog.testing import crash

PLACES = {"sqlite": "{}/log.db", "files": "files:{}/log"}
SECRET = "npm_" + "x7Kq2mNv9LpR4tYw8ZcB1dFgH6jS3aEuT5oP"


def plain(event: Event) -> tuple[Any, ...]:
    """What both tell of an event, with its record as a store has it."""
    assert event.record is not None
    return event.kind, event.session, event.text, encode_record(event.record), event.found


def live(session: Session, step: str) -> Session:
    """Do one thing in a session; returns the session, opened again if it crashed."""
    match step:
        case "turn":
            with session.turn("go") as turn:
                one, two = turn.receive(says("", "c1", "c2")).tool_calls
                turn.approve(one, by="kim")
                with turn.tool(one) as run:
                    run.result("4 degrees")
                turn.deny(two, reason="Not that.")
                turn.receive(says("done"))
        case "files":
            with session.turn("write") as turn:
                files = turn.files(".")
                files.record("a.txt", None, b"a\nb\n")
                files.record("b.txt", b"old\n", b"new\n")
                files.record("c.bin", b"\0", None)
        case "break":
            with session.turn("again") as turn:
                turn.receive(chunks("half"))
        case "cancel":
            with session.turn("stop") as turn:
                turn.cancel("enough")
        case "secret":
            session.note("login", f"with {SECRET}")
        case "compact":
            session.extend([turnlog.Message("user", (turnlog.Text(f"word {n} " * 200),)) for n in range(3)])
            session.compact(keep=1)
        case "rewind":
            with suppress(InputError):  # nothing is there to take back
                session.rewind(turns=1)
        case "crash":
            session.turn("killed").__enter__()
            crash(session)
            return session_in(session._store)  # type: ignore[arg-type]
    return session


STEPS = ("turn", "files", "break", "cancel", "secret", "compact", "rewind", "crash")


@given(steps=st.lists(st.tuples(st.sampled_from(STEPS), st.booleans()), max_size=6), files=st.booleans())
@settings(max_examples=examples(25, 1_000))
def test_the_log_tells_what_the_session_told(
    steps: list[tuple[str, bool]], files: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A reader in another process that is told other events, an event twice, or none of one, shows another session."""
    place = f"files:{tmp_path_factory.mktemp('follow')}" if files else ":memory:"
    with closing(open_store(place)) as store:
        session, heard, told = session_in(store), list[Event](), list[Event]()  # type: ignore[arg-type]
        session.on_event(heard.append)
        follower = turnlog.open("s", store=store, read_only=True).follow(1)
        for step, looks in steps:
            again = live(session, step)
            if again is not session:
                again.on_event(heard.append)
            session = again
            if looks:
                told += follower.waiting()
        told += follower.waiting()
        session.close()
        assert list(map(plain, told)) == [plain(event) for event in heard if event.record is not None]
        middle = len(told) // 2
        if told:
            first = told[middle].record.n  # type: ignore[union-attr]
            later = turnlog.open("s", store=store, read_only=True).follow(first).waiting()
            assert later == [event for event in told if event.record.n >= first]  # type: ignore[union-attr]
        assert SECRET not in repr([plain(event) for event in told])


def work(place: str, seed: int, acknowledge: int) -> None:
    """Turn after turn, until this process is killed."""
    session = turnlog.open("s", store=place, target=CHAT, wait=10)
    draw = random.Random(seed)
    while True:
        live(session, draw.choice(("turn", "files", "break", "cancel", "compact")))
        os.write(acknowledge, b".")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are killed in processes that are forked")
@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("seed", seeds(2, 40))
def test_followers_in_other_processes_miss_nothing(kind: str, seed: int, tmp_path: Path) -> None:
    """Writers are killed while they record. Who looks on from another process is told of each event once, in order,
    whether it looks from the beginning or begins in the midst."""
    place, draw = PLACES[kind].format(tmp_path), random.Random(seed)
    with closing(open_store(place)) as store:
        session_in(store).close()  # type: ignore[arg-type]
    watchers = [Watcher(place, "s"), Watcher(place, "s", 9)]
    for n in range(4):
        pid, pipe = forked(work, place, seed * 100 + n)
        for _ in range(draw.randint(1, 6)):
            assert select.select([pipe], [], [], PATIENCE_SECONDS)[0] and os.read(pipe, 1), "a writer hangs"
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(pipe)
    for watcher in watchers:
        told, expected = watcher.end()
        assert len(expected) > 15
        assert told == expected


def test_a_follower_begins_at_the_end_and_ends_when_asked() -> None:
    """A loop that tells what is long past, or never ends, cannot be used in a display."""
    store = MemoryStore()
    with session_in(store) as session:
        live(session, "turn")
        reader = turnlog.open("s", store=store, read_only=True)
        follower, heard = reader.follow(every=0.001), list[str]()
        watching = threading.Thread(target=lambda: heard.extend(event.kind for event in follower))
        assert follower.waiting() == []
        live(session, "cancel")
        watching.start()
        while len(heard) < 2:
            watching.join(0.001)
        follower.close()
        watching.join()
        live(session, "cancel")
        assert (heard, list(follower), follower.waiting()) == (["turn_started", "turn_cancelled"], [], [])


def test_what_came_before_a_session_closed_is_told() -> None:
    """The end of the last turn is what a display waits for."""
    with session_in(MemoryStore()) as session:
        follower = session.follow()
        live(session, "cancel")
    assert [event.kind for event in follower] == ["turn_started", "turn_cancelled"]


def test_a_session_that_is_deleted_while_it_is_followed_can_be_closed() -> None:
    """The end of a `with` block fails, or the follower ends as if all had been told."""
    store = MemoryStore()
    with session_in(store) as session:
        live(session, "cancel")
    with turnlog.open("s", store=store, read_only=True) as reader:
        followers = [reader.follow(), reader.follow()]
        store.delete("s")
    for follower in followers:
        with pytest.raises(SessionNotFound):
            next(follower)
        assert list(follower) == []


def test_a_long_log_is_told_in_one_pass() -> None:
    """Each end of a turn looks for its beginning from the end of the log, and a follower of a long one never comes."""
    store = MemoryStore()
    with session_in(store) as session:
        for _ in range(150):
            live(session, "cancel")
        reads: list[int] = []
        real = store.of_kinds

        def counted(name: str, kinds: Any, **more: Any) -> Any:
            reads.append(1)
            return real(name, kinds, **more)

        store.of_kinds = counted  # type: ignore[method-assign]
        told = session.follow(1).waiting()
    assert [event.kind for event in told[-2:]] == ["turn_started", "turn_cancelled"]
    assert (len(told), reads) == (300, [])


def test_a_follower_is_awaited() -> None:
    """A server has an event loop, which must not wait for a disk."""
    session = session_in(MemoryStore())

    async def main() -> list[str]:
        follower = session.follow(every=0.001)

        async def watch() -> list[str]:
            return [event.kind async for event in follower]

        watching = asyncio.create_task(watch())
        async with session.turn("go"):
            await asyncio.sleep(0)
        await asyncio.to_thread(session.close)
        return await watching

    assert asyncio.run(main()) == ["turn_started", "turn_completed"]


def test_wrong_arguments_are_refused() -> None:
    """A follower that begins nowhere, or looks without a pause, is a mistake that nobody would see."""
    with session_in(MemoryStore()) as session:
        for first in (0, -1, True, "1"):
            with pytest.raises(InputError, match="first must be the number of a record"):
                session.follow(first)  # type: ignore[arg-type]
        for every in (0, -1, "1", float("nan")):
            with pytest.raises(InputError, match="every must be a number, more than 0"):
                session.follow(every=every)  # type: ignore[arg-type]
        assert repr(session.follow(1)) == "Follower(s, at record 1, 0 events waiting)"
