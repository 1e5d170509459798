"""What exceptions say, whoever raised them: turnlog, an SDK, a tool, or `asyncio`."""

from __future__ import annotations

from ..errors import TurnCancelled


def described(error: BaseException) -> str:
    """The class of an error and its text; without a text, or if making it fails, the class."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a foreign error; the end that it causes must be recorded all the same
        said = ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def place_of(error: BaseException) -> str:
    """An error, and the module and line that raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" ({trace.tb_frame.f_globals.get('__name__', '?')}, line {trace.tb_lineno})" if trace else ""
    return f"{type(error).__name__}: {error}{place}"


_TIMEOUTS = frozenset(
    {"TimeoutError", "TimeoutExpired", "TimeoutException", "Timeout", "APITimeoutError", "RunnerTimedOut"}
)
"""Names of exceptions for time limits: those of Python, subprocess, httpx, requests, and the SDKs of models."""


def timed_out(error: BaseException) -> bool:
    """Whether an exception means that time ran out. Decided by its name: those of most libraries are not
    TimeoutErrors."""
    return any(kind.__name__ in _TIMEOUTS for kind in type(error).__mro__)


def cancellations(error: BaseException | None) -> list[TurnCancelled]:
    """The cancellations that an error consists of: itself, or the members of an `asyncio.TaskGroup`'s group; empty if
    the group contains any other error."""
    if not isinstance(error, BaseExceptionGroup):
        return [error] if isinstance(error, TurnCancelled) else []
    inner = [cancellations(one) for one in error.exceptions]
    return [one for found in inner for one in found] if all(inner) else []
