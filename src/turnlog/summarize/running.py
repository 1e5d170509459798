"""A call of a summarizer in a thread of its own, so that the caller need not wait for it."""

from __future__ import annotations

import threading
import time

from .._platform.exceptions import described
from .awaiting import Awaited
from .ledger import Ledger, settle
from .protocol import Material, Summarizer
from .verdict import SummaryFailure, fault_of


class RunningCall:
    """A running call of a summarizer, for a key that the creator of this object has claimed. It starts when it is
    created, or `pause` seconds later.

    An asynchronous summarizer is awaited in the event loop of the task that waits for a request, if there is one, and
    cancelled if nobody waits any more. The thread does not use the store; the owner of this object records how the call
    ended (`settle`). The thread is a daemon, so it does not keep the process alive. `given_up`: somebody waited for it
    without success. Raises RuntimeError if no thread can be started.
    """

    def __init__(self, summarizer: Summarizer, material: Material, key: str, *, pause: float = 0.0) -> None:
        self.key = key
        self.given_up = False
        self._summarizer = summarizer.id
        self._text = ""
        self._failure: SummaryFailure | None = None
        self._failed_before = False
        self._done = threading.Event()
        self._awaited = Awaited()
        threading.Thread(
            target=self._work, args=(summarizer, material, pause), name="turnlog-summary", daemon=True
        ).start()

    def wait(self, seconds: float) -> bool:
        """Wait until the call ends, at most `seconds`. Returns whether it has ended."""
        return self._done.wait(seconds)

    def settle(self, ledger: Ledger, *, unfinished: str = "") -> tuple[str, SummaryFailure | None]:
        """Record how the call ended. If it has not ended, record a failure with `unfinished` as the reason.

        Returns the text, "" if there is none, and the failure, None if there is none. A text that comes after a
        recorded failure is recorded too; a second failure is not.
        """
        if not self._done.is_set():
            self.given_up = True
            self._awaited.cancel()
            failure: SummaryFailure | None = SummaryFailure(self._summarizer, "timeout", unfinished)
        else:
            failure = self._failure
        if failure is None:
            return self._text, settle(ledger, self.key, (self._summarizer, self._text))
        if not self._failed_before:
            self._failed_before = True
            failure = settle(ledger, self.key, failure)
        return "", failure

    def _work(self, summarizer: Summarizer, material: Material, pause: float) -> None:
        time.sleep(pause)
        try:
            text = self._awaited.result(lambda: summarizer.summarize(material))
            fault = fault_of(text, material)
            if fault is None:
                self._text = text.strip()
            else:
                self._failure = SummaryFailure(self._summarizer, *fault)
        except BaseException as error:  # noqa: BLE001 - whatever the caller's function raises becomes a value
            self._failure = SummaryFailure(self._summarizer, "exception", described(error))
        finally:
            self._done.set()
