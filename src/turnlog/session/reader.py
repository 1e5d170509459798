"""Reading a session's log: records, turns, calls, contradictions. Nothing is written or remembered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec.structs import replace

from .._platform.given import flag_given, text_given
from ..errors import CorruptRecord, InputError, LogInconsistent, SessionNotFound
from ..log.messages import Part, Text, ToolCall, ToolResult
from ..log.records import Configuration, Decision, MessageRecord, PartialAnswer, Record, SessionOpened, StreamCheckpoint
from ..log.store import RecordStore, SessionInfo, Store
from ..models.target import Target
from ..providers import provider
from ..redaction import RedactingStore, Redactor
from ..redaction.store import as_kept
from ..stores.billing import made_in
from ..stores.labels import labels_of
from ..summarize.failures import Failure, is_harmless
from ..summarize.reading import failure_in
from ..tokens.counters import counter_for
from ..view.consistency import Inconsistency, inconsistencies
from ..view.file_edits import shell_text
from ..view.fold import as_left
from ..view.tool_calls import CallInfo, ToolUse, calls_of, tools_used, unanswered
from ..view.turns import TurnInfo, seconds_between, turns_of

_BEGINNING = 8
"""How many of a session's first records are searched for its source."""

_ABOUT_CALLS = ("message", "partial", "tool_started", "tool_finished", "approval", "decision")


class SessionLog:
    """The log of one session: `Session.log`, or of a session that is not opened."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self.id = session_id

    def __repr__(self) -> str:
        return f"SessionLog({self.id!r})"

    @property
    def on_disk(self) -> SessionLog:
        """The same log as it is on disk: marks also where an open session shows the text as it was given."""
        return SessionLog(as_kept(self._store), self.id)

    def records(self, first: int = 1) -> Iterator[Record]:
        """The records from number `first` on, oldest first."""
        if not isinstance(first, int):
            raise InputError(f"first must be the number of a record, not {first!r}")
        return self._store.read(self.id, first=first)

    def newest(self) -> Iterator[Record]:
        """The records, the last first."""
        return self._store.read(self.id, reverse=True)

    def of_kinds(self, *kinds: str, reverse: bool = False) -> Iterator[Record]:
        """The records of these kinds (the words in docs/format.md), oldest first, or backwards."""
        return self._store.of_kinds(self.id, [text_given("a kind", kind) for kind in kinds], reverse=reverse)

    def blob(self, sha256: str) -> bytes:
        """The bytes of a media part of the log, by `Media.sha256`. Raises BlobMissing."""
        return self._store.get_blob(text_given("sha256", sha256))

    def turns(self) -> list[TurnInfo]:
        """Every turn, oldest first: the recorded turns; where no turn was recorded, each user message begins one."""
        return turns_of(self.records())

    def calls(self) -> list[CallInfo]:
        """Every tool call, oldest first, with its outcome."""
        return calls_of(self._store.of_kinds(self.id, _ABOUT_CALLS))

    def unfinished(self) -> list[CallInfo]:
        """The calls without a result on record. Requests contain a stand-in result for each; `CallInfo.standing` tells
        what is known of the call."""
        return unanswered(self.calls())

    def tools_used(self) -> list[ToolUse]:
        """For each tool: its calls, their outcomes and times, and the tokens of its results. Where the log does not say
        how long a call ran, it is the time from its record to that of its result; results that were not counted when
        they were recorded, as in imported sessions, are counted now."""
        records = _about_calls(self._store, self.id)
        return tools_used(_measured(info, records) for info in calls_of(records.values()))

    def validate(self, *, strict: bool = False) -> list[Inconsistency]:
        """Records that contradict each other; the kinds are listed at `turnlog.view.consistency.inconsistencies`. To
        check the bytes on disk, use `turnlog verify`."""
        return inconsistencies(self.records(), strict=flag_given("strict", strict))

    @property
    def source(self) -> str:
        """The `source` setting under which the session was first opened (`interactive`, ...); empty if none was
        given."""
        return source_of(self._store, self.id)

    @property
    def message_count(self) -> int:
        """The number of messages in the log."""
        return self._store.info(self.id).messages

    @property
    def redacted(self) -> dict[str, int]:
        """The number of secrets that marks replaced in the records, by kind. Checkpoints of streams are not counted:
        the answer that followed them is."""
        counted = (record for record in self.records() if not isinstance(record.body, StreamCheckpoint))
        return dict(sum((Counter(record.redacted) for record in counted), Counter()))

    @property
    def redactor(self) -> Redactor | None:
        """The redactor that replaces secrets before records are stored; None if there is none."""
        return self._store.redactor if isinstance(self._store, RedactingStore) else None

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the session (see `Session.label`)."""
        return labels_of(self._store, self.id)

    @property
    def title(self) -> str:
        """The session's title."""
        return self._store.info(self.id).title


def tools_over(store: Store, sessions: Iterable[SessionInfo], *, since: str = "") -> list[ToolUse]:
    """As `SessionLog.tools_used`, over several sessions, only of calls from the time `since` on. A call counts once: a
    fork has those of its parent, and a resumed transcript repeats those of an older one."""
    by_id = {info.id: info for info in store.sessions()}
    told: set[int] = set()

    def calls() -> Iterator[CallInfo]:
        for session in sorted(sessions, key=lambda info: (info.created, info.id)):
            with suppress(SessionNotFound):  # deleted meanwhile
                records = _about_calls(store, session.id)
                own = _not_told(records, session, by_id, told, set())
                yield from (_measured(info, records) for info in own if info.time >= since)

    return tools_used(calls())


def own_calls(
    store: Store, session: SessionInfo, by_id: Mapping[str, SessionInfo], told: set[int], own: set[int]
) -> list[tuple[CallInfo, float, bool]]:
    """The calls of a session that are not in `told`, with their seconds and whether they failed, as
    `Memory.failed_calls` has it, without those refused; their hashes are added to `told` and to `own`. Asked for all
    sessions, the oldest first, it gives the calls that `tools_over` counts. Texts are not kept while the log is read.
    Raises as `Store.of_kinds`."""
    failures: dict[tuple[int, int], Failure] = {}
    records = {record.n: _without_texts(record, failures) for record in store.of_kinds(session.id, _ABOUT_CALLS)}
    told_now = []
    for info in _not_told(records, session, by_id, told, own):
        seconds = _seconds(info, records) if info.result and not info.synthetic else info.seconds
        counts = not info.rewound and info.result > info.record
        failure = failures.get((info.result, info.result_part)) if counts else None
        told_now.append((info, seconds, failure is not None and not is_harmless(info.call, failure)))
    return told_now


def _not_told(
    records: Mapping[int, Record], session: SessionInfo, by_id: Mapping[str, SessionInfo], told: set[int], own: set[int]
) -> list[CallInfo]:
    """The calls in these records of a session that are not in `told`. It and `own`, which get them, hold hashes: there
    may be millions."""
    calls = []
    for info in calls_of(records.values()):
        answer = getattr(records[info.record].body, "response_id", "")
        origin = (answer,) if answer else (made_in(info.record, session, by_id), info.record)
        key = hash((*origin, info.call.id))
        if key not in told:
            own.add(key)
            calls.append(info)
    told.update(own)  # not before its end: within a session, no call is another's copy
    return calls


def _without_texts(record: Record, failures: dict[tuple[int, int], Failure]) -> Record:
    """A record with its calls and results alone, without their contents; what failed is added to `failures`."""
    body = record.body
    if isinstance(body, MessageRecord | PartialAnswer):
        parts = list[Part]()
        for part in body.message.parts:
            if isinstance(part, ToolResult):
                failure = failure_in(part)
                if failure is not None and failure.outcome != "canceled":
                    failures[record.n, len(parts)] = failure
                parts.append(replace(part, parts=()))
            elif isinstance(part, ToolCall):
                command = shell_text(part)  # which tells a search that found nothing from a failure
                parts.append(replace(part, arguments={"command": command} if command else None, raw=""))
        body = replace(body, message=replace(body.message, parts=tuple(parts) or (Text(""),)))
    return replace(record, body=body, raw=None)


def _about_calls(store: RecordStore, session_id: str) -> dict[int, Record]:
    return {record.n: record for record in store.of_kinds(session_id, _ABOUT_CALLS)}


def _measured(info: CallInfo, records: Mapping[int, Record]) -> CallInfo:
    """A call with its seconds and the tokens of its result, if a tool made that."""
    if not info.result or info.synthetic:
        return info
    record = records[info.result]
    seconds = _seconds(info, records)
    tokens = info.tokens
    if not tokens and record.message is not None:
        result = record.message.parts[info.result_part]
        parts = result.parts if isinstance(result, ToolResult) else ()
        text = "\n".join(part.text for part in parts if isinstance(part, Text))
        tokens = counter_for("", getattr(records[info.record].body, "model", "")).text(text)
    return replace(info, seconds=seconds, tokens=tokens)


def _seconds(info: CallInfo, records: Mapping[int, Record]) -> float:
    return info.seconds or seconds_between(info.time, records[info.result].time) or 0.0


def recorded_messages(log: SessionLog, target: Target) -> list[Any]:
    """The conversation in the format of a target's provider, as it was recorded. See `Session.messages`."""
    speaker = provider(target.provider)
    render = speaker.render_as_recorded or speaker.render
    body = render(as_left(list(log.records())), Configuration(provider=speaker.name), target, log.blob).body
    return list(body.get(speaker.conversation) or ())


def system_record_of(log: SessionLog) -> Record | None:
    """The newest record that set the system text (of no section) at the beginning; None if there is none."""
    for record in log.of_kinds("decision", "system", reverse=True):
        if not isinstance(record.body, Decision) or record.body.action == "system":
            if not (isinstance(record.body, MessageRecord) and record.body.section):
                return record
    return None


def source_of(store: RecordStore, session_id: str) -> str:
    """The `source` setting under which a session was first opened, read from its first records only; empty if they do
    not have it, or are damaged (which reading the session reports). Raises SessionNotFound."""
    try:
        for record in store.read(session_id, last=_BEGINNING):
            if isinstance(record.body, SessionOpened):
                return record.body.source
    except CorruptRecord:
        pass
    return ""


def was_resumed(store: RecordStore, session_id: str) -> bool:
    """Whether a record shows that a session was opened again. Raises as `Store.of_kinds`."""
    openings = store.of_kinds(session_id, ("session_opened",))
    return any(isinstance(record.body, SessionOpened) and record.body.resumed for record in openings)


# -- the setting `check` ---------------------------------------------------------------------------


class Checker:
    """What `SessionLog.validate` finds in a log beyond what it found at the beginning. `how` is the setting `check`;
    `warn` takes a line for each finding. Every look reads the whole log."""

    def __init__(self, log: SessionLog, how: Literal["", "warn", "raise"], warn: Callable[[str], object]) -> None:
        self._log = log
        self._how = how
        self._warn = warn
        self._known: set[Inconsistency] | None = None

    def begin(self) -> None:
        """What is found now was there before."""
        if self._how:
            self._known = set(self._log.validate())

    def look(self, *, raises: bool = True) -> None:
        """Tell what is new, once: as warnings, or as a LogInconsistent if the setting says so and this `raises`."""
        if self._known is None:
            return
        found = [finding for finding in self._log.validate() if finding not in self._known]
        self._known.update(found)
        lines = [f"records {', '.join(map(str, each.records))}: {each.kind}: {each.detail}" for each in found]
        if lines and raises and self._how == "raise":
            raise LogInconsistent(f"records of session {self._log.id!r} contradict each other: {'; '.join(lines)}")
        for line in lines:
            self._warn(f"the log contradicts itself: {line}")
