"""What can be mended when a model refuses a request or does not answer: a smaller request, or one without what was
refused. Sent once more; then the error says what to do."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from ..errors import BudgetError, InputError, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from ..log.budget import Budget
from ..log.messages import media_parts, sha256_hex
from ..requests.request import Request
from ..session.exclusions import exclude_for
from ..session.session import Session
from ..view.types import Shown
from .protocol import Runner

LARGE_HISTORY = 8_000
"""Tokens of a conversation above which a program that gave no answer in time is asked again with a smaller one."""

NOTE = "runner"
"""The topic of the note that tells of a request that was mended."""

_LESS = 0.5
"""The share of a request that is sent again, if nobody says how large it may be."""

_SAFE = 0.95

_CONTENT = r"(?:image|pdf|document|media|mime)"
_FAILS = (
    "process|support|valid|exceed|could not|unable|failed|download|decod|parse|too large|too many|dimension|appears"
)
_WRONG = f"(?:{_FAILS})"
_MEDIA = re.compile(f"{_WRONG}.{{0,120}}{_CONTENT}|{_CONTENT}.{{0,120}}{_WRONG}", re.IGNORECASE | re.DOTALL)
_SIGNATURE = re.compile(
    r"signature|encrypted_content|encrypted content|thinking.{0,80}(?:cannot be modified|must remain|bound)"
    r"|reasoning.{0,80}(?:could not be verified|without its required|not found)",
    re.IGNORECASE | re.DOTALL,
)
_PATH = re.compile(r"(?:messages|input|contents|content)(?:[.\[][\w]+\]?)+")
_REFUSED = (400, 404, 413, 415, 422, None)
"""Statuses with which content is refused; programs tell none."""


class RetryingRunner:
    """A runner for one session, which mends a request that failed and sends it once more.

        runner = RetryingRunner(SdkRunner(), session)

    - Too long, or, of a program, no answer in time for a conversation of more than 8,000 tokens: the conversation is
      compacted, to what the provider says that it takes. If it says that, the session's budget is lowered to it.
    - An image, a PDF or a signature that was refused: it is excluded from requests to this provider.

    What was done is on record as decisions and a note; messages are not touched. Only a request is mended to which no
    part of an answer has come. If the second one fails as well, its error is raised.
    """

    def __init__(self, runner: Runner, session: Session) -> None:
        self._runner = runner
        self._session = session

    async def stream(self, request: Request) -> AsyncIterator[Any]:
        """The chunks of the answer, to this request or to the mended one."""
        has_begun = False
        chunks = self._runner.stream(request)
        try:
            async for chunk in chunks:
                has_begun = True
                yield chunk
            return
        except RunnerError as error:
            again = None if has_begun else mended(self._session, request, error)
            if again is None:
                raise
            failed = error
        finally:
            await _closed(chunks)
        chunks = self._runner.stream(again)
        try:
            async for chunk in chunks:
                yield chunk
        except RunnerTimedOut as error:
            raise _with_advice(error, failed) from error
        finally:
            await _closed(chunks)

    async def ask(self, request: Request) -> Any:
        """The whole answer at once, to this request or to the mended one, if the runner can give it."""
        ask: Callable[[Request], Any] = self._runner.ask  # type: ignore[attr-defined]
        try:
            return await ask(request)
        except RunnerError as error:
            again = mended(self._session, request, error)
            if again is None:
                raise
        return await ask(again)

    async def aclose(self) -> None:
        """Close the runner."""
        await self._runner.aclose()


def mended(session: Session, request: Request, error: RunnerError) -> Request | None:
    """Another request after an error, made so that the error should not come again; None if nothing can be done. What
    is done for it is on record, and told in a note. `RetryingRunner` calls this for runners of all kinds."""
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
    """Compact the conversation; says what was done, "" if it cannot be made smaller."""
    counted = error.sent or request.tokens
    billed, limit = (error.tokens, error.limit) if isinstance(error, RequestTooLong) else (0, 0)
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
    """Exclude from the provider's requests what it refused; says what was done, "" if it is not known what that is."""
    provider = request.target.provider
    records = [n for shown in request.view for n in shown.records]
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
    """The hashes and URLs of the media that a message names by their place in the body; else of all that are new since
    the last answer, or of all."""
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
    """The hashes and URLs of what is at a path of a body, or at the longest part of the path that there is."""
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


def _with_advice(error: RunnerTimedOut, first: RunnerError) -> RunnerTimedOut:
    """The error of a second request, which says what can still be done."""
    smaller = isinstance(first, (RequestTooLong, RunnerTimedOut))
    return RunnerTimedOut(error.runner, error.seconds, message=error.message, smaller=smaller)


async def _closed(chunks: Any) -> None:
    if hasattr(chunks, "aclose"):
        await chunks.aclose()
