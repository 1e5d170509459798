"""Services live with their session: opened and closed with it, in reverse order, whatever one of them does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agents import session_in
from turnlog.errors import InputError
from turnlog.stores import MemoryStore


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """A store in memory."""
    made = MemoryStore()
    yield made
    made.close()


class Service:
    """Anything with a close; says in `told` what was done with it."""

    def __init__(self, name: str, told: list[str], error: BaseException | None = None) -> None:
        self.name, self.told, self.error = name, told, error

    def done(self, what: str) -> None:
        """Note it, and fail if that is wanted."""
        self.told.append(f"{what} {self.name}")
        if self.error is not None:
            raise self.error


class Client(Service):
    """A model client."""

    def close(self) -> None:
        """Without waiting."""
        self.done("close")


class AsyncClient(Service):
    """As SDKs have it: `close` itself has to be awaited."""

    async def close(self) -> None:
        """To be awaited."""
        await asyncio.sleep(0)
        self.done("close")


class Connection(Service):
    """With `aclose` alone."""

    async def aclose(self) -> None:
        """To be awaited."""
        self.done("aclose")


class Sandbox(Service):
    """A context manager that gives something else than itself."""

    def __enter__(self) -> str:
        self.done("enter")
        return f"inside {self.name}"

    def __exit__(self, *error: Any) -> None:
        self.done("leave")


class Remote(Service):
    """An asynchronous context manager."""

    async def __aenter__(self) -> str:
        self.done("enter")
        return f"inside {self.name}"

    async def __aexit__(self, *error: Any) -> None:
        self.done("leave")


def test_services_are_opened_and_closed_in_reverse_order(store: MemoryStore) -> None:
    """A tool that uses a client must be gone before the client is."""
    told: list[str] = []
    with session_in(store) as session:
        client = Client("client", told)
        assert session.attach(client) is client
        assert session.attach(Sandbox("sandbox", told)) == "inside sandbox"
        session.attach(Client("tool", told))
        session.on_event(lambda event: told.append(event.kind))
    session.close()  # twice is once
    assert told == ["enter sandbox", "session_opened", "close tool", "leave sandbox", "close client", "session_closed"]


def test_one_that_fails_keeps_no_other_open(store: MemoryStore) -> None:
    """A client that outlives its session leaks; a failure that nobody hears of is never mended."""
    told: list[str] = []
    session = session_in(store)
    session.attach(Client("first", told))
    session.attach(Client("second", told, OSError("no route")))
    session.attach(Sandbox("third", told))
    session.attach(Client("fourth", told, KeyboardInterrupt()))
    session.on_event(lambda event: told.append(f"{event.kind}: {event.text}"))
    with pytest.raises(KeyboardInterrupt) as caught:
        session.close()
    assert told[2:] == [
        "close fourth",
        "warning: closing test_resources.Client failed: KeyboardInterrupt",
        "leave third",
        "close second",
        "warning: closing test_resources.Client failed: OSError: no route",
        "close first",
        "session_closed: session closed",
    ]
    assert caught.value.__notes__ == ["closing something else failed too: OSError: no route"]


def test_asynchronous_services_are_awaited(store: MemoryStore) -> None:
    """Clients of the SDKs for asyncio are closed by awaiting; `async with` does."""
    told: list[str] = []

    async def main() -> None:
        async with session_in(store) as session:
            assert await session.aattach(Remote("remote", told)) == "inside remote"
            assert await session.aattach(Sandbox("sandbox", told)) == "inside sandbox"
            session.attach(AsyncClient("client", told))
            await session.aattach(Connection("connection", told, ValueError("broken")))
            session.attach(Client("tool", told))

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(main())
    assert told == [
        "enter remote", "enter sandbox", "close tool", "aclose connection", "close client", "leave sandbox",
        "leave remote",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [AsyncClient, Connection])
def test_what_has_to_be_awaited_is_not_dropped_in_silence(store: MemoryStore, kind: type[Service]) -> None:
    """Closing without a loop cannot close it, and says how it can be."""
    told: list[str] = []
    session = session_in(store)
    session.attach(Client("tool", told))
    session.attach(kind("client", told))
    with pytest.raises(InputError, match=r"left open: use `async with` for the session, or `await session\.aclose"):
        session.close()
    assert told == ["close tool"]


def test_what_cannot_live_with_a_session_is_refused(store: MemoryStore) -> None:
    """Told when it is attached, not when the session ends."""
    with session_in(store) as session:
        with pytest.raises(
            InputError, match=r"object cannot be closed with the session; give an object with close\(\)"
        ):
            session.attach(object())
        with pytest.raises(InputError, match=r"Remote is an asynchronous context manager: use `await session.aattach"):
            session.attach(Remote("remote", []))
