"""An answer while its chunks come, from whatever kind of stream: recorded when they end, however they end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

from ..errors import InputError, described
from ..providers.protocol import Delta
from .answer import Answer

GONE = "whoever read the answer went away"
"""Why an answer was interrupted whose reader stopped reading."""


class Receiving:
    """Takes the chunks of one answer; a context manager around the stream. On leaving, the answer is recorded: whole,
    or what came before the exception that ended it, which goes on.

    `feed` takes a chunk, `look` makes checkpoints, `keep` records the answer with the reason why it broke off.
    """

    def __init__(
        self, feed: Callable[[Any], Sequence[Delta]], look: Callable[[], None], keep: Callable[[str], Answer]
    ) -> None:
        self._feed = feed
        self._look = look
        self._keep = keep
        self._answer: Answer | None = None
        self.is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end("" if error is None else GONE if isinstance(error, GeneratorExit) else described(error))

    def feed(self, chunk: Any) -> Sequence[Delta]:
        """Take a chunk; returns the text that it adds."""
        if self.is_over:
            raise InputError("this answer is recorded already; no more of it can be received")
        deltas = self._feed(chunk)
        self._look()
        return deltas

    def end(self, reason: str = "") -> None:
        """Record the answer, or with `reason` what has come of it. A second call does nothing."""
        if not self.is_over:
            self.is_over = True
            self._answer = self._keep(reason)

    @property
    def answer(self) -> Answer:
        """The answer on record."""
        assert self._answer is not None
        return self._answer
