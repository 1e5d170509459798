"""A call of a summarizer in a thread of its own, which nobody has to wait for."""

from __future__ import annotations

import threading

from ..errors import described
from .ledger import Ledger, settle
from .protocol import Material, Summarizer
from .verdict import SummaryFailure, fault_of


class Run:
    """Started when it is made, for a key that its maker has claimed.

    The thread computes and touches no store; whoever holds the run records how it ended (`settle`). It is a
    daemon: it keeps no process alive. `given_up` says that somebody waited for it in vain. Raises RuntimeError if
    no thread can be started.
    """

    def __init__(self, summarizer: Summarizer, material: Material, key: str) -> None:
        self.key = key
        self.given_up = False
        self._summarizer = summarizer.id
        self._text = ""
        self._failure: SummaryFailure | None = None
        self._failed_before = False
        self._done = threading.Event()
        threading.Thread(target=self._work, args=(summarizer, material), name="turnlog-summary", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait until it has ended, at most so long; whether it has."""
        return self._done.wait(seconds)

    def settle(self, ledger: Ledger, *, unfinished: str = "") -> tuple[str, SummaryFailure | None]:
        """Put on record how it ended, or that it has not, with `unfinished` as the reason.

        Returns the text, if there is one, and what went wrong, if something did. A text that comes after a
        failure was recorded is recorded too; a second failure is not.
        """
        if not self._done.is_set():
            self.given_up = True
            failure: SummaryFailure | None = SummaryFailure(self._summarizer, "timeout", unfinished)
        else:
            failure = self._failure
        if failure is None:
            return self._text, settle(ledger, self.key, (self._summarizer, self._text))
        if not self._failed_before:
            self._failed_before = True
            failure = settle(ledger, self.key, failure)
        return "", failure

    def _work(self, summarizer: Summarizer, material: Material) -> None:
        try:
            text = summarizer.summarize(material)
            fault = fault_of(text, material)
            if fault is None:
                self._text = text.strip()
            else:
                self._failure = SummaryFailure(self._summarizer, *fault)
        except BaseException as error:  # noqa: BLE001 - whatever somebody's function raises is a value here
            self._failure = SummaryFailure(self._summarizer, "exception", described(error))
        finally:
            self._done.set()
