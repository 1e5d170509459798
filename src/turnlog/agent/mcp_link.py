"""The connection with one MCP server, by the official SDK (the extra `mcp`): begun when it is needed, and anew when it
has ended.

All connections live in one thread of their own, each in one task: the SDK's cancel scopes must be entered and left in
the same one, and a transport that fails cancels it. So a server works with `run` and with any event loop of `arun`.
"""

from __future__ import annotations

import asyncio
import atexit
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from contextvars import Context, ContextVar
from importlib import import_module
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit
from weakref import WeakSet

from msgspec import Struct

from .._platform.exceptions import described
from .._platform.stdlib import shlex, tempfile
from .._platform.texts import install_extra
from ..errors import InputError, ToolServerError
from ..log.messages import json_or_text
from ..runners.blocking import LoopThread

THREAD = LoopThread("turnlog-mcp")

_CLOSED = -32000
"""The code of the SDK's error for a connection that ended before the answer; servers have it for errors of their
own."""

_CUT = ("SSE stream", "Server returned an error response")
"""How the SDK's errors begin if an answer over HTTP did not arrive: the connection may still be there. A server that
chooses these words, or the next ones, only says that the call may have run."""

_UNREAD = ("Failed to parse", "Unexpected content type", "server answered a request with 202")
"""How they begin if there was an answer that cannot be read."""

_GONE = "Session terminated"
"""The SDK's error if a server over HTTP does not know the session (404, as it was restarted). It should not have read
the request then, but a server can choose the words as well as the status."""

_PAGES = 1_000
"""The most pages of a list of tools: a server that never ends would be asked for ever."""

_LAST_WORDS = 500
"""Characters of what a server that does not start wrote to its standard error."""


class ServerAddress(Struct, frozen=True):
    """Where a server is, a command or a URL, and how long to wait until it answers."""

    command: tuple[str, ...]
    url: str
    headers: Mapping[str, str]
    env: Mapping[str, str]
    cwd: str | None
    start_seconds: float
    seconds: float | None

    @property
    def label(self) -> str:
        """The server in messages: the program and what it runs, or the URL. Nothing else, since there may be keys."""
        if self.url:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        script = next((word for word in self.command[1:] if not word.startswith("-") and " " not in word), "")
        return f"{os.path.basename(self.command[0])} {script}".strip()


class Interrupted(Exception):
    """A connection ended in a call: the tool may have run."""


class CallFailed(Exception):
    """A server answered a call with an error of the protocol, in its words."""


class OpenCall(NamedTuple):
    """A call that a server has not answered. `ask` is called in the thread of connections with what the server asks
    meanwhile, and gives the answer; calls of the same `run` have the same people to ask. `repeatable`: it does no harm
    if the tool runs twice."""

    run: object
    ask: Callable[[Any], Awaitable[Mapping[str, Any]]]
    repeatable: bool


_CALL: ContextVar[OpenCall | None] = ContextVar("turnlog_mcp_call", default=None)


class _Heard:
    """A stream of messages from a server that tells its connection when it ends. What the SDK cannot read becomes an
    error for the request that it answers, which would wait for ever, or is left out of a list of tools."""

    def __init__(self, stream: Any, connection: _Connection) -> None:
        self._stream = stream
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        item = await self._stream.__anext__()
        if hasattr(item, "errors"):  # of pydantic
            return self._unread(item)
        result = getattr(getattr(item, "message", None), "result", None)
        if isinstance(result, dict) and isinstance(result.get("tools"), list) and self._connection.ready.done():
            result["tools"] = [tool for tool in result["tools"] if self._is_read({**result, "tools": [tool]})]
        return item

    def _unread(self, error: Any) -> Any:
        """An error in place of an answer. If it is not known which request it answers, the connection ends. Lines of a
        log, which some servers write to their standard output, stay as they are."""
        said = error.errors()[0]["input"]
        if isinstance(said, str):
            said = json_or_text(said)
        match said:
            case {"jsonrpc": _, "id": int() | str() as number} if "method" not in said:
                types = import_module("mcp.types")
                told = types.ErrorData(code=types.PARSE_ERROR, message=f"{_UNREAD[0]} what the server answered")
                answer = types.JSONRPCError(jsonrpc="2.0", id=number, error=told)
                return import_module("mcp.shared.message").SessionMessage(answer)
            case str() if said.lstrip().startswith("{") and '"jsonrpc"' in said and '"id"' in said:
                self._connection.over.set()
        return error

    def _is_read(self, listed: Mapping[str, Any]) -> bool:
        """Whether the SDK reads a list of one tool."""
        try:
            version = self._connection.ready.result().session.protocol_version
            import_module("mcp.types.methods").validate_server_result("tools/list", version, listed)
        except ValueError as error:
            [tool], why = listed["tools"], cast(Any, error).errors()[0]
            name = tool.get("name") if isinstance(tool, dict) else tool
            self._connection.left_out.append(f"{name!r:.100} ({'.'.join(map(str, why['loc'][2:]))}: {why['msg']})")
            return False
        return True

    async def __aenter__(self) -> _Heard:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        self._connection.over.set()
        return await self._stream.__aexit__(*error)


class _Connection:
    """One connection, in one task. `ready` has the SDK's client, `over` says that it has ended, `changed` that the list
    of tools has to be read."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self.over = asyncio.Event()
        self.changed = True
        self.calls: list[OpenCall] = []
        self.left_out: list[str] = []  # tools that the SDK cannot read
        self.error: BaseException | None = None
        self.ready: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())  # maybe nobody waits for it
        self.task = asyncio.create_task(self._live(), context=Context())  # it is of no call, and outlives them

    async def _live(self) -> None:
        said = None if self.address.url else tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        try:
            async with AsyncExitStack() as stack:
                client = import_module("mcp").Client(
                    self._streams(said),
                    elicitation_callback=self._asked,
                    message_handler=self._noticed,
                    cache=None,
                )
                async with asyncio.timeout(self.address.start_seconds):
                    await stack.enter_async_context(client)
                self.ready.set_result(client)
                listening = asyncio.create_task(self._listen(client))
                try:
                    await self.over.wait()
                finally:
                    listening.cancel()
                    await asyncio.gather(listening, return_exceptions=True)
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the connection, or calls next
            self.error = error
            if not self.ready.done():
                self.ready.set_exception(ToolServerError(self.address.label, _why(error, self.address, _end_of(said))))
        finally:
            self.over.set()
            if said is not None:
                said.close()

    @asynccontextmanager
    async def _streams(self, said: Any) -> AsyncIterator[tuple[Any, Any]]:
        """The transport."""
        to = self.address
        async with AsyncExitStack() as stack:
            if to.url:
                httpx, http = import_module("httpx2"), import_module("mcp.client.streamable_http")
                patience = httpx.Timeout(30, read=max(300, to.seconds or 0))  # the SDK's own, or longer calls
                sender = await stack.enter_async_context(httpx.AsyncClient(headers=dict(to.headers), timeout=patience))
                transport = http.streamable_http_client(to.url, http_client=sender)
            else:
                stdio = import_module("mcp.client.stdio")
                program, *words = to.command
                started = stdio.StdioServerParameters(
                    command=program, args=words, env=dict(to.env), cwd=to.cwd, encoding_error_handler="replace"
                )  # else a byte that is no UTF-8, if only in a line of a log, would end the connection
                transport = stdio.stdio_client(started, errlog=said)
            heard, write = await stack.enter_async_context(transport)
            yield _Heard(heard, self), write

    async def _noticed(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.changed = True

    async def _listen(self, client: Any) -> None:
        """Ask a server of the protocol of 2026 to tell of changes; older ones do so by themselves."""
        tools = client.server_capabilities.tools
        while tools is not None and tools.list_changed and client.session.discover_result is not None:
            with suppress(import_module("mcp.client.subscriptions").SubscriptionLost):
                async with client.listen(tools_list_changed=True) as changes:
                    self.changed = True  # perhaps while nobody listened
                    async for _ in changes:
                        self.changed = True
            await asyncio.sleep(1)

    async def _asked(self, _: Any, params: Any) -> Any:
        """Answer what the server asks in a call. Over stdio, older servers do not say in which: it is the newest one,
        if all that are open are of the same run; else nobody can be asked."""
        call = _CALL.get()
        if call is None and len({id(one.run) for one in self.calls}) == 1:
            call = self.calls[-1]
        answer = {"action": "cancel"} if call is None else await call.ask(params)
        return import_module("mcp.types").ElicitResult(**answer)


class Link:
    """What leads to one server: its newest connection. All methods run in the thread of connections."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._connection: _Connection | None = None
        self._process = 0
        _LINKS.add(self)
        atexit.unregister(_end_all)  # once is enough
        atexit.register(_end_all)

    async def _connected(self) -> tuple[_Connection, Any]:
        """The connection and its client. Raises ToolServerError."""
        connection = self._connection
        if connection is None or connection.over.is_set() or self._process != os.getpid():
            _check_installed()
            connection = self._connection = _Connection(self.address)
            self._process = os.getpid()  # a fork has neither the thread nor the right to end the parent's server
        return connection, await asyncio.shield(connection.ready)

    @property
    def is_begun(self) -> bool:
        """Whether there is a connection, begun in this process."""
        return self._connection is not None and self._process == os.getpid()

    @property
    def has_changed(self) -> bool:
        """Whether the list of tools has to be read again."""
        connection = self._connection
        return connection is not None and not connection.over.is_set() and connection.changed

    async def tools(self) -> tuple[str, list[Any], str]:
        """What the server calls itself, all its tools, and which cannot be read, and why."""
        connection, client = await self._connected()
        connection.changed = False
        connection.left_out = []
        tools: list[Any] = []
        cursor = None
        try:
            async with asyncio.timeout(self.address.start_seconds):
                for _ in range(_PAGES):
                    page = await client.list_tools(cursor=cursor)
                    tools += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        title = client.server_info.name if client.server_info else ""
                        return title, tools, "; ".join(connection.left_out)
            raise ValueError(f"the list has more than {_PAGES:,} pages")
        except (import_module("mcp").MCPError, TimeoutError, ValueError) as error:  # the last: it cannot be read
            connection.changed = True
            raise ToolServerError(self.address.label, f"it does not list its tools: {described(error)}") from error

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Any, opened: OpenCall) -> Any:
        """The server's result of a call. Raises Interrupted, if the tool may have run, CallFailed, and ToolServerError
        if it cannot have run."""
        _CALL.set(opened)
        for last in (False, True):
            connection, client = await self._connected()
            connection.calls.append(opened)
            try:
                return await client.call_tool(name, dict(arguments), progress_callback=progress)
            except import_module("mcp").MCPError as error:
                if error.code == _CLOSED and connection.over.is_set():
                    await asyncio.wait([connection.task])
                    if last or not _refused(connection.error):
                        raise Interrupted("the server ended, or the connection with it") from error
                elif error.message == _GONE and self.address.url:
                    connection.over.set()
                    if last or not opened.repeatable:
                        raise Interrupted("the server does not know the session any more") from error
                elif error.message.startswith(_CUT + _UNREAD):
                    if error.message.startswith(_CUT):  # some servers answer so if they do not know the session
                        connection.over.set()
                    raise Interrupted(error.message.partition(":")[0]) from error
                else:
                    raise CallFailed(error.message) from error
            finally:
                connection.calls.remove(opened)
        raise AssertionError("unreachable")

    async def end(self) -> None:
        """End the connection and the server's process, if it was started here."""
        connection, self._connection = self._connection, None
        if connection is not None and self._process == os.getpid():
            if not connection.ready.done():
                connection.task.cancel()
            connection.over.set()
            await asyncio.wait([connection.task])


_LINKS: WeakSet[Link] = WeakSet()


def in_its_thread(work: Any) -> asyncio.Future[Any]:
    """Run a coroutine in the thread of connections; whoever awaits it may be in any other event loop."""
    return asyncio.wrap_future(THREAD.start(work))


def _end_all() -> None:
    """End the servers that the program left open: with the process they would get the end of their input, which not all
    of them heed."""
    for link in [link for link in _LINKS if link.is_begun]:
        with suppress(Exception):
            THREAD.start(link.end()).result(10)


def _check_installed() -> None:
    try:
        import_module("mcp").Client  # noqa: B018 - of version 2
    except (ImportError, AttributeError) as error:
        raise InputError(f"MCP servers need the package mcp, from 2.3 on: {install_extra('mcp')}") from error


def command_of(command: Any) -> tuple[str, ...]:
    """The words of a command line, given as text or as a list. Raises InputError."""
    expected = "the command of an MCP server must be a command line or a list of its words"
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except (TypeError, ValueError) as error:
        raise InputError(f"{expected}: {error}") from None
    if not words or not all(isinstance(word, str) for word in words):
        raise InputError(f"{expected}, not {command!r:.100}")
    if "://" in words[0]:
        raise InputError("the address of an MCP server is given as url=: turnlog.agent.mcp_server(url=...)")
    return tuple(words)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The errors in groups of errors."""
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _causes(one)
    elif error is not None:
        yield error


def _refused(error: BaseException | None) -> bool:
    """Whether a connection ended as nobody took it: no request has arrived then."""
    return any(type(one).__name__ in ("ConnectError", "ConnectTimeout") for one in _causes(error))


def _end_of(said: Any) -> str:
    """The last words that a server wrote to its standard error."""
    if said is None:
        return ""
    said.seek(0)
    return str(said.read()[-_LAST_WORDS:]).strip()


def _why(error: BaseException, address: ServerAddress, last_words: str) -> str:
    """Why there is no connection, and what to do."""
    cause = next(_causes(error), error)
    if isinstance(cause, FileNotFoundError):
        missing = "folder" if address.cwd is not None and cause.filename == address.cwd else "command"
        return f"there is no {missing} {cause.filename!r}: install it, or give its whole path"
    why = f"it did not answer within {address.start_seconds:g} s; start_seconds= gives it longer"
    if not isinstance(cause, TimeoutError):
        why = f"it {'cannot be reached' if address.url else 'did not start'}: {described(cause)}"
    return f"{why}. It wrote: {last_words}" if last_words else why
