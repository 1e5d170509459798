"""Every error turnlog raises.

    TurnlogError
    ├── InputError                what the caller handed over cannot be used
    │   ├── FormatError           a body, response or chunk that is not the provider's
    │   ├── UnknownProvider       no provider of that name
    │   ├── SessionIdError        an id that could leave its folder or collide
    │   └── ImportFailed          a transcript that no importer can read
    ├── StoreError                the store could not do what was asked
    │   ├── SessionNotFound
    │   ├── SessionExists
    │   ├── Conflict              somebody else appended first
    │   ├── CorruptRecord         bytes on disk do not match what was written
    │   ├── BlobMissing           media bytes that a record names are gone
    │   ├── StoreKeyError         an encrypted store and no key, or the wrong one
    │   └── NewerStore            written by a newer turnlog
    ├── BudgetError               the irreducible part does not fit the window
    └── TurnCancelled             a turn that was cancelled is asked for more

Each class carries the exit code that the command line ends with. Damage in a conversation is no
error: it comes back as values (`Violation`, `Edit`, `Loss`).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

__all__ = [
    "BlobMissing",
    "BudgetError",
    "Conflict",
    "CorruptRecord",
    "FormatError",
    "ImportFailed",
    "InputError",
    "NewerStore",
    "SessionExists",
    "SessionIdError",
    "SessionNotFound",
    "StoreError",
    "StoreKeyError",
    "TurnCancelled",
    "TurnlogError",
    "UnknownProvider",
    "cancellations",
    "described",
    "is_async",
    "no_store",
    "text_given",
    "timed_out",
]


class TurnlogError(Exception):
    """Base of all errors of this package."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        # Most are made of more than what they say, and a pool of processes breaks by an error that it cannot hand over.
        return _as_it_was, (type(self), self.args), self.__dict__


def _as_it_was(kind: type[TurnlogError], said: tuple[Any, ...]) -> TurnlogError:
    """An error that was made elsewhere, without its attributes."""
    return kind.__new__(kind, *said)


class InputError(TurnlogError):
    """What the caller handed over cannot be used; the message names the field and what to do."""

    exit_code = 2


class FormatError(InputError):
    """A body, response or chunk is not shaped as its provider's are. `path` says where."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class UnknownProvider(InputError):
    """No provider of that name is known."""


class SessionIdError(InputError):
    """A session id that could leave its folder or collide on a case-insensitive disk."""


class ImportFailed(InputError):
    """No importer can read this file; the message names the file and, where known, the line."""


class StoreError(TurnlogError):
    """The store could not do what was asked."""

    exit_code = 3


class SessionNotFound(StoreError):
    """There is no session of that id."""

    exit_code = 4


class SessionExists(StoreError):
    """A session of that id is there already."""


class Conflict(StoreError):
    """The log is longer than the writer believed: somebody else appended first.

    `expected` and `actual` are numbers of the last record.
    """

    def __init__(self, session_id: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"session {session_id!r}: the last record is {actual}, not {expected}, as somebody else appended; read the "
            "new records and append again"
        )
        self.expected = expected
        self.actual = actual


class CorruptRecord(StoreError):
    """Bytes on disk differ from those that were written. `record` is the record's number, if one is known."""

    exit_code = 5

    def __init__(self, message: str, *, record: int | None = None) -> None:
        super().__init__(message)
        self.record = record


class BlobMissing(StoreError):
    """The store does not have media bytes that a record refers to."""

    exit_code = 5


class NewerStore(StoreError):
    """The store was written by a newer turnlog; this version must not change it."""

    exit_code = 6


class StoreKeyError(StoreError):
    """An encrypted store was opened without its key or with a wrong key; or a key was given for a store that is not
    encrypted."""


class TurnCancelled(TurnlogError):
    """A cancelled turn was used again. The turn's own `with` block catches this exception."""

    def __init__(self, turn_id: str, reason: str) -> None:
        super().__init__(f"turn {turn_id!r} was cancelled" + (f": {reason}" if reason else ""))
        self.turn_id = turn_id
        self.reason = reason


class BudgetError(TurnlogError):
    """The parts of a request that cannot be left out do not fit the budget.

    `given` is the limit you set; `limit` is `given` minus a margin, as providers may bill more tokens than were
    counted. `floor` itemises the parts that cannot be left out, in tokens.
    """

    exit_code = 7

    def __init__(self, limit: int, floor: dict[str, int], *, given: int = 0, advice: Sequence[str] = ()) -> None:
        total = sum(floor.values())
        items = ", ".join(f"{name} {tokens:,}" for name, tokens in floor.items() if tokens)
        margin = f" ({given:,} minus a margin, as providers may bill more tokens than were counted)"
        margin = margin if given > limit else ""
        *more, last = advice or ("",)
        help_ = f"; what would help: {', '.join(more)}{' or ' if more else ''}{last}" if last else ""
        super().__init__(
            f"the request cannot fit: {total:,} tokens cannot be left out ({items}), "
            f"the limit is {limit:,}{margin}, {total - limit:,} too many{help_}"
        )
        self.limit = limit
        self.given = given or limit
        self.floor = floor


def no_store(place: object) -> StoreError:
    """The error for a store that does not exist."""
    return StoreError(
        f"there is no store at {place}; check --store, TURNLOG_STORE and `turnlog config`, or create one with "
        "`turnlog import`"
    )


def text_given(name: str, value: Any) -> str:
    """`value`, if it is text; else InputError, which names the argument."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, not {type(value).__name__}")
    return value


def is_async(call: Any) -> bool:
    """Whether a function, or an object that can be called, returns an awaitable."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(getattr(call, "__call__", None))  # noqa: B004


def described(error: BaseException) -> str:
    """The class of an error and its text; the text is empty if making it fails."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error of somebody else's making; what it ends must be put on record all the same
        said = ""
    return f"{type(error).__name__}: {said}"


_TIMEOUTS = frozenset({"TimeoutError", "TimeoutExpired", "TimeoutException", "Timeout", "APITimeoutError"})
"""Names of exceptions for a time limit: Python's, subprocess's, those of httpx, requests, and the SDKs of models."""


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
