"""MCP servers: their tools as functions of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakSet, finalize

from .._platform.exceptions import described
from .._platform.given import flag_given, kind_given, number_given, text_given
from ..errors import InputError, ToolServerError
from ..log.messages import Message, Text, ToolCall, ToolResult, text_of
from ..session.session import Session
from ..view.repair.arrange import synthetic_result
from .context import ToolContext
from .functions import FunctionTool, tool
from .mcp_link import THREAD, CallFailed, Interrupted, Link, OpenCall, ServerAddress, command_of, in_its_thread
from .mcp_results import answer_to, question_of, result_of, valid_name

Choice = bool | Callable[[dict[str, Any]], bool]
"""For all tools of a server, or for each: a function of its declaration, as the protocol has it (`name`, `description`,
`inputSchema`, `annotations`, ...)."""

_LOOKS = 0.2
"""Seconds between looks at whether the turn of a call was cancelled."""

_QUESTIONS = 20
"""The most questions of a server in one call, of which people are asked: some never end."""


class McpServer:
    """An MCP server whose tools a run has: one of its `tools`, beside functions. It starts when a run first needs it,
    and ends with the last session that used it, by `close`, or at the end of the program. Needs the extra `mcp`.

    `command` starts it and talks to its standard input and output: a command line, or a list of words. The process gets
    `env` and the usual variables (PATH, HOME, ...), and nothing else of this program's environment; `cwd` is its
    folder. Or `url` is where it is, by streamable HTTP, with `headers`. `start_seconds`: the most time until it
    answers.

    `name` stands before the names of its tools. `needs_approval` and `repeatable` are those of `turnlog.agent.tool`,
    for all tools, or a function of each tool's declaration (a dict, as the protocol has it); without `repeatable`,
    tools are so that their annotations call read-only or idempotent. `seconds` is the most time of a call; `on_demand`:
    the model sees the names of its tools, and one line, until it loads them.
    """

    def __init__(
        self,
        command: str | Sequence[str] = "",
        *,
        url: str = "",
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        name: str = "",
        needs_approval: Choice = False,
        repeatable: Choice | None = None,
        seconds: float | None = None,
        on_demand: bool = False,
        start_seconds: float = 60,
    ) -> None:
        if bool(command) == bool(text_given("url", url)):
            raise InputError("an MCP server is given by its command or by url=: turnlog.agent.mcp_server('npx ...')")
        if url and not url.startswith(("http://", "https://")):
            raise InputError(f"url must begin with http:// or https://, not {url!r:.100}")
        for option, given in (("headers", headers), ("env", env), ("cwd", cwd)):
            if given and (option == "headers") != bool(url):
                raise InputError(f"{option}= is for a server that is given by {'its command' if url else 'url='}")
        address = ServerAddress(
            command=() if url else command_of(command),
            url=url,
            headers=dict(kind_given("headers", headers or {}, Mapping, "a dict of texts")),
            env=dict(kind_given("env", env or {}, Mapping, "a dict of texts")),
            cwd=None if cwd is None else str(cwd),
            start_seconds=number_given("start_seconds", start_seconds, above=0),
            seconds=None if seconds is None else number_given("seconds", seconds, above=0),
        )
        self.name = text_given("name", name)
        self._options: dict[str, Any] = {"on_demand": flag_given("on_demand", on_demand), "seconds": seconds}
        self._needs_approval = _choice("needs_approval", needs_approval)
        self._repeatable = _choice("repeatable", _is_repeatable if repeatable is None else repeatable)
        self._link = Link(address)
        self._sessions: WeakSet[Session] = WeakSet()
        finalize(self, _forget, self._link).atexit = False

    def __repr__(self) -> str:
        return f"McpServer({self.name or self._link.address.label})"

    def close(self) -> None:
        """End the connection, and the server's process. The next run begins another."""
        THREAD.wait(self._link.end())

    async def aclose(self) -> None:
        """As `close`."""
        await in_its_thread(self._link.end())

    @property
    def place(self) -> str:
        """What tells the server from others after a restart: its name, else where it is."""
        to = self._link.address
        return self.name or f"{to.command} {to.url} {to.cwd}"

    @property
    def has_changed(self) -> bool:
        """Whether the server has said that its tools changed, or was connected anew."""
        return self._link.has_changed

    async def declared(self, session: Session) -> tuple[str, list[Any]]:
        """What the server calls itself, and its tools. The session closes the server with itself."""
        if session not in self._sessions:
            self._sessions.add(session)
            session.attach(_Use(self, session))
        title, tools, left_out = await in_its_thread(self._link.tools())
        if left_out:
            session._events.warn(f"{self!r} offers tools that cannot be read, and are left out: {left_out:.2000}")
        return title, tools

    def function(self, name: str, declared: Any, session: Session, run: object) -> FunctionTool:
        """A tool of the server as a function of a run."""
        raw = declared.model_dump(by_alias=True, mode="json", exclude_none=True)
        called = declared.name

        async def call(turnlog_context: ToolContext, **arguments: Any) -> ToolResult:
            return await self._call(called, arguments, turnlog_context, session, run, repeatable)

        repeatable = flag_given("repeatable", self._repeatable(raw))
        needs_approval = flag_given("needs_approval", self._needs_approval(raw))
        options = {**self._options, "needs_approval": needs_approval, "repeatable": repeatable}
        description = declared.description or declared.title or ""
        try:
            return tool(name, description, parameters={**declared.input_schema, "type": "object"}, call=call, **options)
        except InputError as error:  # the server knows what it takes, and says what it does not
            session._events.warn(f"{self!r}: {error}; it is declared without parameters")
            return tool(name, description, parameters={"type": "object"}, call=call, **options)

    async def _call(
        self, name: str, arguments: Mapping[str, Any], context: ToolContext, session: Session, run: object, again: bool
    ) -> ToolResult:
        call = ToolCall(context.call_id, name)
        loop = asyncio.get_running_loop()
        questions = count(1)

        async def asked(params: Any) -> Mapping[str, Any]:
            if (number := next(questions)) > _QUESTIONS:
                if number == _QUESTIONS + 1:
                    said = f"{self!r} asks more than {_QUESTIONS} questions in a call: the others are cancelled"
                    loop.call_soon_threadsafe(session._events.warn, said)
                return {"action": "cancel"}
            work = asyncio.run_coroutine_threadsafe(self._ask(params, context, session), loop)
            return await asyncio.wrap_future(work)

        async def progress(done: float, total: float | None, message: str | None) -> None:
            context.progress(message or (f"{done:g}" if total is None else f"{done:g} of {total:g}"))

        working = in_its_thread(self._link.call(name, arguments, progress, OpenCall(run, asked, again)))
        try:
            while not (await asyncio.wait([working], timeout=_LOOKS))[0]:
                if context.cancelled:
                    return _interrupted(call, "The turn was cancelled.")
            return result_of(working.result(), call.id, name, session.media)
        except Interrupted as error:
            return _interrupted(call, f"({self!r}: {error}.)")
        except CallFailed as error:
            return ToolResult(call.id, name, (Text(f"The server answered: {error}"),), "failed")
        except (ToolServerError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - the SDK cannot read the answer: the tool has run
            said = f"The tool ran, but its result cannot be shown: {described(error)}"
            return ToolResult(call.id, name, (Text(said),), "failed")
        finally:
            working.cancel()

    async def _ask(self, params: Any, context: ToolContext, session: Session) -> dict[str, Any]:
        """Ask whoever approves what the server asks. The question and the answer are noted in the log."""
        said, fields = question_of(params)
        try:
            answer = answer_to(await context.ask(said, fields), fields)
        except Exception as error:  # noqa: BLE001 - the server waits for an answer, whatever becomes of the question
            answer = {"action": "cancel"}
            session._events.warn(f"{self!r} asked {said!r}, and got no answer: {described(error)}")
        session.note("mcp_question", said, {"call_id": context.call_id, "fields": fields, "answer": answer})
        return answer


mcp_server = McpServer
"""As functions and tools are given to a run by `tool`."""


class _Use(NamedTuple):
    """A session that uses a server: the server ends with the last of them."""

    server: McpServer
    session: Session

    def _is_last(self) -> bool:
        self.server._sessions.discard(self.session)
        return not self.server._sessions

    def close(self) -> None:
        """Close the server, if no other session uses it."""
        if self._is_last():
            self.server.close()

    async def aclose(self) -> None:
        """As `close`."""
        if self._is_last():
            await self.server.aclose()


def _choice(option: str, given: Any) -> Callable[[dict[str, Any]], bool]:
    if callable(given):
        return given  # type: ignore[no-any-return]
    flag = flag_given(option, given)
    return lambda _: flag


def _is_repeatable(declared: Mapping[str, Any]) -> bool:
    """Whether a server calls a tool read-only, or idempotent. A server that lies gains nothing by it: it can do in one
    call what it would do in two."""
    hints = declared.get("annotations", {})
    return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True


def free_name(prefix: str, title: str, name: str, taken: set[str]) -> str:
    """A name for a tool that no other has: its own, behind the name that the user gave to the server. Where that is
    taken, the server's own name stands before it, or a number behind it."""
    wanted = valid_name(f"{prefix}_{name}" if prefix else name)
    if wanted in taken and not prefix:
        wanted = valid_name(f"{title or 'mcp'}_{name}")
    free, number = wanted, 1
    while free in taken:
        number += 1
        free = valid_name(f"{wanted}_{number}")
    return free


def _interrupted(call: ToolCall, why: str) -> ToolResult:
    """The result of a call that may have run, in the words that all such calls have."""
    said = text_of(Message("user", synthetic_result(call, "aborted").parts))
    return ToolResult(call.id, call.name, (Text(f"{said} {why}"),), "aborted")


def _forget(link: Link) -> None:
    """End the server that nobody can use any more."""
    if link.is_begun:
        THREAD.start(link.end())
