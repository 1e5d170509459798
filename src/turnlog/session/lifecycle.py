"""A session from its opening to its closing: who listens, what is closed with it, which turn is open."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec

from ..errors import InputError
from ..log.messages import Message, text_of
from ..log.records import Configuration, MessageRecord, Record, SessionOpened
from ..log.store import Store
from ..redaction import RedactingStore, Redactor
from ..view.decisions import Rewinds
from ..view.repair.arrange import synthetic_result
from ..view.tool_calls import LEDGER, CallInfo, fate_of
from ..workspace.watch import FileRecorder, Watches
from .events import Appended, Event, Events, Feed
from .reader import SessionLog
from .recorder import Journal
from .recovery import Change, Recovered, Resumed, changes_between, changes_since, environment_of, recover
from .resources import Services
from .state import Context
from .turn import Turn

_UNBEGUN = (
    "a turn was made and never begun, so what the user said in it is not on record: "
    "write `with session.turn(...) as turn:`"
)


class _Found(NamedTuple):
    """A session as it was before anything was done with it."""

    last: int
    configuration: Configuration
    system: str


class Lifecycle(SessionLog):
    """What a session has beside its requests: the writing side of its log, listeners, services, a turn."""

    def __init__(self, store: Store, session_id: str, *, owns_store: bool, checkpoint: float) -> None:
        super().__init__(store, session_id)
        self._events = Events(session_id, self.redactor, lambda record, call: self._journal.tool_of(record, call))
        self._services = Services(lambda text: self._events.emit("warning", text))
        if owns_store:
            self._services.on_close(store.close)
        self._services.on_close(self._events.close)
        self._context = Context(store, session_id)
        by_lines = self.redactor is not None and self.redactor.spans_words
        self._journal = Journal(store, session_id, self._context, self._events.tell, checkpoint, by_lines=by_lines)
        self._turn: Turn | None = None
        self._taking = Lock()
        self._watches = Watches()
        self._made: Turn | None = None
        self._opening: Record | None = None
        self._found = self._as_it_is()
        self.resumed: Resumed | None = None
        """What opening found, if the session was there before."""

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
        """Put on record from where the session is opened, if that was said; called by `turnlog.open`. It is the first
        record of a session that is new."""
        if source:
            (self._opening,) = self._journal.append(SessionOpened(source, resumed=not created))

    def begin(self, *, created: bool) -> None:
        """What an opened session does once it is configured, called by `turnlog.open`: what a crash left half-done is
        put on record as far as it is known, and listeners are told."""
        opening = self._opening
        source = opening.body.source if opening and isinstance(opening.body, SessionOpened) else ""
        with self._events.opening():
            if created:
                self._found = self._as_it_is()
                self._events.emit("session_opened", f"session opened, {source}".rstrip(", "), opening)
                return
            recovered, changes = self._recover(), self.changes
            now = self._context.configuration
            here = environment_of(now.provider, now.model)
            if now.environment not in (None, here):  # said once: the next opening compares with what is here
                why = f"resumed: {', '.join(map(str, changes_since(now.environment, here)))}"
                self._journal.append(msgspec.structs.replace(now, environment=here, why=why))
            self.resumed = Resumed(self._found.last, recovered, changes, source)
            self._events.emit("session_resumed", str(self.resumed), opening, self.resumed)

    @property
    def system_text(self) -> str:
        """The system text that the conversation begins with."""
        return "\n\n".join(filter(None, (text_of(shown.message) for shown in self._context.head)))

    @property
    def changes(self) -> tuple[Change, ...]:
        """What is not as it was when this session was found: target, settings, tools, system text, budget, strategy,
        by arguments of its opening or since; the model's limits and turnlog, since the last configuration before."""
        kept = self._events.as_kept  # lines about it show settings cut off, be it in the midst of a secret
        was, now = kept(self._found.configuration), kept(self._context.configuration)
        text, found = self.system_text, changes_between(was, now)
        if text != self._found.system:
            found.append(Change("system text", "", self._found.system, text))
        return (*found, *changes_since(was.environment, environment_of(now.provider, now.model)))

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
        with self._taking:  # of two threads that enter a turn at once, one is refused
            self._made = None
            if turn is not None and self._turn is not None:
                raise InputError(
                    f"turn {self._turn.id!r} is still open: leave its `with` block first, or end it with its cancel(); "
                    "what a subagent does belongs into a session of its own"
                )
            self._turn = turn
        if turn is None:
            return
        try:
            self._recover()
        except BaseException:
            self._turn = None
            raise

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
        rewinds = Rewinds.of(self._store.landmarks(self.id))
        fate = fate_of(record for record in self.of_kinds(*LEDGER) if not rewinds.by(record.n))
        results = [synthetic_result(info.call, fate.get((info.record, info.call.id), "lost")) for info in found]
        if results:
            self._journal.append(*(MessageRecord(Message("user", (result,))) for result in results))
        return found

    def _living(self) -> str:
        """The id of the turn that is open here, if one is."""
        return self._turn.id if self._turn is not None else ""

    def _give_up_turn(self) -> None:
        self._warn_of_unbegun()
        if self._turn is not None:
            self._turn.abandon()

    def _warn_of_unbegun(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            self._events.emit("warning", _UNBEGUN)

    def _as_it_is(self) -> _Found:
        return _Found(self._context.last, self._context.configuration, self.system_text)

    def _recover(self) -> Recovered:
        store, append = self._store, self._journal.append
        return recover(
            self,
            self._journal,
            lambda root: FileRecorder(root, append, store.put_blob),
            lambda: store.info(self.id).parent_records,
        )
