"""Runs an agent: with or without an event loop, to the end or event by event."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from subprocess import CalledProcessError, TimeoutExpired
from typing import Any, TypedDict, Unpack

from msgspec import Struct

from .._platform.given import is_async, kind_given, list_given, number_given, text_given
from ..errors import InputError, TurnCancelled
from ..log.messages import Message, Outcome, Text, Tool, ToolCall, ToolResult, text_of
from ..log.records import MessageRecord
from ..providers.tool_declarations import read_tools
from ..requests.request import Request
from ..runners.blocking import LoopThread
from ..runners.protocol import EventReader, Runner
from ..runners.retrying import RetryingRunner
from ..session.answer import Answer, end_of
from ..session.inputs import Content, parts_of, to_run
from ..session.operations import answer_unfinished, interrupted_turn
from ..session.read_back import READ_BACK
from ..session.recall import RECALL
from ..session.session import Session
from ..session.turn import Turn
from ..skills.ready import READY
from ..view.tool_calls import CallInfo
from .functions import FunctionTool, called_in_thread, content_of
from .values import AgentEvent, Question, RunResult, RunStop

# -- loop ------------------------------------------------------------------------------------------
#
# The loop itself: one turn, from what the user says, or from where a crash left it, to the answer.

Approve = Callable[[Question], bool | str | Awaitable[bool | str]]
"""Decides whether a call may run: True, False, or the reason for a refusal, which the model is told."""

_AGAIN = "it may have run before the program was interrupted"


class LoopLimits(Struct, frozen=True):
    """Limits of a loop: `steps` requests, `seconds`, a `cost` in dollars for the whole turn, and `parallel` calls at
    the same time."""

    steps: int
    seconds: float | None
    cost: Decimal | None
    parallel: int


class Loop:
    """One run of an agent. `tools` are the functions by name, `tell` is called with every event."""

    def __init__(
        self,
        session: Session,
        runner: Runner,
        tools: Mapping[str, FunctionTool],
        approve: Approve | None,
        limits: LoopLimits,
        tell: Callable[[AgentEvent], object],
    ) -> None:
        self._session = session
        self._runner = runner
        self._tools = tools
        self._approve = approve
        self._limits = limits
        self._tell = tell
        self._asking = asyncio.Lock()
        self._free = asyncio.Semaphore(limits.parallel)
        self.steps = 0
        """The requests that were sent."""

    async def live(self, turn: Turn) -> RunStop:
        """Run until the answer or a limit, and return how the loop ended. At a limit the turn is cancelled."""
        stop: RunStop = "seconds"
        try:
            async with asyncio.timeout(self._limits.seconds) as within:
                stop = await self._steps(turn)
        except TimeoutError:
            if not within.expired():
                raise
        if stop in ("steps", "seconds", "cost"):
            turn.cancel(f"stopped at the limit of {stop}: {getattr(self._limits, stop)}")
        return stop

    async def _steps(self, turn: Turn) -> RunStop:
        while True:
            await self._settle(turn)
            done = self._answered(turn)
            if done is not None:
                return done
            if self.steps >= self._limits.steps:
                return "steps"
            if self._limits.cost is not None and self._spent(turn) >= self._limits.cost:
                return "cost"
            self.steps += 1
            answer = await self._ask(turn)
            if not (answer.tool_calls and answer.complete):
                return answer.stop

    def _spent(self, turn: Turn) -> Decimal:
        cost = turn.info.cost
        if cost.incomplete:
            raise InputError("max_cost: more was billed in this turn than its transcript says; start another turn")
        if cost.unpriced:
            models = ", ".join(cost.unpriced)
            raise InputError(f"max_cost: the price of {models} is not known; add it to the table of models")
        return cost.at_least

    def _answered(self, turn: Turn) -> RunStop | None:
        """How the turn's last answer ended, if a crash came after it and nothing is left to do."""
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
        request = await turn.arequest()
        reader = EventReader(request.target)
        answer = await turn.areceive(self._heard(request, reader), request)
        for event in reader.end():
            if event.kind != "done":
                self._tell(AgentEvent(kind=event.kind, text=event.text, call=event.call, usage=event.usage))
        return answer

    async def _heard(self, request: Request, reader: EventReader) -> AsyncIterator[Any]:
        """The chunks of an answer, each also reported as events."""
        async for chunk in self._runner.stream(request):
            for event in reader.feed(chunk):
                self._tell(AgentEvent(kind=event.kind, text=event.text, call=event.call, usage=event.usage))
            yield chunk

    # -- tools -----------------------------------------------------------------------------------

    async def _settle(self, turn: Turn) -> None:
        """Give a result to each call that has none, all at the same time."""
        tasks = [asyncio.create_task(self._take(turn, info)) for info in turn.awaiting]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _take(self, turn: Turn, info: CallInfo) -> None:
        """Give a call its result: what the tool returned, or why it did not run."""
        call = to_run(info.call)
        begun = bool(info.started or info.finished)
        if not begun and self._is_ready(call):
            return
        wanted = call if begun else self._session.skills.take(call)
        if wanted is None:
            return
        tool = self._tools.get(wanted.name)
        if tool is None and not begun:
            names = ", ".join(sorted(self._tools)) or "none"
            self._refuse(turn, call, f"There is no tool {wanted.name!r}; the tools are: {names}.")
            return
        if tool is None or (begun and not tool.repeatable and self._approve is None):
            answer_unfinished(self._session, (info,))
            self._told(call)
            return
        try:
            arguments = tool.read(to_run(wanted))
        except InputError as error:
            self._refuse(turn, call, str(error))
            return
        if self._has_to_ask(tool, info) and not await self._may_run(turn, info, call):
            return
        async with self._free:
            await self._run(turn, tool, call, arguments)

    def _is_ready(self, call: ToolCall) -> bool:
        """Whether the call is of a tool that is part of the library; it then has its result."""
        if call.name in self._tools:
            return False
        if call.name == READ_BACK.name:
            self._session.answer_read_back(call)
        elif call.name == RECALL.name:
            self._session.answer_recall(call)
        else:
            return False
        self._told(call)
        return True

    @staticmethod
    def _has_to_ask(tool: FunctionTool, info: CallInfo) -> bool:
        """Whether a call still needs approval before it runs."""
        begun = max(info.started, info.finished)
        if info.approval == "given" and info.approval_record > begun:
            return False
        return info.approval == "asked" or tool.needs_approval or (begun > 0 and not tool.repeatable)

    async def _may_run(self, turn: Turn, info: CallInfo, call: ToolCall) -> bool:
        begun = bool(info.started or info.finished)
        async with self._asking:  # one question at a time
            if info.awaits != "approval":
                turn.ask_approval(call, reason=_AGAIN if begun else "")
            question = Question(call=call, may_have_run=begun, reason=_AGAIN if begun else "")
            decision = await self._asked(question)
        if decision is True:
            turn.approve(call)
            return True
        turn.deny(call, reason=decision if isinstance(decision, str) else "")
        self._told(call)
        return False

    async def _asked(self, question: Question) -> bool | str:
        approve = self._approve
        if approve is None:
            name = question.call.name
            raise InputError(f"a call of {name} needs approval: give approve=, a function that says whether it may run")
        returned = approve(question) if is_async(approve) else await called_in_thread(approve, question)
        decision = await returned if inspect.isawaitable(returned) else returned
        if not isinstance(decision, (bool, str)):
            raise InputError(f"approve must return True, False or a reason, not {type(decision).__name__}")
        return decision

    async def _run(self, turn: Turn, tool: FunctionTool, call: ToolCall, arguments: Mapping[str, Any]) -> None:
        failed: BaseException | None = None
        self._tell(AgentEvent(kind="tool_started", call=call))
        try:
            async with turn.tool(call) as run:
                try:
                    value = await tool.returned(arguments)
                    try:
                        run.result(content_of(value))
                    except InputError as error:
                        run.untold(str(error))
                except Exception as error:
                    failed = error
                    if isinstance(error, (CalledProcessError, TimeoutExpired)) and (output := _output_of(error)):
                        run.result(output)  # what a command had printed is told beside its end
                    raise
        except Exception as error:
            if error is not failed or isinstance(error, TurnCancelled):
                raise
        self._told(call)

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
                    self._tell(AgentEvent(kind="tool_result", call=call, text=text, outcome=outcome))
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


AnyTool = Callable[..., Any] | Tool | Mapping[str, Any]
"""A function, a tool made of one by `turnlog.agent.tool`, or a declaration of a tool that the provider runs."""

_LIBRARY = {READ_BACK.name, RECALL.name, *(tool.name for tool in READY)}
"""Tools that are part of the library."""

_THREAD = LoopThread("turnlog-agent")


class Options(TypedDict, total=False):
    """The options of a run, as `arun` explains them."""

    system: str | None
    tools: Iterable[AnyTool]
    approve: Approve | None
    max_steps: int
    """50 if it is not given."""
    max_seconds: float | None
    max_cost: Decimal | float | None
    parallel: int
    """8 if it is not given."""


async def arun(session: Session, text: Content | None, runner: Runner, **options: Unpack[Options]) -> RunResult:
    """Say `text` to an agent and run the tools that its model calls, until it has answered.

    `runner` asks the model of the session's target. `system` is the text that the conversation begins with, as for
    `turnlog.open`. `tools` are functions, declared from their type hints and docstrings. Plain functions run in
    threads, and calls of one answer run at the same time, at most `parallel` (8). The model is told of a tool's
    exception. A request that is refused, or that a busy server does not take, is mended or waited with, and sent again,
    as by `turnlog.runners.RetryingRunner`. `approve` is called with a `turnlog.agent.Question` before a tool that needs
    approval runs, and before a call that may have run runs again; it returns True, False, or the reason for a refusal.

    If the newest turn of the session began with the same text and is unfinished (a crash, an error, a limit), that turn
    goes on; with None as `text` it goes on in any case. A call that may have run then is not run again, unless its tool
    is `repeatable` or `approve` allows it; without `approve` the model is told that it may have run.

    At `max_steps` requests (50), `max_seconds`, or `max_cost` dollars of the turn (checked before each request), the
    turn is cancelled, and `RunResult.stop` says why. Raises InputError and the errors of the runner; the turn has then
    failed and can go on.
    """
    return await _run(session, text, runner, _hushed, options)


async def astream(
    session: Session, text: Content | None, runner: Runner, **options: Unpack[Options]
) -> AsyncIterator[AgentEvent]:
    """As `arun`, with the same options, but gives every event as it happens; the last one, `done`, has the result.
    Closing the iterator early cancels the turn."""
    queue: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
    task = asyncio.create_task(_run(session, text, runner, queue.put_nowait, options))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        yield AgentEvent(kind="done", result=task.result())
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def run(session: Session, text: Content | None, runner: Runner, **options: Unpack[Options]) -> RunResult:
    """As `arun`, with the same options, without an event loop of your own. Ctrl-C cancels the turn and is raised."""
    result: RunResult = _THREAD.wait(_run(session, text, runner, _hushed, options))
    return result


def stream(session: Session, text: Content | None, runner: Runner, **options: Unpack[Options]) -> Iterator[AgentEvent]:
    """As `astream`, without an event loop of your own: to iterate over with `for`."""
    return _THREAD.iterate(astream(session, text, runner, **options))


def _hushed(event: AgentEvent) -> None:
    """Ignore an event: nobody listens."""


async def _run(
    session: Session,
    text: Content | None,
    runner: Runner,
    tell: Callable[[AgentEvent], object],
    options: Options,
) -> RunResult:
    kind_given("session", session, Session, "what turnlog.open returns: run(session, text, runner)")
    if not hasattr(runner, "stream") or not hasattr(runner, "aclose"):
        raise InputError(f"runner must be a runner, such as turnlog.runners.SdkRunner(), not {type(runner).__name__}")
    approve = _approver(options)
    limits = _limits(options)
    if (system := options.get("system")) is not None:
        session._configurer.begin_with(text_given("system", system))
    functions = _declared(session, options.get("tools", ()), approve)
    left = interrupted_turn(session)
    goes_on = text is None or (left is not None and same_words(session, text, left.input))
    retrying = runner if isinstance(runner, RetryingRunner) else RetryingRunner(runner, session)
    loop = Loop(session, retrying, functions, approve, limits, tell)
    stop: RunStop = "interrupted"  # if somebody cancels the turn
    async with session.turn(None if goes_on else text, calls="run") as turn:
        stop = await loop.live(turn)
    info = turn.info
    return RunResult(text=info.answer, stop=stop, turn=info, steps=loop.steps)


def _declared(session: Session, tools: Iterable[AnyTool], approve: Approve | None) -> dict[str, FunctionTool]:
    """The functions by name. Makes the session declare all of `tools` and no other functions, as nobody could run
    those."""
    functions: dict[str, FunctionTool] = {}
    others: list[Any] = []
    for tool in list_given("tools", tools, "functions, turnlog.Tool or declarations"):
        if isinstance(tool, (Tool, Mapping)):
            others.append(tool)
            continue
        function_tool = tool if isinstance(tool, FunctionTool) else FunctionTool(tool)
        if function_tool.name in functions:
            raise InputError(
                f"two tools are called {function_tool.name!r}: give one another name with turnlog.agent.tool(name=)"
            )
        if function_tool.needs_approval and approve is None:
            raise InputError(
                f"tool {function_tool.name!r} needs approval: give approve=, a function that says whether it may run"
            )
        functions[function_tool.name] = function_tool
    wanted = (*read_tools(others), *(function_tool.declaration for function_tool in functions.values()))
    held = session.configuration.tools
    stay = [tool for tool in held if tool in wanted or tool.kind != "function" or tool.name in _LIBRARY]
    new = [tool for tool in wanted if tool not in held]
    if wanted and (new or len(stay) < len(held)):
        names = {tool.name for tool in new}
        session.configure(tools=[*(tool for tool in stay if tool.name not in names), *new])
    return functions


def _approver(options: Options) -> Approve | None:
    """The `approve` option. Raises InputError for an unknown option, as a misspelled limit would have no effect."""
    for name in options:
        if name not in Options.__annotations__:
            near = get_close_matches(name, Options.__annotations__, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(Options.__annotations__)}"
            raise InputError(f"{name!r} is not an option of a run: {meant}")
    approve = options.get("approve")
    if approve is not None and not callable(approve):
        expected = "a function that takes a turnlog.agent.Question and returns True, False or a reason"
        raise InputError(f"approve must be {expected}, not {approve!r:.100}")
    return approve


def _limits(options: Options) -> LoopLimits:
    steps, parallel = options.get("max_steps", 50), options.get("parallel", 8)
    for name, value in (("max_steps", steps), ("parallel", parallel)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"{name} must be a whole number from 1 on, not {value!r}")
    seconds, cost = options.get("max_seconds"), options.get("max_cost")
    for name, amount in (("max_seconds", seconds), ("max_cost", cost)):
        if amount is not None:
            number_given(name, amount, above=0)
    return LoopLimits(steps, seconds, None if cost is None else Decimal(str(cost)), parallel)
