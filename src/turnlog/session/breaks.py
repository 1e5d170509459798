"""How the answers of a turn broke off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import described
from ..log.records import MessageRecord, PartialAnswer
from ..view.fold import is_answer
from .answer import Answer
from .reader import SessionLog


class Breaks:
    """Whether the last answer of a turn broke off, and why. A stream that breaks leaves an answer that broke off,
    whoever catches its error; `is_asked` is False for one that was refused before it was asked for anything."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._reason = ""
        self._last = 0  # number of the last record then
        self.is_asked = False

    def received(self, answer: Answer, *, late: bool = False) -> None:
        """An answer is on record; if `late`, others may be behind it."""
        body = answer.record.body
        self._reason = body.reason if isinstance(body, PartialAnswer) else ""
        self._last = answer.record.n if late else self._last

    def broke(self, error: BaseException, first: int) -> None:
        """The stream that was received ended with an error; `first` is a record before it."""
        if self.is_asked:
            self._reason = described(error)
            self._last = max(record.n for record in self._log.records(first))

    @contextmanager
    def of_stream(self, first: int) -> Iterator[None]:
        """Around a stream that is received."""
        self.is_asked = False
        try:
            yield
        except BaseException as error:
            self.broke(error, first)
            raise

    @property
    def reason(self) -> str:
        """Why the last answer broke off; empty if it did not, or if a whole one came behind it, by whatever way."""
        if not self._reason:
            return ""
        since = self._log.records(self._last + 1)
        answered = any(isinstance(record.body, MessageRecord) and is_answer(record) for record in since)
        return "" if answered else self._reason
