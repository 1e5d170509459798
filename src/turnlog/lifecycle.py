"""A session from its opening to its closing: who listens, what is closed with it, which turn is open."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from .calls import CallInfo
from .content import Message
from .context import Context
from .errors import InputError
from .events import Appended, Event, Events, Feed
from .journal import Journal
from .log import Store
from .records import MessageRecord, Record, SessionOpened
from .redaction import RedactingStore, Redactor
from .services import Services
from .session_log import SessionLog
from .turning import Turn, close_left_open
from .view.arrange import synthetic_result

__all__ = ["Lifecycle"]

_UNBEGUN = (
    "a turn was made and never begun, so what the user said in it is not on record: "
    "write `with session.turn(...) as turn:`"
)


class Lifecycle(SessionLog):
    """What a session has beside its requests: the writing side of its log, listeners, services, a turn."""

    def __init__(self, store: Store, session_id: str, *, owns_store: bool) -> None:
        super().__init__(store, session_id)
        self._events = Events(session_id)
        self._services = Services(lambda text: self._events.emit("warning", text))
        if owns_store:
            self._services.on_close(store.close)
        self._services.on_close(self._events.close)
        self._context = Context(store, session_id)
        self._journal = Journal(store, session_id, self._context, self._events.tell)
        self._turn: Turn | None = None
        self._made: Turn | None = None
        self._opening: Record | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def close(self) -> None:
        """Let go of what was attached, the last first, of what works in the background, and of the store, if this
        session opened it. A turn that is open is closed as failed. What fails is told as a warning, and the first
        error raised when all is done."""
        self._services.on_close(self._give_up_turn)
        self._services.close()

    async def aclose(self) -> None:
        """As `close`, for a session with services that are closed asynchronously."""
        self._services.on_close(self._give_up_turn)
        await self._services.aclose()

    def come_from(self, source: str, *, created: bool) -> None:
        """Put on record from where the session is opened, called by `turnlog.open`: its first record, if it is new."""
        (self._opening,) = self._journal.append(SessionOpened(source, resumed=not created))

    def begin(self, *, created: bool) -> None:
        """What an opened session does once it is configured, called by `turnlog.open`: a turn that a crash left open
        is closed as failed, and listeners are told."""
        opening = self._opening
        source = f", {opening.body.source}" if opening and isinstance(opening.body, SessionOpened) else ""
        with self._events.opening():
            if created:
                self._events.emit("session_opened", f"session opened{source}", opening)
            else:
                text = f"session resumed at record {self._context.last}{source}"
                self._events.emit("session_resumed", text, opening)
                self._close_left_open()

    def attach(self, service: Any) -> Any:
        """Have `service` (a model client, a tool) live with this session: what has a `close` or `aclose` is closed
        with it, another context manager is entered now and left then. Returns the service, or what entering gives."""
        return self._services.attach(service)

    async def aattach(self, service: Any) -> Any:
        """As `attach`, for asynchronous context managers too."""
        return await self._services.aattach(service)

    def on_event(self, callback: Callable[[Event], object]) -> Callable[[], None]:
        """Call `callback` with everything that happens from here on, and with how the session was opened if nobody
        listened before. Returns a function that ends that. What a callback raises is logged, never raised here."""
        return self._events.on(callback)

    def on_records(self, callback: Callable[[Appended], object]) -> Callable[[], None]:
        """Call `callback` with every record that this session appends from here on, as `on_event` otherwise."""
        return self._events.on_records(callback)

    def events(self) -> Feed:
        """Events to iterate over, with `for` or `async for`."""
        return self._events.feed()

    def take_turn(self, turn: Turn | None) -> None:
        """Have `turn` as the one that is open: called by a turn that is entered or left."""
        self._made = None
        if turn is not None and self._turn is not None:
            raise InputError(
                f"turn {self._turn.id!r} is still open: leave its `with` block first, or end it with its cancel(); "
                "what a subagent does belongs into a session of its own"
            )
        if turn is not None:
            self._close_left_open()
        self._turn = turn

    def made_turn(self, turn: Turn) -> Turn:
        """Remember that `turn` was made, until one is entered."""
        self._warn_of_unbegun()
        self._made = turn
        return turn

    def check_begun(self) -> None:
        """Raises InputError, once, if a turn was made and never entered."""
        made, self._made = self._made, None
        if made is not None:
            raise InputError(_UNBEGUN)

    @property
    def redactor(self) -> Redactor | None:
        """What replaces secrets in what this session records; None if nothing does."""
        return self._store.redactor if isinstance(self._store, RedactingStore) else None

    def answer_unfinished(self) -> list[CallInfo]:
        """Put on record, for every call without a result, one that says what is known of it: what requests say
        anyway. A real result that comes later takes its place. Returns the calls."""
        found = self.unfinished()
        results = [synthetic_result(info.call, info.outcome or "lost") for info in found]
        if results:
            self._journal.append(*(MessageRecord(Message("user", (result,))) for result in results))
        return found

    def _give_up_turn(self) -> None:
        self._warn_of_unbegun()
        if self._turn is not None:
            self._turn.abandon()

    def _warn_of_unbegun(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            self._events.emit("warning", _UNBEGUN)

    def _close_left_open(self) -> None:
        close_left_open(
            self._journal,
            lambda: self._store.read(self.id, reverse=True),
            lambda: self._store.of_kinds(self.id, ("turn_opened", "turn_closed")),
            self.records,
        )
