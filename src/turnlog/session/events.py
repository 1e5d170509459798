"""Events of a session as they happen: for callbacks, for iterators, and for the logger `turnlog`.

Most events are made from records that were just appended. Events that have no record (a session opened or closed, a
callback that failed) are made directly.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, get_args
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from .._platform.exceptions import described
from .._platform.given import is_async
from .._platform.stdlib import LOG, logging
from .._platform.texts import on_one_line
from .._platform.units import counted
from ..errors import InputError
from ..log.codec import decode_record
from ..log.records import Body, Record, SessionOpened
from ..models.target import Target
from ..redaction import Redactor
from ..redaction.drafts import redacted
from .telling import Event, EventKind, Teller

_B = TypeVar("_B", bound=Body)
_KINDS: frozenset[str] = frozenset(get_args(EventKind))
_LOUD = ("turn_failed", "warning")


class Appended(Struct, frozen=True, repr_omit_defaults=True):
    """Records that a session has put on record together. `asked` is the target that was asked, if they are a model's
    answer."""

    records: tuple[Record, ...]
    asked: Target | None = None


class Feed:
    """The events of a session as they come. `for` and `async for` wait for the next event until the session is closed;
    `waiting` takes the events that have already come. A feed without references gets no more events."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._changed = threading.Condition()
        self._wakers: list[tuple[Any, Any]] = []
        self._closed = False

    def __repr__(self) -> str:
        return f"Feed({counted(len(self._events), 'event')} waiting{', closed' if self._closed else ''})"

    def push(self, event: Event) -> None:
        """Put an event at the end."""
        with self._changed:
            self._events.append(event)
            self._wake()

    def close(self) -> None:
        """End all iterations after the events that have already come."""
        with self._changed:
            self._closed = True
            self._wake()

    def waiting(self) -> list[Event]:
        """The events that have come and were not taken yet; does not wait for more."""
        with self._changed:
            events = list(self._events)
            self._events.clear()
        return events

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        with self._changed:
            while not self._events:
                if self._closed:
                    raise StopIteration
                self._changed.wait()
            return self._events.popleft()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        import asyncio  # here: whoever iterates so has loaded it, and nobody else should pay for it

        while True:
            with self._changed:
                if self._events:
                    return self._events.popleft()
                if self._closed:
                    raise StopAsyncIteration
                loop = asyncio.get_running_loop()
                waker = loop, loop.create_future()
                self._wakers.append(waker)
            try:
                await waker[1]
            finally:
                with self._changed, suppress(ValueError):  # there still, if the wait was cancelled
                    self._wakers.remove(waker)

    def _wake(self) -> None:
        self._changed.notify_all()
        wakers, self._wakers = self._wakers, []
        for loop, turned in wakers:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits in it
                loop.call_soon_threadsafe(_resolve, turned)


def _resolve(turned: Any) -> None:
    if not turned.done():
        turned.set_result(None)


class Events:
    """The listeners of one session. No line of an event contains what `redactor` finds. `teller` tells which events
    records are; without one, none are."""

    def __init__(self, session_id: str, redactor: Redactor | None = None, teller: Teller | None = None) -> None:
        self._id = session_id
        self._teller = teller
        self._redactor = redactor
        self._callbacks: list[Callable[[Event], object]] = []
        self._followers: list[Callable[[Appended], object]] = []
        self._feeds: WeakSet[Feed] = WeakSet()
        self._opening: list[Event] = []
        self._in_opening = self._closed = False

    def on(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call `callback` with every event from now on, and with the events of opening the session if it is the first
        listener. Returns a function that stops this. Raises InputError."""
        stop = _enter(self._callbacks, callback, "on_event takes a function of an event")
        for event in self._of_opening():
            self._call(callback, event)
        return stop

    def on_records(self, callback: Callable[[Appended], object]) -> Callable[[], None]:
        """Call `callback` with all records that are appended from now on. Returns a function that stops this. Raises
        InputError."""
        return _enter(self._followers, callback, "follow_records takes a function of what was appended")

    def feed(self) -> Feed:
        """Every event from now on, to iterate over; also the events of opening the session if this is the first
        listener."""
        feed = Feed()
        for event in self._of_opening():
            feed.push(event)
        if self._closed:
            feed.close()
        else:
            self._feeds.add(feed)
        return feed

    def tell(self, records: Sequence[Record], asked: Target | None = None) -> None:
        """Report appended records, as they are on disk; `asked` as in `Appended`."""
        records = [self._as_kept(record) for record in records]
        for follower in tuple(self._followers):
            try:
                follower(Appended(tuple(records), asked))
            except Exception as error:  # noqa: BLE001 - as for callbacks
                self._tell_failure(follower, f"record {records[0].n}", error, records[0])
        for record in records:
            # `begin` tells of an opening, with what it found
            if self._teller is not None and not isinstance(record.body, SessionOpened):
                for event in self._teller.events(record, figures=self._is_heard):
                    self.emit(event.kind, event.text, record, event.found)

    def emit(self, kind: EventKind, text: str, record: Record | None = None, found: Struct | None = None) -> None:
        """Report that something happened. An exception of a listener is reported to the other listeners and never
        raised."""
        assert kind in _KINDS
        event = Event(kind, self._id, on_one_line(self.clean(text)), record, found)
        LOG.log(logging.WARNING if kind in _LOUD else logging.INFO, "%s: %s", self._id, event.text)
        if self._in_opening:
            place = 0 if kind == "session_resumed" else len(self._opening)  # it tells of those that came of it
            self._opening.insert(place, event)
        for callback in tuple(self._callbacks):
            self._call(callback, event)
        for feed in tuple(self._feeds):
            feed.push(event)

    def warn(self, text: str) -> None:
        """Report a warning."""
        self.emit("warning", text)

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Keep the events of opening the session for the first listener: there is none yet."""
        self._in_opening = True
        try:
            yield
        finally:
            self._in_opening = False

    @property
    def _is_heard(self) -> bool:
        """Whether somebody gets the events, now or later."""
        return bool(self._callbacks or self._feeds or self._in_opening) or LOG.isEnabledFor(logging.INFO)

    def _as_kept(self, record: Record) -> Record:
        if not record.redacted:
            return record
        if record.raw is not None:  # the bytes on disk: reading them is quicker than looking for secrets again
            return decode_record(record.raw)
        return replace(record, body=self.as_kept(record.body))

    def as_kept(self, body: _B) -> _B:
        """A record's body as it is on disk. With a live redactor, the session's own copy has the secrets instead."""
        redactor = self._redactor
        return redacted(body, redactor)[0] if redactor is not None and redactor.live else body

    def close(self) -> None:
        """Tell that the session is closed, once; nothing follows."""
        if self._closed:
            return
        self._closed = True
        self.emit("session_closed", "session closed")
        for feed in tuple(self._feeds):
            feed.close()
        self._callbacks.clear()
        self._followers.clear()

    def clean(self, text: str) -> str:
        """A text with the secrets in it replaced."""
        return text if self._redactor is None else self._redactor.text(text)[0]

    def _of_opening(self) -> list[Event]:
        events, self._opening = self._opening, []
        return events

    def _call(self, callback: Callable[[Event], object], event: Event) -> None:
        try:
            callback(event)
        except Exception as error:  # noqa: BLE001 - a listener's mistake must not break what it listens to
            self._tell_failure(callback, repr(event.kind), error, event.record, warn=event.kind != "warning")

    def _tell_failure(
        self, failed: Callable[[Any], object], place: str, error: Exception, record: Record | None, *, warn: bool = True
    ) -> None:
        line = f"{_name_of(failed)} failed at {place}: {described(error)}"
        clean = self.clean(line)
        text = on_one_line(clean)
        LOG.warning("%s: %s", self._id, text, exc_info=error if clean == line else None)  # a trace repeats the error
        if not warn:
            return
        warning = Event("warning", self._id, text, record)
        for callback in tuple(self._callbacks):
            if callback is not failed:
                self._call(callback, warning)
        for feed in tuple(self._feeds):
            feed.push(warning)


def _enter(listeners: list[Any], callback: Callable[[Any], object], takes: str) -> Callable[[], None]:
    """Put a listener on a list; returns a function that takes it off again."""
    if not callable(callback):
        raise InputError(f"{takes}, not {type(callback).__name__}")
    if is_async(callback):  # nobody would await what it returns
        raise InputError(
            f"{takes}; asynchronous functions are not called: give a plain function, or use "
            "`async for event in session.events()`"
        )
    listeners.append(callback)

    def stop() -> None:
        if callback in listeners:
            listeners.remove(callback)

    return stop


def _name_of(callback: Callable[[Any], object]) -> str:
    return getattr(callback, "__qualname__", type(callback).__name__)
