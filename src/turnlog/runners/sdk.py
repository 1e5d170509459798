"""The official SDKs as runners. The SDKs send the request, wait and retry; their exceptions become RunnerErrors.

An SDK is imported when it is first used. Errors are recognised by what they hold (a status, a message), so that no SDK
has to be imported for that.
"""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from copy import copy
from email.utils import parsedate_to_datetime
from importlib import import_module
from operator import attrgetter
from typing import Any

from .._platform.exceptions import described, timed_out
from .._platform.texts import install_extra, without_password
from ..errors import FormatError, InputError, NotLoggedIn, RunnerError, RunnerFailed, RunnerNotFound, RunnerTimedOut
from ..models.makers import Maker, Sdk, makers
from ..providers import provider
from ..providers.error_bodies import error_chunk
from ..providers.error_facts import error_facts
from ..providers.protocol import Provider
from ..providers.sdk_objects import plain
from ..redaction import Redactor
from ..requests.request import Request
from .refusals import refusal, seconds_to_wait

# -- unstreamed ------------------------------------------------------------------------------------
#
# Answers to a streamed request that are no stream: a server that cannot stream sends its whole answer, or an error.
#
# SDKs read such a body and find no event in it: the answer would be empty, and nobody would know why.

_SHOWN = 300
"""Characters of an unreadable body that an error quotes."""

_REDACTOR = Redactor()


class Overheard:
    """The HTTP response of a stream. Keeps the bytes that the SDK reads until `found` is set, when the SDK has found an
    event in them."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._pieces: list[bytes] = []
        self.found = False
        self._asked = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    async def aiter_bytes(self, *arguments: Any, **named: Any) -> AsyncIterator[bytes]:
        """The bytes of the response, read for the SDK."""
        self._asked = True
        async for piece in self._response.aiter_bytes(*arguments, **named):
            if self.found:
                self._pieces.clear()
            else:
                self._pieces.append(piece)
            yield piece

    @property
    def text(self) -> str:
        """The bytes in which no event was found, as text."""
        return b"".join(self._pieces).decode("utf-8", "replace")

    @property
    def description(self) -> str:
        """The content type and the start of what came, for an error."""
        if not self._asked:
            return ""
        shown = _REDACTOR.text(self.text.strip())[0][:_SHOWN]
        kind = self._response.headers.get("content-type") or "a body without a content type"
        return f"{kind}: {shown!r}" if shown else "nothing"


def overheard(stream: Any) -> Overheard | None:
    """Listen to the HTTP response of an SDK's stream; None if the SDK does not expose it."""
    response = getattr(stream, "response", None)
    if not hasattr(response, "aiter_bytes"):
        return None
    stream.response = Overheard(response)
    listener: Overheard = stream.response
    return listener


def values_in(text: str) -> list[dict[str, Any]]:
    """The JSON objects in a body: the body itself, a list, one on each line, or the data of events that an SDK did not
    know."""
    lines = [line.removeprefix("data:") for line in text.splitlines()]
    for pieces in ([text], lines):
        values: list[Any] = []
        for piece in pieces:
            try:
                value = json.loads(piece)
            except (ValueError, RecursionError):
                continue
            values += value if isinstance(value, list) else [value]
        if objects := [item for item in values if isinstance(item, dict)]:
            return objects
    return []


def is_answer(value: Mapping[str, Any], speaker: Provider) -> bool:
    """Whether a JSON object is a provider's answer, an event of one, or an error."""
    kind = value.get("type") or value.get("event_type")
    return (
        isinstance(kind, str)
        or not value.keys().isdisjoint(speaker.chunk_keys)
        or bool(error_chunk(value, speaker.answer_keys))
    )


def no_answer(heard: Overheard | None) -> str:
    """The message of the error for a stream without any part of an answer."""
    came = heard.description if heard is not None else ""
    detail = f"but {came}" if came else "and the SDK does not show what it sent"
    return f"the server answered with no part of an answer, {detail}"


def _login(maker: Maker) -> str:
    """What to do without a key."""
    return f"set {maker.sdk.keys[0]}"


def client_of(maker: Maker, base_url: str, **more: Any) -> Any:
    """An SDK's client with the SDK's own settings and the arguments `more`. Raises RunnerNotFound, NotLoggedIn."""
    sdk = maker.sdk
    try:
        client_class = getattr(import_module(sdk.module), sdk.client)
    except ImportError as error:
        raise RunnerNotFound(maker.name, install_extra(maker.name), what=f"the SDK {sdk.module}") from error
    address: Any = base_url
    for key in reversed(sdk.address):
        address = {key: address}
    try:
        return client_class(**(address if base_url else {}), **more)
    except (ValueError, _errors_of(sdk)) as error:
        raise _without_key(maker, str(error)) from error


def _without_key(maker: Maker, message: str) -> NotLoggedIn:
    """The error for an SDK that found no key. Its advice on the client's arguments is left out, as users of a program
    cannot follow it."""
    return NotLoggedIn(maker.name, _login(maker), "" if "api_key" in message else message)


class SdkRunner:
    """Sends each request through the official SDK of its target's provider.

        runner = SdkRunner(anthropic=anthropic.AsyncAnthropicBedrock())

    Clients are given, or made when they are first needed, with the SDK's own settings and the key from the environment;
    a target's `base_url` is used. `openai` serves both of OpenAI's APIs and servers that imitate them, `anthropic` may
    be a client for Bedrock or Vertex, `google` serves both of Google's APIs. Clients of openai and anthropic must be
    asynchronous. Time limits and retries are those of the clients; in a run, turnlog sends again.
    """

    def __init__(self, **clients: Any) -> None:
        """Takes clients by the maker's name; None means not given. Raises InputError for a client that is not
        asynchronous, and for an unknown maker."""
        self._given = clients
        self._made: dict[tuple[str, str], Any] = {}
        self._once = False
        for name, client in clients.items():
            if name not in makers():
                raise InputError(f"SdkRunner(): {name!r} makes no models; give clients for {', '.join(makers())}")
            if client is not None and not (hasattr(client, "__aenter__") or hasattr(client, "aio")):
                kind = type(client).__name__
                raise InputError(f"{name}: {kind} is not asynchronous; give the SDK's Async{kind}")

    def without_retries(self) -> SdkRunner:
        """This runner, with the same clients, for who sends again by himself: SDKs send each request once."""
        runner = copy(self)
        runner._once = True
        return runner

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """The chunks of the answer as the SDK gives them; JSON objects if the server answers with one body."""
        speaker = provider(request.target.provider)
        maker = speaker.row.maker
        failures: list[RunnerError] = []
        heard: Overheard | None = None
        told = has_begun = False
        try:
            chunks = await self._call(request, streamed=True)
            heard, has_begun = overheard(chunks), True
            async for chunk in chunks if hasattr(chunks, "__aiter__") else _one(chunks):
                if heard is not None:
                    heard.found = True
                chunk = _out_of_list(chunk)
                error = _failure_in(chunk, speaker)
                told = told or error is not None or _tells(chunk, speaker)
                if error is not None:
                    failures.append(_refused(request, error, _as_json(chunk)))
                yield chunk if error is None or not _is_bare(chunk) else _error_event(error)
        except Exception as error:
            runner_error = self._error_for(maker, error, request)
            if runner_error is None and has_begun and _is_of_an_sdk(error):
                runner_error = RunnerFailed(
                    maker.name, f"the SDK cannot read what the server sent ({described(error)})"
                )
            raise (runner_error or error) from error
        for value in values_in(heard.text) if heard is not None and not told else ():
            if is_answer(value, speaker):
                told = True
                if said := error_chunk(value, speaker.answer_keys):
                    failures.append(_refused(request, said, value))
                yield value
        if failures:
            raise failures[0]
        if not told:
            raise RunnerFailed(maker.name, no_answer(heard))

    async def ask(self, request: Request) -> Any:
        """The whole answer at once, as the SDK returns it: for `Session.receive`."""
        maker = provider(request.target.provider).row.maker
        try:
            return await self._call(request, streamed=False)
        except Exception as error:
            raise (self._error_for(maker, error, request) or error) from error

    async def aclose(self) -> None:
        """Close the clients that this runner has made."""
        while self._made:
            _, client = self._made.popitem()
            await (client.aio.aclose() if hasattr(client, "aio") else client.close())

    def _call(self, request: Request, *, streamed: bool) -> Awaitable[Any]:
        """Call the SDK. Arguments that its method does not have, for other servers, are put into the body with
        `extra_body`."""
        speaker = provider(request.target.provider)
        asked = speaker.sdk_call(request.body, request.target, streamed)
        client = self._client(speaker.row.maker, request)
        call = attrgetter(asked.method)(client)
        if self._once and inspect.ismethod(call):  # what somebody who watches the client has put in its place, stays
            with suppress(AttributeError, TypeError):  # no retries, or a constructor of its own
                call = attrgetter(asked.method)(client.with_options(max_retries=0))
            if hasattr(call.__self__, "sdk_configuration"):  # Google's Interactions
                resource = copy(call.__self__)
                resource.sdk_configuration = copy(resource.sdk_configuration)
                resource.sdk_configuration.retry_config = None
                call = getattr(resource, call.__name__)
        if not asked.extra_body:
            return _awaitable(call(**asked.arguments))
        parameters = inspect.signature(call).parameters
        other = {key: value for key, value in asked.arguments.items() if key not in parameters}
        if not other:
            return _awaitable(call(**asked.arguments))
        named = {key: value for key, value in asked.arguments.items() if key in parameters}
        extra_body = named.pop("extra_body", None) or {}
        return _awaitable(call(**named, extra_body={**extra_body, **other}))

    def _error_for(self, maker: Maker, error: Exception, request: Request) -> RunnerError | None:
        failed = _error_for(maker, error, request)
        unreached = {"APIConnectionError", "ConnectError"} & {kind.__name__ for kind in type(error).__mro__}
        if failed and self._once and (unreached or isinstance(failed, RunnerTimedOut)):
            failed.again = getattr(self._client(maker, request), "max_retries", 2)  # Google's do not say
        return failed

    def _client(self, maker: Maker, request: Request) -> Any:
        given = self._given.get(maker.name)
        if given is not None:
            return given
        key = maker.name, request.target.base_url
        if key not in self._made:
            self._made[key] = client_of(maker, request.target.base_url)
        return self._made[key]


def _awaitable(returned: Any) -> Awaitable[Any]:
    if not inspect.isawaitable(returned):
        raise InputError(f"the client is not asynchronous: it returned {type(returned).__name__}")
    return returned


def _errors_of(sdk: Sdk) -> type[Exception]:
    """The base class of an SDK's errors."""
    error_class = getattr(import_module(sdk.module), sdk.errors, None)
    return error_class if isinstance(error_class, type) and issubclass(error_class, Exception) else ValueError


def _error_for(maker: Maker, error: Exception, request: Request) -> RunnerError | None:
    """The RunnerError for an exception; None for a programming error, which is raised unchanged."""
    if isinstance(error, RunnerError):
        return error
    message = str(getattr(error, "message", None) or error)
    if timed_out(error):
        return _tried(RunnerTimedOut(maker.name, message=message), error)
    codes = (getattr(error, name, None) for name in ("status_code", "code"))
    status = next((code for code in codes if isinstance(code, int) and 100 <= code < 600), None)
    body = _body_of(error)
    if status is not None or body:
        wait = _told_to_wait(error)
        return _tried(_refused(request, message, body, status=status, wait=wait), error)
    if "authentication method" in message:  # anthropic without a key, when it sends
        return _without_key(maker, message)
    origins = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    if origins & _roots():
        refused = _tried(_refused(request, message, None), error)
        reason = type(error.__cause__).__name__ if error.__cause__ is not None else type(error).__name__
        base_url = request.target.base_url
        asked = f"; is there a server at {without_password(base_url)}, the target's base_url?" if base_url else ""
        failed = RunnerFailed(maker.name, f"{message} ({reason}){asked}")
        return _tried(failed, error) if isinstance(refused, RunnerFailed) else refused
    return None


def _refused(
    request: Request, message: str, body: Any, *, status: int | None = None, wait: float | None = None
) -> RunnerError:
    """The error for what a server said about a request."""
    target = request.target
    maker = provider(target.provider).row.maker
    facts = error_facts(body) if body else None
    return refusal(maker.name, _login(maker), message, status=status, wait=wait, facts=facts, server=target.server_row)


def _body_of(error: Exception) -> Any:
    """What an SDK's exception holds of the error's body: the whole of it where the SDK keeps only what stands under
    `error` (openai), which may be a text beside a code (xAI)."""
    held = next((body for name in ("body", "details") if (body := getattr(error, name, None))), None)
    if isinstance(held, str):
        with suppress(Exception):  # it is no JSON, was not read, or this SDK has no response
            return error.response.json()  # type: ignore[attr-defined]
    return held


def _tried(failed: RunnerError, error: Exception) -> RunnerError:
    """The error with how often the SDK sent the request, which SDKs made by Stainless count in a header."""
    request = getattr(error, "request", None) or getattr(getattr(error, "response", None), "request", None)
    again = str(getattr(request, "headers", {}).get("x-stainless-retry-count", ""))
    failed.tries = int(again) + 1 if again.isdigit() else 1
    return failed


_TRANSPORTS = frozenset({"httpx", "httpx2", "httpcore", "aiohttp", "botocore"})
"""The HTTP packages through which SDKs send requests."""


def _roots() -> frozenset[str]:
    """The packages of SDKs and of their HTTP clients."""
    return _TRANSPORTS | {maker.sdk.module.split(".")[0] for maker in makers().values()}


def _is_of_an_sdk(error: Exception) -> bool:
    """Whether the code of an SDK raised an exception."""
    roots = _roots()
    names = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(name.split(".")[0] in roots for name in names)


def _told_to_wait(error: Exception) -> float | None:
    """The seconds to wait that the headers of a refusal state."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers.get(name)) * unit
        except (TypeError, ValueError):  # absent, or a date
            continue
    with suppress(TypeError, ValueError):
        until, now = (parsedate_to_datetime(headers.get(name)) for name in ("retry-after", "date"))
        return max(0.0, (until - now).total_seconds())
    kinds = ("requests", "tokens")  # of OpenAI, and of many servers that imitate it: how long until there are more
    spent = (kind for kind in kinds if str(headers.get(f"x-ratelimit-remaining-{kind}", "")).strip() == "0")
    told = (seconds_to_wait(f"reset {headers.get(f'x-ratelimit-reset-{kind}')}") for kind in spent)
    return max((seconds for seconds in told if seconds is not None), default=None)


def _out_of_list(chunk: Any) -> Any:
    """A chunk; the one in a list of one, in which Gemini's imitation of OpenAI sends errors."""
    return chunk[0] if isinstance(chunk, list) and len(chunk) == 1 else chunk


def _failure_in(chunk: Any, speaker: Provider) -> str | None:
    """The failure that an event reports, None for another event. SDKs return such events instead of raising an
    error."""
    if getattr(chunk, "type", None) == "response.failed":
        failed = getattr(chunk.response, "error", None)
        reasons = [str(value) for name in ("code", "message") if (value := getattr(failed, name, None))]
        return ": ".join(reasons) or "the provider gave no reason"
    if _tells(chunk, speaker):
        return None
    reason = error_chunk(_as_json(chunk), speaker.answer_keys)
    return reason or ("the provider gave no reason" if _kind_of(chunk) == "error" else None)


def _kind_of(chunk: Any) -> Any:
    if getattr(chunk, "object", None) == "error":
        return "error"
    return getattr(chunk, "type", None) or getattr(chunk, "event_type", None)


def _tells(chunk: Any, speaker: Provider) -> bool:
    """Whether a chunk is a part of an answer, so that no error has to be looked for in it."""
    kind = _kind_of(chunk)
    if isinstance(kind, str) and "error" not in kind.lower():
        return True
    return any(getattr(chunk, key, None) is not None for key in speaker.chunk_keys)


def _as_json(chunk: Any) -> Mapping[str, Any]:
    """A chunk as JSON; its own attributes if it cannot be dumped because the server sent what its type forbids."""
    try:
        return plain(chunk, "chunk")
    except FormatError:
        return {key: value for key, value in getattr(chunk, "__dict__", {}).items() if not key.startswith("_")}


def _is_bare(chunk: Any) -> bool:
    """Whether an error event is not the one that the provider documents, which has a type of its own."""
    return _kind_of(chunk) != "error" or isinstance(getattr(chunk, "error", None), str)


def _error_event(message: str) -> dict[str, Any]:
    """An error event that the readers of all formats accept."""
    return {"type": "error", "event_type": "error", "error": {"message": message}}


async def _one(answer: Any) -> AsyncIterator[Any]:
    """A stream with one chunk: a whole answer that an SDK returned instead of a stream."""
    yield answer
