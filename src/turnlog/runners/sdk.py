"""The official SDKs as runners. They send the request, wait and retry; what they raise becomes a RunnerError.

An SDK is imported when it is first used. Errors are recognised by what they hold (a status, a message), so that no SDK
has to be imported for that.
"""

from __future__ import annotations

import inspect
import json
import traceback
from collections.abc import AsyncIterator, Awaitable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any

from .._platform.exceptions import described, timed_out
from .._platform.texts import install_extra, without_password
from ..errors import FormatError, InputError, NotLoggedIn, RunnerError, RunnerFailed, RunnerNotFound, RunnerTimedOut
from ..models.makers import Maker, Sdk, makers
from ..providers import provider
from ..providers.error_bodies import error_chunk
from ..providers.protocol import Provider
from ..providers.sdk_objects import plain
from ..redaction import Redactor
from ..requests.request import Request
from .refusals import refusal

# -- unstreamed ------------------------------------------------------------------------------------
#
# Answers to a streamed request that are no stream: a server that cannot stream sends its whole answer, or an error.
#
# SDKs read such a body and find no event in it: the answer would be empty, and nobody would know why.

_SHOWN = 300
"""Characters of an unreadable body that an error quotes."""

_REDACTOR = Redactor()


class Overheard:
    """The HTTP response of a stream, which keeps the bytes that its SDK reads until `found` is set: until then the SDK
    has found no event in them."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._pieces: list[bytes] = []
        self.found = False
        self._asked = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    async def aiter_bytes(self, *arguments: Any, **named: Any) -> AsyncIterator[bytes]:
        """The bytes of the response, as the SDK asks for them."""
        self._asked = True
        async for piece in self._response.aiter_bytes(*arguments, **named):
            if self.found:
                self._pieces.clear()
            else:
                self._pieces.append(piece)
            yield piece

    @property
    def text(self) -> str:
        """What came without an event in it."""
        return b"".join(self._pieces).decode("utf-8", "replace")

    @property
    def description(self) -> str:
        """What came, for an error."""
        if not self._asked:
            return ""
        shown = _REDACTOR.text(self.text.strip())[0][:_SHOWN]
        kind = self._response.headers.get("content-type") or "a body without a content type"
        return f"{kind}: {shown!r}" if shown else "nothing"


def overheard(stream: Any) -> Overheard | None:
    """Listen to the response of an SDK's stream; None if it does not show one."""
    response = getattr(stream, "response", None)
    if not hasattr(response, "aiter_bytes"):
        return None
    stream.response = Overheard(response)
    found: Overheard = stream.response
    return found


def values_in(text: str) -> list[dict[str, Any]]:
    """The JSON objects that a body consists of: one, a list, one on each line, or the data of events that an SDK did
    not know."""
    lines = [line.removeprefix("data:") for line in text.splitlines()]
    for pieces in ([text], lines):
        found: list[Any] = []
        for piece in pieces:
            try:
                value = json.loads(piece)
            except (ValueError, RecursionError):
                continue
            found += value if isinstance(value, list) else [value]
        if objects := [one for one in found if isinstance(one, dict)]:
            return objects
    return []


def is_answer(value: Mapping[str, Any], speaker: Provider) -> bool:
    """Whether a JSON object is an answer of a provider, an event of one, or an error."""
    kind = value.get("type") or value.get("event_type")
    return (
        isinstance(kind, str)
        or not value.keys().isdisjoint(speaker.chunk_keys)
        or bool(error_chunk(value, speaker.answer_keys))
    )


def no_answer(heard: Overheard | None) -> str:
    """The message of the error for a stream without any part of an answer."""
    came = heard.description if heard is not None else ""
    said = f"but {came}" if came else "and the SDK does not show what it sent"
    return f"the server answered with no part of an answer, {said}"


def _login(maker: Maker) -> str:
    """What to do without a key."""
    return f"set {maker.sdk.keys[0]}"


def client_of(maker: Maker, base_url: str, **more: Any) -> Any:
    """A client with the SDK's own settings, and `more`. Raises RunnerNotFound, NotLoggedIn."""
    sdk = maker.sdk
    try:
        made = getattr(import_module(sdk.module), sdk.client)
    except ImportError as error:
        raise RunnerNotFound(maker.name, install_extra(maker.name), what=f"the SDK {sdk.module}") from error
    address: Any = base_url
    for key in reversed(sdk.address):
        address = {key: address}
    try:
        return made(**(address if base_url else {}), **more)
    except (ValueError, _errors_of(sdk)) as error:
        raise _without_key(maker, str(error)) from error


def _without_key(maker: Maker, said: str) -> NotLoggedIn:
    """The error for an SDK that found no key. What it says of arguments of its client helps nobody who only uses a
    program, and is left out."""
    return NotLoggedIn(maker.name, _login(maker), "" if "api_key" in said else said)


class SdkRunner:
    """Sends requests of all providers through their official SDKs, each to the one that its target needs.

        runner = SdkRunner(anthropic=anthropic.AsyncAnthropicBedrock())

    Clients are given, or made when they are first needed, with the SDK's own settings and the key that it finds in the
    environment; a target's `base_url` is used. `openai` serves both of OpenAI's APIs and servers that imitate them,
    `anthropic` may be a client for Bedrock or Vertex, `google` serves both of Google's APIs. Clients of openai and
    anthropic must be asynchronous. Time limits and retries are those of the clients.
    """

    def __init__(self, **clients: Any) -> None:
        """Takes a client for each maker, by name; None is as if not given. Raises InputError for a client that is not
        asynchronous, and for a name that is no maker's."""
        self._given = clients
        self._made: dict[tuple[str, str], Any] = {}
        for name, client in clients.items():
            if name not in makers():
                raise InputError(f"SdkRunner(): {name!r} makes no models; give clients for {', '.join(makers())}")
            if client is not None and not (hasattr(client, "__aenter__") or hasattr(client, "aio")):
                kind = type(client).__name__
                raise InputError(f"{name}: {kind} is not asynchronous; give the SDK's Async{kind}")

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """The chunks of the answer, as the SDK gives them; as JSON, if the server answers with one body."""
        speaker = provider(request.target.provider)
        maker = speaker.row.maker
        failed: str | None = None
        heard: Overheard | None = None
        told = has_begun = False
        try:
            chunks = await self._call(request, streamed=True)
            heard, has_begun = overheard(chunks), True
            async for chunk in chunks if hasattr(chunks, "__aiter__") else _one(chunks):
                if heard is not None:
                    heard.found = True
                error = _failure_in(chunk, speaker)
                failed, told = failed or error, told or error is not None or _tells(chunk, speaker)
                yield chunk if error is None or not _is_bare(chunk) else _error_event(error)
        except Exception as error:
            known = _error_for(maker, error, request)
            if known is None and has_begun and _is_of_an_sdk(error):
                known = RunnerFailed(maker.name, f"the SDK cannot read what the server sent ({described(error)})")
            raise (known or error) from error
        for value in values_in(heard.text) if heard is not None and not told else ():
            if is_answer(value, speaker):
                failed, told = failed or error_chunk(value, speaker.answer_keys) or None, True
                yield value
        if failed is not None:
            raise refusal(maker.name, _login(maker), failed)
        if not told:
            raise RunnerFailed(maker.name, no_answer(heard))

    async def ask(self, request: Request) -> Any:
        """The whole answer at once, as the SDK returns it: for `Session.receive`."""
        maker = provider(request.target.provider).row.maker
        try:
            return await self._call(request, streamed=False)
        except Exception as error:
            raise (_error_for(maker, error, request) or error) from error

    async def aclose(self) -> None:
        """Close the clients that this runner has made."""
        made, self._made = list(self._made.values()), {}
        for client in made:
            await (client.aio.aclose() if hasattr(client, "aio") else client.close())

    def _call(self, request: Request, *, streamed: bool) -> Awaitable[Any]:
        """Call the SDK. Keys that are no arguments of the method, as other servers have them, are put into the body by
        the SDK's own way for that."""
        speaker = provider(request.target.provider)
        asked = speaker.sdk_call(request.body, request.target.model, streamed)
        call = attrgetter(asked.method)(self._client(speaker.row.maker, request))
        if not asked.extra_body:
            return _awaitable(call(**asked.arguments))
        known = inspect.signature(call).parameters
        other = {key: value for key, value in asked.arguments.items() if key not in known}
        if not other:
            return _awaitable(call(**asked.arguments))
        named = {key: value for key, value in asked.arguments.items() if key in known}
        more = named.pop("extra_body", None) or {}
        return _awaitable(call(**named, extra_body={**more, **other}))

    def _client(self, maker: Maker, request: Request) -> Any:
        given = self._given.get(maker.name)
        if given is not None:
            return given
        key = maker.name, request.target.base_url
        if key not in self._made:
            self._made[key] = client_of(maker, request.target.base_url)
        return self._made[key]


def _awaitable(made: Any) -> Awaitable[Any]:
    if not inspect.isawaitable(made):
        raise InputError(f"the client is not asynchronous: it returned {type(made).__name__}")
    return made


def _errors_of(sdk: Sdk) -> type[Exception]:
    """The base of an SDK's errors."""
    found = getattr(import_module(sdk.module), sdk.errors, None)
    return found if isinstance(found, type) and issubclass(found, Exception) else ValueError


def _error_for(maker: Maker, error: Exception, request: Request) -> RunnerError | None:
    """What an exception means; None if it is a mistake of the program, which is raised as it is."""
    if isinstance(error, RunnerError):
        return error
    message = str(getattr(error, "message", None) or error)
    body = getattr(error, "body", None)
    if isinstance(body, str) and body and body not in message:  # {"error": "text"} in a stream
        message = f"{message}: {body}"
    if timed_out(error):
        return RunnerTimedOut(maker.name, message=message)
    status = next(
        (code for name in ("status_code", "code") if isinstance(code := getattr(error, name, None), int)), None
    )
    if status is not None:
        return refusal(maker.name, _login(maker), message, status=status, wait=_told_to_wait(error))
    if "authentication method" in message:  # anthropic without a key, when it sends
        return _without_key(maker, message)
    origins = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    if origins & _roots():
        found = refusal(maker.name, _login(maker), message)
        reason = type(error.__cause__).__name__ if error.__cause__ is not None else type(error).__name__
        own = request.target.base_url
        asked = f"; is there a server at {without_password(own)}, the target's base_url?" if own else ""
        return RunnerFailed(maker.name, f"{message} ({reason}){asked}") if isinstance(found, RunnerFailed) else found
    return None


_TRANSPORTS = frozenset({"httpx", "httpx2", "httpcore", "aiohttp", "botocore"})
"""The packages by which SDKs send requests."""


def _roots() -> frozenset[str]:
    """The packages of SDKs and of what they send requests by."""
    return _TRANSPORTS | {maker.sdk.module.split(".")[0] for maker in makers().values()}


def _is_of_an_sdk(error: Exception) -> bool:
    """Whether the code of an SDK raised an exception."""
    roots = _roots()
    names = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(name.split(".")[0] in roots for name in names)


def _told_to_wait(error: Exception) -> float | None:
    """The seconds that the headers of a refusal say to wait."""
    headers = getattr(getattr(error, "response", None), "headers", None)
    if headers is None:
        return None
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return float(headers.get(name)) * unit
        except (TypeError, ValueError):  # absent, or a date
            continue
    return None


def _failure_in(chunk: Any, speaker: Provider) -> str | None:
    """What an event says that tells of a failure; SDKs hand such events out instead of raising an error."""
    if getattr(chunk, "type", None) == "response.failed":
        failed = getattr(chunk.response, "error", None)
        said = [str(value) for name in ("code", "message") if (value := getattr(failed, name, None))]
        return ": ".join(said) or "the provider gave no reason"
    if _tells(chunk, speaker):
        return None
    found = error_chunk(_as_json(chunk), speaker.answer_keys)
    return found or ("the provider gave no reason" if _kind_of(chunk) == "error" else None)


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
    """What a chunk holds; its own attributes, if it cannot be dumped because the server sent what its type forbids."""
    try:
        return plain(chunk, "chunk")
    except FormatError:
        return {key: value for key, value in getattr(chunk, "__dict__", {}).items() if not key.startswith("_")}


def _is_bare(chunk: Any) -> bool:
    """Whether an event that tells of an error is none that the provider documents, which has a type of its own."""
    return _kind_of(chunk) != "error" or isinstance(getattr(chunk, "error", None), str)


def _error_event(said: str) -> dict[str, Any]:
    """An error as the readers of all formats take it."""
    return {"type": "error", "event_type": "error", "error": {"message": said}}


async def _one(answer: Any) -> AsyncIterator[Any]:
    """A whole answer, which an SDK returns instead of a stream, as the only chunk of one."""
    yield answer
