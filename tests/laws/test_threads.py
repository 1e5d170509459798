"""One session, or one new store, shared by threads: tools that run side by side, while somebody asks for requests and
compacts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import pytest

import turnlog
from turnlog import InputError, Message, Text, ToolCall, target
from turnlog.errors import SessionBusy
from turnlog.log.records import Note, Record
from turnlog.log.store import Draft
from turnlog.requests.request import Request
from turnlog.stores import MemoryStore, open_store

CHAT, CLAUDE = target("openai-chat", "gpt-4o"), target("anthropic", "claude-sonnet-4-5")
PLACES: list[Callable[[Path], str]] = [lambda folder: str(folder / "s.db"), lambda folder: f"files:{folder / 'logs'}"]


@pytest.mark.parametrize("place", PLACES, ids=("sqlite", "files"))
def test_threads_that_open_a_new_store_at_the_same_time(place: Callable[[Path], str], tmp_path: Path) -> None:
    """A server whose first requests fail: each opens the store, and one took away the file that another was writing."""
    together = Barrier(8)

    def begin(n: int) -> int:
        together.wait()
        with turnlog.open(f"s{n}", store=place(folder)) as session:
            return session.user("go").n

    with ThreadPoolExecutor(8) as pool:
        for again in range(12):
            folder = tmp_path / str(again)
            folder.mkdir()
            assert len(set(pool.map(begin, range(8)))) == 1
            with closing(open_store(place(folder))) as store:
                ids = sorted(info.id for info in store.sessions())
                assert (ids, store.verify()) == ([f"s{n}" for n in range(8)], [])


@pytest.mark.parametrize("place", PLACES, ids=("sqlite", "files"))
def test_tools_in_a_pool(place: Callable[[Path], str], tmp_path: Path) -> None:
    """A finished tool of which the model is told that it was interrupted, until the session is opened again; a call
    that is there and is said not to be."""
    session = turnlog.open("s", target=CHAT, store=place(tmp_path))
    session.user("go")

    def run(call: ToolCall) -> None:
        session.tool_started(call)
        session.tool_result(call, f"done {call.id}")

    with ThreadPoolExecutor(8) as pool:
        for n in range(15):
            calls = [ToolCall(f"c{n}_{i}", "bash", {}) for i in range(8)]
            session.add(Message("assistant", tuple(calls)))
            list(pool.map(run, calls))
    made = session.request().json()
    assert (made.count(b"done c"), b"interrupted" in made) == (120, False)
    session.close()
    with turnlog.open("s", store=place(tmp_path)) as again:
        assert again.request().json() == made


def test_requests_and_compactions_beside_appends(tmp_path: Path) -> None:
    """An append that fails after it was stored; a request that is over its budget; a live session and one that is
    opened again which differ."""
    session = turnlog.open(
        "s", target=CHAT, store=tmp_path / "s.db", budget=3_000, settings=turnlog.Settings(strategy="sliding")
    )
    session.user("go")

    def work() -> None:
        for n in range(60):
            call = ToolCall(f"c{n}", "bash", {})
            session.add(Message("assistant", (Text(f"step {n}"), call)))
            session.tool_result(call, f"line {n}\n" * 40)

    def look(n: int) -> None:
        if n % 5 == 0:
            session.compact()
        if n % 7 == 0:
            with suppress(InputError):  # nothing to take back
                session.undo("compaction")
        session.request()

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work), *(pool.submit(look, n) for n in range(1, 40))]:
            future.result()
    assert len([info for info in session.log.calls() if info.outcome == "ok"]) == 60
    made = session.request()
    assert session.window.tokens <= 3_000
    session.close()
    with turnlog.open("s", store=tmp_path / "s.db") as again:
        assert again.request().json() == made.json()


def test_one_turn_is_open_at_a_time(tmp_path: Path) -> None:
    """Two turns that threads enter at the same moment: the second one closes the first as failed while it is lived."""
    session = turnlog.open("s", target=CHAT, store=tmp_path / "s.db", wait=0.01)
    begins, ends = Barrier(4), Barrier(4)

    def live(n: int) -> str:
        begins.wait()
        try:
            with session.turn(f"word {n}"):
                ends.wait()
        except SessionBusy:
            ends.wait()
            return "refused"
        return "lived"

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(live, range(4))) == ["lived", "refused", "refused", "refused"]
    assert [(turn.status, turn.reason) for turn in session.log.turns()] == [("completed", "")]
    session.close()


class Beside(MemoryStore):
    """Another process does something just before the next append."""

    def __init__(self) -> None:
        super().__init__()
        self.other: Callable[[], object] | None = None

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`."""
        if self.other is not None:
            other, self.other = self.other, None
            other()
        return super().append(session_id, drafts, expected=expected)


@pytest.mark.parametrize(
    "change", [lambda session: session.configure(temperature=0.3), lambda session: session.switch(CLAUDE)]
)
def test_what_two_configure_at_once(change: Callable[[turnlog.Session], object]) -> None:
    """Tools and a budget that somebody set are gone, since another thread or process changed something else."""
    store = Beside()
    session, other = (
        turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(redact=False), shared=True)
        for _ in range(2)
    )
    store.other = lambda: other.configure(tools=[{"name": "bash"}], budget=9_000)
    change(session)
    now = session.configuration
    assert [tool.name for tool in now.tools] == ["bash"]
    assert now.budget == turnlog.Budget(9_000)
    assert now.settings.get("temperature") == 0.3 or now.model == CLAUDE.model


def test_two_that_open_a_session_with_the_same_system_text() -> None:
    """A model that is told twice what it is, since two workers of a server opened a new session at once."""
    store = Beside()
    session, other = (
        turnlog.open("s", target=CHAT, store=store, settings=turnlog.Settings(redact=False), shared=True)
        for _ in range(2)
    )
    store.other = lambda: other.system("Be brief.", replace=True)
    session.system("Be brief.", replace=True)
    session.user("Hello")
    assert [message["role"] for message in session.request().body["messages"]] == ["system", "user"]


class Rude(MemoryStore):
    """Another process appends just before each append."""

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`."""
        super().append(session_id, [Draft(Note("beside"))])
        return super().append(session_id, drafts, expected=expected)


def test_a_session_is_configured_while_others_append_all_the_time() -> None:
    """A session that cannot be opened while another process works in it."""
    with turnlog.open(
        "s", target=CHAT, store=Rude(), budget=9_000, settings=turnlog.Settings(system="Be brief.")
    ) as session:
        assert (session.target, session._configurer.system_text) == (CHAT, "Be brief.")


def test_who_hears_of_a_decision_may_wait_for_another_thread() -> None:
    """A program that stands still: its screen is drawn by another thread, which asks the session what to show."""
    shown: list[int] = []
    session = turnlog.open(
        "s", target=CHAT, store=":memory:", budget=2_000, settings=turnlog.Settings(strategy="sliding")
    )
    with session, ThreadPoolExecutor(1) as screen:

        def draw(event: turnlog.session.Event) -> None:
            if event.kind in ("compacted", "undone"):
                shown.append(screen.submit(lambda: session.window.tokens).result(10))

        session.on_event(draw)
        for n in range(60):
            session.user(f"word {n} " * 40)
        session.request()
        session.undo("compaction")
    assert len(shown) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_that_is_forked_while_another_thread_makes_a_request() -> None:
    """A worker of a server that stands still at its first request, as it waits for a thread that it does not have."""
    begun, done = Event(), Event()

    def slowly() -> dict[str, Any]:
        begun.set()
        done.wait()
        return {"n": 1}

    def request(body: Callable[[], dict[str, Any]]) -> Request:
        return Request(target=CHAT, body=body, view=(), edits=tuple, losses=tuple, tokens=lambda: 7)

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(lambda: request(slowly).body)
        begun.wait()
        if not (child := os.fork()):
            signal.alarm(20)  # ends the child if it waits for ever
            other = request(lambda: {"n": 2})
            os._exit(0 if (other.body, other.tokens) == ({"n": 2}, 7) else 1)
        done.set()
        assert (os.waitpid(child, 0)[1], made.result()) == (0, {"n": 1})


def test_threads_that_share_a_fitter() -> None:
    """A conversation that is sent with what another one was about, since both were taken for one history."""
    said: dict[str, Any] = {}

    def ask(name: str, asked: int) -> None:
        messages = [{"role": "user", "content": f"{name} asks {n}. " * 20} for n in range(asked)]
        said[name] = fitter.fit({"model": "gpt-4o", "messages": messages}).body["messages"]

    other = Thread(target=ask, args=("bob", 30))

    def count(messages: list[Any]) -> int:
        if not said and other.ident is None:  # in the midst of what ann asks
            other.start()
            other.join(0.2)  # in vain, where one waits for the other
        return sum(len(message["content"]) // 4 for message in messages)

    fitter = turnlog.Fitter(max_tokens=1_500, counter=count, strategy="sliding")
    ask("ann", 2)
    other.join()
    assert [{message["content"].split()[0] for message in said[name]} for name in ("ann", "bob")] == [{"ann"}, {"bob"}]
    assert len(said["ann"]) == 2


USE = """
import sys, turnlog
late = set()
def look(frame, event, arg):
    if event == "call" and frame.f_code.co_name == "get_class_annotations":  # what msgspec asks a new type
        asked, importing = frame.f_locals["obj"], False
        while frame is not None:
            importing, frame = importing or frame.f_code.co_name == "_find_and_load", frame.f_back
        if not importing:  # Python lets one thread at a time import a module
            late.add(asked.__qualname__)
sys.setprofile(look)
for store in ("a.db", "files:logs"):
    with turnlog.open("s", target=turnlog.target("anthropic", "claude-sonnet-4-5"), store=store, budget=600) as session:
        for _ in range(9):
            session.user("Go on. " * 60)
            session.request()
        session.undo()
        session.log.validate()
    with turnlog.open("s", store=store) as session:
        body = session.request().body
turnlog.fit(body, max_tokens=500)
sys.setprofile(None)
print(*sorted(late))
"""


def test_types_are_ready_before_threads_are(tmp_path: Path) -> None:
    """A process that dies of a segmentation fault: two threads that are the first to read a value as some type, such as
    two requests that a server answers with its first targets."""
    run = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, check=True, cwd=tmp_path)
    made = {name for name in run.stdout.split() if name != "Object"}  # given out when they are ready
    assert made == set()
