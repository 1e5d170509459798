"""Collecting the records of one session while an importer reads a transcript."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec
from msgspec.structs import replace

from .._platform.lazy import lazy_pattern
from ..log.messages import Message, ToolCall, ToolResult, sha256_hex
from ..log.records import Body, Decision, MessageRecord, Note, PartialAnswer, SessionOpened, TurnClosed, TurnOpened
from ..log.store import Draft
from ..log.usage import Usage, is_uncounted, tokens_billed
from ..providers.protocol import Reply
from ..session.titles import title_of
from .edits import KnownChange, record_call
from .file_changes import ChangedFiles
from .protocol import Damage, Imported, Lost, session_id_of
from .repeats import result_text, without_repeats
from .transcript import Transcript
from .unread import is_hollow, named, unread, unread_keys

UNREADABLE = "unreadable"
"""The topic of notes with values that could not be read."""

_LINE = lazy_pattern(r"lines? (\d+)")


def as_utc(value: Any) -> str:
    """A time in the format of records (UTC, ISO 8601, milliseconds); "" if `value` is not a time.

    Accepts ISO 8601 text (taken as UTC if it has no time zone) and seconds or milliseconds since 1970.
    """
    is_time = isinstance(value, (str, int, float)) and not isinstance(value, bool)
    return _as_utc(value) if is_time else ""


@lru_cache(maxsize=64)
def _as_utc(value: str | float) -> str:
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        else:
            moment = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def billed(counts: Mapping[str, Any], keys: Mapping[str, str]) -> Usage:
    """The usage of a request; `keys` maps each field of `Usage` to its key in `counts`."""
    figures: dict[str, Any] = {field: tokens_billed(counts.get(key)) for field, key in keys.items()}
    return Usage(**figures, incomplete=is_uncounted(*map(counts.get, keys.values())))


class Drafting:
    """Collects the drafts of one session. `add` returns the record number that a draft will have.

    `beside`: the session is not the first of its file. The `warnings` of the first session include the damage to the
    file; those of the others only their own. `turn`: the id of the open turn, "" if no turn is open. `known`: by call,
    what the program says of its change to a file, until its result is added. With `edits`, the file changes of calls
    that succeeded are recorded, as far as their arguments tell.
    """

    def __init__(self, transcript: Transcript, *, beside: bool = False, edits: bool = False) -> None:
        self.transcript = transcript
        self.warnings = [] if beside else transcript.warnings
        self.drafts: list[Draft] = []
        self.blobs: dict[str, bytes] = {}
        self.files = ChangedFiles(self.add, self.blob, self.blobs)
        self.turn = ""
        self.known: dict[str, KnownChange] = {}
        self._time = ""
        self._has_edits = edits
        self._calls: dict[str, tuple[int, ToolCall]] = {}
        self._is_opened = False
        self._context: dict[str, dict[str, Any]] = {}
        self._echoes: dict[tuple[str, str], str] = {}
        self._unread: dict[tuple[str, Lost], list[int]] = {}

    # -- records ---------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The number of the last record so far."""
        return len(self.drafts)

    @property
    def messages(self) -> list[Message]:
        """The messages so far."""
        return [draft.body.message for draft in self.drafts if isinstance(draft.body, MessageRecord)]

    def at(self, time: Any) -> None:
        """Set the time of records added from now on; a `time` that cannot be read changes nothing."""
        self._time = as_utc(time) or self._time

    def add(self, body: Body) -> int:
        """Append a record and return its number."""
        self.drafts.append(Draft(body, self._time))
        number = self.last
        if isinstance(body, MessageRecord):
            self._report_unread(body)
            for part in body.message.parts:
                if isinstance(part, ToolCall):
                    self._calls[part.id] = (number, part)
            for part in body.message.parts if self._has_edits else ():
                if isinstance(part, ToolResult) and part.outcome == "ok" and (call := self.call(part.call_id)):
                    self.edited(call, result_text([part]))
        return number

    def edited(self, call: ToolCall, said: str = "") -> None:
        """Record the file changes of a call that succeeded; `said` is its result."""
        record_call(call, said, self.files, self.call_record(call.id), self.known.pop(call.id, None))

    def left_unread(
        self, line: int, place: str, values: Mapping[str, Any], *, is_empty: bool, of: str = "a message"
    ) -> None:
        """Report the keys of `values` that hold content. `values` stand beside the content of a message (or of what
        `of` names) and become a note. `is_empty`: there is no other content."""
        if keys := unread_keys(values, is_empty=is_empty):
            where = "" if line or not place else f"{place}: "
            self.warn(line, f"{where}not read: {named(keys)} of {of}", "entry" if is_empty else "part")

    def _report_unread(self, body: MessageRecord) -> None:
        descriptions = unread(body.message)
        if not descriptions:
            return
        place = _LINE.match(body.source)
        where = "" if place else f"{body.source}: " if body.source else ""
        lost: Lost = "entry" if is_hollow(body.message) else "part"
        for what in descriptions:
            self.warn(int(place[1]) if place else 0, f"{where}not read: {what}", lost)

    def reply(self, reply: Reply, source: str, reason: str) -> None:
        """Append a parsed answer with its media. An incomplete answer becomes a partial answer; `reason` is used if it
        has no error of its own."""
        self.blobs.update(reply.blobs)
        if reply.complete and not reply.fragments:
            message, stop, answer_id = reply.message, reply.stop, reply.response_id
            self.add(MessageRecord(message, model=reply.model, stop=stop, response_id=answer_id, source=source))
        else:
            reason = reply.error or reason
            self.add(PartialAnswer(reply.message, reason, fragments=reply.fragments, model=reply.model))

    def opened(self, said: Any, sources: Mapping[str, str]) -> None:
        """Record once where the session was opened, if `sources` has a name for the transcript's word `said`."""
        source = sources.get(said) if isinstance(said, str) else None
        if source and not self._is_opened:
            self._is_opened = True
            self.add(SessionOpened(source))

    def open_turn(self, turn_id: str) -> None:
        """Record that a turn began."""
        self.turn = turn_id
        self.add(TurnOpened(turn_id=turn_id))

    def close_turn(self, status: str, reason: str = "", *, turn_id: str = "") -> None:
        """Record that the open turn ended. If the turn began before the start of a cut file, its id is not known
        here."""
        self.add(TurnClosed(turn_id=turn_id or self.turn or "unknown", status=status, reason=reason))
        self.turn = ""

    def compacted(
        self, first: int, last: int, reason: str, detail: Mapping[str, Any], shown: Sequence[Message] = ()
    ) -> int:
        """Record that the model saw other messages from here on in place of records `first` to `last`; returns the
        number of the decision. `shown` are these messages, if they are not records of the log."""
        if shown:
            detail = {**detail, "replacement": json.loads(json.dumps(msgspec.to_builtins(shown)))}
        return self.add(Decision(action="compact", first=first, last=last, why=reason, detail=dict(detail)))

    def rewound(self, first: int, reason: str) -> None:
        """Record that the user went back to before record `first`."""
        self.add(Decision(action="rewind", first=first, last=self.last, why=reason))

    # -- calls -----------------------------------------------------------------------------------

    def call(self, call_id: str) -> ToolCall | None:
        """The latest call with that id, None if there was none."""
        latest = self._calls.get(call_id)
        return latest[1] if latest else None

    def call_record(self, call_id: str) -> int:
        """The record of the latest call with that id, 0 if there was none."""
        latest = self._calls.get(call_id)
        return latest[0] if latest else 0

    def call_name(self, call_id: str) -> str:
        """The name of the tool of the latest call with that id, "" if there was none, or if its message calls several
        tools under that id: then only the order of the results shows which is whose."""
        body = self.drafts[self.call_record(call_id) - 1].body if self.call_record(call_id) else None
        parts = body.message.parts if isinstance(body, MessageRecord) else ()
        names = {part.name for part in parts if isinstance(part, ToolCall) and part.id == call_id}
        return names.pop() if len(names) == 1 else ""

    def with_results(self, message: Message, judged: Callable[[ToolResult], ToolResult]) -> Message:
        """The message with each tool result replaced by what `judged` returns for it, and with the names of their
        tools."""
        results = {i: judged(part) for i, part in enumerate(message.parts) if isinstance(part, ToolResult)}
        if not results:
            return message
        named = {
            i: replace(result, name=result.name or self.call_name(result.call_id)) for i, result in results.items()
        }
        return replace(message, parts=tuple(named.get(i, part) for i, part in enumerate(message.parts)))

    # -- notes and damage --------------------------------------------------------------------------

    def blob(self, data: bytes) -> str:
        """Store bytes; returns the blob's name."""
        name = sha256_hex(data)
        self.blobs[name] = data
        return name

    def warn(self, line: int, message: str, lost: Lost = "part") -> None:
        """Report damage on a line (0: in the whole file), and what is lost by it."""
        self.warnings.append(Damage(self.transcript.name, line, message, lost))

    def count(self, what: str, line: int, lost: Lost = "part") -> None:
        """Report what is not read, once for each kind: with its first line, and how often it was met."""
        self._unread.setdefault((what, lost), []).append(line)

    def unreadable(self, line: int, what: str, value: Any, lost: Lost = "part") -> None:
        """Record `value`, which cannot be read, as a note, and report it."""
        self.warn(line, f"{what} could not be read; it is kept as a note", lost)
        self.note(UNREADABLE, value)

    def note(self, topic: str, data: Any, text: str = "") -> int:
        """Record something outside the conversation."""
        return self.add(Note(topic=topic, text=text, data=data))

    def note_rest(self, topic: str, values: Any, texts: Sequence[str] = (), **about: Any) -> None:
        """Record `values` as a note, without what `texts` already contain; `about` is added to the note."""
        rest = without_repeats(values, texts, self.blobs)
        if rest is not None:
            self.note(topic, {**about, **rest} if isinstance(rest, dict) else rest)

    def note_changes(self, topic: str, values: Mapping[str, Any]) -> None:
        """Record as a note those of `values` that changed since the last note with that topic."""
        last_values = self._context.setdefault(topic, {})
        changed = {key: value for key, value in values.items() if key not in last_values or last_values[key] != value}
        if changed:
            last_values.update(changed)
            self.note(topic, changed)

    def echo(self, topic: str, key: str) -> None:
        """Mark the note recorded now as an echo: the text at its `key` repeats a message, which may follow it."""
        self._echoes[self._time, topic] = key

    # -- the session -----------------------------------------------------------------------------

    def imported(
        self, session_id: str, form: str, title: str = "", *, parent: str = "", files: Sequence[str] = ()
    ) -> Imported:
        """The finished session, from its transcript and other `files`. `session_id` and `parent` are the transcript's
        own ids. With an empty `title`, it is that of the messages (`title_of`).

        Records from before the first known time get that time: imports are deterministic, and a record without a time
        would get the clock time of the store.
        """
        first = next((draft.time for draft in self.drafts if draft.time), "")
        name = self.transcript.name
        for (what, lost), lines in self._unread.items():
            times = f" ({len(lines):,} times)" if len(lines) > 1 else ""
            self.warnings.append(Damage(name, lines[0], f"not read: {what}{times}", lost, len(lines)))
        return Imported(
            session_id=session_id_of(session_id),
            format=form,
            title=title or title_of(self.messages),
            parent=session_id_of(parent) if parent else "",
            drafts=tuple(draft if draft.time or not first else Draft(draft.body, first) for draft in self.drafts),
            blobs=self.blobs,
            warnings=tuple(self.warnings),
            files=(self.transcript.name, *files),
            echoes={(time or first, topic): key for (time, topic), key in self._echoes.items()},
        )
