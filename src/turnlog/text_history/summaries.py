"""Summaries of the older messages of a text history, made by a model in the background.

No prompt waits for one. A summary covers the messages from the first to some number; those after it are shown,
shortened, until the next summary covers them too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ..errors import InputError
from ..summarize import Background, Complete, Ledger, Material, MemoryLedger, Summarizer, as_ladder, key_of
from ..summarize.ledger import outcome_of
from ..view.types import Shown

_GROWN = 1_000
"""Tokens of messages that no summary covers before the next one is asked for."""


class Summaries:
    """The summaries of one conversation. Without a summarizer there are none."""

    def __init__(self, summarizer: Summarizer | Complete | None, ledger: Ledger | None, timeout: float) -> None:
        self._summarizer = next(iter(as_ladder(summarizer)), None)
        self._ledger = MemoryLedger() if ledger is None else ledger
        self._timeout = timeout
        self._background = Background()
        self._pending: tuple[str, tuple[Shown, ...], float] | None = None
        self._asked: tuple[Shown, ...] = ()
        self._covered: tuple[Shown, ...] = ()
        self._text = ""

    def forget(self) -> None:
        """Begin another conversation. A summary in the making is not used."""
        self._background.close(self._ledger)
        self._pending = None
        self._asked = self._covered = ()
        self._text = ""

    def of(self, older: Sequence[Shown]) -> tuple[str, int]:
        """A summary of the oldest of these messages, and how many of them it covers; "" and 0 if there is none."""
        if self._text and tuple(older[: len(self._covered)]) == self._covered:
            return self._text, len(self._covered)
        return "", 0

    def collect(self) -> str:
        """Take the summary that was asked for, if it has come. Returns why there will be none, else ""."""
        if self._pending is None:
            return ""
        key, messages, began = self._pending
        failure = self._background.collect(self._ledger)
        found = outcome_of(self._ledger.find(key))
        if found is not None and found[1].state == "made":
            self._pending, self._covered, self._text = None, messages, found[1].text
            return ""
        if failure is None and self._background.running(key) is not None:
            if time.monotonic() - began < self._timeout:
                return ""
            failure = self._background.close(self._ledger)
        self._pending = None
        return str(failure) if failure is not None else "another process was to make it"

    def prepare(
        self, older: Sequence[Shown], size: Callable[[Sequence[Shown]], int], tokens: int, count: Callable[[str], int]
    ) -> str:
        """Ask for a summary of these messages of at most `tokens` tokens, unless one is being made, or those that none
        covers are few. `size` gives the tokens of messages. Returns at once: why it cannot be asked for, else ""."""
        if self._summarizer is None or self._pending is not None:
            return ""
        text, covered = self.of(older)
        asked = len(self._asked) if tuple(older[: len(self._asked)]) == self._asked else 0
        if size(older[max(covered, asked) :]) < _GROWN:
            return ""
        material = Material(
            messages=tuple(older),
            target=tokens,
            count=count,
            previous=text,
            news=tuple(older[covered:]),
            size=size(older),
        )
        self._asked = material.messages
        try:
            key = key_of(self._summarizer.id, material)
        except InputError as error:  # a message that cannot be recorded
            return str(error)
        failure = self._background.start(material, self._summarizer, self._ledger, key=key)
        self._pending = key, material.messages, time.monotonic()
        return "" if failure is None else str(failure)
