"""Runs an agent: with or without an event loop, to the end or event by event."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from subprocess import CalledProcessError, TimeoutExpired
from typing import Any, TypedDict, Unpack, overload

from msgspec import UNSET
from msgspec.structs import replace

from .._platform.given import is_async, kind_given, text_given
from ..errors import InputError, TurnCancelled
from ..log.messages import Message, Outcome, Text, ToolCall, ToolResult, text_of
from ..log.records import MessageRecord
from ..providers.answer_forms import ANSWER
from ..redaction.redactor import has_mark
from ..requests.request import Request
from ..runners.blocking import LoopThread
from ..runners.protocol import EventReader, Runner, RunnerEvent
from ..runners.retrying import RetryingRunner, TooLongToWait
from ..session.answer import Answer, end_of
from ..session.family import bills_of, can_go_on
from ..session.inputs import Content, parts_of, to_run
from ..session.operations import answer_denied, answer_unfinished, interrupted_turn
from ..session.read_back import READ_BACK
from ..session.recall import RECALL
from ..session.recovery import GOES_ON
from ..session.session import Session
from ..session.turn import Turn
from ..view.tool_calls import CallInfo
from .context import AgentWaits, Caller, ToolContext, in_this_loop
from .functions import FunctionTool, called_in_thread, content_of
from .limits import LoopLimits
from .output import Output, output_given
from .run_tools import AnyTool, RunTools
from .values import LATER, AgentEvent, DoneEvent, LoopEvent, Postponed, Question, RunResult, RunStop, T

# -- loop ------------------------------------------------------------------------------------------
#
# The loop itself: one turn, from what the user says, or from where a crash left it, to the answer.

Decision = bool | str | Postponed
"""Whether a call may run: True, False, or the reason for a refusal, which the model is told; or LATER."""

Approve = Callable[[Question], Decision | Awaitable[Decision]]
"""Decides whether a call may run."""

_AGAIN = "it may have run before the program was interrupted"
_LOST_SECRETS = (
    "The call did not run: marks stand in its arguments in place of secrets that were not kept. Call it again with the "
    "secrets, if you know them, or say what is missing."
)


class Loop:
    """One run of an agent. `tools` are declared, `tell` is called with every event, `deps` is for the contexts of
    tools."""

    def __init__(
        self,
        session: Session,
        runner: Runner,
        tools: RunTools,
        approve: Approve | None,
        limits: LoopLimits,
        tell: Callable[[LoopEvent], object],
        deps: Any = None,
        output: Output | None = None,
        above: ToolContext | None = None,
    ) -> None:
        self._session = session
        retrying = runner if isinstance(runner, RetryingRunner) else RetryingRunner(runner, session)
        self._runner = retrying.during(session, limits.seconds_left, self._wait_told)
        self._tools = tools
        self._approve = approve
        self._limits = limits
        self._tell = tell
        self._deps = deps
        self._output = output
        self._above = above
        self._asking = asyncio.Lock()
        self._waits = False  # whether somebody says later if a call may run
        self._unasked: Exception | None = None  # what `approve` raised, or that an agent's session is in use
        self._inherited = session._store.info(session.id).parent_records  # records of the session it is a fork of
        self._free = asyncio.Semaphore(limits.parallel)
        self.steps = 0
        """The requests that were sent."""

    async def live(self, turn: Turn) -> RunStop:
        """Run until the answer or a limit, and return how the loop ended. At a limit the turn is cancelled."""
        stop: RunStop = "seconds"
        why = ""
        try:
            async with asyncio.timeout(self._limits.seconds) as within:
                self._limits.until = within.when()
                stop = await self._steps(turn)
        except TimeoutError as error:
            if not (within.expired() or isinstance(error, TooLongToWait)):
                raise
            why = f", {error}" if isinstance(error, TooLongToWait) else ""
        if stop in ("steps", "seconds", "cost"):
            limit = getattr(self._limits, stop)
            turn.cancel(f"stopped at the limit of {stop}: {'that of the caller' if limit is None else limit}{why}")
        elif stop == "output":
            turn.cancel("stopped: the answer did not fit the type that was asked for")
        return stop

    async def _steps(self, turn: Turn) -> RunStop:
        while True:
            await self._settle(turn)
            if self._waits:
                return "awaiting_approval"
            done = self._answered(turn)
            if done is not None and (stop := self._ended(turn, done)) is not None:
                return stop
            if self.steps >= self._limits.steps:
                return "steps"
            if self._limits.is_spent(turn, self._tools.functions.values()):
                return "cost"
            self.steps += 1
            answer = await self._ask(turn)
            if not (answer.tool_calls and answer.complete) and (stop := self._ended(turn, answer.stop)) is not None:
                return stop

    def _ended(self, turn: Turn, stop: RunStop) -> RunStop | None:
        """How the run ends after an answer; None if the model is asked again, as its answer is not of the type that was
        asked for."""
        if self._output is None or stop != "end" or self._output.value is not UNSET:
            return stop
        wrong = self._output.take_text(turn.info.answer)
        if not wrong:
            return "end"
        if self._output.retries_left < 0:
            return "output"
        self._session.add(Message("user", (Text(wrong),), by_program=True))
        return None

    def _wait_told(self, seconds: float, text: str) -> None:
        self._tell(LoopEvent(kind="waiting", text=text, seconds=seconds))

    def _answered(self, turn: Turn) -> RunStop | None:
        """How the turn's last answer ended, if a crash came after it and nothing is left to do. A call that gave the
        answer is one."""
        if self._output is not None and (given := self._output.ended_by(turn.info.calls)) is not None:
            return given
        records = reversed(list(self._session.log.records(int(turn.info.first))))
        last = next((record for record in records if record.message is not None), None)
        if last is None or last.message is None or not isinstance(last.body, MessageRecord):
            return None
        if last.message.role != "assistant" or any(isinstance(part, ToolCall) for part in last.message.parts):
            return None
        target = self._session.target
        return "end" if target is None else end_of(last.body.stop, target) or "end"

    # -- the model -------------------------------------------------------------------------------

    async def _ask(self, turn: Turn) -> Answer:
        await self._tools.renew()
        request = await turn.arequest()
        reader = EventReader(request.target)
        answer = await turn.areceive(self._heard(request, reader), request)
        self._pass_on(reader.end())
        return answer

    async def _heard(self, request: Request, reader: EventReader) -> AsyncIterator[Any]:
        """The chunks of an answer, each also reported as events."""
        async for chunk in self._runner.stream(request):
            self._pass_on(reader.feed(chunk))
            yield chunk

    def _pass_on(self, events: Iterable[RunnerEvent]) -> None:
        """Report what is heard of an answer; its end is not that of the loop."""
        for event in events:
            if event.kind != "done":
                self._tell(LoopEvent(kind=event.kind, text=event.text, call=event.call, usage=event.usage))

    # -- tools -----------------------------------------------------------------------------------

    async def _settle(self, turn: Turn) -> None:
        """Give a result to each call that has none, all at the same time. If `approve` raises an error, the others
        first come to their ends."""
        tasks = [asyncio.create_task(self._take(turn, info)) for info in turn.awaiting]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._unasked is not None:
            raise self._unasked

    async def _take(self, turn: Turn, info: CallInfo) -> None:
        """Give a call its result: what the tool returned, or why it did not run."""
        call = to_run(info.call)
        begun = bool(info.started or info.finished)
        if info.approval != "denied" and info.approval_record <= self._inherited:  # one approval allows one run
            info = replace(info, approval="asked" if info.approval else "", approval_record=0)
        if info.approval and self._is_refused(turn, info, call):
            return
        if self._output is not None and call.name == ANSWER:
            wrong = self._output.take_call(call)
            turn.tool_result(call, wrong or "Taken.", outcome="failed" if wrong else "ok")
            self._told(call)
            return
        if not begun and self._is_ready(call):
            return
        wanted = call if begun else self._session.skills.take(call)
        if wanted is None:
            return
        tool, missing = self._tools.found(wanted.name, info.record)
        if tool is None and not begun:
            self._refuse(turn, call, missing)
            return
        goes_on = begun and tool is not None and tool.runs_agent and can_go_on(self._session, info)
        repeatable = goes_on or (tool is not None and tool.repeatable and not tool.runs_agent)
        if tool is None or (begun and not repeatable and self._approve is None):
            answer_unfinished(self._session, (info,))
            self._told(call)
            return
        try:
            arguments = tool.read(to_run(wanted))
        except InputError as error:
            self._refuse(turn, call, str(error))
            return
        if not begun and self._has_lost_secrets(info):
            self._refuse(turn, call, _LOST_SECRETS)
            return
        try:
            if goes_on and info.awaits == "approval":
                turn.approve(call, by=GOES_ON, reason="its agent goes on, and asks again for what is not decided")
            elif self._has_to_ask(tool, info, repeatable=repeatable) and not await self._may_run(turn, info, call):
                return
        except InputError:
            if self._is_refused(turn, info, call):
                return
            raise
        async with self._free:
            await self._run(turn, tool, call, arguments)

    def _has_lost_secrets(self, info: CallInfo) -> bool:
        """Whether marks stand in a call's arguments for secrets that only an earlier process knew."""
        records = self._session.log.records(info.record)
        return has_mark(info.call.raw_arguments) and bool(next(records).redacted)

    def _is_ready(self, call: ToolCall) -> bool:
        """Whether the call is of a tool that is part of the library; it then has its result."""
        if call.name in self._tools.functions:
            return False
        if call.name == READ_BACK.name:
            self._session.answer_read_back(call)
        elif call.name == RECALL.name:
            self._session.answer_recall(call)
        else:
            return False
        self._told(call)
        return True

    def _is_refused(self, turn: Turn, info: CallInfo, call: ToolCall) -> bool:
        """Whether somebody has denied a call by now; it then has its result."""
        now = self._now(turn, info)
        if not (now.approval == "denied" and now.is_decided):
            return False
        answer_denied(self._session, now)
        self._told(call)
        return True

    @staticmethod
    def _now(turn: Turn, info: CallInfo) -> CallInfo:
        return next(known for known in turn.info.calls if (known.record, known.call) == (info.record, info.call))

    @staticmethod
    def _has_to_ask(tool: FunctionTool, info: CallInfo, *, repeatable: bool) -> bool:
        """Whether a call still needs approval before it runs; an agent goes on without."""
        begun = max(info.started, info.finished)
        if (info.approval == "given" and info.approval_record > begun) or (begun and tool.runs_agent and repeatable):
            return False
        return info.approval == "asked" or tool.needs_approval or (begun > 0 and not repeatable)

    async def _may_run(self, turn: Turn, info: CallInfo, call: ToolCall) -> bool:
        begun = bool(info.started or info.finished)
        async with self._asking:  # one question at a time
            if info.awaits != "approval" or not info.approval_record:
                turn.ask_approval(call, reason=_AGAIN if begun else "")
            question = Question(call=call, may_have_run=begun, reason=_AGAIN if begun else "")
            try:
                decision = LATER if self._unasked else await self._asked(question)
            except Exception as error:  # noqa: BLE001 - raised when the other calls have come to their ends
                self._unasked, decision = error, LATER
        if turn.is_cancelled:
            raise TurnCancelled(turn.id, "")
        if decision is not LATER:
            reason = decision if isinstance(decision, str) else ""
            with suppress(InputError):  # somebody else has decided meanwhile: the first one counts
                self._session._decide(info, "given" if decision is True else "denied", "", reason)
        now = self._now(turn, info)
        if now.awaits == "approval":
            self._waits = True
        return not self._is_refused(turn, info, call) and now.approval == "given"

    async def _asked(self, question: Question) -> Any:
        approve = self._approve
        if approve is None:
            name = question.call.name
            raise InputError(f"a call of {name} needs approval: give approve=, a function that says whether it may run")
        returned = approve(question) if is_async(approve) else await called_in_thread(approve, question)
        decision = await returned if inspect.isawaitable(returned) else returned
        if question.fields and isinstance(decision, Mapping):
            return decision
        if not isinstance(decision, (bool, str, Postponed)):
            raise InputError(f"approve must return True, False, a reason or LATER, not {type(decision).__name__}")
        return decision

    async def _run(self, turn: Turn, tool: FunctionTool, call: ToolCall, arguments: Mapping[str, Any]) -> None:
        failed: BaseException | None = None
        self._tell(LoopEvent(kind="tool_started", call=call))
        try:
            async with turn.tool(call) as run:
                try:
                    value = await tool.returned(arguments, self._context(turn, call) if tool.wants_context else None)
                    try:
                        run.result(content_of(value), outcome=value.outcome if isinstance(value, ToolResult) else "ok")
                    except InputError as error:
                        run.untold(str(error))
                except Exception as error:
                    failed = error
                    if isinstance(error, (CalledProcessError, TimeoutExpired)) and (output := _output_of(error)):
                        run.result(output)  # what a command had printed is told beside its end
                    raise
                except AgentWaits as waits:
                    run.wait(str(waits))
                    self._waits, self._unasked = self._waits or bool(str(waits)), self._unasked or waits.error
                    return
        except Exception as error:
            if error is not failed or isinstance(error, TurnCancelled):
                raise
        self._told(call)

    def _context(self, turn: Turn, call: ToolCall) -> ToolContext:
        """What the function of a call may know."""

        def tell(text: str) -> None:
            self._tell(LoopEvent(kind="progress", call=call, text=text))

        session = self._session
        above = self._above
        context = ToolContext(
            session.id,
            call.id,
            labels=session.log.labels,
            deps=self._deps,
            is_cancelled=lambda: turn.is_cancelled or (above is not None and above.cancelled),
            tell=in_this_loop(tell),
            ask=partial(self._asked_in, call),
        )
        is_spent = partial(self._limits.is_spent, turn, self._tools.functions.values())
        asked = None if self._approve is None else self._asked_in_turn
        context.caller = Caller(session, turn, asked, self._limits, is_spent)
        return context

    async def _asked_in_turn(self, question: Question) -> Any:
        async with self._asking:
            return await self._asked(question)

    async def _asked_in(self, call: ToolCall, text: str, fields: Mapping[str, Any]) -> Any:
        """What `approve` answers to what is asked in the middle of a call; None if there is nobody to ask now."""
        question = Question(call=call, reason=text, fields=fields)
        decision = LATER if self._approve is None else await self._asked_in_turn(question)
        return None if decision is LATER else decision

    def _refuse(self, turn: Turn, call: ToolCall, text: str) -> None:
        turn.tool_result(call, text, outcome="failed")
        self._told(call)

    def _told(self, call: ToolCall) -> None:
        """Report the recorded result of a call as an event."""
        for record in self._session.log.newest():
            for part in record.message.parts if record.message is not None else ():
                if isinstance(part, ToolResult) and part.call_id == call.id:
                    text = "".join(content.text for content in part.parts if isinstance(content, Text))
                    outcome: Outcome = part.outcome
                    self._tell(LoopEvent(kind="tool_result", call=call, text=text, outcome=outcome))
                    return


def _output_of(error: CalledProcessError | TimeoutExpired) -> str:
    """What a command printed on both of its streams before it failed or timed out."""
    streams = [stream for stream in (error.output, error.stderr) if stream]
    return "\n".join(
        stream.decode("utf-8", "replace") if isinstance(stream, bytes) else str(stream) for stream in streams
    )


def same_words(session: Session, content: Content, recorded_text: str) -> bool:
    """Whether `content` is the user's input of a turn that is recorded as `recorded_text`."""
    text = text_of(Message("user", parts_of(content)))
    redactor = session.log.redactor
    return recorded_text in (text, text if redactor is None else redactor.text(text)[0])


_THREAD = LoopThread("turnlog-agent")


class Options(TypedDict, total=False):
    """The options of a run, as `run` explains them."""

    system: str | None
    tools: Iterable[AnyTool]
    approve: Approve | Postponed | None
    max_steps: int
    """50 if it is not given."""
    max_seconds: float | None
    max_cost: Decimal | float | None
    parallel: int
    """8 if it is not given."""
    deps: Any
    output_retries: int
    """2 if it is not given."""


@overload
async def arun(
    session: Session, text: Content | None, runner: Runner, *, output: None = None, **options: Unpack[Options]
) -> RunResult[None]: ...
@overload
async def arun(
    session: Session, text: Content | None, runner: Runner, *, output: type[T], **options: Unpack[Options]
) -> RunResult[T]: ...
@overload
async def arun(
    session: Session, text: Content | None, runner: Runner, *, output: Any, **options: Unpack[Options]
) -> RunResult[Any]: ...
async def arun(
    session: Session, text: Content | None, runner: Runner, *, output: Any = None, **options: Unpack[Options]
) -> RunResult[Any]:
    """Say `text` to an agent and run the tools that its model calls, until it has answered. Returns a RunResult.

    For programs with an event loop; the options (`system`, `tools`, `deps`, `parallel`, `approve`, `max_steps`,
    `max_seconds`, `max_cost`, `output`, `output_retries`), errors, and what happens after a crash are those of `run`.
    Cancelling the task cancels the turn.
    """
    return await run_loop(session, text, runner, _hushed, output, options)


async def astream(
    session: Session, text: Content | None, runner: Runner, *, output: Any = None, **options: Unpack[Options]
) -> AsyncIterator[AgentEvent]:
    """Say `text` to an agent and run the tools that its model calls, and give every event as it happens, to iterate
    over with `async for`: each a `LoopEvent`, and last a `DoneEvent` whose `result` is what `arun` returns.

    The options (`system`, `tools`, `deps`, `parallel`, `approve`, `max_steps`, `max_seconds`, `max_cost`, `output`,
    `output_retries`) and errors are those of `run`. Closing the iterator early cancels the turn, as cancelling the task
    does.
    """
    queue: asyncio.Queue[LoopEvent | None] = asyncio.Queue()
    task = asyncio.create_task(run_loop(session, text, runner, queue.put_nowait, output, options))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        yield DoneEvent(result=task.result())
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@overload
def run(
    session: Session, text: Content | None, runner: Runner, *, output: None = None, **options: Unpack[Options]
) -> RunResult[None]: ...
@overload
def run(
    session: Session, text: Content | None, runner: Runner, *, output: type[T], **options: Unpack[Options]
) -> RunResult[T]: ...
@overload
def run(
    session: Session, text: Content | None, runner: Runner, *, output: Any, **options: Unpack[Options]
) -> RunResult[Any]: ...
def run(
    session: Session, text: Content | None, runner: Runner, *, output: Any = None, **options: Unpack[Options]
) -> RunResult[Any]:
    """Say `text` to an agent and run the tools that its model calls, until it has answered. Returns a RunResult.

    `runner` asks the model of the session's target. `system` is the text that the conversation begins with, as for
    `turnlog.open`. `tools` are functions, declared from their type hints and docstrings, what `turnlog.agent.tool`
    makes of them, agents (`as_tool`) and servers (`mcp_server`). Plain functions run in threads, and calls of one
    answer run at the same time, at most `parallel` (8). The model is told of a tool's exception. `deps` is any object,
    for tools that ask for a `turnlog.agent.ToolContext`. A request that is refused, or that a busy server does not
    take, is mended or waited with, and sent again, as by `turnlog.runners.RetryingRunner`. `approve` is called with a
    `turnlog.agent.Question` before a tool that needs approval runs, and before a call that may have run runs again; it
    returns True, False, the reason for a refusal, or `turnlog.agent.LATER` (which may also be given as `approve`
    itself): the other calls come to their ends, and the run ends with the `stop` `awaiting_approval`. `Session.pending`
    then lists what waits; when `Session.approve` or `deny` has decided it, in whatever process, another run with None
    as `text` goes on.

    If the newest turn of the session began with the same text and is unfinished (a crash, an error, a limit), that turn
    goes on; with None as `text` it goes on in any case. A call that may have run then is not run again, unless its tool
    is `repeatable` or `approve` allows it; without `approve` the model is told that it may have run.

    `output` is the type that the answer has: a msgspec.Struct, dataclass, TypedDict, a model of pydantic, `list[int]`,
    `Literal`, ...; `RunResult.output` is then the answer as that type. The model is asked for it by the provider's own
    setting, or by a tool `answer` where there is none for it. An answer that does not fit is asked for again, with what
    is wrong, at most `output_retries` (2) times; then the turn is cancelled.

    At `max_steps` requests (50), `max_seconds`, or `max_cost` dollars of the turn (checked before each request), the
    turn is cancelled, and `RunResult.stop` says why. Ctrl-C cancels the turn and is raised. Raises InputError and the
    errors of the runner; the turn has then failed and can go on. `arun` is the same for programs with an event loop;
    `stream` and `astream` tell what happens meanwhile.
    """
    result: RunResult[Any] = _THREAD.wait(run_loop(session, text, runner, _hushed, output, options))
    return result


def stream(
    session: Session, text: Content | None, runner: Runner, *, output: Any = None, **options: Unpack[Options]
) -> Iterator[AgentEvent]:
    """Say `text` to an agent and run the tools that its model calls, and give every event as it happens, to iterate
    over with `for`: each a `LoopEvent`, and last a `DoneEvent` whose `result` is what `run` returns.

    The options (`system`, `tools`, `deps`, `parallel`, `approve`, `max_steps`, `max_seconds`, `max_cost`, `output`,
    `output_retries`) and errors are those of `run`. Closing the iterator early cancels the turn. `astream` is for
    programs with an event loop.
    """
    return _THREAD.iterate(astream(session, text, runner, output=output, **options))


def _hushed(event: LoopEvent) -> None:
    """Ignore an event: nobody listens."""


async def run_loop(
    session: Session,
    text: Content | None,
    runner: Runner,
    tell: Callable[[LoopEvent], object],
    output: Any,
    options: Options,
    above: ToolContext | None = None,
) -> RunResult[Any]:
    """As `arun`, with what is to be told of each event; `above` is the call that runs this agent, if one does."""
    kind_given("session", session, Session, "what turnlog.open returns: run(session, text, runner)")
    if not hasattr(runner, "stream") or not hasattr(runner, "aclose"):
        raise InputError(f"runner must be a runner, such as turnlog.runners.SdkRunner(), not {type(runner).__name__}")
    approve = _approver(options)
    limits = LoopLimits(session, options, None if above is None else above.caller)
    typed = output_given(output, options.get("output_retries", 2))
    if (system := options.get("system")) is not None:
        text_given("system", system)
    tools = RunTools(session, options.get("tools", ()), asks=approve is not None)
    await tools.read()
    if typed is not None and ANSWER in tools.functions:
        raise InputError(f"with output=, the tool {ANSWER!r} takes the answer: give yours another name")
    left = interrupted_turn(session)
    goes_on = text is None or (left is not None and same_words(session, text, left.input))
    loop = Loop(session, runner, tools, approve, limits, tell, options.get("deps"), typed, above)

    def prepare() -> None:  # not before another turn has ended, which may be that of another run
        if system is not None:
            session._configurer.begin_with(system)
        tools.declare()
        session._configurer.ask_for(None if typed is None else typed.schema)

    stop: RunStop = "interrupted"  # if somebody cancels the turn
    waiting = session.turn(None if goes_on else text, calls="run")
    waiting._prepare = prepare
    async with waiting as turn:
        stop = await loop.live(turn)
        session._configurer.ask_for(None)
    info = turn.info
    value = None if typed is None else typed.value
    agents = bills_of(session, info.calls) if any(tool.runs_agent for tool in tools.functions.values()) else {}
    return RunResult(text=info.answer, stop=stop, turn=info, steps=loop.steps, agents=agents, value=value)


def _approver(options: Options) -> Approve | None:
    """The `approve` option. Raises InputError for an unknown option, as a misspelled limit would have no effect."""
    for name in options:
        if name not in Options.__annotations__:
            near = get_close_matches(name, Options.__annotations__, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(Options.__annotations__)}"
            raise InputError(f"{name!r} is not an option of a run: {meant}")
    approve = options.get("approve")
    if isinstance(approve, Postponed):
        return lambda question: LATER
    if approve is not None and not callable(approve):
        expected = "a function that takes a turnlog.agent.Question and returns True, False, a reason or LATER; or LATER"
        raise InputError(f"approve must be {expected}, not {approve!r:.100}")
    return approve
