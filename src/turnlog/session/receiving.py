"""An answer while its chunks come, from whatever kind of stream: recorded when they end, however they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from types import TracebackType
from typing import Any, Self

from ..errors import InputError, described
from ..providers.protocol import Delta
from .answer import Answer
from .checkpoint import Checkpoints
from .threads import recorded

GONE = "whoever read the answer went away"
"""Why an answer was interrupted whose reader stopped reading."""


class Receiving:
    """Takes the chunks of one answer; a context manager around the stream, also with `async`. On leaving, the answer is
    recorded: whole, or what came before the exception that ended it, which goes on.

    `feed` takes a chunk, `keep` records the answer with the reason why it broke off.
    """

    def __init__(
        self, feed: Callable[[Any], Sequence[Delta]], checkpoints: Checkpoints, keep: Callable[[str], Answer]
    ) -> None:
        self._feed = feed
        self._checkpoints = checkpoints
        self._keep = keep
        self._lock = RLock()  # a checkpoint behind the answer would be taken for another answer
        self._answer: Answer | None = None
        self.is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(_reason(error))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await recorded(partial(self.end, _reason(error)))

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take a chunk; returns the text that it adds."""
        deltas = self._taken(chunk)
        self._look()
        return deltas

    async def afeed(self, chunk: Any) -> Sequence[Delta]:
        """As `feed`, and checkpoints are made in a thread."""
        deltas = self._taken(chunk)
        if self._checkpoints.is_due:
            await recorded(self._look)
        return deltas

    def end(self, reason: str = "") -> None:
        """Record the answer, or with `reason` what has come of it. A second call does nothing."""
        with self._lock:
            if not self.is_over:
                self.is_over = True
                self._answer = self._keep(reason)

    def _taken(self, chunk: Any) -> Sequence[Delta]:
        if self.is_over:
            raise InputError("this answer is recorded already; no more of it can be received")
        return self._feed(chunk)

    def _look(self) -> None:
        with self._lock:
            if not self.is_over:
                self._checkpoints.look()

    @property
    def answer(self) -> Answer:
        """The answer on record."""
        assert self._answer is not None
        return self._answer


def _reason(error: BaseException | None) -> str:
    """Why an answer broke off; empty if it did not."""
    return "" if error is None else GONE if isinstance(error, GeneratorExit) else described(error)
