"""What a session's log says, read when asked for; nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..errors import CorruptRecord, InputError, text_given
from ..log.records import Record, SessionOpened, StreamCheckpoint
from ..log.store import RecordStore, Store
from ..redaction import RedactingStore, Redactor
from ..view.consistency import Inconsistency, inconsistencies
from ..view.tool_calls import CallInfo, ToolUse, calls_of, tools_used, unanswered
from ..view.turns import TurnInfo, turns_of

_BEGINNING = 8
"""A session's first records, among which its source stands."""

_ABOUT_CALLS = ("message", "partial", "tool_started", "tool_finished", "approval", "decision")


class SessionLog:
    """The log of one session: `Session.log`, or of a session that is not opened."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self.id = session_id

    def __repr__(self) -> str:
        return f"SessionLog({self.id!r})"

    def records(self, first: int = 1) -> Iterator[Record]:
        """The records from number `first` on, oldest first."""
        if not isinstance(first, int):
            raise InputError(f"first is the number of a record, not {first!r}")
        return self._store.read(self.id, first=first)

    def newest(self) -> Iterator[Record]:
        """The records, the last first."""
        return self._store.read(self.id, reverse=True)

    def of_kinds(self, *kinds: str, reverse: bool = False) -> Iterator[Record]:
        """The records of these kinds (the words in docs/format.md), oldest first, or backwards."""
        return self._store.of_kinds(self.id, [text_given("a kind", kind) for kind in kinds], reverse=reverse)

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
        """What in the log does not go together; kinds as in `turnlog.view.consistency.inconsistencies`. Bytes on disk
        are another matter: see `turnlog verify`."""
        return inconsistencies(self.records(), strict=strict)

    @property
    def source(self) -> str:
        """From where the session was opened when that was first said (`config.settings.SOURCES`); empty if it never
        was."""
        return source_of(self._store, self.id)

    @property
    def message_count(self) -> int:
        """How many messages the log holds."""
        return self._store.info(self.id).messages

    @property
    def redacted(self) -> dict[str, int]:
        """How many secrets were replaced by marks in what was recorded, by kind. Those of checkpoints count in the
        answer that followed."""
        counted = (record for record in self.records() if not isinstance(record.body, StreamCheckpoint))
        return dict(sum((Counter(record.redacted) for record in counted), Counter()))

    @property
    def redactor(self) -> Redactor | None:
        """What replaces secrets in what is recorded; None if nothing does."""
        return self._store.redactor if isinstance(self._store, RedactingStore) else None

    @property
    def title(self) -> str:
        """The session's title."""
        return self._store.info(self.id).title


def source_of(store: RecordStore, session_id: str) -> str:
    """From where a session was opened when that was first said, read from its first records alone; empty where they do
    not say it, or are damaged, which others tell of. Raises SessionNotFound."""
    try:
        for record in store.read(session_id, last=_BEGINNING):
            if isinstance(record.body, SessionOpened):
                return record.body.source
    except CorruptRecord:
        pass
    return ""


def was_resumed(store: RecordStore, session_id: str) -> bool:
    """Whether it is on record that a session was opened again. Raises as `Store.of_kinds`."""
    openings = store.of_kinds(session_id, ("session_opened",))
    return any(isinstance(record.body, SessionOpened) and record.body.resumed for record in openings)
