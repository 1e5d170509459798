"""Server-sent events: the records of a session as they come, and how many sessions changed.

One task asks the store for all viewers together, five times a second, and only while somebody looks. What it finds
wakes the viewers of that session; the HTML of new records is made once for all of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..display.escapes import Markup
from ..errors import SessionNotFound, StoreError, TurnlogError
from ..log.store import Store

POLL = 0.2
"""Seconds between two looks at the sessions that are on a page."""
LIST_POLL = 1.0
"""Seconds between two looks at the list of sessions."""
KEEP_ALIVE = 15.0
"""Seconds after which a comment is sent, so that a viewer that went away is noticed."""
MOST = 500
"""The most new records that are sent. A page that missed more is only told their number, and loads what it shows."""

_LIST = ""
"""The list of sessions among the topics; no session has this id."""
_MISSED = 3
"""After so many failed looks a session counts as gone."""
_NEWEST = 100
"""So many sessions, the last changed first, are compared: what changes is among them."""

News = Callable[[Store, str, int], tuple[int, list[Markup]]]
"""Store, id and the last record that is known, to the last record there is and the elements of those between."""


class _Topic:
    """What viewers wait for. `state` is the number of records of a session, or the newest sessions with theirs; None
    until it was looked at, and the error if there is no such session any more."""

    def __init__(self) -> None:
        self.viewers = 0
        self.state: Any = None
        self.missed = 0
        self.event = asyncio.Event()
        self.making = asyncio.Lock()
        self.made: tuple[int, int, bytes] = (-1, -1, b"")

    def wake(self) -> None:
        """Wake all viewers."""
        self.event.set()
        self.event = asyncio.Event()


class Live:
    """The events of one server. All methods belong to its event loop."""

    def __init__(self, store: Store, news: News) -> None:
        self._store, self._news = store, news
        self._topics: dict[str, _Topic] = {}
        self._polling: asyncio.Task[None] | None = None
        self._is_over = False

    def close(self) -> None:
        """End all streams at once: the server stops."""
        self._is_over = True
        for topic in self._topics.values():
            topic.wake()

    async def records(self, session_id: str, after: int) -> AsyncIterator[bytes]:
        """The records behind number `after`, as events `records`; `gone` or `failed` is the last event."""
        with self._topic(session_id) as topic:
            yield b"retry: 1000\n\n"
            while not self._is_over:
                if isinstance(topic.state, TurnlogError):
                    yield _failed(topic.state)
                    return
                if topic.state is None or topic.state == after:
                    if await self._slept(topic):
                        yield b":\n\n"
                    continue
                try:
                    if topic.state < after:  # an older look, unless a newer one says the same
                        topic.state = (await asyncio.to_thread(self._store.info, session_id)).records
                        if topic.state >= after:
                            continue
                    after, event = await self._new(session_id, topic, after)
                except SessionNotFound:
                    topic.state = None  # gone, or replaced at this moment: the next looks tell
                    continue
                except TurnlogError as error:
                    yield _failed(error)
                    return
                yield event

    async def sessions(self) -> AsyncIterator[bytes]:
        """How many sessions have changed since this began, as events `sessions`."""
        with self._topic(_LIST) as topic:
            yield b"retry: 1000\n\n"
            first: Mapping[str, Any] | None = None
            count = 0
            while not self._is_over and not isinstance(topic.state, TurnlogError):
                if topic.state is not None:
                    first = topic.state if first is None else first
                    now = sum(first.get(each) != what for each, what in topic.state.items())
                    if now != count:
                        count = now
                        yield _event("sessions", {"count": count})
                if await self._slept(topic):
                    yield b":\n\n"

    async def _new(self, session_id: str, topic: _Topic, after: int) -> tuple[int, bytes]:
        """The last record that a viewer knows next, and the event that tells it."""
        last = topic.state
        if not after <= last <= after + MOST:
            # It was written anew, and is shorter; or the page slept for long.
            return last, _event("records", {"last": last, "more": max(last - after, 0), "html": []}, last)
        async with topic.making:
            known, last, event = topic.made
            if known != after:
                met = last
                last, pieces = await asyncio.to_thread(self._news, self._store, session_id, after)
                last = max(last, met)
                event = _event("records", {"last": last, "html": pieces}, last)
                topic.made = (after, last, event)
        return last, event

    async def _slept(self, topic: _Topic) -> bool:
        """Whether nothing happened for so long that a comment is due."""
        try:
            await asyncio.wait_for(topic.event.wait(), KEEP_ALIVE)
        except TimeoutError:
            return True
        return False

    @contextmanager
    def _topic(self, name: str) -> Iterator[_Topic]:
        topic = self._topics.setdefault(name, _Topic())
        topic.viewers += 1
        if self._polling is None or self._polling.done():
            self._polling = asyncio.get_running_loop().create_task(self._poll())
        try:
            yield topic
        finally:
            topic.viewers -= 1
            if not topic.viewers and self._topics.get(name) is topic:
                del self._topics[name]

    async def _poll(self) -> None:
        """Look at everything that has viewers, until nothing has or the server stops."""
        looked = -LIST_POLL
        now = asyncio.get_running_loop().time
        while self._topics and not self._is_over:
            names = [name for name in self._topics if name != _LIST or now() - looked >= LIST_POLL]
            looked = now() if _LIST in names else looked
            for name, state in (await asyncio.to_thread(self._states, names)).items():
                topic = self._topics.get(name)
                if topic is None:
                    continue
                topic.missed = topic.missed + 1 if isinstance(state, TurnlogError) else 0
                # A session that an import replaces does not exist for a moment.
                if topic.state != state and topic.missed in (0, _MISSED):
                    topic.state = state
                    topic.wake()
            await asyncio.sleep(POLL)

    def _states(self, names: list[str]) -> dict[str, Any]:
        states = dict[str, Any]()
        for name in names:
            try:
                if name == _LIST:
                    newest = self._store.sessions(limit=_NEWEST)
                    states[name] = {info.id: (info.records, info.title) for info in newest}
                else:
                    states[name] = self._store.info(name).records
            except TurnlogError as error:
                states[name] = error
            except OSError as error:
                states[name] = StoreError(str(error))
        return states


def _failed(error: TurnlogError) -> bytes:
    return _event("gone" if isinstance(error, SessionNotFound) else "failed", {"message": str(error)})


def _event(name: str, data: object, number: int | None = None) -> bytes:
    """An event; JSON has no line breaks, which would end a field."""
    identity = "" if number is None else f"id: {number}\n"
    return f"event: {name}\n{identity}data: {json.dumps(data)}\n\n".encode()
