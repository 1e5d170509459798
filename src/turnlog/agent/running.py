"""Running an agent: for event loops and without, to the end or event by event."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, TypedDict, Unpack

from ..errors import InputError, kind_given, list_given, number_given, text_given
from ..log.messages import Tool
from ..providers.tool_declarations import read_tools
from ..runners.answer_events import Runner
from ..runners.blocking import LoopThread
from ..runners.retrying import RetryingRunner
from ..session.inputs import Content
from ..session.read_back import READ_BACK
from ..session.recall import RECALL
from ..session.recovery import interrupted_turn
from ..session.session import Session
from ..skills.ready import READY
from .functions import FunctionTool
from .loop import Approve, Loop, LoopLimits, same_words
from .values import AgentEvent, RunResult, RunStop

AnyTool = Callable[..., Any] | Tool | Mapping[str, Any]
"""A function, a tool made of one by `turnlog.agent.tool`, or a declaration of a tool that the provider runs."""

_LIBRARY = {READ_BACK.name, RECALL.name, *(one.name for one in READY)}
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
    `turnlog.open`. `tools` are functions: their declarations are made of type hints
    and docstrings; plain functions run in threads, calls of one answer at the same time, at most `parallel` (8). An
    exception of a tool is told to the model. A request that is refused is mended and sent once more, as by
    `turnlog.runners.RetryingRunner`. `approve` is called with a `turnlog.agent.Question` before a tool that
    needs approval runs, and before a call runs again that may have run; it returns True, False, or the reason why not.

    If the newest turn of the session began with the same text and did not come to its end (a crash, an error, a
    limit), it goes on; with None as `text` in any case. A call that may have run then is not run again, unless its
    tool is `repeatable` or `approve` allows it; without `approve` the model is told that it may have run.

    At `max_steps` requests (50), `max_seconds`, or `max_cost` dollars of the turn (checked before each request), the
    turn is cancelled, and `RunResult.stop` says why. Raises InputError, and what the runner raises; the turn has failed
    then, and can go on.
    """
    return await _run(session, text, runner, _hushed, options)


async def astream(
    session: Session, text: Content | None, runner: Runner, **options: Unpack[Options]
) -> AsyncIterator[AgentEvent]:
    """As `arun`, with the same options, but gives every event as it happens; the last one, `done`, has the result. To
    stop early, close the iterator: the turn is cancelled then."""
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
    found: RunResult = _THREAD.wait(_run(session, text, runner, _hushed, options))
    return found


def stream(session: Session, text: Content | None, runner: Runner, **options: Unpack[Options]) -> Iterator[AgentEvent]:
    """As `astream`, without an event loop of your own: to iterate over with `for`."""
    return _THREAD.iterate(astream(session, text, runner, **options))


def _hushed(event: AgentEvent) -> None:
    """Nobody listens."""


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
    """The functions by name. The session declares all tools then, and no other functions: nobody could run those."""
    functions: dict[str, FunctionTool] = {}
    others: list[Any] = []
    for one in list_given("tools", tools, "functions, turnlog.Tool or declarations"):
        if isinstance(one, (Tool, Mapping)):
            others.append(one)
            continue
        made = one if isinstance(one, FunctionTool) else FunctionTool(one)
        if made.name in functions:
            raise InputError(
                f"two tools are called {made.name!r}: give one another name with turnlog.agent.tool(name=)"
            )
        if made.needs_approval and approve is None:
            raise InputError(
                f"tool {made.name!r} needs approval: give approve=, a function that says whether it may run"
            )
        functions[made.name] = made
    wanted = (*read_tools(others), *(made.declaration for made in functions.values()))
    held = session.configuration.tools
    stay = [one for one in held if one in wanted or one.kind != "function" or one.name in _LIBRARY]
    new = [one for one in wanted if one not in held]
    if wanted and (new or len(stay) < len(held)):
        names = {one.name for one in new}
        session.configure(tools=[*(one for one in stay if one.name not in names), *new])
    return functions


def _approver(options: Options) -> Approve | None:
    """Who is asked. Raises InputError for an option that a run does not have: a limit that is spelled wrong would be
    none."""
    for name in options:
        if name not in Options.__annotations__:
            near = get_close_matches(name, Options.__annotations__, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(Options.__annotations__)}"
            raise InputError(f"{name!r} is no option of a run: {meant}")
    approve = options.get("approve")
    if approve is not None and not callable(approve):
        said = "a function that takes a turnlog.agent.Question and returns True, False or a reason"
        raise InputError(f"approve must be {said}, not {approve!r:.100}")
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
