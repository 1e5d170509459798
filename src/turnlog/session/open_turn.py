"""The open turn of a session: one at a time. Other turns wait for it, in the order in which they came."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from .._platform.stdlib import socket
from ..errors import InputError, SessionBusy, StoreError
from ..log.store import Leased, utc_now

_UNBEGUN = (
    "a turn was made and never begun, so what the user said in it is not on record: "
    "write `with session.turn(...) as turn:`"
)


class Queued(Protocol):
    """What the queue of turns needs to know of a turn."""

    @property
    def id(self) -> str:
        """The id of the turn, once it is open."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is to end."""

    @property
    def begins(self) -> bool:
        """Whether it is a new turn, and none that goes on."""

    def abandon(self) -> None:
        """Close the turn as failed: its session is being closed."""

    def lose(self) -> None:
        """Leave the turn open on record: its process is lost."""


class _Ticket:
    """A place in the queue: a turn, and the thread and task that enter it. `wake` ends the wait; `awaits` tells that
    the thread goes on meanwhile."""

    def __init__(self, turn: Queued, wake: Callable[[], object], *, awaits: bool) -> None:
        self.turn = turn
        self.wake = wake
        self.awaits = awaits
        self.thread = threading.current_thread()
        self.task = _current_task()
        self.since = ""

    def own(self) -> _Ticket:
        """Make this the place of the open turn from now on; returns it."""
        self.since = utc_now()
        return self


def _current_task() -> Any:
    """The task of asyncio that runs here; None outside of one."""
    asyncio = sys.modules.get("asyncio")  # where nobody has loaded it, there is no task
    if asyncio is not None:
        with suppress(RuntimeError):
            return asyncio.current_task()
    return None


class OpenTurn:
    """The open turn of a session and the turns that wait for its end, from whatever thread or task.

    `recover` closes what a crash left open, and for a turn that is new what waits for approvals, before a turn begins;
    `warn` is told of a turn that never begins. A turn
    waits for up to `wait` seconds.
    """

    def __init__(
        self, recover: Callable[[bool], object], warn: Callable[[str], object], lease: Leased, wait: float
    ) -> None:
        self._recover = recover
        self._warn = warn
        self._lease = lease
        self.wait = wait
        self._lock = threading.Lock()
        self._open: _Ticket | None = None
        self._waiting: deque[_Ticket] = deque()
        self._made: Queued | None = None
        self._closed = False

    @property
    def id(self) -> str:
        """The id of the turn that is open here; empty if none is."""
        ticket = self._open
        return ticket.turn.id if ticket is not None else ""

    @property
    def turn(self) -> Queued | None:
        """The turn that is open here, or is about to be."""
        ticket = self._open
        return None if ticket is None else ticket.turn

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn that is open here is to end."""
        ticket = self._open
        return ticket is not None and ticket.turn.is_cancelled

    @property
    def is_ours(self) -> bool:
        """Whether this process has the session; not so in a forked child."""
        return self._lease.is_ours

    def made(self, turn: Queued) -> None:
        """Remember a turn that was made, until one is entered."""
        self._warn_of_unbegun()
        self._made = turn

    def take(self, turn: Queued) -> None:
        """Make `turn` the open one, when its time comes; `begin` is next. Raises InputError if the thread that asks has
        a turn open, SessionBusy if others take too long, and StoreError if the session is closed."""
        woken = threading.Event()
        ticket = self._queue_up(_Ticket(turn, woken.set, awaits=False))
        try:
            if self._open is not ticket:
                woken.wait(self.wait)
        except BaseException:  # Ctrl-C
            self._leave(ticket)
            raise
        self._enter(ticket)

    async def atake(self, turn: Queued) -> None:
        """As `take`, while other tasks go on."""
        import asyncio  # here: whoever awaits has loaded it, and nobody else should pay for it

        loop = asyncio.get_running_loop()
        woken = asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits in it
                loop.call_soon_threadsafe(woken.set)

        ticket = self._queue_up(_Ticket(turn, wake, awaits=True))
        try:
            if self._open is not ticket:
                with suppress(TimeoutError):
                    await asyncio.wait_for(woken.wait(), self.wait)
        except BaseException:  # the task is cancelled
            self._leave(ticket)
            raise
        self._enter(ticket)

    def begin(self, turn: Queued) -> None:
        """Close what a crash left open, before `turn` begins."""
        try:
            self._recover(turn.begins)
        except BaseException:
            self.release(turn)
            raise

    def release(self, turn: Queued) -> None:
        """End the time of `turn`, if it is the open one; the next turn is open then."""
        with self._lock:
            if self._open is not None and self._open.turn is turn:
                self._made = None
                self._next()

    def check_begun(self) -> None:
        """Raises InputError, once, if a turn was made and never entered."""
        turn, self._made = self._made, None
        if turn is not None:
            raise InputError(_UNBEGUN)

    def give_up(self) -> None:
        """Close the open turn as failed, and refuse those that wait: the session is being closed."""
        self._warn_of_unbegun()
        with self._lock:
            self._closed, refused = True, list(self._waiting)
            self._waiting.clear()
        for ticket in refused:
            ticket.wake()
        if (open_ticket := self._open) is not None and self.is_ours:
            open_ticket.turn.abandon()

    def lose(self) -> None:
        """Forget the open turn and those that wait, and record nothing: their process is lost."""
        with self._lock:
            self._closed, open_ticket, refused = True, self._open, list(self._waiting)
            self._waiting.clear()
            self._open = self._made = None
        for ticket in refused:
            ticket.wake()
        if open_ticket is not None:
            open_ticket.turn.lose()

    def _queue_up(self, ticket: _Ticket) -> _Ticket:
        """Make a turn the open one, or let it wait. Raises InputError if it would wait for itself, StoreError if
        the session is being closed."""
        self._lease.check()
        with self._lock:
            self._made = None
            if self._closed:  # the lease goes as soon as the rest is closed, and would not outlive this turn
                raise StoreError(f"session {self._lease.session_id!r} is being closed; open it again")
            if self._open is None:
                self._open = ticket.own()
                return ticket
            if self._open.thread is ticket.thread and not (ticket.awaits and self._open.task is not ticket.task):
                advice = "leave its `with` block first, or end it with its cancel()"
                if self._open.task is not ticket.task:
                    advice = "`async with session.turn(...)` waits for the task that has it"
                raise InputError(
                    f"turn {self._open.turn.id!r} is still open: {advice}; give a subagent its own session"
                )
            self._waiting.append(ticket)
        return ticket

    def _enter(self, ticket: _Ticket) -> None:
        """Raises SessionBusy if another turn is still open after the wait."""
        with self._lock:
            if self._open is not ticket:
                with suppress(ValueError):
                    self._waiting.remove(ticket)
                raise self._refusal()

    def _refusal(self) -> StoreError:
        name, open_ticket = self._lease.session_id, self._open
        if self._closed or open_ticket is None:
            return StoreError(f"session {name!r} was closed while a turn waited; open it again")
        return SessionBusy(
            f"session {name!r} is in use: turn {open_ticket.turn.id!r} is still open after {self.wait:g} s (thread "
            f"{open_ticket.thread.name}, since {open_ticket.since}); wait longer (wait=SECONDS when it is opened), or "
            "end that turn with its cancel()",
            process=os.getpid(),
            host=socket.gethostname(),
            thread=open_ticket.thread.name,
            since=open_ticket.since,
        )

    def _leave(self, ticket: _Ticket) -> None:
        with self._lock:
            if self._open is ticket:
                self._next()
            else:
                with suppress(ValueError):
                    self._waiting.remove(ticket)

    def _next(self) -> None:
        self._open = self._waiting.popleft().own() if self._waiting else None
        if self._open is not None:
            self._open.wake()

    def _warn_of_unbegun(self) -> None:
        turn, self._made = self._made, None
        if turn is not None:
            self._warn(_UNBEGUN)
