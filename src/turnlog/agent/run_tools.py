"""The tools of a run: functions, and what its MCP servers offer, declared to the session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any

from .._platform.given import list_given
from ..errors import InputError, ToolServerError
from ..log.messages import Tool, sha256_hex
from ..log.records import Note
from ..providers.answer_forms import ANSWER
from ..providers.tool_declarations import read_tools
from ..session.read_back import READ_BACK
from ..session.recall import RECALL
from ..session.session import Session
from ..skills.ready import READY
from .functions import FunctionTool
from .mcp_servers import McpServer, free_name

AnyTool = Callable[..., Any] | Tool | Mapping[str, Any] | McpServer
"""A function, a tool made of one by `turnlog.agent.tool`, a declaration of a tool that the provider runs, or a
server."""

_LIBRARY = {READ_BACK.name, RECALL.name, *(tool.name for tool in READY)}
"""Tools that are part of the library."""

_TOPIC = "mcp_tools"
"""The topic of the notes that say where each tool of an MCP server is, by a hash of the server and its own name."""


def tools_given(tools: Any) -> list[Tool | FunctionTool | McpServer]:
    """The tools as they are given to a run, each as what it is: declarations first. Raises InputError."""
    given = list_given("tools", tools, "functions, MCP servers, turnlog.Tool or declarations")
    others = [one for one in given if not isinstance(one, (Tool, Mapping))]
    return [
        *read_tools(one for one in given if isinstance(one, (Tool, Mapping))),
        *(one if isinstance(one, (FunctionTool, McpServer)) else FunctionTool(one) for one in others),
    ]


class RunTools:
    """The tools of a run, those of its MCP servers among them: as `functions` by name, whose names stay the same while
    the servers offer the same."""

    def __init__(self, session: Session, tools: Iterable[AnyTool], *, asks: bool) -> None:
        """`asks`: there is somebody to ask for approval."""
        self._session = session
        self._asks = asks
        given = tools_given(tools)
        self._tools = [one for one in given if not isinstance(one, McpServer)]
        self._servers = [one for one in given if isinstance(one, McpServer)]
        self.functions: dict[str, FunctionTool] = {}
        self._others: list[Tool] = []
        self._offered: dict[McpServer, tuple[str, list[Any]]] = {}
        self._places: dict[str, str] = {}
        self._noted = 0  # the record since which they are there

    async def read(self) -> None:
        """Find out which tools there are; nothing is declared. Raises InputError, ToolServerError."""
        functions: dict[str, FunctionTool] = {}
        others: list[Tool] = []
        for tool in await self._read():
            name = tool.name
            if isinstance(tool, Tool):
                others.append(tool)
                continue
            if name in functions:
                raise InputError(f"two tools are called {name!r}: give one another name with turnlog.agent.tool(name=)")
            if tool.may_ask and not self._asks:
                what = f"tool {name!r}" if tool.may_ask == name else f"a tool of the agent {name!r} ({tool.may_ask})"
                raise InputError(f"{what} needs approval: give approve=, a function that says whether it may run")
            functions[name] = tool
        for tool in others:
            if not _is_run(tool):
                raise InputError(
                    f"tool {tool.name!r} has no function: give turnlog.agent.tool({tool.name!r}, ..., call=)"
                )
        self.functions, self._others = functions, others

    def found(self, name: str, called: int) -> tuple[FunctionTool | None, str]:
        """The function for a call of the record `called`; or None and what the model is told. A call that waited for
        its approval is not run by another server that has a tool of this name now."""
        if name not in self.functions:
            names = ", ".join(sorted(self.functions)) or "none"
            return None, f"There is no tool {name!r}; the tools are: {names}."
        if called < self._noted and self._places_at(called)[1].get(name) != self._places.get(name):
            said = f"The tool was not run: when it was called, {name!r} was a tool of another MCP server, or of none"
            return None, f"{said}. If it is still to be done, call it again."
        return self.functions[name], ""

    def _places_at(self, before: float) -> tuple[int, dict[str, str]]:
        """The record that last noted, before this one, where the tools are; and what it says."""
        for record in self._session.log.of_kinds("note", reverse=True):
            if record.n < before and isinstance(record.body, Note) and record.body.topic == _TOPIC:
                return record.n, record.body.data or {}
        return 0, {}

    def declare(self) -> None:
        """Make the session declare all tools and no other functions, as nobody could run those: a warning names what it
        declared before and the run does not have."""
        if self._servers:
            self._noted, places = self._places_at(inf)
            if places != self._places:
                self._noted = self._session.note(_TOPIC, data=self._places).n
        wanted = (*self._others, *(function_tool.declaration for function_tool in self.functions.values()))
        held = self._session.configuration.tools
        stay = [tool for tool in held if tool in wanted or _is_run(tool)]
        new = [tool for tool in wanted if tool not in held]
        if new or len(stay) < len(held):
            names = {tool.name for tool in new}
            gone = [tool.name for tool in held if tool not in stay and tool.name not in names]
            self._session.configure(tools=[*(tool for tool in stay if tool.name not in names), *new])
            if gone:
                self._session._events.warn(f"this run has no function for {', '.join(gone)}: no longer declared")

    async def renew(self) -> None:
        """Read and declare anew, if a server has changed its tools. One that does not answer keeps those it had."""
        if any(server.has_changed for server in self._servers):
            try:
                await self.read()
            except ToolServerError as error:
                self._session._events.warn(f"{error}; its tools stay as they were")
            self.declare()

    async def _read(self) -> list[Tool | FunctionTool]:
        """All tools, after asking the servers of which they are not known or have changed."""
        asked = [one for one in dict.fromkeys(self._servers) if one not in self._offered or one.has_changed]
        offers = await asyncio.gather(*(server.declared(self._session) for server in asked))
        self._offered.update(zip(asked, offers, strict=True))
        tools = [*self._tools]
        taken = {*_LIBRARY, ANSWER, *(one.name for one in tools)}
        self._places = {}
        places: list[str] = []
        for server, (title, declared) in self._offered.items():
            places.append(server.place)
            place = f"{server.place} {places.count(server.place)}"  # two may differ by their environment only
            by_name = {each.name: each for each in declared}
            if len(by_name) < len(declared):
                self._session._events.warn(f"{server!r} offers several tools of one name: the last of these counts")
            for called, each in by_name.items():
                name = free_name(server.name, title, called, taken)
                taken.add(name)
                self._places[name] = sha256_hex(f"{place}\n{called}".encode())[:16]
                tools.append(server.function(name, each, self._session, self))
        return tools


def _is_run(tool: Tool) -> bool:
    """Whether a tool needs no function here: its provider runs it, or the library."""
    return tool.kind == "hosted" or tool.name in _LIBRARY
