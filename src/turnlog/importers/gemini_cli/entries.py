"""A gemini-cli file as entries: the last version of each message, and the changes of the history.

The new format appends a whole message whenever it changes, so the last version of an id counts, at the position of the
first. `$rewindTo` takes back a message and all messages after it; `$set` changes the header, and may contain
`messages`, a new history that replaces the old one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Literal

from msgspec import Struct, field

from ..._platform.lazy import lazy_pattern
from ...log.texts import strings_in
from ..json_values import items, without
from ..repeats import is_empty, without_repeats
from ..transcript import Line, Transcript, json_document

_HEADER = frozenset({"sessionId", "projectHash", "startTime", "kind"})
_BY_ID = frozenset({"id", "type"})
_MESSAGES = lazy_pattern(r'"messages"\s*:\s*\[')
_FACT = lazy_pattern(r'"(sessionId|projectHash|startTime|kind)"\s*:\s*"([^"\\]*)"')
_NEXT = lazy_pattern(r'\{\s*"id"\s*:')
_decoder = json.JSONDecoder()


class GeminiEntry(Struct):
    """An entry of the file; `place` is its position in the file.

    `message`: the last version of a message. `superseded`: what only its earlier versions contain. `again`: an earlier
    history contained the message too. `header`: session facts, new or changed. `rewind`: everything from entry `target`
    on was taken back (None: no such entry). `rewritten`: the following entries replace everything from entry `target`
    on. `unreadable`: anything else.
    """

    kind: Literal["message", "header", "rewind", "rewritten", "unreadable"]
    record: Any
    line: int = 0
    place: str = ""
    superseded: list[Any] = field(default_factory=list)
    again: bool = False
    target: int | None = None
    is_header: bool = False


class GeminiSession(Struct):
    """The entries of a file, and facts of the session. `document`: the file is one JSON object."""

    entries: list[GeminiEntry]
    id: str = ""
    subagent: bool = False
    document: bool = False


def read_session(file: Transcript) -> GeminiSession:
    """The entries of a file. Damaged parts become warnings."""
    try:
        value = file.document()
    except ValueError:
        value = _cut_document(file)
    reading = _Reading(file)
    document = isinstance(value, dict) and isinstance(value.get("messages"), list)
    if document:
        reading.document(value)
    else:
        reading.lines(file.lines())
    headers = [entry.record for entry in reading.entries if entry.kind == "header"]
    return GeminiSession(
        entries=reading.entries,
        id=next((header["sessionId"] for header in headers if isinstance(header.get("sessionId"), str)), ""),
        subagent=any(header.get("kind") == "subagent" for header in headers),
        document=document,
    )


class _Reading:
    """Collects entries. `live` maps the message ids of the current history to entries; `rewritten` has the ids of the
    history that is being replaced."""

    def __init__(self, file: Transcript) -> None:
        self.file = file
        self.entries: list[GeminiEntry] = []
        self.live: dict[str, int] = {}
        self.rewritten: set[str] = set()

    def document(self, value: dict[str, Any]) -> None:
        """Read the old format. Two messages with the same id stay two: this format does not write a message twice."""
        header = without(value, ("messages",))
        self.entries.append(GeminiEntry("header", header, is_header=True))
        for index, message in enumerate(value["messages"]):
            self.message(message, 0, f"messages[{index}]", merged=False)

    def lines(self, lines: Iterable[Line]) -> None:
        """Read the new format."""
        for line in lines:
            record = line.value
            place = f"line {line.number}"
            if not isinstance(record, dict):
                self.message(record, line.number, place)
            elif isinstance(record.get("$rewindTo"), str):
                self.rewind(record, line.number, place)
            elif isinstance(record.get("$set"), dict):
                self.patch(record["$set"], line.number, place)
            elif "type" not in record and record.keys() & _HEADER:
                header = without(record, ("messages",))
                self.entries.append(GeminiEntry("header", header, line.number, place, is_header=True))
                self.messages(record.get("messages"), line.number)
            else:
                self.message(record, line.number, place)

    def messages(self, messages: Any, line: int) -> None:
        """Add the messages of a list that is on one line."""
        for index, message in enumerate(items(messages)):
            self.message(message, line, f"line {line} messages[{index}]")

    def message(self, record: Any, line: int, place: str, *, merged: bool = True) -> None:
        """Add a message: a new one, or a new version of a known one."""
        if not isinstance(record, dict) or not isinstance(record.get("type"), str):
            self.file.warn(line, f"{place}: not a message; it is kept as a note", "entry")
            self.entries.append(GeminiEntry("unreadable", record, line, place))
            return
        message_id = record.get("id")
        if not isinstance(message_id, str):
            self.entries.append(GeminiEntry("message", record, line, place))
            return
        index = self.live.get(message_id) if merged else None
        if index is None:
            self.live[message_id] = len(self.entries)
            again = message_id in self.rewritten
            self.entries.append(GeminiEntry("message", record, line, place, again=again))
            return
        entry = self.entries[index]
        lost = _lost(entry.record, record)
        if lost is not None:
            entry.superseded.append(lost)
        entry.record = record
        entry.place = f"{entry.place.replace('line ', 'lines ', 1)}, {line}"

    def rewind(self, record: dict[str, Any], line: int, place: str) -> None:
        """Take messages back. gemini-cli clears everything if the target is missing; here nothing is taken back in this
        case, so that one bad line does not lose the session."""
        target = self.live.get(record["$rewindTo"])
        if target is None:
            what = f"the rewind target {record['$rewindTo']!r} is not in the conversation; nothing was taken back"
            self.file.warn(line, what, "nothing")
        else:
            self.live = {message_id: index for message_id, index in self.live.items() if index < target}
        self.entries.append(GeminiEntry("rewind", record, line, place, target=target))

    def patch(self, patch: dict[str, Any], line: int, place: str) -> None:
        """Add a change of the header, or of the whole history (compression, masked tool output)."""
        header = without(patch, ("messages",))
        if header:
            self.entries.append(GeminiEntry("header", header, line, place))
        if isinstance(patch.get("messages"), list):
            target = min(self.live.values(), default=None)
            self.entries.append(GeminiEntry("rewritten", None, line, place, target=target))
            self.rewritten = set(self.live)
            self.live = {}
            self.messages(patch["messages"], line)
            self.rewritten = set()
        elif "messages" in patch:
            self.message(patch["messages"], line, place)


def _lost(earlier: dict[str, Any], later: dict[str, Any]) -> Any:
    """What only the earlier version of a message contains, None if there is nothing."""
    changed = {key: item for key, item in earlier.items() if key not in _BY_ID and not _grew(item, later.get(key))}
    return without_repeats(changed, list(strings_in(later)), {}) if changed else None


def _grew(earlier: Any, later: Any) -> bool:
    """Whether the later value contains the earlier one."""
    if isinstance(earlier, list) and isinstance(later, list):
        return later[: len(earlier)] == earlier
    return is_empty(earlier) or earlier == later


def _cut_document(file: Transcript) -> Any:
    """The readable part of a damaged document of the old format: a header and messages. None if the file is not such a
    document, for example JSON lines."""
    text = file.data.decode("utf-8", "replace")
    start = _MESSAGES.search(text)
    if start is None or '"type"' in text[: start.start()] or _is_json(text.lstrip().partition("\n")[0]):
        return None
    messages: list[Any] = []
    candidate = _NEXT.search(text, start.end())
    while candidate is not None:
        position = candidate.end()
        try:
            _, end = _decoder.raw_decode(text, candidate.start())
            value = json_document(text[candidate.start() : end].encode())
        except (ValueError, RecursionError):
            value = {}
        # Otherwise it may be a tool call inside a damaged message.
        if isinstance(value.get("type"), str) and "timestamp" in value:
            messages.append(value)
            position = end
        candidate = _NEXT.search(text, position)
    file.warn(0, f"the JSON is damaged or cut; {len(messages)} messages of it could be read")
    return {**dict(_FACT.findall(text[: start.start()])), "messages": messages}


def _is_json(text: str) -> bool:
    try:
        json_document(text.encode())
    except ValueError:
        return False
    return True
