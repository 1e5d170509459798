"""A summary computed ahead, while the conversation goes on."""

from __future__ import annotations

from ..errors import TurnlogError
from .ledger import Ledger, claim, key_of, settle
from .protocol import Material, Summarizer
from .running import Run
from .verdict import SummaryFailure


class Background:
    """At most one summarizer at work beside a session. No thread is there before the first `start`.

    Only the thread that calls these methods touches the ledger. Whether a result is used is decided by its
    key: `attempt` takes it if it is asked for the very same content, and nobody else does.
    """

    def __init__(self) -> None:
        self._run: Run | None = None

    def start(self, material: Material, summarizer: Summarizer, ledger: Ledger) -> SummaryFailure | None:
        """Begin to summarise `material`, unless that is under way or known, or something else is under way.

        What has come before is collected first. Returns what went wrong, never raises.
        """
        ended = self.collect(ledger)
        if self._run is not None:
            return ended
        try:
            key = key_of(summarizer.id, material)
            if claim(ledger, key, summarizer.id) is not None:
                return ended
        except (TurnlogError, OSError) as error:
            return SummaryFailure(summarizer.id, "ledger", str(error))
        try:
            self._run = Run(summarizer, material, key)
        except RuntimeError as error:  # no thread to be had
            return settle(ledger, key, SummaryFailure(summarizer.id, "exception", str(error)))
        return ended

    def collect(self, ledger: Ledger) -> SummaryFailure | None:
        """Put what has come on record. Returns what went wrong with it, if something did."""
        run = self._run
        if run is None or not run.wait(0):
            return None
        self._run = None
        return run.settle(ledger)[1]

    def running(self, key: str) -> Run | None:
        """The call that is under way for a key, or has ended and was not collected yet."""
        return self._run if self._run is not None and self._run.key == key else None

    def keep(self, run: Run) -> None:
        """Look after a call that nobody waits for any more, so that its text is kept should it still come.

        Where another is under way, it is let go: one worker is enough.
        """
        if self._run is None:
            self._run = run

    def release(self, run: Run) -> None:
        """Let go of a call: its end is on record."""
        if self._run is run:
            self._run = None

    def close(self, ledger: Ledger) -> SummaryFailure | None:
        """Put on record what has come, or that it did not. Waits for nothing; what comes later is lost."""
        run, self._run = self._run, None
        return None if run is None else run.settle(ledger, unfinished="the session was closed before it came")[1]
