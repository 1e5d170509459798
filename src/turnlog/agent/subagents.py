"""Agents as tools: a call runs an agent in a child of the calling session, and its answer is the result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Unpack

from msgspec import Meta

from ..errors import InputError, SessionBusy, TurnCancelled
from ..log.budget import Budget
from ..log.records import MessageRecord
from ..models.target import Target
from ..runners.protocol import Runner
from ..session.answer import end_of
from ..session.family import name_for
from ..session.inputs import Content
from ..session.operations import interrupted_turn
from ..session.session import Session
from ..session.threads import recorded
from ..session.turn import Turn
from .context import AgentWaits, ToolContext
from .functions import FunctionTool, called_in_thread
from .output import output_given
from .run_tools import tools_given
from .running import Options, run_loop
from .values import LoopEvent, RunStop

_Task = Annotated[str, Meta(description="What to do, with all that has to be known for it: nothing else is seen.")]
_TOLD = 200
"""At most so many characters of the arguments of an agent's call are told as progress."""


def as_tool(
    name: str,
    description: str,
    *,
    runner: Runner,
    target: Target | None = None,
    budget: Budget | int | None = None,
    output: Any = None,
    needs_approval: bool = False,
    on_demand: bool = False,
    **options: Unpack[Options],
) -> FunctionTool:
    """A tool for `run(..., tools=[...])` that gives a task to another agent. The model writes the `task`; the agent
    works on it in a child of the calling session (`Session.child`), one for each call, and its answer is the result.

    `target` and `budget` are those of the child; without them it has the caller's. `output` and the `options` are those
    of `run`; `approve` and `deps` are the caller's if they are not given, and the caller's `max_cost` and `max_seconds`
    hold for the agent too. If it fails, or reaches a limit, the result has failed and says why. After a crash the call
    goes on where its agent was. Raises InputError.
    """
    output_given(output, options.get("output_retries", 2))
    if not hasattr(runner, "stream") or (wrong := [each for each in options if each not in Options.__annotations__]):
        what = f"{wrong[0]!r} is not an option" if hasattr(runner, "stream") else "runner must be a runner"
        raise InputError(f"the agent {name!r}: {what}; it takes those of run, and target, budget, output")
    tools = tools_given(options.get("tools", ()))

    async def give(task: _Task, context: ToolContext) -> Content | Any:
        caller = context.caller
        if caller is None:
            raise InputError(f"{name} runs an agent: only a run can call it")
        opened: list[Session] = []  # also if the task is cancelled while it is being opened
        try:
            info = next(info for info in caller.turn.awaiting if info.call.id == context.call_id)
            child = await _opened(opened, partial(caller.session.child, name_for(info), target=target, budget=budget))
            stop: RunStop | None = None
            if not _is_done(child):  # it is if a crash came before the result was on record
                given = Options(**{"approve": caller.approve, "deps": context.deps, **options, "tools": tools})
                text = task if interrupted_turn(child) is None else None
                tell = partial(_pass_on, child, context)
                stop = (await run_loop(child, text, runner, tell, output, given, context)).stop
            if stop == "awaiting_approval":
                calls = ", ".join(f"{info.call.name} ({info.call.id})" for info in child.pending())
                raise AgentWaits(f"the agent {name} waits for approval of {calls} in session {child.id}")
            if stop == "cost" and caller.is_spent():  # with more money it goes on
                raise AgentWaits("")
            if caller.turn.is_cancelled:
                raise TurnCancelled(caller.turn.id, "")
            return _answer(name, child, stop, output)
        finally:
            for each in opened:
                await recorded(each.close)

    made = FunctionTool(
        give, name=name, description=description, repeatable=True, needs_approval=needs_approval, on_demand=on_demand
    )
    made.runs_agent = True
    asks = [tool.may_ask for tool in tools if isinstance(tool, FunctionTool) and tool.may_ask]
    made.may_ask = made.may_ask or ("" if options.get("approve") else ", ".join(asks))
    return made


async def _opened(opened: list[Session], opens: Callable[[], Session]) -> Session:
    """The session of an agent, added to `opened`, in a thread that may wait for whoever has it: the run ends if that
    takes too long, and goes on with the call when it is started again."""
    opening = asyncio.ensure_future(called_in_thread(opens))
    try:
        opened.append(await asyncio.shield(opening))
    except SessionBusy as error:
        raise AgentWaits("", error) from error
    except asyncio.CancelledError:  # it may still be opened, for nobody
        opening.add_done_callback(lambda done: done.cancelled() or done.exception() or done.result().close())
        raise
    return opened[-1]


def _is_done(child: Session) -> bool:
    turns = child.log.turns()
    return bool(turns) and turns[-1].status == "completed"


def _answer(name: str, child: Session, stop: RunStop | None, output: Any) -> Any:
    """The answer of an agent that ended with `stop` (None: long ago). Raises InputError if it came to no answer."""
    turn, typed = child.log.turns()[-1], output_given(output, 0)
    if stop is None:
        bodies = (record.body for record in child.log.newest())
        word = next(
            (body.stop for body in bodies if isinstance(body, MessageRecord) and body.message.role != "user"), ""
        )
        stop = "end" if child.target is None else end_of(word, child.target) or "end"
    if typed is not None and (typed.ended_by(turn.calls) == "end" or not typed.take_text(turn.answer)):
        return typed.value
    if stop == "end" and typed is None:
        return turn.answer
    why = turn.reason or f"its answer ended with {stop}"
    raise InputError(
        f"the agent {name} came to no answer: {why}" + (f"; it said: {turn.answer}" if turn.answer else "")
    )


def _pass_on(child: Session, context: ToolContext, event: LoopEvent) -> None:
    """Tell what an agent does as progress of its call, and end its turn if that of the caller was cancelled."""
    if context.cancelled and isinstance(turn := child._turn.turn, Turn):
        turn.cancel("the turn that called this agent was cancelled")
    elif event.kind == "tool_started" and event.call is not None:
        context.progress(f"{event.call.name} {event.call.raw_arguments[:_TOLD]}")
    elif event.kind in ("progress", "waiting", "error"):
        context.progress(event.text)
