"""What a session's log tells of it, read when asked for; nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .calls import CallInfo, ToolUse, calls_of, tools_used, unanswered
from .consistency import Inconsistency, inconsistencies
from .costs import Cost, total_cost, total_usage
from .log import Store
from .records import Record, Usage
from .turns import TurnInfo, turns_of

__all__ = ["SessionLog"]

_ABOUT_CALLS = ("message", "partial", "tool_started", "tool_finished", "approval")


class SessionLog:
    """One session of a store, to be looked at."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self.id = session_id

    def history(self) -> list[Record]:
        """The full view: every record, notes and decisions too, oldest first."""
        return list(self._store.read(self.id))

    def records(self, first: int = 1) -> Iterator[Record]:
        """The records from number `first` on, oldest first."""
        return self._store.read(self.id, first=first)

    def turns(self) -> list[TurnInfo]:
        """Every turn, oldest first: recorded ones, and where none was, what each message of the user began."""
        return turns_of(self.records())

    def calls(self) -> list[CallInfo]:
        """Every tool call, oldest first, and what became of it."""
        return calls_of(self._store.of_kinds(self.id, _ABOUT_CALLS))

    def unfinished(self) -> list[CallInfo]:
        """The calls that no result on record answers. Requests answer them with what is known; `standing` says it."""
        return unanswered(self.calls())

    def tools_used(self) -> list[ToolUse]:
        """What was done with each tool: calls, outcomes, times, tokens of results."""
        return tools_used(self.calls())

    def validate(self, *, strict: bool = False) -> list[Inconsistency]:
        """What in the log does not go together; kinds as in `turnlog.consistency.inconsistencies`. Bytes on disk
        are another matter: see `turnlog verify`."""
        return inconsistencies(self.records(), strict=strict)

    @property
    def message_count(self) -> int:
        """How many messages the log holds."""
        return self._store.info(self.id).messages

    @property
    def usage(self) -> Usage:
        """What all requests of this session were billed, summed."""
        return total_usage(self._store.usage(self.id))

    @property
    def cost(self) -> Cost:
        """What they cost at list prices, each at its own model's."""
        return total_cost(self._store.usage(self.id))

    @property
    def redacted(self) -> dict[str, int]:
        """How many secrets were replaced by marks in what was recorded, by kind."""
        return dict(sum((Counter(record.redacted) for record in self.history()), Counter()))

    @property
    def title(self) -> str:
        """The session's title."""
        return self._store.info(self.id).title
