"""The errors for providers' refusals, recognised by HTTP status if there is one, else by their text."""

from __future__ import annotations

import re

from .._platform.lazy import lazy_pattern
from ..errors import NotLoggedIn, RateLimited, RequestTooLong, RunnerError, RunnerFailed, RunnerTimedOut
from ..redaction import Redactor

_REDACTOR = Redactor()
_NUMBER = r"([\d,_]+)"
_TOO_LONG = tuple(
    lazy_pattern(pattern.replace("#", _NUMBER), re.IGNORECASE | re.DOTALL)
    for pattern in (
        # Anthropic: https://platform.claude.com/docs/en/api/errors
        r"prompt is too long: (?P<tokens>#) tokens > (?P<limit>#)",
        r"exceed context limit: (?P<tokens>#) \+ # > (?P<limit>#)",
        # OpenAI Chat, and servers that imitate it
        r"maximum context length is (?P<limit>#) tokens.*?(?:resulted in|requested(?: about)?) (?P<tokens>#) tokens",
        r"maximum context length is (?P<limit>#)",
        # Google
        r"input token count \(?(?P<tokens>#)\)? exceeds the maximum number of tokens allowed \(?(?P<limit>#)",
        # OpenAI Responses, Bedrock, programs: without figures
        r"exceeds the context window|context_length_exceeded|input tokens exceeded|prompt is too long",
        r"ran out of room in the model's context window|context window (?:is )?exceeded",
    )
)
_WAIT = lazy_pattern(
    r"(?:retry|try again|retryDelay|reset|wait)[^\d\n]{0,25}?(\d+(?:\.\d+)?)\s*(ms|s|m|seconds?|minutes?|hours?|h)\b",
    re.IGNORECASE,
)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_RATE = lazy_pattern(
    r"rate.?limit|too many requests|resource.?exhausted|overloaded|usage limit|quota|\b429\b|\b529\b|limit reached",
    re.IGNORECASE,
)
_LOGIN = lazy_pattern(
    r"not logged in|please (?:run )?/?log.?in|invalid (?:x-)?api.?key|incorrect api key|authentication|unauthori[sz]ed"
    r"|api.?key (?:is )?(?:not|missing|required)|no api key|invalid auth|set an auth method|\b401\b|credentials",
    re.IGNORECASE,
)
_TIME = lazy_pattern(r"timed? ?out|deadline exceeded", re.IGNORECASE)

_BUSY = (429, 503, 529)
_LATE = (408, 504)


def sizes_if_too_long(message: str) -> tuple[int, int] | None:
    """The tokens and the limit of a request that is too long, each 0 if the message does not say it; None for another
    message."""
    for pattern in _TOO_LONG:
        match = pattern.search(message)
        if match is not None:
            sizes = match.groupdict()
            return _whole(sizes.get("tokens")), _whole(sizes.get("limit"))
    return None


def seconds_to_wait(message: str) -> float | None:
    """How long a message says to wait, in seconds; None if it does not say."""
    match = _WAIT.search(message)
    if match is None:
        return None
    unit = match[2].lower()
    return float(match[1]) * _UNITS["ms" if unit == "ms" else unit[0]]


def refusal(
    runner: str, login: str, message: str, *, status: int | None = None, wait: float | None = None
) -> RunnerError:
    """The error for a provider's refusal; a key that the provider quotes is masked. `login` is the advice for a missing
    key, `wait` the seconds from the response's headers. A success as `status` is ignored: errors within a stream have
    it."""
    message = _REDACTOR.text(message)[0]
    status = None if status is not None and status < 300 else status
    sizes = sizes_if_too_long(message)
    if sizes is not None or status == 413:
        tokens, limit = sizes or (0, 0)
        return RequestTooLong(runner, message, tokens=tokens, limit=limit)
    if status in (401, 403) or (status is None and _LOGIN.search(message)):
        return NotLoggedIn(runner, login, message)
    if status in _BUSY or (status is None and _RATE.search(message)):
        return RateLimited(runner, message, retry_after=seconds_to_wait(message) if wait is None else wait)
    if status in _LATE or (status is None and _TIME.search(message)):
        return RunnerTimedOut(runner, message=message)
    return RunnerFailed(runner, message, status=status)


def _whole(digits: str | None) -> int:
    return int(re.sub(r"\D", "", digits or "") or 0)
