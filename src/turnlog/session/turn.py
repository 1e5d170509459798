"""A turn in progress: opened with the user's message, closed whatever happens in between."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from .._platform.exceptions import cancellations, described
from .._platform.given import text_given
from ..errors import InputError, TurnCancelled
from ..log.messages import Message, Outcome, ToolCall, ToolResult
from ..log.records import (
    Approval,
    Body,
    FileChange,
    MessageRecord,
    PartialAnswer,
    Record,
    ToolStarted,
    TurnClosed,
    TurnOpened,
)
from ..models.target import Target
from ..providers.protocol import Delta
from ..requests.request import Request
from ..view.fold import is_answer
from ..view.tool_calls import CallInfo, calls_of, unanswered
from ..view.turns import TurnInfo, turns_of
from ..workspace.diff import NetChange, net_changes
from ..workspace.watch import FileRecorder
from .answer import GONE, Answer, Receiving, is_stream
from .inputs import Content, parts_of
from .open_turn import OpenTurn
from .parts import Parts
from .reader import SessionLog
from .recorder import asynchronous, is_whole
from .recovery import Calls, calls_given, resumption, told
from .threads import closed, in_thread, recorded
from .tool_run import ToolRun, denied

# -- breaks ----------------------------------------------------------------------------------------
#
# How the answers of a turn broke off.


class Breaks:
    """Whether the last answer of a turn broke off, and why. An error in a stream counts even if the program catches it;
    `is_asked` is False if the stream was refused before anything was read from it."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log
        self._reason = ""
        self._last = 0  # number of the last record then
        self.is_asked = False

    def received(self, answer: Answer, *, late: bool = False) -> None:
        """Take in an answer that was recorded; with `late`, there may be later ones."""
        body = answer.record.body
        self._reason = body.reason if isinstance(body, PartialAnswer) else ""
        self._last = answer.record.n if late else self._last

    def broke(self, error: BaseException, first: int) -> None:
        """Take in that the stream which was received ended with an error; `first` is a record before it."""
        if self.is_asked:
            self._reason = described(error)
            self._last = max(record.n for record in self._log.records(first))

    @contextmanager
    def of_stream(self, first: int) -> Iterator[None]:
        """A context manager around a stream that is received."""
        self.is_asked = False
        try:
            yield
        except BaseException as error:
            self.broke(error, first)
            raise

    @property
    def reason(self) -> str:
        """Why the last answer broke off; empty if it did not, or if a whole answer was recorded after it."""
        if not self._reason:
            return ""
        since = self._log.records(self._last + 1)
        answered = any(isinstance(record.body, MessageRecord) and is_answer(record) for record in since)
        return "" if answered else self._reason


_LONG_LOOK_SECONDS = 0.25
_LOOKS = 20
"""Where a look at a watched folder takes that long, a turn looks by itself at most a twentieth of the time."""

_WAITS = "awaiting_approval"
"""How a turn ends that is not closed: it goes on when its calls are approved or denied, in whatever process."""

_NOT_BEGUN = "the turn has not begun: use it as `with session.turn(...) as turn`"


class Turn:
    """A turn of a session, made by `Session.turn`: a context manager.

    On leaving it is closed as completed, as failed (an exception, which goes on), or as cancelled (`cancel`, Ctrl-C, a
    cancelled task). If its calls without a result only wait for approvals, it stays open on record, and goes on when
    somebody has approved or denied them (see `Session.pending`). `answer` is the last answer that was received in it.
    """

    def __init__(
        self,
        parts: Parts,
        request: Callable[[Target | None], Request],
        slot: OpenTurn,
        content: Content | None,
        watch: str | Path | None,
        calls: Calls = "answer",
    ) -> None:
        self._parts = parts
        self._log = parts.log
        self._journal = parts.journal
        self._request = request
        self._slot = slot
        self._input = None if content is None else parts_of(content)
        if any(isinstance(part, ToolResult) for part in self._input or ()):
            raise InputError("turns begin with what a user says; results of tools go to tool_result()")
        calls_given(calls)
        self._calls = calls
        self._watch = watch
        self._id = ""
        self._stack = ExitStack()
        self._opened = 0  # number of the record that opened it
        self._resumed = 0  # number of the record from which it goes on, if an earlier process began it
        self._over = ""  # how it ended
        self._cancelled: str | None = None  # why it is to end
        self._next_look = 0.0  # on the monotonic clock
        self._breaks = Breaks(parts.log)
        self._reading: list[AsyncGenerator[Delta, None]] = []
        self._prepare: Callable[[], object] = lambda: None  # done when its time has come, before it is opened
        self.answer: Answer | None = None

    def __repr__(self) -> str:
        return f"Turn({self.id}, {self._over or self.status})" if self._opened else "Turn(not begun)"

    # -- opening and closing ---------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._check_unused()
        self._slot.take(self)
        return self._begin()

    def _check_unused(self) -> None:
        if self._opened:
            raise InputError(f"turn {self.id!r} was entered already: a turn is used once, make another")

    def _begin(self) -> Self:
        self._slot.begin(self)
        if self._over:  # by a listener that was told of what was recovered
            raise InputError("the session was closed while this turn was being opened; open the session again")
        try:
            self._prepare()
            if self._watch is not None:
                files = self._stack.enter_context(self._parts.files(self._watch))
                self._stack.enter_context(files.watch())
            if self._input is None:
                self._journal.append_at(self._resuming)
            else:
                self._parts.prompt.said(self._opening)
        except BaseException:
            self._opened = 0
            self._slot.release(self)
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        causes = cancellations(error)
        ours = bool(causes) and all(cause.turn_id == self.id for cause in causes)
        if self._over or not self._slot.is_ours:  # in a fork, the turn goes on in the parent
            return ours
        try:
            self._stack.close()
            self._parts.checker.look(raises=error is None and self._cancelled is None)
            ending = self._ending(error)
        except BaseException as failed:  # files cannot be read, or records contradict each other: the block ends so
            self._close(*self._ending(error or failed))
            raise
        self._close(*ending)
        return ours

    async def __aenter__(self) -> Self:
        self._check_unused()
        await self._slot.atake(self)
        try:
            return await recorded(self._begin)
        except BaseException as error:  # the task was cancelled, and nobody is going to leave the turn
            if self._opened:
                await recorded(partial(self.__exit__, type(error), error, error.__traceback__))
            raise

    async def _close_streams(self) -> None:
        while self._reading:
            with suppress(RuntimeError):  # another task is in the midst of it; it is told that the answer is recorded
                await self._reading.pop().aclose()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            if not self._over:
                await self._close_streams()
        finally:
            left = await recorded(partial(self.__exit__, kind, error, trace))
        return left

    def cancel(self, reason: str = "") -> None:
        """End the turn as cancelled: a stream that is being received stops at its next chunk, every other method of the
        turn raises TurnCancelled, and its `with` block ends without an exception. May be called from any thread, also
        before the block is entered."""
        text_given("reason", reason)
        if not self._over and self._cancelled is None:
            self._cancelled = reason

    @property
    def begins(self) -> bool:
        """Whether the turn begins with a message of the user, and none goes on."""
        return self._input is not None

    def abandon(self) -> None:
        """Close an open turn as failed, because its session is closed before its `with` block ends."""
        if not self._over and not self._opened:
            self._over = "failed"
            self._slot.release(self)
        elif not self._over:
            try:
                self._stack.close()
            finally:
                self._close("failed", "the session was closed in the midst of it")

    def lose(self) -> None:
        """Leave the turn open on record, because its process is lost."""
        self._over = "lost"
        self._stack.close()

    # -- the model -------------------------------------------------------------------------------

    def request(self, target: Target | None = None) -> Request:
        """The next request, as `Session.request`."""
        self._check()
        return self._request(target)

    async def arequest(self, target: Target | None = None) -> Request:
        """The next request, as `Session.arequest`."""
        self._check()
        return await in_thread(lambda: self._request(target))

    def receive(self, answer: Any, target: Target | Request | None = None) -> Answer:
        """Record a model's answer, as `Session.receive`; `cancel` interrupts a stream."""
        self._check()
        if not is_stream(answer) or hasattr(answer, "__aiter__"):
            received = self._journal.receive(answer, self._asked(target))
        else:
            with self._breaks.of_stream(self._opened):
                received = self._journal.receive(self._until_cancelled(answer), self._asked(target))
        self._received(received)
        self._look()
        return received

    async def areceive(self, answer: Any, target: Target | Request | None = None) -> Answer:
        """Record an answer that is streamed asynchronously or is whole, as `Session.areceive`; `cancel` interrupts a
        stream."""
        self._check()
        if is_whole(answer):
            return await self._areceived(await self._journal.areceive(answer, self._asked(target)))
        chunks = asynchronous(answer, "areceive")
        self._breaks.is_asked = False
        try:
            received = await self._journal.areceive(self._auntil_cancelled(chunks), self._asked(target))
        except BaseException as error:
            await recorded(partial(self._breaks.broke, error, self._opened))
            raise
        return await self._areceived(received)

    def stream(self, chunks: AsyncIterable[Any], target: Target | Request | None = None) -> AsyncGenerator[Delta]:
        """Record an answer that is streamed asynchronously, and give its text as it comes, for `async for`: pieces with
        `text` and `kind` (`text`, `reasoning`). `answer` has it afterwards. If the task is cancelled, what had come is
        recorded and the stream closed at once. If the reading ends early otherwise (`break`), that is done when the
        turn's block ends, because Python does not tell a generator that nobody reads on; or when it is closed: at the
        end of `async with contextlib.aclosing(turn.stream(...)) as deltas`."""
        self._check()
        asynchronous(chunks, "stream")
        deltas = self._streamed(chunks, target)
        self._reading.append(deltas)
        return deltas

    async def _streamed(self, chunks: AsyncIterable[Any], target: Target | Request | None) -> AsyncGenerator[Delta]:
        receiving = self._journal.receiving(self._asked(target))
        self._stack.callback(self._read_no_more, receiving)
        try:
            self._breaks.is_asked = True
            async with receiving:
                async for chunk in chunks:
                    self._check()
                    for delta in await receiving.afeed(chunk):
                        yield delta
        except BaseException as error:
            await recorded(partial(self._breaks.broke, error, self._opened))
            raise
        finally:
            await closed(chunks)
        await self._areceived(receiving.answer)

    def _read_no_more(self, receiving: Receiving) -> None:
        if self._over == "lost":
            receiving.is_over = True
        elif not receiving.is_over:
            receiving.end(GONE)
            self._received(receiving.answer, late=True)

    def look(self) -> None:
        """Record what changed until now in the folder that is watched, if one is; the turn looks by itself when a tool
        has ended, when a result or an answer is recorded, and at its end. May be called from any thread."""
        if self._watch is not None:
            self._parts.watches.look()

    def _look(self) -> None:
        begun = time.monotonic()
        if begun < self._next_look:
            return
        try:
            self.look()
        except Exception as error:  # noqa: BLE001 - what was just recorded is; the turn's end looks again, and raises
            self._journal.warn(f"changes of files are not on record yet: {described(error)}")
        took = time.monotonic() - begun
        self._next_look = begun + _LOOKS * took if took > _LONG_LOOK_SECONDS else 0.0

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
        info = self._open_call(call)
        result = denied(call, reason, began=info is not None and info.started > 0)
        return self._approval(call, "denied", by, reason, MessageRecord(Message("user", (result,))))[0]

    def tool(self, call: ToolCall) -> ToolRun:
        """A context manager around the run of a tool: it is recorded as started, and as finished with how it ended,
        after how long, and the result given to `ToolRun.result`."""
        return ToolRun(self._journal, call, self.tool_started, self._look)

    def tool_started(self, call: ToolCall) -> Record:
        """Record that a tool begins to run. Raises InputError if approval was asked for and not given, for a call that
        has its result already, even from an earlier turn, and for one that another owner of a shared session has
        started."""
        self._check()
        if self._parts.lease.alone:
            self._check_start(call)
            return self._journal.tool_started(call)
        n = self._journal.record_of(call)

        def started(_: int) -> Sequence[Body]:
            self._check_start(call)
            return (ToolStarted(call.id, n, call.name),)

        return self._journal.append_at(started)[0]

    def _check_start(self, call: ToolCall) -> None:
        info = self._open_call(call, earlier=True)
        if info is not None and info.started > max(self._opened, self._resumed) and not self._parts.lease.alone:
            raise InputError(f"call {call.id!r} of {call.name!r} was started by another owner, record {info.started}")
        if info is not None and info.result and not info.synthetic:
            raise InputError(f"call {call.id!r} of {call.name!r} has its result already, record {info.result}")
        if info is not None and info.approval in ("asked", "denied"):
            state = "was denied" if info.approval == "denied" else "waits for approval: approve() or deny() it first"
            raise InputError(f"call {call.id!r} of {call.name!r} {state}")

    def tool_result(self, call: ToolCall | str, content: Content = (), *, outcome: Outcome = "ok") -> Record:
        """Record the result of a call, as `Session.tool_result`."""
        self._check()
        recorded_result = self._journal.tool_result(call, content, outcome)
        self._look()
        return recorded_result

    # -- files -----------------------------------------------------------------------------------

    def files(self, root: str | Path = ".") -> FileRecorder:
        """The recorder of changes of files under `root`, as `Session.files`; closed with the turn."""
        self._check()
        return self._stack.enter_context(self._parts.files(root))

    @property
    def changes(self) -> list[NetChange]:
        """The net change of each file in this turn."""
        info = self.info
        records = (record for record in self._log.records(info.first) if record.n <= info.last)
        return net_changes(record for record in records if isinstance(record.body, FileChange))

    # -- figures ---------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The turn's id: the number of the record that opened it, as text. Empty before it is entered."""
        return self._id

    @property
    def info(self) -> TurnInfo:
        """What the log says of this turn so far. Raises InputError before it is entered."""
        if not self._opened:
            raise InputError(_NOT_BEGUN)
        return turns_of(self._log.records(self._opened))[0]

    @property
    def status(self) -> str:
        """`processing`, `awaiting_approval`, `awaiting_tool_result`, `completed`, `failed` or `cancelled`."""
        return "cancelled" if self._cancelled is not None and not self._over else self.info.status

    @property
    def is_cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._cancelled is not None

    @property
    def awaiting(self) -> tuple[CallInfo, ...]:
        """The calls that the turn waits for; `awaits` of each is `approval` or `result`."""
        return self.info.awaiting

    # -- inside ----------------------------------------------------------------------------------

    def _opening(self, n: int) -> Sequence[Body]:
        # before anybody is told of it: whoever listens may ask the turn, cancel it, close the session
        self._opened, self._id = n, str(n)
        watched = "" if self._watch is None else os.path.abspath(self._watch)
        return TurnOpened(self._id, watched), MessageRecord(Message("user", self._input or ()))

    def _resuming(self, n: int) -> Sequence[Body]:
        self._opened, self._id, bodies = resumption(self._log, self._calls, alone=self._parts.lease.alone)
        self._resumed = n
        return bodies

    def _ending(self, error: BaseException | None) -> tuple[str, str]:
        if self._cancelled is not None:
            return "cancelled", self._cancelled
        if error is None and (broken := self._breaks.reason):
            return "failed", f"its last answer broke off: {broken}"
        if error is None:
            info = self.info
            if info.waits_for_approval:
                return _WAITS, ""
            open_calls = unanswered(info.calls)
            if asked := [each for each in open_calls if each.awaits == "approval"]:
                self._journal.warn(
                    f"turn {self.id} ends, and its calls with it, as not all of them wait for approval: nobody can "
                    f"approve any more what is {told(asked)}; ask for the others too, or record their results"
                )
            return "completed", told(open_calls) if open_calls else ""
        # what is no Exception ends a block from outside: Ctrl-C, a cancelled task, sys.exit
        return ("failed" if isinstance(error, Exception) else "cancelled"), described(error)

    def _close(self, status: str, reason: str) -> None:
        self._over = status  # before anybody is told of it: whoever listens may close the session
        try:
            if status != _WAITS:
                self._journal.append(TurnClosed(self.id, status, reason))
        finally:
            self._slot.release(self)

    def _check(self) -> None:
        if not self._opened:
            raise InputError(_NOT_BEGUN)
        if self._over:
            raise InputError(f"turn {self.id!r} is over ({self._over}): open another with session.turn(...)")
        if self._cancelled is not None:
            raise TurnCancelled(self.id, self._cancelled)

    def _asked(self, target: Target | Request | None) -> Target | Request:
        return self._parts.configurer.asked(target)

    def _received(self, answer: Answer, *, late: bool = False) -> Answer:
        self._breaks.received(answer, late=late)
        self.answer = answer
        return answer

    async def _areceived(self, answer: Answer) -> Answer:
        self._received(answer)
        if self._watch is not None:
            await recorded(self._look)
        return answer

    def _until_cancelled(self, chunks: Iterable[Any]) -> Iterator[Any]:
        self._breaks.is_asked = True
        for chunk in chunks:
            self._check()
            yield chunk

    async def _auntil_cancelled(self, chunks: AsyncIterable[Any]) -> Any:
        self._breaks.is_asked = True
        async for chunk in chunks:
            self._check()
            yield chunk

    def _open_call(self, call: ToolCall, *, earlier: bool = False) -> CallInfo | None:
        """What is known of a call of this turn or, with `earlier`, of one before it; None if there is no such call."""
        n = self._journal.record_of(call)
        calls = calls_of(self._log.records(n)) if earlier and n < self._opened else self.info.calls
        return next((info for info in calls if (info.record, info.call.id) == (n, call.id)), None)

    def _approval(
        self, call: ToolCall, state: Literal["asked", "given", "denied"], by: str, reason: str, *more: Body
    ) -> tuple[Record, ...]:
        self._check()
        record = self._journal.record_of(call)

        def said(_: int) -> Sequence[Body]:  # compared with the last record: somebody else may have decided
            info = self._open_call(call)
            refused = info is not None and info.approval == "denied" and info.is_decided
            if info is not None and (info.result or info.started > self._resumed or refused):
                what = f"call {call.id!r} of {call.name!r} can no longer be approved or denied"
                raise InputError(f"{what}: {info.standing}")
            return (Approval(call.id, state, record, by, reason), *more)

        return self._journal.append_at(said)
