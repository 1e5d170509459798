"""Following a session by its log: the same events, for readers in other processes."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import islice

from msgspec.structs import replace

from .._platform.given import number_given
from .._platform.stdlib import asyncio
from .._platform.units import counted
from ..errors import InputError, TurnlogError
from ..log.store import Store
from ..redaction.store import as_kept
from .telling import Event, Teller
from .threads import in_thread

_AT_ONCE = 200
"""Records that are read before a follower looks whether it was closed."""


class Follower:
    """The events of the records in a session's log from number `first` on, each once and in order, whoever appends
    them. `for` and `async for` wait for the next one, and look into the log `every` so many seconds, until `close` or
    the end of the session object that it was made of; `waiting` takes what is there. `next` is the number of the record
    that is looked at next: with it as `first`, another follower goes on. Reading raises the errors of `Store.read`."""

    def __init__(
        self, store: Store, session_id: str, first: int, every: float, clean: Callable[[str], str] = str
    ) -> None:
        """`clean` replaces secrets in the line of an event."""
        self.next = first
        self._clean = clean
        self._store = as_kept(store)
        self._id = session_id
        self._every = every
        self._teller = Teller(store, session_id)
        self._events: deque[Event] = deque()
        self._looking = threading.Lock()
        self._closed = threading.Event()
        self._failed: TurnlogError | None = None

    def __repr__(self) -> str:
        return f"Follower({self._id}, at record {self.next}, {counted(len(self._events), 'event')} waiting)"

    def close(self) -> None:
        """End all iterations after the events that were read already. May be called from any thread."""
        self._closed.set()

    def waiting(self) -> list[Event]:
        """The events that were not taken yet; does not wait for more."""
        while self._look():
            pass
        with self._looking:
            events = list(self._events)
            self._events.clear()
        return events

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        while True:
            if (event := self._taken()) is not None:
                return event
            if self._closed.is_set():
                self._fail()
                raise StopIteration
            if not self._look() and not self._events:
                self._closed.wait(self._every)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while True:
            if (event := self._taken()) is not None:
                return event
            if self._closed.is_set():
                self._fail()
                raise StopAsyncIteration
            if not await in_thread(self._look) and not self._events:
                await asyncio.sleep(self._every)

    def _taken(self) -> Event | None:
        with self._looking:
            return self._events.popleft() if self._events else None

    def _look(self) -> bool:
        """Read records that have come, a few at a time, and keep their events; whether there may be more."""
        with self._looking:
            if self._closed.is_set():  # the store may be closed, too
                return False
            number = 0
            for record in islice(self._store.read(self._id, first=self.next), _AT_ONCE):
                self._events += [replace(one, text=self._clean(one.text)) for one in self._teller.events(record)]
                self.next, number = record.n + 1, number + 1
            return number == _AT_ONCE

    def _fail(self) -> None:
        """Raise, once, what `finish` met."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed

    def finish(self) -> None:
        """Read what is on record now, and close. An error is raised where the iteration ends."""
        try:
            while self._look():
                pass
        except TurnlogError as error:
            self._failed = error
        finally:
            self.close()


def follow(
    store: Store, session_id: str, first: int | None, every: float, clean: Callable[[str], str] = str
) -> Follower:
    """See `Session.follow`."""
    at = store.info(session_id).records + 1 if first is None else first
    if not isinstance(at, int) or isinstance(at, bool) or at < 1:
        raise InputError(f"first must be the number of a record, 1 or more, not {first!r}")
    return Follower(store, session_id, at, number_given("every", every, above=0), clean)
