"""HTTP clients for the SDKs of models, which put what passes through them on record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import finalize, ref

from .._platform.exceptions import described
from ..config.settings import Settings
from ..errors import InputError
from ..log.budget import Budget, Strategy
from ..log.store import Store
from ..session.threads import recorded
from .answers import Answering
from .recorder import Outgoing, Recorder
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
    return _sync_class(_library(library))(recorder, **options)


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
    return _async_class(_library(library))(recorder, **options)


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


def _with_defaults(library: Any, options: dict[str, Any]) -> dict[str, Any]:
    usual = {
        "timeout": library.Timeout(_TIMEOUT, connect=_CONNECT),
        "limits": library.Limits(max_connections=1_000, max_keepalive_connections=100),
        "follow_redirects": True,
    }
    return {**usual, **options}


class _Tee:
    """The body of a response with what takes the answer from it."""

    def __init__(self, stream: Any, recorder: Recorder, answering: Answering) -> None:
        self._stream = stream
        self._feed = partial(recorder.feed, answering)
        self._look = partial(recorder.look, answering)
        self._end = partial(recorder.end, answering)
        answering.reader = ref(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Recording:
    """What synchronous and asynchronous clients have."""

    def __init__(self, library: Any, tee: Callable[..., Any], recorder: Recorder) -> None:
        self._library, self._tee, self._recorder = library, tee, recorder
        self._finalizer = finalize(self, recorder.close)

    @property
    def failures(self) -> int:
        """How many requests and answers could not be recorded. A warning in the log says of each why."""
        return self._recorder.failures

    def _passes(self, request: Any) -> bool:
        """Whether a request is not looked at."""
        if self._recorder.looks_at_all or _route(request) is not None:
            return False
        request.headers.pop(_SESSION, None)
        return True

    def _asked(self, request: Any) -> Outgoing:
        """What is sent instead of a request that was read, which is on record then."""
        name = request.headers.pop(_SESSION, "")
        return self._recorder.ask(_route(request), request.content, name) or Outgoing(None, None)

    def _changed(self, request: Any, outgoing: Outgoing) -> Any:
        """The request to send."""
        if outgoing.body is None:
            return request
        headers = [(key, value) for key, value in request.headers.multi_items() if key not in _OF_THE_OLD_BODY]
        return self._library.Request(
            request.method, request.url, headers=headers, content=outgoing.body, extensions=request.extensions
        )

    def _failed(self, taken: Sequence[Outgoing], error: BaseException) -> None:
        """Record that no response came. The text of the error is left out: it may have a header in it."""
        for answering in filter(None, (outgoing.answering for outgoing in taken)):
            self._recorder.end(answering, type(error).__name__)

    def _begin(self, answering: Answering, response: Any) -> None:
        """Record the response as it is read, or at once if a transport has read it already."""
        kind, coding = response.headers.get("content-type", ""), response.headers.get("content-encoding", "")
        if response.is_stream_consumed:
            answering.begin(response.status_code, kind)
            self._recorder.feed(answering, response.content)
            self._recorder.end(answering)
            return
        coded = {"content-encoding": coding}
        answering.begin(
            response.status_code,
            kind,
            coding,
            lambda body: bytes(self._library.Response(200, headers=coded, content=body).content),
        )
        response.stream = self._tee(response.stream, self._recorder, answering)


@cache
def _sync_class(library: Any) -> Any:
    """The client of a library. It records in `send`, which all SDKs call, above proxies, redirects and
    authentication."""
    stream_class: Any = library.SyncByteStream
    client_class: Any = library.Client

    class Tee(_Tee, stream_class):  # type: ignore[misc]
        """The body of a response, recorded on its way."""

        def __iter__(self) -> Iterator[bytes]:
            try:
                for piece in self._stream:
                    self._feed(piece)
                    yield piece
            except Exception as error:
                self._end(described(error))
                raise
            self._end()

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                self._end()

    class RecordingClient(_Recording, client_class):  # type: ignore[misc]
        """An HTTP client that records what asks a model."""

        def __init__(self, recorder: Recorder, **options: Any) -> None:
            client_class.__init__(self, **_with_defaults(library, options))
            super().__init__(library, Tee, recorder)

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Send a request; one that asks a model is recorded."""
            if self._passes(request):
                return super().send(request, stream=stream, **options)
            request.read()
            outgoing = self._asked(request)
            request, answering = self._changed(request, outgoing), outgoing.answering
            if answering is None:
                return super().send(request, stream=stream, **options)
            try:
                response = super().send(request, stream=True, **options)
            except BaseException as error:
                self._failed([outgoing], error)
                raise
            self._begin(answering, response)
            if not stream:
                try:
                    response.read()
                finally:
                    response.close()
            return response

        def close(self) -> None:
            """Close the client and its sessions."""
            super().close()
            self._finalizer()

    return RecordingClient


@cache
def _async_class(library: Any) -> Any:
    """The asynchronous client of a library, as in `_sync_class`."""
    stream_class: Any = library.AsyncByteStream
    client_class: Any = library.AsyncClient

    class AsyncTee(_Tee, stream_class):  # type: ignore[misc]
        """The body of a response, recorded on its way."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in self._stream:
                    if self._feed(piece, look=False):
                        await recorded(self._look)
                    yield piece
            except Exception as error:
                await recorded(partial(self._end, described(error)))
                raise
            await recorded(self._end)

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                await recorded(self._end)

    class AsyncRecordingClient(_Recording, client_class):  # type: ignore[misc]
        """An HTTP client that records what asks a model."""

        def __init__(self, recorder: Recorder, **options: Any) -> None:
            client_class.__init__(self, **_with_defaults(library, options))
            super().__init__(library, AsyncTee, recorder)

        async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            """Send a request; one that asks a model is recorded."""
            if self._passes(request):
                return await super().send(request, stream=stream, **options)
            taken: list[Outgoing] = []  # kept if this task is cancelled meanwhile
            await request.aread()
            try:
                await recorded(lambda: taken.append(self._asked(request)))
                request, answering = self._changed(request, taken[0]), taken[0].answering
                response = await super().send(request, stream=stream or answering is not None, **options)
            except BaseException as error:
                await recorded(partial(self._failed, taken, error))
                raise
            if answering is not None:
                self._begin(answering, response)
                if not stream:
                    try:
                        await response.aread()
                    finally:
                        await response.aclose()
            return response

        async def aclose(self) -> None:
            """Close the client and its sessions."""
            await super().aclose()
            await recorded(lambda: self._finalizer())

    return AsyncRecordingClient
