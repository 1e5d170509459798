"""Events of a session as they happen: for callbacks, for iterators, and for the logger `turnlog`.

Most events are made from records that were just appended. Events that have no record (a session opened or closed, a
callback that failed) are made directly.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeVar, get_args
from weakref import WeakSet

from msgspec import Struct
from msgspec.structs import replace

from .._platform.exceptions import described
from .._platform.given import is_async
from .._platform.stdlib import LOG, logging
from .._platform.units import counted
from ..errors import InputError
from ..log.actions import SHRINKING
from ..log.codec import decode_record
from ..log.records import (
    Approval,
    Body,
    Decision,
    FileChange,
    Note,
    PartialAnswer,
    Record,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    TurnResumed,
)
from ..models.target import Target
from ..redaction import Redactor
from ..redaction.drafts import redacted
from ..redaction.redactor import counts_text
from ..redaction.store import SHOWS_MARKS
from ..view.decisions import failures_of
from .answer import RESPONSE, RUNNER

EventKind = Literal[
    "session_opened",
    "session_resumed",
    "session_closed",
    "turn_started",
    "turn_resumed",
    "turn_completed",
    "turn_failed",
    "turn_cancelled",
    "tool_started",
    "tool_finished",
    "approval_asked",
    "approval_given",
    "approval_denied",
    "compacted",
    "rewound",
    "undone",
    "diff",
    "redacted",
    "warning",
]
"""What can happen."""

_B = TypeVar("_B", bound=Body)
_KINDS: frozenset[str] = frozenset(get_args(EventKind))
_LOUD = ("turn_failed", "warning")


class Event(Struct, frozen=True, repr_omit_defaults=True):
    """Something that happened in a session: its `kind`, one line for people, and the record with the details, if there
    is one. For a session that was opened again, `found` is a `turnlog.session.recovery.Resumed`."""

    kind: EventKind
    session: str
    text: str
    record: Record | None = None
    found: Struct | None = None

    def __repr__(self) -> str:
        where = f", record {self.record.n}" if self.record is not None else ""
        return f"Event({self.kind}: {self.text:.300}{where})"


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
    """The listeners of one session. No line of an event contains what `redactor` finds. `tool_of` returns the name of
    the tool of a call, given by record and id; empty if it is not known."""

    def __init__(
        self,
        session_id: str,
        redactor: Redactor | None = None,
        tool_of: Callable[[int, str], str] = lambda record, call_id: "",
    ) -> None:
        self._id = session_id
        self._tool_of = tool_of
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
            event = _told(record.body, self._ended(record.body))
            if event is not None:
                self.emit(*event, record)
            for kind, number in record.redacted.items():
                self.emit("redacted", f"record {record.n}: {counts_text({kind: number})} replaced on disk", record)

    def emit(self, kind: EventKind, text: str, record: Record | None = None, found: Struct | None = None) -> None:
        """Report that something happened. An exception of a listener is reported to the other listeners and never
        raised."""
        assert kind in _KINDS
        event = Event(kind, self._id, _one_line(self._clean(text)), record, found)
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

    def _clean(self, text: str) -> str:
        return text if self._redactor is None else self._redactor.text(text)[0]

    def _ended(self, body: Body) -> str:
        """The name of the tool that ended, taken from the record of its start: the record of its end does not have
        it."""
        if not isinstance(body, ToolFinished):
            return ""
        name = self._tool_of(body.call_record, body.call_id)
        return self.as_kept(ToolStarted(body.call_id, body.call_record, name)).name

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
        clean = self._clean(line)
        text = _one_line(clean)
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


def _one_line(text: str) -> str:
    """The text in one line, so that text from outside cannot pass for another line of a log file."""
    shown = "".join(char if char.isprintable() else " " for char in text[:500])
    return " ".join(shown.split())


def _told(body: Body, tool: str) -> tuple[EventKind, str] | None:
    """The event that a new record's body is, and a line about it. `tool` is the name of the tool that ended."""
    match body:
        case TurnOpened(turn_id=turn_id):
            return "turn_started", f"turn {turn_id} started"
        case TurnResumed(turn_id=turn_id):
            return "turn_resumed", f"turn {turn_id} goes on"
        case TurnClosed(turn_id=turn_id, status=status, reason=reason):
            text = f"turn {turn_id} {status}: {reason}" if reason else f"turn {turn_id} {status}"
            kinds: dict[str, EventKind] = {"failed": "turn_failed", "cancelled": "turn_cancelled"}
            return kinds.get(status, "turn_completed"), text
        case ToolStarted(call_id=call_id, name=name):
            return "tool_started", f"{name} ({call_id}) started"
        case ToolFinished(call_id=call_id, outcome=outcome, reason=reason):
            name = f"{tool} ({call_id})" if tool else call_id
            return "tool_finished", f"{name} ended: {outcome}" + (f", {reason}" if reason else "")
        case Approval(call_id=call_id, state=state, reason=reason):
            asked: dict[str, EventKind] = {"asked": "approval_asked", "given": "approval_given"}
            text = f"approval of {call_id} {state}"
            return asked.get(state, "approval_denied"), f"{text}: {reason}" if reason else text
        case Decision(action=action, why=why) as decision if action in SHRINKING:
            failed = "; ".join(failures_of([decision]))
            return "compacted", f"{action}: {why}" + (f"; no summarizer could: {failed}" if failed else "")
        case Decision(action="rewind", first=first, last=last, why=why):
            return "rewound", f"records {first} to {last} were taken back: {why}"
        case Decision(action=action, why=why) if action == SHOWS_MARKS:
            return "redacted", why
        case Decision(action="undo", supersedes=undone, why=why):
            return "undone", f"decision {undone} no longer holds: {why}"
        case FileChange(path=path, action=action):
            return "diff", f"{path} {action}"
        case Note(topic=topic, text=text) if topic in (RESPONSE, RUNNER) and text:
            return "warning", text
        case PartialAnswer(reason=reason):
            return "warning", f"the answer was interrupted: {reason}"
        case _:
            return None
