"""Sessions in asynchronous programs: opening, requests, summaries and streams that wait without stopping the loop, and
end with the task."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import turnlog
from agents import CHAT, chunks, says
from turnlog.errors import InputError, SessionBusy
from turnlog.log.records import Decision, PartialAnswer, Record, TurnClosed
from turnlog.log.store import Draft
from turnlog.session.answer import GONE
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.summarize import Material


class Stream:
    """A stream as an SDK gives it: it waits before each chunk, and notes that it was closed."""

    def __init__(self, *texts: str, ends: bool = True) -> None:
        self._chunks = [*chunks(*texts), *([_END] if ends else [])]
        self.closed = False

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        if not self._chunks:
            raise StopAsyncIteration
        return self._chunks.pop(0)

    async def close(self) -> None:
        """As the SDKs of OpenAI and Anthropic have it."""
        await asyncio.sleep(0)
        self.closed = True


_END: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def long(store: MemoryStore, **settings: Any) -> Session:
    """A session that has to leave out most of what was said."""
    session = turnlog.open(
        "s", store=store, target=CHAT, budget=1500, settings=turnlog.Settings(strategy="summarise", **settings)
    )
    for n in range(30):
        session.user(f"Question {n}? " * 9)
        session.assistant(f"Answer {n}. " * 9)
    return session


def partials(session: Session) -> list[tuple[str, str]]:
    """What was kept of answers that broke off, and why."""
    found = (record.body for record in session.history())
    return [(b.message.parts[0].text, b.reason) for b in found if isinstance(b, PartialAnswer)]  # type: ignore[union-attr]


def ends(session: Session) -> list[str]:
    """How turns ended."""
    return [record.body.status for record in session.history() if isinstance(record.body, TurnClosed)]


def test_opening_waits_for_the_owner() -> None:
    """A request that comes while the one before is answered is refused, or stops all others while it waits."""

    async def main() -> None:
        store = MemoryStore()
        first = await turnlog.aopen("s", store=store, target=CHAT)
        with pytest.raises(SessionBusy, match="'s' is in use"):
            await turnlog.aopen("s", store=store, wait=0.01)
        second = asyncio.create_task(turnlog.aopen("s", store=store, wait=60))
        await asyncio.sleep(0.02)
        assert not second.done()
        await first.aclose()
        async with await second as session:
            assert session._turn.wait == 60 and session.target == CHAT
            with session.fork("child") as child:
                assert child._turn.wait == 60

    asyncio.run(main())


def test_a_cancelled_opening_leaves_the_session_free(tmp_path: Path) -> None:
    """A browser that goes away while its session is opened keeps it in use for as long as the process lives."""

    async def main() -> None:
        for delay in (0.0, 0.001, 0.005):
            task = asyncio.create_task(turnlog.aopen("s", store=tmp_path / "s.db"))
            await asyncio.sleep(delay)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if not task.cancelled():
                await task.result().aclose()

    asyncio.run(main())
    turnlog.open("s", store=tmp_path / "s.db", wait=10).close()  # the cancelled one may still be letting go


def test_requests_are_the_same() -> None:
    """Two ways to make a request that differ."""
    session = long(MemoryStore())
    seen = session.preview().json()
    assert asyncio.run(session.arequest()).json() == seen == session.request().json()
    assert asyncio.run(session.acompact(keep=2, dry_run=True)) == session.compact(keep=2, dry_run=True)
    with pytest.raises(InputError, match="the number of newest turns"):
        asyncio.run(session.acompact(keep=0))


def test_asynchronous_summarizers_are_awaited_where_their_clients_live() -> None:
    """A client that was made in one loop and is used in another hangs or fails."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def summarise(prompt: str) -> str:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return "Task: all questions were answered."

    async def main() -> None:
        async with long(MemoryStore(), summarizer=summarise) as session:
            request = await session.arequest()
            assert "all questions were answered" in str(request.body)
            assert loops == [asyncio.get_running_loop()]
            await session.acompact(keep=1)
            assert set(loops) == {asyncio.get_running_loop()}

    asyncio.run(main())


def test_asynchronous_summarizers_serve_other_requests_too() -> None:
    """A program without a loop, and a method of a class."""

    class Late:
        id = "late/1"

        async def summarize(self, material: Material, /) -> str:
            await asyncio.sleep(0)
            return "Task: all questions were answered."

    session = long(MemoryStore(), summarizer=Late())
    assert "all questions were answered" in str(session.request().body)


def test_a_cancelled_request_leaves_no_summarizer_running() -> None:
    """A model goes on writing, and is paid for, when nobody waits any more."""
    ended: list[str] = []

    async def main() -> None:
        begun = asyncio.Event()

        async def summarise(prompt: str) -> str:
            begun.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            return ""

        session = long(MemoryStore(), summarizer=summarise)
        task = asyncio.create_task(session.arequest())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not ended:
            await asyncio.sleep(0.001)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        again = await session.arequest()  # the digest stands in
        assert any(isinstance(record.body, Decision) for record in session.history()) and again.tokens < 1500

    asyncio.run(main())
    assert ended == ["cancelled"]


def test_a_stream_gives_its_text_and_is_recorded() -> None:
    """Every program had a queue of its own between the stream and the browser."""

    async def main() -> None:
        stream = Stream("It ", "is ", "cold.")
        async with await turnlog.aopen("s", store=MemoryStore(), target=CHAT) as session:
            async with session.turn("Is it warm?") as turn:
                assert turn.answer is None
                seen = [delta.text async for delta in turn.stream(stream)]
                assert turn.answer is not None and turn.answer.text == "It is cold." == "".join(seen)
            assert ([*map(len, seen)], ends(session), stream.closed) == ([3, 3, 5], ["completed"], True)
            with pytest.raises(InputError, match="stream takes an asynchronous stream, not dict"):
                async with session.turn("And now?") as turn:
                    turn.stream(says("hi"))  # type: ignore[arg-type]

    asyncio.run(main())


@pytest.mark.parametrize("way", ["cancel", "break", "raise", "cancel the turn", "close the session"])
def test_what_had_come_is_kept_when_the_reader_goes(way: str) -> None:
    """A browser that goes away in the midst of an answer: the answer so far is lost, the model goes on writing, or the
    next turn waits for it."""
    stream = Stream("It ", "is ", "cold.")
    session = turnlog.open("s", store=MemoryStore(), target=CHAT, settings=turnlog.Settings(checkpoint=0.0))

    async def talk(read: asyncio.Event) -> None:
        async with session.turn("Is it warm?") as turn:
            async for delta in turn.stream(stream):
                if delta.text == "is ":
                    read.set()
                    if way == "break":
                        break
                    if way == "raise":
                        raise ConnectionError("gone")
                    if way == "cancel the turn":
                        turn.cancel("enough")
                    elif way == "close the session":
                        await session.aclose()
                        return
                    else:
                        await asyncio.sleep(3600)

    async def main() -> None:
        read = asyncio.Event()
        task = asyncio.create_task(talk(read))
        await read.wait()
        if way == "cancel":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    ((text, reason),) = partials(session)
    assert text == "It is "
    assert reason == ("TurnCancelled: turn '2' was cancelled: enough" if way == "cancel the turn" else GONE)
    status = {"cancel": "cancelled", "cancel the turn": "cancelled"}.get(way, "failed")
    assert (ends(session), stream.closed, session._journal.is_streaming) == ([status], True, False)
    session.close()


def test_what_had_come_is_on_record_when_the_stream_is_closed() -> None:
    """Who leaves the loop goes on in the turn as if nothing had come."""
    session, stream = turnlog.open("s", store=MemoryStore(), target=CHAT), Stream("It ", "is ", "cold.")

    async def main() -> None:
        async with session.turn("Is it warm?") as turn:
            async with aclosing(turn.stream(stream)) as deltas:
                async for _ in deltas:
                    break
            assert (partials(session), stream.closed) == ([("It ", GONE)], True)
            await turn.areceive(Stream("Warm."))

    asyncio.run(main())
    assert (partials(session), ends(session)) == ([("It ", GONE)], ["completed"])


class Gate(MemoryStore):
    """A store that keeps each append waiting until `opened`, and knows in which threads they are."""

    def __init__(self, at: str = "") -> None:
        super().__init__()
        self._at = at
        self.reached, self.opened = threading.Event(), threading.Event()
        self.threads: set[threading.Thread] = set()

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """As every store's."""
        self.threads.add(threading.current_thread())
        if self._at in [type(draft.body).__name__ for draft in drafts]:
            self.reached.set()
            self.opened.wait(60)
        return super().append(session_id, drafts, expected=expected)


def test_nothing_is_recorded_in_the_event_loop() -> None:
    """A commit that waits for the disk stops every conversation of a service."""
    store = Gate()
    session = turnlog.open("s", store=store, target=CHAT, settings=turnlog.Settings(checkpoint=0.0))
    store.threads.clear()

    async def main() -> None:
        async with session.turn("Is it warm?") as turn:
            assert [delta.text async for delta in turn.stream(Stream("It ", "is ", "cold."))] == ["It ", "is ", "cold."]
            answer = await asyncio.to_thread(turn.receive, says("", "c1"))
            async with turn.tool(answer.tool_calls[0]) as run:
                run.result("5 degrees")
            await turn.areceive(Stream("Really ", "cold."))

    asyncio.run(main())
    kinds = [type(record.body).__name__ for record in session.history()]
    assert {"StreamCheckpoint", "ToolStarted", "ToolFinished"} < set(kinds) and ends(session) == ["completed"]
    assert store.threads and threading.current_thread() not in store.threads


@pytest.mark.parametrize("at", ["TurnOpened", "StreamCheckpoint", "PartialAnswer", "ToolStarted", "TurnClosed"])
def test_a_task_that_is_cancelled_while_something_is_recorded(at: str) -> None:
    """A turn that nobody closes, which every later one waits for; a checkpoint behind its answer, which the next
    opening takes for another answer; a tool that is said to be running."""
    store = Gate(at)
    session = turnlog.open("s", store=store, target=CHAT, settings=turnlog.Settings(checkpoint=0.0))

    async def talk() -> None:
        async with session.turn("Is it warm?") as turn:
            if at == "ToolStarted":
                answer = await asyncio.to_thread(turn.receive, says("", "c1"))
                async with turn.tool(answer.tool_calls[0]):
                    raise AssertionError("the task was cancelled before")
            if at != "TurnClosed":
                async for _ in turn.stream(Stream("It ", "is ", "cold.", ends=False)):
                    pass

    async def main() -> None:
        task = asyncio.create_task(talk())
        await asyncio.to_thread(store.reached.wait, 60)
        for _ in range(3):  # as a server does that ends
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        store.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with session.turn("And now?"):
            pass

    asyncio.run(main())
    assert ends(session) == ["completed" if at == "TurnClosed" else "cancelled", "completed"]
    assert [call.outcome for call in session.log.calls()] == (["aborted"] if at == "ToolStarted" else [])
    session.close()
    before = len(session.history())
    with turnlog.open("s", store=store) as again:
        assert again.resumed is not None and not again.resumed.recovered.answer
        assert not any(isinstance(record.body, PartialAnswer) for record in again.history()[before:])


def test_a_stream_that_nobody_reads_records_nothing() -> None:
    """An answer that was never asked for would be on record as one that broke off."""
    session = turnlog.open("s", store=MemoryStore(), target=CHAT)

    async def main() -> None:
        async with session.turn("Is it warm?") as turn:
            turn.stream(Stream("It "))

    asyncio.run(main())
    assert (partials(session), ends(session)) == ([], ["completed"])


def test_a_stream_that_fails_says_so() -> None:
    """An error of the connection is swallowed, and half an answer passes for a whole one."""
    session = turnlog.open("s", store=MemoryStore(), target=CHAT)

    async def failing() -> AsyncIterator[dict[str, Any]]:
        for chunk in chunks("It ", "is "):
            yield chunk
        raise ConnectionError("reset")

    async def main() -> None:
        async with session.turn("Is it warm?") as turn:
            async for _ in turn.stream(failing()):
                pass

    with pytest.raises(ConnectionError):
        asyncio.run(main())
    assert (partials(session), ends(session)) == ([("It is ", "ConnectionError: reset")], ["failed"])


@pytest.mark.slow
def test_what_is_warm_loads_nothing_more(tmp_path: Path) -> None:
    """The first user of a service waits for modules, tables and vocabularies."""
    script = f"""
import sys, turnlog
target = turnlog.target("openai-chat", "gpt-4o")
turnlog.warm(target)
before = set(sys.modules)
with turnlog.open("s", store={str(tmp_path / "s.db")!r}, target=target) as session:
    with session.turn("hi") as turn:
        turn.request().json()
        turn.receive({says("yes")!r})
print(*sorted(name for name in set(sys.modules) - before if name.startswith("turnlog")))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.split() == []
