"""Sends a request again that a model did not answer: after a wait if the server was busy; mended if it was refused, or
if a program did not answer in time: smaller, or without what was refused. A mended request is sent once; if it fails
too, the error says what to do."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from math import inf
from typing import Any

from .._platform.lazy import lazy_pattern
from ..errors import BudgetError, InputError, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from ..log.budget import Budget
from ..log.messages import media_parts, sha256_hex
from ..requests.request import Request
from ..session.answer import RUNNER as NOTE
from ..session.operations import check_turn, exclude_for
from ..session.session import Session
from ..view.types import Shown
from .protocol import Runner, closed
from .waiting import LONGEST, Opening, Waits, chance

LARGE_HISTORY = 8_000
"""Tokens of a conversation above which a program that did not answer in time is asked again with a smaller one."""

_LESS = 0.5
"""The share of a request that is sent again if its limit is unknown."""

_SAFE = 0.95

_SLICE = 1.0
"""Seconds after which a wait looks whether the turn was cancelled."""

_CONTENT = r"(?:image|pdf|document|media|mime)"
_FAILS = (
    "process|support|valid|exceed|could not|unable|failed|download|decod|parse|too large|too many|dimension|appears"
)
_WRONG = f"(?:{_FAILS})"
_MEDIA = lazy_pattern(f"{_WRONG}.{{0,120}}{_CONTENT}|{_CONTENT}.{{0,120}}{_WRONG}", re.IGNORECASE | re.DOTALL)
_SIGNATURE = lazy_pattern(
    r"signature|encrypted_content|encrypted content|thinking.{0,80}(?:cannot be modified|must remain|bound)"
    r"|reasoning.{0,80}(?:could not be verified|without its required|not found)",
    re.IGNORECASE | re.DOTALL,
)
_CONTAINER = lazy_pattern(
    r"container.{0,60}(?:expired|not found|not exist|no longer|invalid)|expected container_id",
    re.IGNORECASE | re.DOTALL,
)
_CONTAINER_ID = lazy_pattern(r"\b(?:cntr|container)_(?!id\b|expired\b)\w+")
_PATH = lazy_pattern(r"(?:messages|input|contents|content)(?:[.\[][\w]+\]?)+")
_REFUSED = (400, 404, 413, 415, 422, None)
"""HTTP statuses of refused content; None as programs give no status."""


class TooLongToWait(TimeoutError):
    """A server takes a request only after the time limit of the run."""


class RetryingRunner:
    """A runner for one session, which waits or mends a failed request and sends it again.

        runner = RetryingRunner(SdkRunner(), session)

    - The server takes no more requests for now, is overloaded, or failed (500, 502): the request is sent again after
      the time that it says, else after about 1, 2, 4 and 8 seconds; at most five times, by an SDK once each. A wait of
      more than a minute is not waited, except in a run that has a time limit, nor for credit.
    - The request was too long, or a program did not answer in time in a conversation of more than 8,000 tokens: the
      conversation is compacted. If the provider states its limit, the session's budget is lowered to it.
    - An image, a PDF or a signature was refused, or a container has expired: it is excluded from requests to this
      provider.

    Decisions and a note record what was done; messages are not touched. A request is sent again only if nothing has
    come of an answer, and mended once; what then fails is raised. `sleep` waits for some seconds: at most one, again
    and again, so that a cancelled turn ends at once. `chance` gives numbers from 0 to 1, which vary waits that no
    server told.
    """

    def __init__(
        self,
        runner: Runner,
        session: Session,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = chance,
    ) -> None:
        self._left: Callable[[], float | None] = lambda: None
        self._told: Callable[[float, str], object] = lambda seconds, text: None
        self._runner: Runner = getattr(runner, "without_retries", lambda: runner)()
        self._session = session
        self._sleep = sleep
        self._chance = chance

    def during(
        self, session: Session, left: Callable[[], float | None], told: Callable[[float, str], object]
    ) -> RetryingRunner:
        """This runner for a run of a session that ends in `left()` seconds (None: when it is done). Each wait is `told`
        before it begins; one that would not end in time is not begun, others may then be longer than a minute."""
        runner = copy(self)
        runner._session, runner._left, runner._told = session, left, told
        return runner

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """The chunks of the answer, to this request or to the mended one."""
        waits, mended_for = Waits(self._chance), None
        while True:
            failed: RunnerError | None = None
            opening = Opening(request.target)
            chunks = self._runner.stream(request)
            try:
                async for chunk in chunks:
                    for each in opening.take(chunk):
                        yield each
            except RunnerError as error:
                failed = error
            finally:
                await closed(chunks)
            cause = failed or opening.failure()
            again = None
            if cause is not None and not opening.has_begun:
                again = await self._again(request, cause, waits, is_mended=mended_for is not None)
            if again is None:
                for each in opening.held:
                    yield each
                if failed is not None:
                    raise _with_advice(failed, mended_for)
                return
            mended_for = mended_for if again is request else cause
            request = again

    async def ask(self, request: Request) -> Any:
        """The whole answer at once, to this request or to the mended one, if the runner can give it."""
        ask: Callable[[Request], Any] = self._runner.ask  # type: ignore[attr-defined]
        waits, mended_for = Waits(self._chance), None
        while True:
            try:
                return await ask(request)
            except RunnerError as error:
                again = await self._again(request, error, waits, is_mended=mended_for is not None)
                if again is None:
                    raise
                mended_for = mended_for if again is request else error
                request = again

    async def aclose(self) -> None:
        """Close the runner."""
        await self._runner.aclose()

    async def _again(self, request: Request, error: RunnerError, waits: Waits, *, is_mended: bool) -> Request | None:
        """The request to send after an error: the same one after a wait, or the mended one; None if it is to be
        raised. Raises TurnCancelled, and TooLongToWait if the run would end before."""
        left = self._left()
        pause = waits.after(error, LONGEST if left is None else inf)
        if pause is None:
            return None if is_mended else mended(self._session, request, error)
        seconds = f"{pause:.3g}" if pause < 100 else f"{pause:,.0f}"
        if left is not None and pause > left:
            raise TooLongToWait(f"{error.runner} takes the next request in {seconds} s") from error
        done = f"{error.runner}: the request is sent again in {seconds} s"
        self._session.note(NOTE, done, {"message": error.message[:1_000]})
        self._told(pause, done)
        while pause > 0:
            await self._sleep(min(pause, _SLICE))
            check_turn(self._session)
            pause -= _SLICE
        return request


def mended(session: Session, request: Request, error: RunnerError) -> Request | None:
    """The request to send after an error, changed to avoid that error; None if nothing can be done. Decisions and a
    note record the change. `RetryingRunner` calls this for runners of all kinds."""
    if isinstance(error, RequestTooLong) or (_is_late(error) and request.tokens > LARGE_HISTORY):
        done = _smaller(session, request, error)
    elif isinstance(error, RunnerFailed) and error.status in _REFUSED:
        done = _without_refused(session, request, error)
    else:
        done = ""
    if not done:
        return None
    session.note(NOTE, f"{error.runner}: {done}", {"message": error.message[:1_000]})
    return session.request(request.target)


def _is_late(error: RunnerError) -> bool:
    """Whether a program gave no answer in time. SDKs try again by themselves."""
    return isinstance(error, RunnerTimedOut) and error.seconds is not None


def _smaller(session: Session, request: Request, error: RunnerError) -> str:
    """Compact the conversation and return what was done, "" if it cannot be made smaller."""
    counted = error.sent or request.tokens
    billed, limit = (error.tokens, error.limit) if isinstance(error, RequestTooLong) else (0, 0)
    billed = billed or (counted if limit < counted else 0)
    request_model = request.target.provider, request.target.model
    if session.target is None or request_model != (session.target.provider, session.target.model):
        return ""  # its decisions would be those of another model
    limit_is_known = 0 < limit < billed
    if limit_is_known and error.sent:  # a program adds its own instructions to the prompt
        most = max(counted - (billed - limit), counted // 4)
    elif limit_is_known:
        most = int(limit * min(1.0, counted / billed) * _SAFE)
    else:
        most = int(counted * _LESS)
    try:
        if limit_is_known and not error.sent:
            budget = Budget(max_tokens=most, system=0, answer=0, safety=0.0)
            session.preview(request.target, budget=budget)  # raises BudgetError if even that cannot be kept
            session.configure(budget=budget)
            return f"the provider takes {limit:,} tokens and counted {billed:,}: the budget is now {most:,} tokens"
        done = session.compact(target=request.target, budget=most)
    except (BudgetError, InputError):
        return ""
    return f"compacted from {done.before:,} to {done.after:,} tokens" if done.decisions else ""


def _without_refused(session: Session, request: Request, error: RunnerError) -> str:
    """Exclude refused content from requests to the provider and return what was done, "" if that content is unknown."""
    provider = request.target.provider
    records = [n for shown in request.view for n in shown.records]
    if _CONTAINER.search(error.message):  # pydantic-ai#7461
        gone = frozenset(_CONTAINER_ID.findall(error.message))
        items, names = exclude_for(session, provider, records, _reason(error), containers=gone)
        if gone and not (items or names):  # it says another id than its items have
            items, names = exclude_for(session, provider, records, _reason(error), containers=())
        if items or names:
            return f"what ran in a container that is gone is left out: {items or names}"
    if _SIGNATURE.search(error.message):
        _, signatures = exclude_for(session, provider, records, _reason(error), signatures=True)
        if signatures:
            return f"signatures that it refuses are left out: {signatures}"
    if _MEDIA.search(error.message):
        media, _ = exclude_for(session, provider, records, _reason(error), media=_refused_media(request, error.message))
        if media:
            return f"images or files that it refuses are left out: {media}"
    return ""


def _reason(error: RunnerError) -> str:
    return f"refused by the provider: {error.message[:200]}"


def _refused_media(request: Request, message: str) -> set[str]:
    """The hashes and URLs of the media whose places in the body the message names; else of all media since the last
    answer, else of all media."""
    named = {key for path in _PATH.findall(message) for key in _media_at(request.body, path)}
    since = max((i for i, shown in enumerate(request.view) if shown.message.role == "assistant"), default=-1)
    shown = set(_keys(request.view))
    return shown & named or set(_keys(request.view[since + 1 :])) or shown


def _keys(view: Iterable[Shown]) -> Iterator[str]:
    """The hashes, URLs and file ids of the media in messages."""
    for shown in view:
        for media in media_parts(shown.message):
            yield from filter(None, (media.sha256, media.url, media.file_id))


def _media_at(body: Any, path: str) -> Iterator[str]:
    """The hashes and URLs of media at a path of a body, or at the longest part of the path that exists."""
    for step in re.findall(r"\w+", path):
        if isinstance(body, list) and step.isdigit() and int(step) < len(body):
            body = body[int(step)]
        elif isinstance(body, dict) and step in body:
            body = body[step]
        else:
            break
    for text in _texts(body):
        yield text
        with suppress(binascii.Error, ValueError):
            yield sha256_hex(base64.b64decode(text.partition(";base64,")[2] or text, validate=True))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _with_advice(error: RunnerError, first: RunnerError | None) -> RunnerError:
    """The error of the last request; with advice on what can still be done, if `first` was the reason to mend it."""
    if first is None or not isinstance(error, RunnerTimedOut):
        return error
    smaller = isinstance(first, (RequestTooLong, RunnerTimedOut))
    advised = RunnerTimedOut(error.runner, error.seconds, message=error.message, smaller=smaller)
    advised.__cause__ = error
    return advised
