"""One conversation, one turn: who has a session, who waits for it, who reads it, and what a fork may do."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import turnlog
from agents import CHAT, chunks, says
from turnlog.errors import InputError, SessionBusy, SessionNotFound, StoreError
from turnlog.log.records import TurnClosed
from turnlog.log.store import Store
from turnlog.session.session import Session
from turnlog.stores import FilesStore, MemoryStore, SqliteStore, open_store
from turnlog.testing import crash

STORES = [
    pytest.param(lambda folder: MemoryStore(), id="memory"),
    pytest.param(lambda folder: SqliteStore(folder / "s.db"), id="sqlite"),
    pytest.param(lambda folder: FilesStore(folder / "s"), id="files"),
    pytest.param(None, id="postgres"),
]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind."""
    opener = request.param
    made = opener(tmp_path) if opener else open_store(request.getfixturevalue("postgres").new_place())
    yield made
    made.close()


def ends(session: Session) -> list[tuple[str, str]]:
    """The closings of turns on record: which, and how."""
    closed = (record.body for record in session.log.records())
    return [(body.turn_id, body.status) for body in closed if isinstance(body, TurnClosed)]


def test_a_session_has_one_owner(store: Store) -> None:
    """Two handlers of one conversation: the second closed the living turn of the first as failed."""
    with turnlog.open("s", store=store, target=CHAT) as session, session.turn("go") as turn:
        for shared in (False, True):
            with pytest.raises(SessionBusy, match="'s' is in use: this process has it open already") as refused:
                turnlog.open("s", store=store, wait=0, shared=shared)
            error = refused.value
            assert (error.process, error.thread) == (os.getpid(), threading.current_thread().name)
            assert error.host and error.since
        turn.receive(says("done"))
        turnlog.open("other", store=store, wait=0).close()
    with turnlog.open("s", store=store, wait=0) as again:
        assert again.resumed is not None and not again.resumed.recovered
        assert ends(again) == [("2", "completed")]


def test_who_waits_has_it_when_it_is_closed(store: Store) -> None:
    """A user who sends twice at once gets an error in place of the second answer."""
    session = turnlog.open("s", store=store)
    found: list[Session] = []
    waiting = threading.Thread(target=lambda: found.append(turnlog.open("s", store=store, wait=60)))
    waiting.start()
    session.user("first")
    session.close()
    waiting.join()
    with found[0] as again:
        assert len(again.history()) == 1


@pytest.mark.parametrize("wait", [-1, "1", None, True, float("nan")])
def test_a_wait_is_a_number_of_seconds(wait: object) -> None:
    """A mistake that is said only where the session is in use, or that waits without end."""
    with pytest.raises(InputError, match="wait must be a number of seconds"):
        turnlog.open("s", store=":memory:", wait=wait)  # type: ignore[arg-type]


def test_several_may_write_on_purpose(store: Store) -> None:
    """Workers that share a session: nobody closes a turn or ends a stream of another that lives."""
    one = turnlog.open("s", store=store, target=CHAT, shared=True, settings=turnlog.Settings(checkpoint=0.0))
    with one.turn("go") as turn:

        def slowly() -> Iterator[object]:
            yield from chunks("It was ", "once ")
            with turnlog.open("s", store=store, shared=True) as two:
                assert two.resumed is not None and not two.resumed.recovered
                two.user("and I?")
                assert ends(two) == []
            yield from chunks("upon a time.")

        turn.receive(slowly())
        turn.receive(says("done"))
        with pytest.raises(SessionBusy):
            turnlog.open("s", store=store, wait=0)
    assert ends(one) == [("2", "completed")]
    one.close()


def test_an_interrupted_opening_leaves_the_session_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the wrong moment: a program that goes on could never open that session again."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    with closing(SqliteStore(tmp_path / "s.db")) as store:
        with monkeypatch.context() as patched:
            patched.setattr("turnlog.stores.leases.Owner.here", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.lease("s")
        store.lease("s").close()


@pytest.mark.parametrize("shared", [False, True])
def test_a_session_that_is_in_use_is_not_deleted(store: Store, shared: bool) -> None:
    """A conversation that somebody is in the midst of, gone from the disk."""
    session = turnlog.open("s", store=store, target=CHAT, shared=shared)
    with pytest.raises(SessionBusy, match=r"'s' is in use: this process has it open already .*; close it there$"):
        store.delete("s")
    assert [info.id for info in store.sessions()] == ["s"]
    with turnlog.open("s", store=store, read_only=True):
        crash(session)
        store.delete("s")  # who only looks does not keep it
    assert store.sessions() == []
    with pytest.raises(SessionNotFound):
        store.delete("s")
    turnlog.open("s", store=store, wait=0).close()


def test_the_first_of_several_closes_what_a_crash_left(store: Store) -> None:
    """Where all share a session, a turn that a crash left open stays open for good."""
    killed = turnlog.open("s", store=store, target=CHAT, shared=True)
    killed.turn("go").__enter__()
    other = turnlog.open("s", store=store, shared=True)
    assert other.resumed is not None and not other.resumed.recovered
    crash(killed)
    other.close()
    with turnlog.open("s", store=store, shared=True) as again, turnlog.open("s", store=store, shared=True):
        assert again.resumed is not None and again.resumed.recovered.turn is not None
        assert ends(again) == [("2", "failed")]


def test_a_lost_owner_frees_its_session(store: Store) -> None:
    """A session that nobody can open any more; or a dead owner that goes on writing to it."""
    killed = turnlog.open("s", store=store, target=CHAT)
    turn = killed.turn("go").__enter__()
    crash(killed)
    with turnlog.open("s", store=store, wait=0) as again:
        assert again.resumed is not None and again.resumed.recovered.turn is not None
        for use in (lambda: killed.user("more"), lambda: killed.turn("more").__enter__(), lambda: turn.request()):
            with pytest.raises((StoreError, InputError), match=r"is closed|is over"):
                use()
        turn.__exit__(None, None, None)
        killed.close()
        assert ends(again) == [("2", "failed")]


def test_reading_keeps_nobody_away(store: Store) -> None:
    """Looking at a conversation that is under way closed its turn; and a page that shows it kept its owner out."""
    with turnlog.open("s", store=store, target=CHAT) as session, session.turn("go") as turn:
        with turnlog.open("s", store=store, read_only=True) as reader:
            assert reader.request().json() == turn.request().json()
            assert [shown.message for shown in reader.view()] == [shown.message for shown in session.view()]
            turn.receive(says("done"))
            assert len(reader.history()) == len(session.history())
            uses: list[Callable[[], object]] = [
                lambda: reader.user("hi"),
                lambda: reader.turn("hi").__enter__(),
                lambda: reader.fork("t"),
                lambda: reader.media(b"x", "image/png"),
                lambda: reader.label({"a": "b"}),
            ]
            for use in uses:
                with pytest.raises(StoreError, match="open for reading only"):
                    use()
        records = len(session.history())
    assert records + 1 == store.info("s").records  # its end


def test_reading_shows_a_request_that_would_be_made_smaller(store: Store) -> None:
    """A conversation that is over its budget could not be looked at: the decision would have to be recorded."""
    with turnlog.open("s", store=store, target=CHAT, budget=600, settings=turnlog.Settings(strategy="sliding")) as made:
        for n in range(20):
            made.user(f"Question {n}? " * 9)
            made.assistant(f"Answer {n}. " * 9)
        records = len(made.history())
        with turnlog.open("s", store=store, read_only=True) as reader:
            seen = reader.request()
        assert len(made.history()) == records
        assert seen.json() == made.request().json()
        assert len(made.history()) > records


def test_reading_names_a_session_and_sets_nothing(store: Store, tmp_path: Path) -> None:
    """A mistyped name that makes a session, or a budget that is silently left out."""
    with pytest.raises(SessionNotFound):
        turnlog.open("none", store=store, read_only=True)
    with pytest.raises(StoreError, match="there is no store"):
        turnlog.open("none", store=tmp_path / "none.db", read_only=True)
    with pytest.raises(InputError, match="name the session"):
        turnlog.open(store=store, read_only=True)
    with pytest.raises(InputError, match="budget cannot be set"):
        turnlog.open("s", store=store, read_only=True, budget=5)
    assert store.sessions() == []


def test_turns_of_threads_wait_for_each_other(store: Store) -> None:
    """Two messages at once: their turns were mixed, or the second was refused."""
    session = turnlog.open("s", store=store, target=CHAT, wait=60)
    entered = threading.Barrier(4)

    def talk(n: int) -> None:
        entered.wait()
        for m in range(3):
            with session.turn(f"{n}.{m}") as turn:
                turn.receive(says(f"{n}.{m}!"))

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((turn.input + "!", turn.status) for turn in session.log.turns()) == sorted(
        (turn.answer, "completed") for turn in session.log.turns()
    )
    assert len(session.log.turns()) == 12
    session.close()


def test_turns_of_tasks_wait_in_order(store: Store) -> None:
    """A chat in which answers come in another order than questions; or a task that waits and stops all others."""
    session = turnlog.open("s", store=store, target=CHAT, wait=60)

    async def talk(n: int) -> None:
        async with session.turn(str(n)) as turn:
            await asyncio.sleep(0)
            turn.receive(says(f"{n}!"))

    async def all_at_once() -> None:
        await asyncio.gather(*(talk(n) for n in range(5)))

    asyncio.run(all_at_once())
    assert [(turn.input, turn.answer) for turn in session.log.turns()] == [(f"{n}", f"{n}!") for n in range(5)]
    session.close()


def test_a_turn_that_waits_too_long_says_who_has_it(store: Store) -> None:
    """A handler that hangs takes every later one with it."""
    session = turnlog.open("s", store=store, target=CHAT, wait=0.01)
    found: list[str] = []

    async def late() -> None:
        async with session.turn("late"):
            raise AssertionError("two turns are open")

    with session.turn("go") as turn:

        def wait() -> None:
            with pytest.raises(SessionBusy), session.turn("late"):
                found.append("two turns are open")
            found.append("refused")

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        assert found == ["refused"]
        with pytest.raises(SessionBusy, match=r"turn '2' is still open after 0.01 s \(thread MainThread") as refused:
            asyncio.run(late())
        assert refused.value.since
        assert turn.status == "processing"
    with session.turn("next"):
        pass
    assert [each.status for each in session.log.turns()] == ["completed", "completed"]
    session.close()


def test_who_would_wait_for_himself_is_told_at_once(store: Store) -> None:
    """A turn inside a turn hangs until its time is up; one of another task in the same thread stops the loop."""
    session = turnlog.open("s", store=store, target=CHAT, wait=60)

    async def tasks() -> None:
        async with session.turn("go"):
            with pytest.raises(InputError, match="leave its `with` block first"):
                await session.turn("again").__aenter__()

            async def other() -> None:
                with pytest.raises(InputError, match=r"`async with session\.turn"):
                    session.turn("again").__enter__()

            await asyncio.create_task(other())

    with session.turn("go"), pytest.raises(InputError, match="leave its `with` block first"):
        session.turn("again").__enter__()
    asyncio.run(tasks())
    session.close()


def test_who_stops_waiting_leaves_the_queue(store: Store) -> None:
    """A browser that goes away while its turn waits: the next in the queue waits for a turn that never begins."""
    session = turnlog.open("s", store=store, target=CHAT, wait=60)

    async def talk() -> None:
        async def say(text: str) -> None:
            async with session.turn(text):
                pass

        async with session.turn("first"):
            second, third = (asyncio.create_task(say(text)) for text in ("second", "third"))
            await asyncio.sleep(0)
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
        await third

    asyncio.run(talk())
    assert [turn.input for turn in session.log.turns()] == ["first", "third"]
    session.close()


def test_closing_refuses_turns_that_wait(store: Store) -> None:
    """A thread that waits for a turn of a session that is closed, and then begins it without an owner."""
    session = turnlog.open("s", store=store, target=CHAT, wait=60)
    session.turn("go").__enter__()
    found: list[Exception] = []

    def wait() -> None:
        try:
            session.turn("late").__enter__()
        except StoreError as error:
            found.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not session._turn._waiting:
        time.sleep(0)
    session.close()
    waiting.join()
    assert "was closed while a turn waited" in str(found[0])
    assert [body.input for body in turnlog.open("s", store=store, read_only=True).log.turns()] == ["go"]


def test_a_fork_of_a_session_has_an_owner_too(store: Store) -> None:
    """A fork that is opened by its name closes the turn of the one that made it."""
    with turnlog.open("s", store=store, target=CHAT, wait=0) as session, session.fork("t") as fork:
        with pytest.raises(SessionBusy):
            turnlog.open("t", store=store, wait=0)
        with fork.turn("go"), session.turn("go"):
            pass
        with pytest.raises(SessionBusy):
            session.fork("t")
    turnlog.open("t", store=store, wait=0).close()


pytestmark_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


@pytestmark_fork
def test_a_forked_child_owns_nothing(tmp_path: Path) -> None:
    """A child that leaves its parent's `with` block closes the parent's turn, or frees its session; or has it still
    when the parent has closed it."""
    path = tmp_path / "s.db"
    session = turnlog.open("s", store=path, target=CHAT)
    read, write = os.pipe()
    with session.turn("go") as turn:
        child = os.fork()
        if not child:  # pragma: no cover
            refused = 0
            for use in (lambda: session.user("x"), lambda: session.turn("x").__enter__()):
                try:
                    use()
                except SessionBusy:
                    refused += 1
            turn.__exit__(SystemExit, SystemExit(), None)
            session.close()
            os.write(write, b"ok" if refused == 2 else b"no")
            signal.pause()
        assert os.read(read, 2) == b"ok"
        with pytest.raises(SessionBusy):
            turnlog.open("s", store=path, wait=0)
        turn.receive(says("done"))
    session.close()
    again = turnlog.open("s", store=path, wait=0)  # the child is still alive
    assert ends(again) == [("2", "completed")]
    again.close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)


_OWNER = """
import sys, turnlog
session = turnlog.open("s", store=sys.argv[1], target=turnlog.target("openai-chat", "gpt-4o"))
session.turn("go").__enter__()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["s.db", "files:s"])
def test_a_killed_process_has_no_session(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its session stays in use for ever, or its turn open."""
    monkeypatch.chdir(tmp_path)
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None and owner.stdout.readline() == "open\n"
    with pytest.raises(SessionBusy, match=f"process {owner.pid} on .* has it open") as refused:
        turnlog.open("s", store=place, wait=0)
    assert (refused.value.process, refused.value.thread) == (owner.pid, "MainThread")
    with turnlog.open("s", store=place, read_only=True) as reader:
        assert reader.log.turns()[0].status == "processing"
    owner.kill()
    owner.communicate()
    with turnlog.open("s", store=place, wait=0) as again:
        assert again.resumed is not None and again.resumed.recovered.turn is not None
        assert ends(again) == [("2", "failed")]
    assert not (tmp_path / "s.db-open").exists()


def test_no_turn_begins_while_the_session_is_being_closed() -> None:
    """The lease goes at the end of closing: a turn that began meanwhile would live on without it, beside another's."""
    refused: list[str] = []

    class Late:
        """Begins a turn when it is closed, as another thread might in that moment."""

        def close(self) -> None:
            with pytest.raises(StoreError) as caught, session.turn("late"):
                pass
            refused.append(str(caught.value))

    session = turnlog.open("s", store=MemoryStore(), target=CHAT)
    session.attach(Late())
    session.close()
    assert refused == ["session 's' is being closed; open it again"]
