"""Random schedules of owners of one session: threads, tasks, and processes that are killed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from tempfile import TemporaryDirectory
from typing import Any, Literal, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import turnlog
from turnlog.errors import SessionBusy, StoreError
from turnlog.log.records import TurnClosed, TurnOpened
from turnlog.log.store import Store
from turnlog.session.session import Session
from turnlog.stores import MemoryStore, open_store
from turnlog.testing import crash

CHAT = turnlog.target("openai-chat", "gpt-4o")
PATIENCE_SECONDS = 30.0
OUTLIVES_SECONDS = 1.0
"""How long a lease may live on after its owner."""

Mode = Literal["alone", "shared"]


class Actor(Protocol):
    """One who opens the session. What a method returns says whether it was done: `ok`, `busy`."""

    def open(self, mode: Mode, wait: float) -> Future[str]:
        """Open the session."""

    def begin(self) -> Future[str]:
        """Begin a turn."""

    def end(self) -> Future[str]:
        """End the turn."""

    def say(self) -> Future[str]:
        """Record a note."""

    def close(self) -> Future[str]:
        """Close the session."""

    def second(self) -> Future[str]:
        """Enter another turn of the same session, in another thread, and leave it at once."""

    def lose(self) -> None:
        """Be gone, as after kill -9. The next use is by another, who takes the place."""

    def leave(self) -> None:
        """Be gone for good."""


class Work:
    """What an actor does, wherever it is: in a thread, a task, another process."""

    def __init__(self, place: Store | str) -> None:
        self._place = place
        self.session: Session | None = None
        self.turn: Any = None

    def open(self, mode: Mode, wait: float) -> str:
        """See `Actor`."""
        try:
            self.session = turnlog.open(
                "s", store=self._place, target=CHAT, shared=mode == "shared", wait=wait, settings=turnlog.Settings()
            )
        except SessionBusy:
            return "busy"
        self.session._turn.wait = PATIENCE_SECONDS
        return "ok"

    def begin(self) -> str:
        """See `Actor`."""
        assert self.session is not None
        self.turn = self.session.turn("go")
        self.turn.__enter__()
        return "ok"

    def end(self) -> str:
        """See `Actor`."""
        self.turn.__exit__(None, None, None)
        return "ok"

    def second(self) -> str:
        """See `Actor`."""
        assert self.session is not None
        try:
            with self.session.turn("late"):
                pass
        except StoreError:
            return "closed"
        return "ok"

    def say(self) -> str:
        """See `Actor`."""
        assert self.session is not None
        self.session.note("said")
        return "ok"

    def close(self) -> str:
        """See `Actor`."""
        assert self.session is not None
        self.session.close()
        self.session = None
        return "ok"

    def lose(self) -> None:
        """See `Actor`."""
        if self.session is not None:
            crash(self.session)
        self.session = None


class ThreadActor:
    """An actor that is a thread."""

    def __init__(self, place: Store | str) -> None:
        self._work = Work(place)
        self._thread, self._other = ThreadPoolExecutor(1), ThreadPoolExecutor(1)

    def second(self) -> Future[str]:
        """See `Actor`."""
        return self._other.submit(self._work.second)

    def __getattr__(self, name: str) -> Callable[..., Future[str]]:
        return lambda *given: self._thread.submit(getattr(self._work, name), *given)

    def lose(self) -> None:
        """See `Actor`."""
        self._thread.submit(self._work.lose).result(PATIENCE_SECONDS)

    def leave(self) -> None:
        """See `Actor`."""
        self.lose()
        self._thread.shutdown()
        self._other.shutdown()


class Loop:
    """An event loop in a thread, for actors that are tasks."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the loop and its thread."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class TaskActor:
    """An actor that is a task: what it is told goes through a queue, so that a turn begins and ends in one task."""

    def __init__(self, place: Store | str, loop: Loop) -> None:
        self._work = Work(place)
        self._loop = loop.loop
        self._told: asyncio.Queue[tuple[str, tuple[Any, ...], Future[str]] | None] = asyncio.Queue()
        self._task = asyncio.run_coroutine_threadsafe(self._live(), self._loop)

    def second(self) -> Future[str]:
        """See `Actor`."""
        return asyncio.run_coroutine_threadsafe(self._second(), self._loop)

    async def _second(self) -> str:
        assert self._work.session is not None
        try:
            async with self._work.session.turn("late"):
                pass
        except StoreError:
            return "closed"
        return "ok"

    async def _live(self) -> None:
        while (told := await self._told.get()) is not None:
            name, given, done = told
            try:
                if name == "open":
                    result = await asyncio.to_thread(self._work.open, *given)
                elif name == "begin":
                    assert self._work.session is not None
                    self._work.turn = self._work.session.turn("go")
                    await self._work.turn.__aenter__()
                    result = "ok"
                else:
                    result = getattr(self._work, name)(*given)
                done.set_result(result or "ok")
            except BaseException as error:  # noqa: BLE001 - whoever asked is told
                done.set_exception(error)

    def __getattr__(self, name: str) -> Callable[..., Future[str]]:
        def tell(*given: Any) -> Future[str]:
            done: Future[str] = Future()
            self._loop.call_soon_threadsafe(self._told.put_nowait, (name, given, done))
            return done

        return tell

    def lose(self) -> None:
        """See `Actor`."""
        self.__getattr__("lose")().result(PATIENCE_SECONDS)

    def leave(self) -> None:
        """See `Actor`."""
        self.lose()
        self._loop.call_soon_threadsafe(self._told.put_nowait, None)
        self._task.result(PATIENCE_SECONDS)


ACTORS = st.integers(0, 2)


class Schedule(RuleBasedStateMachine):
    """Three who open one session, in any order. The model says who has it and which turns live; the log must agree."""

    kinds = st.lists(st.sampled_from(["thread", "task"]), min_size=3, max_size=3)
    stores = st.sampled_from(["memory", "sqlite", "files"])
    counts: Counter[str] = Counter()
    longest = [0.0]
    """The longest that anybody who waited had to wait after the session was free, in seconds."""

    @initialize(kinds=st.runner().flatmap(lambda self: self.kinds), kind=st.runner().flatmap(lambda self: self.stores))
    def start(self, kinds: list[str], kind: str) -> None:
        """The actors of one schedule, and their store."""
        self.counts["schedules"] += 1
        self.folder = TemporaryDirectory()
        self.place: Any = self.new_place(kind)
        self.store = MemoryStore() if kind == "memory" else open_store(self.place)
        self.place = self.store if kind == "memory" else self.place
        self.loop = Loop()
        self.kinds_of = kinds
        self.actors = [self.made(each) for each in kinds]
        self.owners: dict[int, Mode] = {}
        self.turns: dict[int, str] = {}
        self.lost: set[str] = set()  # turns whose owner is gone, and that nobody has closed yet
        self.waiting: dict[int, tuple[Mode, Future[str]]] = {}
        self.seconds: dict[int, Future[str]] = {}

    def new_place(self, kind: str) -> str:
        """Where the store of one schedule is."""
        return f"files:{self.folder.name}/s" if kind == "files" else f"{self.folder.name}/s.db"

    def made(self, kind: str) -> Any:
        """An actor."""
        return ThreadActor(self.place) if kind == "thread" else TaskActor(self.place, self.loop)

    def free(self, mode: Mode) -> bool:
        """Whether the model says that a session can be opened so."""
        return not self.owners or (mode == "shared" and set(self.owners.values()) == {"shared"})

    def was_opened(self, who: int, mode: Mode) -> None:
        """The model of an opening."""
        self.counts["opened"] += 1
        if not self.owners:
            self.lost.clear()
        self.owners[who] = mode

    @property
    def idle(self) -> list[int]:
        """Those who neither have the session nor wait for it."""
        return [who for who in range(3) if who not in self.owners and who not in self.waiting]

    @property
    def talking(self) -> list[int]:
        """Those whose turn is open."""
        return sorted(self.turns)

    # -- what is done --------------------------------------------------------------------------------

    @precondition(lambda self: self.idle and not self.waiting)  # of those who wait, any may be the next
    @rule(who=ACTORS, mode=st.sampled_from(["alone", "alone", "shared"]))
    def open(self, who: int, mode: Mode) -> None:
        """Somebody opens the session and does not wait."""
        who = self.idle[who % len(self.idle)]
        expected = "ok" if self.free(mode) else "busy"
        wait = OUTLIVES_SECONDS if self.free(mode) else 0.0
        found = self.actors[who].open(mode, wait).result(PATIENCE_SECONDS)
        assert found == expected, f"{mode} by {who}: {found}, and {self.owners} have it"
        if found == "ok":
            self.was_opened(who, mode)
        else:
            self.counts["refused"] += 1

    @precondition(lambda self: self.owners and self.idle and not self.waiting)
    @rule(who=ACTORS, mode=st.sampled_from(["alone", "shared"]))
    def wait(self, who: int, mode: Mode) -> None:
        """Somebody waits until the session is free."""
        if not self.free(mode):
            who = self.idle[who % len(self.idle)]
            self.counts["waited"] += 1
            self.waiting[who] = mode, self.actors[who].open(mode, PATIENCE_SECONDS)

    def let_in(self) -> None:
        """Whoever waits has the session in time, once it is free."""
        for who, (mode, done) in list(self.waiting.items()):
            if self.free(mode):
                begun = time.monotonic()
                assert done.result(PATIENCE_SECONDS) == "ok"
                self.longest[0] = max(self.longest[0], time.monotonic() - begun)
                del self.waiting[who]
                self.was_opened(who, mode)
            else:
                assert not done.done(), f"{who} has the session besides {self.owners}"

    @precondition(lambda self: len(self.owners) > len(self.turns))
    @rule(who=ACTORS)
    def begin(self, who: int) -> None:
        """A turn begins."""
        silent = sorted(self.owners.keys() - self.turns.keys())
        who = silent[who % len(silent)]
        assert self.actors[who].begin().result(PATIENCE_SECONDS) == "ok"
        opened = [r.body for r in self.store.of_kinds("s", ("turn_opened",)) if isinstance(r.body, TurnOpened)]
        self.turns[who] = opened[-1].turn_id
        self.counts["turns"] += 1

    @precondition(lambda self: self.turns)
    @rule(who=ACTORS)
    def second(self, who: int) -> None:
        """Another thread or task of the owner wants a turn while one is open."""
        who = self.talking[who % len(self.turns)]
        if who not in self.seconds and self.kinds_of[who] != "process":
            self.counts["queued"] += 1
            self.seconds[who] = self.actors[who].second()

    def over(self, who: int, second: str) -> None:
        """The turn of an owner is over; what became of the one that waited for it."""
        self.turns.pop(who, None)
        if (waited := self.seconds.pop(who, None)) is not None:
            assert waited.result(PATIENCE_SECONDS) == second

    @precondition(lambda self: self.turns)
    @rule(who=ACTORS)
    def end(self, who: int) -> None:
        """A turn ends."""
        who = self.talking[who % len(self.turns)]
        assert self.actors[who].end().result(PATIENCE_SECONDS) == "ok"
        self.over(who, "ok")

    @precondition(lambda self: self.owners)
    @rule(who=ACTORS)
    def say(self, who: int) -> None:
        """An owner records something."""
        who = sorted(self.owners)[who % len(self.owners)]
        assert self.actors[who].say().result(PATIENCE_SECONDS) == "ok"

    @precondition(lambda self: self.owners)
    @rule(who=ACTORS)
    def close(self, who: int) -> None:
        """An owner closes the session, and with it a turn that is open."""
        who = sorted(self.owners)[who % len(self.owners)]
        assert self.actors[who].close().result(PATIENCE_SECONDS) == "ok"
        self.owners.pop(who)
        self.over(who, "closed")
        self.let_in()

    @precondition(lambda self: self.owners)
    @rule(who=ACTORS)
    def lose(self, who: int) -> None:
        """An owner dies."""
        who = sorted(self.owners)[who % len(self.owners)]
        self.counts["lost"] += 1
        self.counts[f"lost {self.kinds_of[who]}"] += 1
        self.actors[who].lose()
        self.owners.pop(who)
        if who in self.turns:
            self.lost.add(self.turns[who])
        self.over(who, "closed")
        self.let_in()

    @precondition(lambda self: self.owners)
    @rule()
    def read(self) -> None:
        """Anybody reads, whoever has the session."""
        self.counts["read"] += 1
        with turnlog.open("s", store=self.place, read_only=True) as reader:
            open_now = {turn.id for turn in reader.log.turns() if turn.is_open}
            assert open_now <= {*self.turns.values(), *self.lost}

    # -- what must hold ------------------------------------------------------------------------------

    @invariant()
    def nobody_closes_a_living_turn(self) -> None:
        """One living turn at most, unless the session is shared; none that lives is closed, none that is over is open.
        Of turns that sharers left open when they died, the newest is closed; the others count as failed, as another
        turn began before they ended."""
        if not hasattr(self, "store") or not self.store.sessions():
            return
        opened, closed = set(), set()
        for record in self.store.of_kinds("s", ("turn_opened", "turn_closed")):
            match record.body:
                case TurnOpened(turn_id=name):
                    opened.add(name)
                case TurnClosed(turn_id=name):
                    closed.add(name)
        living = {*self.turns.values(), *self.lost}
        assert living <= opened - closed, f"closed: {living & closed}"
        if over := opened - closed - living:
            with turnlog.open("s", store=self.place, read_only=True) as reader:
                assert not [turn for turn in reader.log.turns() if turn.id in over and turn.is_open], f"open: {over}"
        assert not any(waited.done() for waited in self.seconds.values())
        assert len(self.turns) <= 1 or set(self.owners.values()) == {"shared"}

    def teardown(self) -> None:
        """End all actors, the owners first."""
        if not hasattr(self, "store"):
            return
        for who in sorted(range(3), key=lambda who: who in self.waiting):
            self.actors[who].leave()
        self.loop.stop()
        self.store.close()
        self.folder.cleanup()
