"""HTTP clients for the SDKs of models, which put what passes through them on record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import finalize

from .._platform.exceptions import described
from ..config.settings import Settings
from ..errors import InputError
from ..log.budget import Budget, Strategy
from ..log.store import Store
from ..session.threads import recorded
from .answers import Answering
from .recorder import Asked, Recorder
from .routes import Route, route_of

_SESSION = "x-turnlog-session"
"""The header with which a request names its session. It is not sent on."""

_LIBRARIES = ("httpx2", "httpx")

_OF_THE_OLD_BODY = {"content-length", "content-encoding", "transfer-encoding"}

_TIMEOUT, _CONNECT = 600, 5.0
"""Seconds, as in the SDKs of OpenAI and Anthropic (`_constants.py` of both), which say the first in a header."""


def client(
    store: Store | str | Path | None = None,
    *,
    budget: Budget | int | None = None,
    strategy: Strategy | str | None = None,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    library: str = "",
    **options: Any,
) -> Any:
    """An HTTP client for an SDK, such as `openai.OpenAI(http_client=client("agent.db"))`: every request that asks a
    model with a whole conversation is recorded in a session of `store`, and so is its answer.

    Without `budget` and `strategy`, requests are sent as they are unless the provider would refuse them. With either,
    requests over the budget (None: the model's window) are made smaller as in `turnlog.open`. `name` is the label
    `client` of the sessions, and `labels` are others; sessions with other labels are never gone on with. `settings` are
    those of the sessions. `library` is "httpx2" or "httpx", whichever the SDK takes ("": httpx2 if it is installed),
    and `options` are arguments of its `Client`. A request never fails because of turnlog: `failures` of the client
    counts those that were sent without being recorded. Raises InputError.
    """
    recorder = Recorder(store, budget, strategy, name, labels, settings)
    return _classes(library)[0](recorder, **options)


def async_client(
    store: Store | str | Path | None = None,
    *,
    budget: Budget | int | None = None,
    strategy: Strategy | str | None = None,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    settings: Settings | None = None,
    library: str = "",
    **options: Any,
) -> Any:
    """As `client`, for asynchronous SDKs, such as `openai.AsyncOpenAI(http_client=async_client("agent.db"))`."""
    recorder = Recorder(store, budget, strategy, name, labels, settings)
    return _classes(library)[1](recorder, **options)


def _library(given: str) -> Any:
    if given and given not in _LIBRARIES:
        raise InputError(f"library must be one of {', '.join(_LIBRARIES)}, not {given!r}")
    for name in [given] if given else _LIBRARIES:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise InputError(f"{given or _LIBRARIES[0]} is not installed: install the SDK that is to use the client")


def _route(request: Any) -> Route | None:
    return route_of(request.method, str(request.url))


def _changed(library: Any, request: Any, asked: Asked | None) -> Any:
    """The request to send."""
    request.headers.pop(_SESSION, None)
    if asked is None or asked.body is None:
        return request
    headers = [(key, value) for key, value in request.headers.multi_items() if key not in _OF_THE_OLD_BODY]
    return library.Request(
        request.method, request.url, headers=headers, content=asked.body, extensions=request.extensions
    )


def _begin(library: Any, recorder: Recorder, answering: Answering, response: Any, tee: Callable[..., Any]) -> None:
    """Record the response as it is read, or at once if a transport has read it already."""
    kind, coding = response.headers.get("content-type", ""), response.headers.get("content-encoding", "")
    if response.is_stream_consumed:
        answering.begin(response.status_code, kind)
        recorder.feed(answering, response.content)
        recorder.end(answering)
        return
    headers = {"content-encoding": coding}
    answering.begin(
        response.status_code,
        kind,
        coding,
        lambda body: bytes(library.Response(200, headers=headers, content=body).content),
    )
    response.stream = tee(response.stream, recorder, answering)


def _with_defaults(library: Any, options: dict[str, Any]) -> dict[str, Any]:
    usual = {
        "timeout": library.Timeout(_TIMEOUT, connect=_CONNECT),
        "limits": library.Limits(max_connections=1_000, max_keepalive_connections=100),
        "follow_redirects": True,
    }
    return {**usual, **options}


@cache
def _classes(name: str) -> tuple[Any, Any]:
    """The client classes over an HTTP library: `send` is what all SDKs call, above proxies, redirects and
    authentication."""
    library = _library(name)
    sync_stream: Any = library.SyncByteStream
    async_stream: Any = library.AsyncByteStream
    sync_client: Any = library.Client
    asynchronous_client: Any = library.AsyncClient

    class Tee(sync_stream):  # type: ignore[misc]
        """The body of a response, recorded on its way."""

        def __init__(self, stream: Any, recorder: Recorder, answering: Answering) -> None:
            self._stream, self._recorder, self._answering = stream, recorder, answering

        def __iter__(self) -> Iterator[bytes]:
            try:
                for piece in self._stream:
                    self._recorder.feed(self._answering, piece)
                    yield piece
            except Exception as error:
                self._recorder.end(self._answering, described(error))
                raise
            self._recorder.end(self._answering)

        def close(self) -> None:
            self._stream.close()
            self._recorder.end(self._answering)

    class AsyncTee(async_stream):  # type: ignore[misc]
        """The body of a response, recorded on its way."""

        def __init__(self, stream: Any, recorder: Recorder, answering: Answering) -> None:
            self._stream, self._recorder, self._answering = stream, recorder, answering

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in self._stream:
                    self._recorder.feed(self._answering, piece)
                    yield piece
            except Exception as error:
                await recorded(partial(self._recorder.end, self._answering, described(error)))
                raise
            await recorded(partial(self._recorder.end, self._answering))

        async def aclose(self) -> None:
            await self._stream.aclose()
            await recorded(partial(self._recorder.end, self._answering))

    class Recording:
        """What both clients have."""

        _recorder: Recorder

        @property
        def failures(self) -> int:
            """How many requests and answers could not be recorded. A warning in the log says of each why."""
            return self._recorder.failures

    class Client(Recording, sync_client):  # type: ignore[misc]
        """An HTTP client that records what asks a model."""

        def __init__(self, recorder: Recorder, **options: Any) -> None:
            super().__init__(**_with_defaults(library, options))
            self._recorder = recorder
            self._finalizer = finalize(self, recorder.close)

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Send a request; one that asks a model is recorded."""
            if (route := _route(request)) is None:
                return super().send(request, stream=stream, **options)
            asked = self._recorder.ask(route, request.read(), request.headers.get(_SESSION, ""))
            request = _changed(library, request, asked)
            if asked is None:
                return super().send(request, stream=stream, **options)
            try:
                response = super().send(request, stream=True, **options)
            except BaseException as error:
                self._recorder.end(asked.answering, described(error))
                raise
            _begin(library, self._recorder, asked.answering, response, Tee)
            if not stream:
                try:
                    response.read()
                except BaseException:
                    response.close()
                    raise
            return response

        def close(self) -> None:
            """Close the client and its sessions."""
            super().close()
            self._finalizer()

    class AsyncClient(Recording, asynchronous_client):  # type: ignore[misc]
        """An HTTP client that records what asks a model."""

        def __init__(self, recorder: Recorder, **options: Any) -> None:
            super().__init__(**_with_defaults(library, options))
            self._recorder = recorder
            self._finalizer = finalize(self, recorder.close)

        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Send a request; one that asks a model is recorded."""
            if (route := _route(request)) is None:
                return await super().send(request, stream=stream, **options)
            taken: list[Asked | None] = []
            content, name = await request.aread(), request.headers.get(_SESSION, "")
            try:
                await recorded(lambda: taken.append(self._recorder.ask(route, content, name)))
                [asked] = taken
                request = _changed(library, request, asked)
                response = await super().send(request, stream=stream or asked is not None, **options)
            except BaseException as error:
                for asked in filter(None, taken):
                    await recorded(partial(self._recorder.end, asked.answering, described(error)))
                raise
            if asked is None:
                return response
            _begin(library, self._recorder, asked.answering, response, AsyncTee)
            if not stream:
                try:
                    await response.aread()
                except BaseException:
                    await response.aclose()
                    raise
            return response

        async def aclose(self) -> None:
            """Close the client and its sessions."""
            await super().aclose()
            await recorded(lambda: self._finalizer())

    return Client, AsyncClient
