"""One run of a tool, on record from its start to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from .._platform.exceptions import cancellations, described, timed_out
from .._platform.given import text_given
from ..log.messages import Message, Outcome, Text, ToolCall, ToolResult, text_of
from ..log.records import Approval, MessageRecord, Record, ToolFinished
from ..log.validation import check_readable
from ..view.repair.arrange import synthetic_result
from .inputs import Content, parts_of
from .recorder import Journal
from .threads import recorded

_DENIED = "The user did not allow this call; it did not run."


_DENIED_AGAIN = "The call was interrupted. It may have run, wholly or in part; the user did not allow it to run again."


def denied(call: ToolCall, reason: str, *, began: bool) -> ToolResult:
    """The result of a call that may not run or, if it `began` before, may not run again."""
    text = f"{_DENIED_AGAIN if began else _DENIED} {reason}".rstrip()
    outcome: Outcome = "aborted" if began else "canceled"
    return ToolResult(call.id, call.name, (Text(text),), outcome, call.kind, synthetic=True)


class ToolRun:
    """The run of a tool: `Turn.tool`. `start` records its beginning.

    An exception passes through; it is recorded as `timeout` if it says so, as `aborted` (the tool may have run) if it
    came from outside (Ctrl-C, a cancelled task), else as `failed`. Unless a result was given, the model is told of it.
    `start` records the start, `ended` is called when the end is on record.
    """

    def __init__(
        self, journal: Journal, call: ToolCall, start: Callable[[ToolCall], Record], ended: Callable[[], object]
    ) -> None:
        self.call = call
        self._journal = journal
        self._start = start
        self._ended = ended
        self._result: tuple[Content, Outcome] | None = None
        self.waits_for: str | None = None
        """Why the call waits for an approval of something in it, if it does; "" if it is left as it is."""
        self._begun = 0.0
        self._record = 0  # of the call, which the tool may change

    def __repr__(self) -> str:
        return f"ToolRun({self.call.name} {self.call.id})"

    def __enter__(self) -> Self:
        self._record = self._journal.record_of(self.call)
        self._start(self.call)
        self._begun = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.waits_for is not None and error is None:
            if self.waits_for:
                self._journal.append(Approval(self.call.id, "asked", self._record, reason=self.waits_for))
            return
        seconds = round(time.perf_counter() - self._begun, 3)
        outcome: Outcome = self._result[1] if self._result else "ok"
        reason = ""
        if error is not None:
            outside = not isinstance(error, Exception) or bool(cancellations(error))
            outcome = "timeout" if timed_out(error) else "aborted" if outside else "failed"
            reason = described(error)
        finished = ToolFinished(self.call.id, self._record, outcome, seconds, reason)
        result = self._told(outcome, reason)
        self._journal.append(finished, *([] if result is None else [MessageRecord(Message("user", (result,)))]))
        self._ended()

    async def __aenter__(self) -> Self:
        try:
            return await recorded(self.__enter__)
        except BaseException as error:  # the task was cancelled: the tool is not going to run
            if self._begun:
                await self.__aexit__(type(error), error, error.__traceback__)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await recorded(partial(self.__exit__, kind, error, trace))

    def result(self, content: Content, *, outcome: Outcome = "ok") -> None:
        """Set what the tool returned, or what it said of its failure; recorded when the block ends."""
        result = self._journal.result_of(self.call, content, outcome)  # wrong content is refused here, not at the end
        if not isinstance(content, str):
            check_readable(MessageRecord(Message("user", (result,))))
        self._result = (content, result.outcome)

    def wait(self, reason: str) -> None:
        """End the block without a result: something in the call waits for an approval, and so the call does; with "" as
        the reason, the call only stays open."""
        self.waits_for = text_given("reason", reason)

    def untold(self, reason: str) -> None:
        """Report that the tool returned a value that no model can be told: the result is `failed` and says so, and the
        event `warning` tells the developer. `reason` is a sentence that names the value."""
        text_given("reason", reason)
        self.result(f"The tool ran, but its result cannot be shown: {reason}", outcome="failed")
        self._journal.warn(f"tool {self.call.name!r}, call {self.call.id!r}: {reason}")

    def _told(self, outcome: Outcome, reason: str) -> ToolResult | None:
        """The result for the model: the one that was given, however the block ended. After an exception its text is
        added, unless the result already reports a failure."""
        failed = self._failed(outcome, reason) if reason else ()
        if self._result is None:
            if not failed:
                return None
            return ToolResult(self.call.id, self.call.name, failed, outcome, self.call.kind, synthetic=True)
        content, given_outcome = self._result
        if not failed or given_outcome != "ok":
            return self._journal.result_of(self.call, content, given_outcome)
        return self._journal.result_of(self.call, [*parts_of(content), *failed], outcome)

    def _failed(self, outcome: Outcome, reason: str) -> tuple[Text, ...]:
        """The text about an exception for the model; after a time limit it says that the tool may have run all the
        same."""
        if outcome == "timeout":
            notice = text_of(Message("user", synthetic_result(self.call, outcome).parts))
            return (Text(f"{notice} {reason}" if ": " in reason else notice),)
        return (Text(f"The tool failed: {reason}"),) if outcome == "failed" else ()
