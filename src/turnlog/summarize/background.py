"""A summary computed ahead of need, while the conversation goes on."""

from __future__ import annotations

from ..errors import TurnlogError
from .ledger import Ledger, claim, key_of, settle
from .protocol import Material, Summarizer
from .running import RunningCall
from .verdict import SummaryFailure

_PAUSE = 0.05
"""Seconds before a call begins. The request that is made at this moment goes first: the two would share a processor, as
only one thread of Python runs at a time."""


class Background:
    """At most one summarizer at work in the background of a session. There is no thread before the first `start`.

    Only the thread that calls these methods uses the ledger. `attempt` uses a result if its key is that of the content
    to be summarised; otherwise the result is not used.
    """

    def __init__(self) -> None:
        self._run: RunningCall | None = None

    def start(
        self, material: Material, summarizer: Summarizer, ledger: Ledger, *, key: str = ""
    ) -> SummaryFailure | None:
        """Begin to summarise `material`, unless a call is under way or the result for it is known.

        An earlier call that has ended is collected first. `key` is that of the content, if the caller has it. Returns
        the failure, None if there is none; never raises.
        """
        ended = self.collect(ledger)
        if self._run is not None:
            return ended
        try:
            key = key or key_of(summarizer.id, material)
            if claim(ledger, key, summarizer.id) is not None:
                return ended
        except (TurnlogError, OSError) as error:
            return SummaryFailure(summarizer.id, "ledger", str(error))
        try:
            self._run = RunningCall(summarizer, material, key, pause=_PAUSE)
        except RuntimeError as error:  # no thread can be started
            return settle(ledger, key, SummaryFailure(summarizer.id, "exception", str(error)))
        return ended

    def collect(self, ledger: Ledger) -> SummaryFailure | None:
        """Record the result of the call if it has ended. Returns the failure, None if there is none."""
        run = self._run
        if run is None or not run.wait(0):
            return None
        self._run = None
        return run.settle(ledger)[1]

    def running(self, key: str) -> RunningCall | None:
        """The call for a key, if it is under way or was not collected yet; else None."""
        return self._run if self._run is not None and self._run.key == key else None

    def keep(self, run: RunningCall) -> None:
        """Take over a call that the caller no longer waits for, so that its text is recorded if it still comes.

        If another call is under way, this one is dropped: one worker is enough.
        """
        if self._run is None:
            self._run = run

    def release(self, run: RunningCall) -> None:
        """Drop a call whose end is on record."""
        if self._run is run:
            self._run = None

    def close(self, ledger: Ledger, reason: str = "the session was closed before it came") -> SummaryFailure | None:
        """Record the result of the call, or, with the `reason`, that it has not ended. Does not wait; a later result is
        lost."""
        run, self._run = self._run, None
        return None if run is None else run.settle(ledger, unfinished=reason)[1]
