"""Every error that turnlog raises.

    TurnlogError
    ├── InputError                what the caller gave cannot be used
    │   ├── FormatError           a body, response or chunk is not in the provider's format
    │   ├── UnknownProvider       there is no provider with that name
    │   ├── SessionIdError        an id that cannot be printed, is too long, or collides with another
    │   └── ImportFailed          a transcript that no importer can read
    ├── StoreError                the store could not do what was asked
    │   ├── SessionNotFound
    │   ├── SessionExists
    │   ├── SessionBusy           somebody else has the session, or its turn
    │   ├── Conflict              somebody else appended first
    │   ├── CorruptRecord         bytes on disk differ from those that were written
    │   ├── BlobMissing           the store has no intact media bytes that a record refers to
    │   ├── StoreNotFound         there is no store at that place
    │   ├── StoreGone             the file or folder of an open store was deleted, moved or replaced
    │   ├── StoreKeyError         the key of an encrypted store is missing or wrong
    │   └── NewerStore            the store was written by a newer turnlog
    ├── BudgetError               the parts that cannot be left out do not fit the budget
    ├── RunnerError               a model did not answer a request
    │   ├── RunnerNotFound        the program or the SDK that talks to it is not installed
    │   ├── NotLoggedIn           there is no key or login, or it was refused
    │   ├── RateLimited           too many requests; says how long to wait, if that is known
    │   ├── RequestTooLong        the request is larger than the model's window
    │   ├── RunnerTimedOut        no answer in time
    │   └── RunnerFailed          anything else: the provider's message, or the program's last words
    ├── ToolServerError           a server of tools (MCP) cannot be started or reached
    ├── LogInconsistent           records that contradict each other were recorded (the setting `check`)
    └── TurnCancelled             a cancelled turn was used again

The command line exits with the exit code of the error's class. Damage in a conversation does not raise errors: it is
returned as values (`Violation`, `Edit`, `Loss`).
"""

from __future__ import annotations

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
    "LogInconsistent",
    "NewerStore",
    "NotLoggedIn",
    "RateLimited",
    "RequestTooLong",
    "RunnerError",
    "RunnerFailed",
    "RunnerNotFound",
    "RunnerTimedOut",
    "SessionBusy",
    "SessionExists",
    "SessionIdError",
    "SessionNotFound",
    "StoreError",
    "StoreGone",
    "StoreKeyError",
    "StoreNotFound",
    "ToolServerError",
    "TurnCancelled",
    "TurnlogError",
    "UnknownModelWarning",
    "UnknownProvider",
]


class TurnlogError(Exception):
    """Base of all errors of this package."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        # Most constructors take more than the text, and a process pool breaks if it cannot unpickle an error.
        return _unpickled, (type(self), self.args), self.__dict__


def _unpickled(kind: type[TurnlogError], args: tuple[Any, ...]) -> TurnlogError:
    """An error of this class, made without calling its constructor. Its attributes are set afterwards."""
    return kind.__new__(kind, *args)


class UnknownModelWarning(UserWarning):
    """A model is not in the table of models: the limits of a similar model or its provider's common limits are used."""


class InputError(TurnlogError):
    """What the caller gave cannot be used; the message names the field and what to do."""

    exit_code = 2


class FormatError(InputError):
    """A body, response or chunk is not in its provider's format. `path` is the place in it."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class UnknownProvider(InputError):
    """There is no provider with that name."""


class SessionIdError(InputError):
    """A session id that is not 1 to 200 printable characters, or differs from another only by case."""


class ImportFailed(InputError):
    """No importer can read this file; the message names the file and, if known, the line."""


class StoreError(TurnlogError):
    """The store could not do what was asked."""

    exit_code = 3


class SessionNotFound(StoreError):
    """There is no session with that id."""

    exit_code = 4


class SessionExists(StoreError):
    """There already is a session with that id."""


class SessionBusy(StoreError):
    """Somebody else has the session open for work, or a turn is open in it, and did not end in time.

    `process`, `host` and `thread` say who, `since` since when (UTC, ISO 8601); 0 or empty if it is not known.
    """

    def __init__(self, message: str, *, process: int = 0, host: str = "", thread: str = "", since: str = "") -> None:
        super().__init__(message)
        self.process = process
        self.host = host
        self.thread = thread
        self.since = since


class Conflict(StoreError):
    """The log is longer than the writer expected: somebody else appended first.

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
    """The store does not have media bytes that a record refers to, or they are damaged. Only these bytes are lost:
    requests show a line of text in their place."""

    exit_code = 5


class NewerStore(StoreError):
    """The store was written by a newer turnlog; this version must not change it."""

    exit_code = 6


class StoreNotFound(StoreError):
    """There is no store at that place."""

    def __init__(self, place: object) -> None:
        super().__init__(
            f"there is no store at {place}; check --store, TURNLOG_STORE and `turnlog config`, or create one with "
            "`turnlog import`"
        )


class StoreGone(StoreError):
    """The file or the folder of a store was deleted, moved or replaced while the store was open. Nothing was
    written."""


class StoreKeyError(StoreError):
    """An encrypted store was opened without its key or with a wrong key; or a key was given for a store that is not
    encrypted."""


class ToolServerError(TurnlogError):
    """A server of tools (MCP) cannot be started or reached, or does not say which tools it has. `server` names it."""

    exit_code = 3

    def __init__(self, server: str, why: str) -> None:
        super().__init__(f"the MCP server {server}: {why}")
        self.server = server


class LogInconsistent(TurnlogError):
    """Records that contradict each other were recorded in a session, and its setting `check` is `raise`; the message
    names them."""


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


class RunnerError(TurnlogError):
    """A model did not answer a request. `runner` names the SDK or the program that was to ask it; `message` is what
    the provider or the program said, "" if nothing."""

    exit_code = 3

    sent = 0
    """The size in tokens of the prompt that was sent instead of the request; 0: the request itself was sent."""

    tries, again = 1, 0
    """How often a runner has sent the request by itself; how often an SDK that leaves it to turnlog would do so."""

    def __init__(self, text: str, *, runner: str = "", message: str = "") -> None:
        super().__init__(text)
        self.runner = runner
        self.message = message


class RunnerNotFound(RunnerError):
    """The program or the SDK is not installed. `install` is the command that installs it."""

    def __init__(self, runner: str, install: str, *, what: str = "") -> None:
        super().__init__(f"{what or runner} is not installed; install it with: {install}", runner=runner)
        self.install = install


class NotLoggedIn(RunnerError):
    """There is no key or login for the provider, or it was refused. `login` is what to do about it."""

    def __init__(self, runner: str, login: str, message: str = "") -> None:
        said = f" ({message})" if message else ""
        super().__init__(f"{runner} is not logged in{said}; {login}", runner=runner, message=message)
        self.login = login


class RateLimited(RunnerError):
    """The provider refuses more requests for now: there were too many, or it is overloaded. `retry_after` is the
    seconds to wait as it says, None if it does not say. `exhausted`: credit or a quota of hours or days is used up, so
    that waiting a little does not help."""

    def __init__(
        self, runner: str, message: str = "", *, retry_after: float | None = None, exhausted: bool = False
    ) -> None:
        said = f" ({message})" if message else ""
        wait = "wait a minute" if retry_after is None else f"wait {retry_after:g} s"
        renewed = "wait until the quota is renewed" if retry_after is None else wait
        advice = f"add credit or {renewed}" if exhausted else wait
        super().__init__(f"{runner} is rate limited{said}; {advice}, then send the request again", runner=runner)
        self.message = message
        self.retry_after = retry_after
        self.exhausted = exhausted


class RequestTooLong(RunnerError):
    """The request is larger than the model's window. `tokens` is its size and `limit` the largest size, both as the
    provider says; 0 if it does not say."""

    exit_code = 7

    def __init__(self, runner: str, message: str = "", *, tokens: int = 0, limit: int = 0) -> None:
        sizes = f"{tokens:,} tokens" if tokens else "it does not say how many tokens"
        sizes += f", the limit is {limit:,}" if limit else ""
        super().__init__(
            f"the request is too long for {runner}: {sizes}; make it smaller (compact it, or set a "
            "smaller budget), begin afresh (clear it), or switch to a model with a larger window",
            runner=runner,
            message=message,
        )
        self.tokens = tokens
        self.limit = limit


class RunnerTimedOut(RunnerError):
    """No answer in time. `seconds` is the limit, None if it is the SDK's own. `smaller`: a smaller request was sent
    after the first, and got none either."""

    def __init__(self, runner: str, seconds: float | None = None, *, message: str = "", smaller: bool = False) -> None:
        within = "in time" if seconds is None else f"in {seconds:g} s"
        advice = "send the request again, or set a longer timeout"
        if smaller:
            within += ", nor to a smaller request"
            advice = "set a longer timeout, compact or clear the conversation, or switch to another model"
        super().__init__(f"{runner} gave no answer {within}; {advice}", runner=runner)
        self.message = message
        self.seconds = seconds


class RunnerFailed(RunnerError):
    """Anything else. `status` is the HTTP status or the exit code of the program, None if there is none; `stderr` is
    the end of what a program wrote there."""

    def __init__(self, runner: str, message: str, *, status: int | None = None, stderr: str = "") -> None:
        code = "" if status is None else f" with {status}"
        said = message or stderr.strip() or "no reason was given"
        super().__init__(f"{runner} failed{code}: {said}", runner=runner, message=message)
        self.status = status
        self.stderr = stderr
