"""A session from its opening to its closing: who listens, what is closed with it, which turn is open."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Protocol, Self, TypeVar

from .calls import CallInfo
from .content import Message
from .context import Context
from .errors import InputError
from .events import Event, Events, Feed
from .journal import Journal
from .log import Store
from .records import MessageRecord
from .session_log import SessionLog
from .turning import Turn, close_left_open
from .view.arrange import synthetic_result

__all__ = ["Lifecycle"]


class _Closable(Protocol):
    def close(self) -> object: ...


_Service = TypeVar("_Service", bound=_Closable)


class Lifecycle(SessionLog):
    """What a session has beside its requests: the writing side of its log, listeners, services, a turn."""

    def __init__(self, store: Store, session_id: str, *, owns_store: bool) -> None:
        super().__init__(store, session_id)
        self._closing = ExitStack()  # each is closed, the last first, whatever another does
        if owns_store:
            self._closing.callback(store.close)
        self._events = Events(session_id)
        self._closing.callback(self._events.close)
        self._context = Context(store, session_id)
        self._journal = Journal(store, session_id, self._context, self._events.tell)
        self._turn: Turn | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what was attached, of what works in the background, and of the store, if this session opened it.
        A turn that is open is closed as failed."""
        with self._closing:
            if self._turn is not None:
                self._turn.abandon()

    def begin(self, *, created: bool) -> None:
        """What an opened session does first, called by `turnlog.open`: a turn that a crash left open is closed as
        failed, and listeners are told."""
        with self._events.opening():
            if created:
                self._events.emit("session_opened", "session opened")
            else:
                self._events.emit("session_resumed", f"session resumed at record {self._context.last}")
                self._close_left_open()

    def attach(self, service: _Service) -> _Service:
        """Close `service` (a model client, a tool, anything with a `close`) with this session, the last first."""
        self._closing.callback(service.close)
        return service

    def on_event(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call `callback` with everything that happens from here on, and with how the session was opened if nobody
        listened before. Returns a function that ends that. What a callback raises is logged, never raised here."""
        return self._events.on(callback)

    def events(self) -> Feed:
        """The same to iterate over, with `for` or `async for`."""
        return self._events.feed()

    def take_turn(self, turn: Turn | None) -> None:
        """Have `turn` as the one that is open: called by a turn that is entered or left."""
        if turn is not None and self._turn is not None:
            raise InputError(
                f"turn {self._turn.id!r} is still open: leave its `with` block first, or end it with its cancel(); "
                "what a subagent does belongs into a session of its own"
            )
        if turn is not None:
            self._close_left_open()
        self._turn = turn

    def answer_unfinished(self) -> list[CallInfo]:
        """Put on record, for every call without a result, one that says what is known of it: what requests say
        anyway. A real result that comes later takes its place. Returns the calls."""
        found = self.unfinished()
        results = [synthetic_result(info.call, info.outcome or "lost") for info in found]
        if results:
            self._journal.append(*(MessageRecord(Message("user", (result,))) for result in results))
        return found

    def _close_left_open(self) -> None:
        close_left_open(
            self._journal,
            lambda: self._store.read(self.id, reverse=True),
            lambda: self._store.of_kinds(self.id, ("turn_opened", "turn_closed")),
            self.records,
        )
