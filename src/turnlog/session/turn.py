"""A turn while it is lived: opened with what the user said, closed whatever happens in between."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from ..errors import InputError, TurnCancelled, cancellations, described, timed_out
from ..log.messages import Message, Outcome, Text, ToolCall, ToolResult
from ..log.records import (
    Approval,
    Body,
    FileChange,
    MessageRecord,
    PartialAnswer,
    Record,
    ToolFinished,
    TurnClosed,
    TurnOpened,
)
from ..models.target import Target
from ..requests.request import Request
from ..view.tool_calls import CallInfo, calls_of, unanswered
from ..view.turns import TurnInfo, turns_of
from ..workspace.diff import NetChange, net_changes
from ..workspace.watch import FileRecorder
from .answer import Answer, is_stream
from .inputs import Content, parts_of
from .recorder import Journal
from .recovery import told

_DENIED = "The user did not allow this call; it did not run."
_NOT_BEGUN = "the turn has not begun: use it as `with session.turn(...) as turn`"


class Desk(Protocol):
    """What a turn needs of its session."""

    id: str

    def request(self, aim: Target | None = None) -> Request:
        """The next request."""

    def receive(self, answer: Any, aim: Target | None = None) -> Answer:
        """Record a model's answer."""

    async def areceive(self, chunks: AsyncIterable[Any], aim: Target | None = None) -> Answer:
        """Record an answer that is streamed asynchronously."""

    def tool_result(self, call: ToolCall | str, content: Content = (), *, outcome: Outcome = "ok") -> Record:
        """Record the result of a call."""

    def tool_started(self, call: ToolCall) -> Record:
        """Record that a tool begins to run."""

    def files(self, root: str | Path = ".") -> FileRecorder:
        """What records changes of files."""

    def records(self, first: int = 1) -> Iterator[Record]:
        """The records from number `first` on."""

    def take_turn(self, turn: Turn | None) -> None:
        """Have `turn` as the one that is open. Raises InputError if another is."""


class Turn:
    """A turn of a session, made by `Session.turn`: a context manager.

    On leaving it is closed as completed, as failed (an exception, which goes on), or as cancelled (`cancel`, Ctrl-C,
    a cancelled task).
    """

    def __init__(self, desk: Desk, journal: Journal, content: Content, watch: str | Path | None = None) -> None:
        self._desk = desk
        self._journal = journal
        self._parts = parts_of(content)
        if any(isinstance(part, ToolResult) for part in self._parts):
            raise InputError("turns begin with what a user says; results of tools go to tool_result()")
        self._watch = watch
        self._stack = ExitStack()
        self._opened = 0  # number of the record that opened it
        self._over = ""  # how it ended
        self._cancelled: str | None = None  # why it is to end
        self._broken = ""  # why its last answer broke off
        self._broken_at = 0  # number of the last record then
        self._streaming = False  # whether the stream that is received was asked for anything

    # -- opening and closing ---------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self._opened:
            raise InputError(f"turn {self.id!r} was entered already: a turn is used once, make another")
        self._desk.take_turn(self)
        if self._over:  # by a listener that was told of what was recovered
            raise InputError("the session was closed before the turn had begun")
        try:
            if self._watch is not None:
                files = self._stack.enter_context(self._desk.files(self._watch))
                self._stack.enter_context(files.watch())
            self._journal.append_at(self._opening)
        except BaseException:
            self._opened = 0
            self._desk.take_turn(None)
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        found = cancellations(error)
        ours = bool(found) and all(one.turn_id == self.id for one in found)
        if self._over:
            return ours
        try:
            self._stack.close()
            ending = self._ending(error)
        except BaseException as failed:  # what changed in files is not on record, or cannot be read: the block ends so
            self._close(*self._ending(error or failed))
            raise
        self._close(*ending)
        return ours

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return self.__exit__(kind, error, trace)

    def cancel(self, reason: str = "") -> None:
        """End the turn as cancelled: a stream that is being received stops at its next chunk, whatever else is asked
        of the turn raises TurnCancelled, and its `with` block ends quietly. May be called from any thread, also before
        the block is entered."""
        if not self._over and self._cancelled is None:
            self._cancelled = reason

    def abandon(self) -> None:
        """Close a turn whose session goes: it is never left."""
        if not self._over and not self._opened:
            self._over = "failed"
            self._desk.take_turn(None)
        elif not self._over:
            try:
                self._stack.close()
            finally:
                self._close("failed", "the session was closed in the midst of it")

    # -- the model -------------------------------------------------------------------------------

    def request(self, aim: Target | None = None) -> Request:
        """The next request, as `Session.request`."""
        self._check()
        return self._desk.request(aim)

    def receive(self, answer: Any, aim: Target | None = None) -> Answer:
        """Record a model's answer, as `Session.receive`; `cancel` interrupts a stream."""
        self._check()
        if not is_stream(answer) or hasattr(answer, "__aiter__"):
            return self._received(self._desk.receive(answer, aim))
        with self._breaking():
            return self._received(self._desk.receive(self._until_cancelled(answer), aim))

    async def areceive(self, chunks: AsyncIterable[Any], aim: Target | None = None) -> Answer:
        """Record an answer that is streamed asynchronously, as `Session.areceive`; `cancel` interrupts it."""
        self._check()
        with self._breaking():
            return self._received(await self._desk.areceive(self._auntil_cancelled(chunks), aim))

    # -- tools -----------------------------------------------------------------------------------

    def ask_approval(self, call: ToolCall, *, reason: str = "") -> Record:
        """Record that somebody is asked whether a call may run."""
        return self._approval(call, "asked", "", reason)[0]

    def approve(self, call: ToolCall, *, by: str = "", reason: str = "") -> Record:
        """Record that a call may run, asked for or not."""
        return self._approval(call, "given", by, reason)[0]

    def deny(self, call: ToolCall, *, by: str = "", reason: str = "") -> Record:
        """Record that a call may not run. The model is told so, with the reason."""
        self._journal.record_of(call)
        text = f"{_DENIED} {reason}".rstrip()
        result = ToolResult(call.id, call.name, (Text(text),), "canceled", call.kind, synthetic=True)
        return self._approval(call, "denied", by, reason, MessageRecord(Message("user", (result,))))[0]

    def tool(self, call: ToolCall) -> ToolRun:
        """A context manager around the run of a tool: it is recorded as started, and as finished with how it ended,
        after how long, and the result given to `ToolRun.result`."""
        return ToolRun(self, self._journal, call)

    def tool_started(self, call: ToolCall) -> Record:
        """Record that a tool begins to run. Raises InputError if somebody was asked and has not said yes, and for a
        call that has its result, also if that was in an earlier turn."""
        self._check()
        info = self._open_call(call, earlier=True)
        if info is not None and info.result and not info.synthetic:
            raise InputError(f"call {call.id!r} of {call.name!r} has its result already, record {info.result}")
        if info is not None and info.approval in ("asked", "denied"):
            said = "was denied" if info.approval == "denied" else "waits for approval: approve() or deny() it first"
            raise InputError(f"call {call.id!r} of {call.name!r} {said}")
        return self._desk.tool_started(call)

    def tool_result(self, call: ToolCall | str, content: Content = (), *, outcome: Outcome = "ok") -> Record:
        """Record the result of a call, as `Session.tool_result`."""
        self._check()
        return self._desk.tool_result(call, content, outcome=outcome)

    # -- files -----------------------------------------------------------------------------------

    def files(self, root: str | Path = ".") -> FileRecorder:
        """What records changes of files under `root`, as `Session.files`; closed with the turn."""
        self._check()
        return self._stack.enter_context(self._desk.files(root))

    @property
    def changes(self) -> list[NetChange]:
        """What became of each file in this turn, net."""
        info = self.info
        records = (record for record in self._desk.records(info.first) if record.n <= info.last)
        return net_changes(record for record in records if isinstance(record.body, FileChange))

    # -- figures ---------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The turn's id: the number of the record that opened it. Empty before it is entered."""
        return str(self._opened) if self._opened else ""

    @property
    def info(self) -> TurnInfo:
        """What the log says of this turn so far. Raises InputError before it is entered."""
        if not self._opened:
            raise InputError(_NOT_BEGUN)
        return turns_of(self._desk.records(self._opened))[0]

    @property
    def status(self) -> str:
        """Where it stands: a `turnlog.view.turns.TurnStatus`."""
        return "cancelled" if self._cancelled is not None and not self._over else self.info.status

    @property
    def awaiting(self) -> tuple[CallInfo, ...]:
        """The calls that it waits for; `awaits` of each says whether for approval or its result."""
        return self.info.awaiting

    # -- inside ----------------------------------------------------------------------------------

    def _opening(self, n: int) -> Sequence[Body]:
        self._opened = n  # before anybody is told of it: whoever listens may ask the turn, cancel it, close the session
        watched = "" if self._watch is None else os.path.abspath(self._watch)
        return TurnOpened(str(n), watched), MessageRecord(Message("user", self._parts))

    def _ending(self, error: BaseException | None) -> tuple[str, str]:
        if self._cancelled is not None:
            return "cancelled", self._cancelled
        if error is None and self._broken and not self._answered_since():
            return "failed", f"its last answer broke off: {self._broken}"
        if error is None:
            open_calls = unanswered(self.info.calls)
            return "completed", told(open_calls) if open_calls else ""
        # what is no Exception ends a block from outside: Ctrl-C, a cancelled task, sys.exit
        return ("failed" if isinstance(error, Exception) else "cancelled"), described(error).rstrip(": ")

    def _close(self, status: str, reason: str) -> None:
        self._over = status  # before anybody is told of it: whoever listens may close the session
        try:
            self._journal.append(TurnClosed(self.id, status, reason))
        finally:
            self._desk.take_turn(None)

    def _check(self) -> None:
        if not self._opened:
            raise InputError(_NOT_BEGUN)
        if self._over:
            raise InputError(f"turn {self.id!r} is over ({self._over}): open another with session.turn(...)")
        if self._cancelled is not None:
            raise TurnCancelled(self.id, self._cancelled)

    def _received(self, answer: Answer) -> Answer:
        body = answer.record.body
        self._broken = body.reason if isinstance(body, PartialAnswer) else ""
        return answer

    def _answered_since(self) -> bool:
        """Whether a whole answer came behind the one that broke off, by whatever way."""
        bodies = (record.body for record in self._desk.records(self._broken_at + 1))
        return any(isinstance(body, MessageRecord) and body.message.role == "assistant" for body in bodies)

    @contextmanager
    def _breaking(self) -> Iterator[None]:
        """Around a stream: one that breaks leaves an answer that broke off, whoever catches its error. One that was
        refused before it was asked for anything is none."""
        self._streaming = False
        try:
            yield
        except BaseException as error:
            if self._streaming:
                self._broken = described(error)
                self._broken_at = max(record.n for record in self._desk.records(self._opened))
            raise

    def _until_cancelled(self, chunks: Iterable[Any]) -> Iterator[Any]:
        self._streaming = True
        for chunk in chunks:
            self._check()
            yield chunk

    async def _auntil_cancelled(self, chunks: AsyncIterable[Any]) -> Any:
        self._streaming = True
        async for chunk in chunks:
            self._check()
            yield chunk

    def _open_call(self, call: ToolCall, *, earlier: bool = False) -> CallInfo | None:
        """What is known of a call of this turn; if `earlier`, of one before it too."""
        n = self._journal.record_of(call)
        known = calls_of(self._desk.records(n)) if earlier and n < self._opened else self.info.calls
        return next((info for info in known if (info.record, info.call.id) == (n, call.id)), None)

    def _approval(
        self, call: ToolCall, state: Literal["asked", "given", "denied"], by: str, reason: str, *more: Body
    ) -> tuple[Record, ...]:
        self._check()
        info = self._open_call(call)
        if info is not None and (info.result or info.started):
            raise InputError(f"call {call.id!r} of {call.name!r} is past approval: {info.standing}")
        return self._journal.append(Approval(call.id, state, self._journal.record_of(call), by, reason), *more)


class ToolRun:
    """The run of a tool, on record from its start to its end. See `Turn.tool`.

    An exception goes on; it is recorded as `timeout` if it tells of one, as `aborted` (it may have run) if it
    came from outside (Ctrl-C, a cancelled task), else as `failed`. The model is told of it, until a result is recorded.
    """

    def __init__(self, turn: Turn, journal: Journal, call: ToolCall) -> None:
        self.call = call
        self._turn = turn
        self._journal = journal
        self._result: tuple[Content, Outcome] | None = None
        self._begun = 0.0
        self._record = 0  # of the call, which the tool may change

    def __enter__(self) -> Self:
        self._record = self._journal.record_of(self.call)
        self._turn.tool_started(self.call)
        self._begun = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = round(time.perf_counter() - self._begun, 3)
        outcome: Outcome = self._result[1] if self._result else "ok"
        reason = ""
        if error is not None:
            outside = not isinstance(error, Exception) or bool(cancellations(error))
            outcome = "timeout" if timed_out(error) else "aborted" if outside else "failed"
            reason = described(error).rstrip(": ")
        finished = ToolFinished(self.call.id, self._record, outcome, seconds, reason)
        result = self._told(outcome, reason)
        self._journal.append(finished, *([] if result is None else [MessageRecord(Message("user", (result,)))]))

    def _told(self, outcome: Outcome, reason: str) -> ToolResult | None:
        """What the model is told of how it ended: the result that was given, however the block ended after that, and
        of an exception what it was, unless the result tells of a failure in words of its own."""
        failed = (Text(f"The tool failed: {reason}"),) if reason and outcome in ("failed", "timeout") else ()
        if self._result is None:
            if not failed:
                return None
            return ToolResult(self.call.id, self.call.name, failed, outcome, self.call.kind, synthetic=True)
        content, said = self._result
        if not failed or said != "ok":
            return self._journal.result_of(self.call, content, said)
        return self._journal.result_of(self.call, [*parts_of(content), *failed], outcome)

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def result(self, content: Content, *, outcome: Outcome = "ok") -> None:
        """What the tool gave, or said of its failure; recorded when the block ends."""
        self._journal.result_of(self.call, content, outcome)  # wrong content is told here, not at the end
        self._result = (content, outcome)
