"""Records that reach a page while it is open: each once, in order, from one server and from the next."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="uvicorn is not installed: no page is served")

from serving import events, fetch, served
from turnlog.display.escapes import text
from turnlog.errors import StoreError
from turnlog.log.messages import Message, Text
from turnlog.log.records import MessageRecord
from turnlog.log.store import Draft, Store
from turnlog.stores import MemoryStore, open_store
from turnlog.web import live
from turnlog.web.live import Live


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks follow each other without a pause that a test would wait for."""
    monkeypatch.setattr(live, "POLL", 0.001)
    monkeypatch.setattr(live, "LIST_POLL", 0.001)


@pytest.fixture(name="store")
def a_store() -> Iterator[MemoryStore]:
    """A store with an empty session."""
    store = MemoryStore()
    store.create("s")
    yield store
    store.close()


def say(store: Store, *words: str, session: str = "s") -> None:
    """Append messages."""
    store.append(session, [Draft(MessageRecord(Message("user", (Text(each),)))) for each in words])


def news(store: Store, session_id: str, after: int) -> tuple[int, list[Any]]:
    """New records as their numbers."""
    numbers = [record.n for record in store.read(session_id, first=after + 1)]
    return max([after, *numbers]), [text(str(n)) for n in numbers]


async def taken(stream: AsyncIterator[bytes], many: int = 1) -> list[tuple[str, Any]]:
    """The next events of a stream, with their data."""
    found: list[tuple[str, Any]] = []
    while len(found) < many:
        lines = dict(line.split(": ", 1) for line in (await anext(stream)).decode().splitlines() if ": " in line)
        if "event" in lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_every_record_comes_once_and_in_order(store: MemoryStore) -> None:
    """A page misses a record, or has one twice, when records come while others are being sent."""

    async def reads() -> None:
        feed = Live(store, news)
        writer = threading.Thread(target=lambda: [say(store, f"{n}", f"{n}b") for n in range(100)])
        seen: list[list[str]] = [[], [], []]
        writer.start()

        async def viewer(into: list[str]) -> None:
            async with closing_stream(feed.records("s", 0)) as stream:
                while len(into) < 200:
                    [(name, data)] = await taken(stream)
                    assert name == "records" and data["last"] == int(data["html"][-1])
                    into += data["html"]

        await asyncio.gather(*(viewer(each) for each in seen))
        writer.join()
        assert seen == [[str(n) for n in range(1, 201)]] * 3
        assert feed._topics == {}  # nobody looks: nothing is looked for

    asyncio.run(reads())


class closing_stream:
    """Closes a stream, as a server does when its viewer goes away."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    async def __aenter__(self) -> Any:
        return self.stream

    async def __aexit__(self, *error: object) -> None:
        await self.stream.aclose()


def test_an_older_look_is_no_shorter_session(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page is told that its session was written anew, because the look that woke it is older than what it has."""

    async def reads() -> None:
        feed = Live(store, news)
        say(store, "a", "b")
        monkeypatch.setattr(feed, "_states", lambda names: dict.fromkeys(names, 1))
        stream = feed.records("s", 0)
        assert [data["last"] for _, data in await taken(stream)] == [2]
        pending = asyncio.create_task(taken(stream))
        await asyncio.sleep(0.02)
        assert not pending.done()
        monkeypatch.undo()
        say(store, "c")
        assert [data["last"] for _, data in await pending] == [3]

    asyncio.run(reads())


def test_viewers_of_one_session_share_what_is_made(store: MemoryStore) -> None:
    """A hundred open pages make the same HTML a hundred times."""
    made: list[int] = []

    def counted(store: Store, session_id: str, after: int) -> tuple[int, list[Any]]:
        made.append(after)
        return news(store, session_id, after)

    async def reads() -> None:
        feed = Live(store, counted)
        streams = [feed.records("s", 0) for _ in range(20)]
        say(store, "a")
        await asyncio.gather(*(taken(stream) for stream in streams))
        for stream in streams:
            await stream.aclose()

    asyncio.run(reads())
    assert made == [0]


def test_a_page_that_slept_is_told_only_how_much_it_missed(store: MemoryStore) -> None:
    """A page that wakes up is sent a hundred thousand records; or one of a session that got shorter shows old ones."""
    say(store, *map(str, range(live.MOST + 1)))

    async def reads() -> None:
        feed = Live(store, news)
        [(_, data)] = await taken(feed.records("s", 0))
        assert data == {"last": live.MOST + 1, "more": live.MOST + 1, "html": []}
        [(_, data)] = await taken(feed.records("s", 10_000))
        assert data == {"last": live.MOST + 1, "more": 0, "html": []}

    asyncio.run(reads())


def test_the_stream_of_a_deleted_session_ends(store: MemoryStore) -> None:
    """A page waits for a session that is gone; or one look at a session that is being replaced ends it."""

    async def reads() -> None:
        feed = Live(store, news)
        stream = feed.records("s", 0)
        say(store, "a")
        await taken(stream)
        store.delete("s")
        assert [name for name, _ in await taken(stream)] == ["gone"]
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(reads())


def test_a_moment_without_the_session_ends_nothing(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import replaces a session, and all its pages say that it was deleted."""
    looks = iter([False, True, True, False])

    def states(names: list[str]) -> dict[str, Any]:
        return {name: StoreError("not now") if next(looks, False) else store.info(name).records for name in names}

    async def reads() -> None:
        feed = Live(store, news)
        monkeypatch.setattr(feed, "_states", states)
        stream = feed.records("s", 0)
        say(store, "a")
        assert [name for name, _ in await taken(stream)] == ["records"]
        await asyncio.sleep(0)
        say(store, "b")
        assert [name for name, _ in await taken(stream)] == ["records"]

    asyncio.run(reads())


def test_an_error_is_said_and_ends_the_stream(store: MemoryStore) -> None:
    """A browser asks again and again for what cannot be read."""

    def fails(*given: object) -> tuple[int, list[Any]]:
        raise StoreError("the disk is gone")

    async def reads() -> None:
        say(store, "a")
        assert await taken(Live(store, fails).records("s", 0)) == [("failed", {"message": "the disk is gone"})]

    asyncio.run(reads())


def test_the_list_is_told_how_many_sessions_changed(store: MemoryStore) -> None:
    """The list does not say that it is old, or counts a session twice."""

    async def reads() -> None:
        feed = Live(store, news)
        stream = feed.sessions()
        await anext(stream)
        first = asyncio.create_task(taken(stream))
        while feed._topics[""].state is None:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        say(store, "a")
        assert await first == [("sessions", {"count": 1})]
        say(store, "b")
        store.create("t")
        assert await taken(stream) == [("sessions", {"count": 2})]

    asyncio.run(reads())


def test_a_viewer_that_sleeps_gets_a_comment(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody notices that a viewer went away."""
    monkeypatch.setattr(live, "KEEP_ALIVE", 0.001)

    async def reads() -> list[bytes]:
        stream = Live(store, news).records("s", 0)
        return [await anext(stream) for _ in range(3)]

    assert asyncio.run(reads()) == [b"retry: 1000\n\n", b":\n\n", b":\n\n"]


def test_a_server_sends_what_is_written_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    """An open page loses records while the server starts again, or a stream keeps the server from stopping."""
    path = str(tmp_path / "log.db")
    with closing(open_store(path)) as writer, closing(open_store(path, read_only=True)) as store:
        writer.create("s")
        with served(store) as (_, port):
            stream = events(fetch(port, "/s/s/live?after=0"))
            say(writer, "one", "two")
            shown: list[str] = []
            while len(shown) < 2:
                _, last, data = next(stream)
                shown += [each.partition('"r')[2].partition('"')[0] for each in json.loads(data)["html"]]
            assert (last, sorted(set(shown))) == ("2", ["1", "2"])
        assert list(stream) == []
        say(writer, "three")
        with served(store, port) as (_, again):
            assert again == port
            stream = events(fetch(port, "/s/s/live?after=0", **{"Last-Event-ID": "2"}))
            assert next(stream)[:2] == ("records", "3")


def test_a_server_answers_while_pages_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that takes long stops the events of all others."""
    path = str(tmp_path / "log.db")
    going, shown = threading.Event(), threading.Event()

    def slow(*given: object, **named: object) -> Iterator[str]:
        shown.set()
        going.wait(20)
        yield "done"

    monkeypatch.setattr("turnlog.web.app.page.session_page", slow)
    with closing(open_store(path)) as store:
        store.create("s")
        with served(store) as (_, port):
            waiting = threading.Thread(target=lambda: fetch(port, "/s/s").read())
            waiting.start()
            assert shown.wait(20)
            stream = events(fetch(port, "/s/s/live"))
            say(store, "one")
            assert next(stream)[0] == "records"
            going.set()
            waiting.join()
