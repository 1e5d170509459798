"""Summaries by the provider of a session's model: asked for ahead of need, in a thread, while the conversation goes on.

A program may send the requests itself: then each request carries the one for a compaction until it is answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..errors import InputError, TurnlogError, described
from ..log.records import Body
from ..models.target import Target
from ..requests.request import Request
from ..summarize import ProviderSummarizer, Summarizing
from ..view.compaction.blocks import has_open_call
from .provider_compaction import ProviderCompactions
from .recorder import Journal
from .state import Context

_NEWEST = 100
"""So many of the newest messages are searched for calls without a result."""


class ProviderSummaries:
    """The compactions that one session asks its provider for by itself; at most one at a time."""

    def __init__(self, summarizer: Summarizing, context: Context, journal: Journal) -> None:
        self._send = summarizer.send if isinstance(summarizer, ProviderSummarizer) else None
        self.wanted = self._send is not None or isinstance(summarizer, str)
        self._context = context
        self._journal = journal
        self._compactions: ProviderCompactions = journal.compactions
        self._tried: tuple[int, ...] | None = None  # the decisions in force when it was last tried
        self._offered: Request | None = None
        self._run: _Run | None = None

    def prepare(self, aim: Target, record: Callable[[Body], object]) -> None:
        """Ask for a compaction, unless that was done since the last decision. `record` appends a record. To be called
        by who holds the lock of the context."""
        now = tuple(self._context.decisions)
        if not self.wanted or self._run is not None or self._tried == now:
            return
        if has_open_call(self._context.items[-_NEWEST:]):
            return  # its result would come behind a summary that has the call
        self._tried = now
        try:
            request = self._compactions.request(aim, record)
        except InputError:  # its model cannot be asked
            return
        if self._send is None:
            self._offered = request
            return
        try:
            self._run = _Run(self._send, request)
        except RuntimeError as error:  # no thread can be started
            self._compactions.give_up(request, str(error), record)

    def offer(self, request: Request) -> Request:
        """The request with the one for a compaction, if the program sends these itself."""
        offered = self._offered
        if offered is not None and self._compactions.is_open(offered):
            request.compaction = offered
        return request

    def awaited(self, aim: Target, record: Callable[[Body], object]) -> bool:
        """Whether an answer is under way now that room is needed; it is asked for if it was not before."""
        if self._send is not None:
            self.prepare(aim, record)
        return self._run is not None

    def collect(self, seconds: float) -> None:
        """Record the answer if it comes within so many seconds. Not to be called by who holds the lock."""
        run = self._run
        if run is None or not run.wait(seconds):
            return
        self._run = None
        try:
            if run.error:
                raise InputError(run.error)
            self._journal.receive(run.answer, run.request)
        except TurnlogError as error:
            self._compactions.give_up(run.request, str(error), self._journal.append)

    def close(self) -> None:
        """Let go of an answer that is under way."""
        run, self._run = self._run, None
        if run is not None:
            self._compactions.give_up(run.request, "the session was closed before it came", self._journal.append)


class _Run:
    """A request that is sent in a thread. The thread touches nothing of the session."""

    def __init__(self, send: Callable[[Request], Any], request: Request) -> None:
        self.request = request
        self.answer: Any = None
        self.error = ""
        self._send = send
        self._done = threading.Event()
        threading.Thread(target=self._work, name="turnlog-compaction", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether the answer has come, or failed to come, within so many seconds."""
        return self._done.wait(seconds)

    def _work(self) -> None:
        try:
            self.answer = self._send(self.request)
        except BaseException as error:  # noqa: BLE001 - whatever the caller's function raises becomes a value
            self.error = described(error)
        finally:
            self._done.set()
