"""pi sessions: `~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`.

A header line, then one entry a line. Since version 2 the entries form a tree: each entry has the id of its parent, and
after the user goes back to an earlier entry, a branch starts in the same file. The log keeps all branches in file
order; going back is a rewind. The meaning of entries follows pi's own code (github.com/badlogic/pi-mono,
packages/coding-agent/src/core/session-manager.ts and messages.ts). Messages are read in `messages`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..._platform.lazy import lazy_pattern
from ...log.messages import Message, Text, ToolCall
from ...log.records import Configuration, MessageRecord, PartialAnswer
from ...providers import PROVIDERS
from ..drafting import Drafting
from ..json_values import mapping, without, word
from ..protocol import Imported, Origin
from ..transcript import Line, Transcript
from .messages import CUT_SHORT, provider_of, read_answer, read_entry, usage_of

_FORMAT = "pi-jsonl"

_HEADER = lazy_pattern(rb'\A\s*\{[^\n]*"type"\s*:\s*"session"[^\n]*[,}]')
_OWN = lazy_pattern(
    rb'"type"\s*:\s*"(model_change|thinking_level_change|branch_summary|custom_message)"'
    rb'|"(toolCallId|stopReason|parentSession|modelId|thinkingLevel)"\s*:|"parentId"\s*:|"cwd"\s*:'
)
_ENTRIES = frozenset(
    {
        *("session", "message", "model_change", "thinking_level_change", "compaction", "branch_summary"),
        *("custom", "custom_message", "label", "session_info"),
    }
)
_PLACE = frozenset({"type", "id", "parentId", "timestamp"})
_ENDS = {"stop": "completed", "length": "completed", "aborted": "cancelled", "error": "failed"}


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by its header line or, if it has none, by pi's keys in every message."""
    if not head.lstrip(b"\0 \t\r\n").startswith(b"{"):
        return 0
    if _HEADER.search(head) and _OWN.search(head):
        return 85
    return 70 if b'"toolCallId"' in head and b'"stopReason"' in head and b'"cacheRead"' in head else 0


def read(origin: Origin) -> list[Imported]:
    """The one session of the file."""
    file = Transcript(origin)
    lines = file.objects("entry")
    if not any(word(line.value.get("type")) in _ENTRIES for line in lines):
        raise file.refused("entry of a pi session", "give a .jsonl of ~/.pi/agent/sessions")
    session = _Session(lines, Drafting(file))
    session.run()
    session_id = session.id or f"pi-{file.digest}"
    return [session.log.imported(session_id, _FORMAT, session.title, parent=session.parent)]


class _Session:
    """One pass over the entries, with its state."""

    def __init__(self, lines: list[Line], log: Drafting) -> None:
        self.lines = lines
        self.log = log
        self.id = self.parent = self.title = ""
        self.parent_of: dict[str, str] = {}
        self.state_at: dict[str, int] = {}
        """The number of the last record after each entry was drafted, by the entry's id."""
        self.state_before: dict[str, int] = {}
        """The number of the last record before each entry was drafted."""
        self.leaf = ""

    def run(self) -> None:
        """Draft every entry."""
        handlers = {
            "session": self._header,
            "message": self._message,
            "model_change": self._settings,
            "thinking_level_change": self._settings,
            "compaction": self._compaction,
            "branch_summary": self._branch_summary,
            "custom_message": self._custom_message,
            "session_info": self._named,
        }
        first_of: dict[str, Line] = {}
        for line in self.lines:
            entry, before = line.value, self.log.last
            entry_id = word(entry.get("id"))
            if entry_id and first_of.setdefault(entry_id, line).value == entry and first_of[entry_id] is not line:
                self.log.warn(line.number, f"left out: repeats line {first_of[entry_id].number}", "nothing")
                continue
            self.log.at(entry.get("timestamp"))
            self._go_back(entry, line.number)
            kind = word(entry.get("type")) or "unknown"
            handler = handlers.get(kind)
            if handler is None:
                if kind not in _ENTRIES:
                    of = f"an entry of type {kind!r}"
                    self.log.left_unread(line.number, "", without(entry, _PLACE), is_empty=False, of=of)
                self.log.note(kind, without(entry, _PLACE))
            else:
                handler(line)
            self._remember(entry, before)

    def _go_back(self, entry: dict[str, Any], number: int) -> None:
        """If an entry's parent is not the entry before it, the user went back to that parent: record a rewind."""
        entry_id = word(entry.get("id"))
        if not entry_id or "parentId" not in entry or entry.get("type") == "session":
            return
        parent = word(entry["parentId"])
        if parent == self.leaf:
            return
        if parent and parent not in self.state_at:
            what = f"its parent {parent!r} is not in the file; it was read as following the entry before it"
            self.log.warn(number, what, "nothing")
            return
        first = self.state_at.get(parent, 0) + 1
        if first <= self.log.last:
            self.log.rewound(first, "the user went back and took another branch")

    def _remember(self, entry: dict[str, Any], before: int) -> None:
        entry_id = word(entry.get("id"))
        if entry_id and entry.get("type") != "session":
            # A damaged file may repeat an id or make an entry its own ancestor: the first entry of an id counts.
            self.parent_of.setdefault(entry_id, word(entry.get("parentId")))
            self.state_at.setdefault(entry_id, self.log.last)
            self.state_before.setdefault(entry_id, before)
            self.leaf = entry_id

    def _header(self, line: Line) -> None:
        header = line.value
        session_id, parent = word(header.get("id")), word(header.get("parentSession"))
        if not self.id:
            self.id = session_id
            # A path to the file that this one was forked from; its name ends with the session's id.
            name = Path(parent.replace("\\", "/")).stem.rpartition("_")[2]
            self.parent = name if name != session_id else ""
        self.log.note("session", without(header, ("type", "timestamp")))

    def _settings(self, line: Line) -> None:
        entry = line.value
        model, maker = word(entry.get("modelId")), provider_of("", word(entry.get("provider")))
        # A configuration is recorded only for a provider that requests can be made for; the note has all of them.
        if model and maker in PROVIDERS:
            self.log.add(Configuration(provider=maker, model=model, why="the user changed the model"))
        self.log.note(word(entry["type"]), without(entry, _PLACE))

    def _message(self, line: Line) -> None:
        wire = line.value.get("message")
        role = mapping(wire).get("role")
        if not isinstance(wire, dict):
            self.log.unreadable(line.number, "an entry without its message", line.value, "entry")
        elif role == "assistant":
            self._answer(wire, line)
        else:
            message = read_entry(wire, self.log, line.number)
            if message is None:
                return
            if role == "user":
                self.log.open_turn(word(line.value.get("id")) or f"line-{line.number}")
            self.log.add(MessageRecord(message=message, source=_source(line)))
            if role == "toolResult" and wire.get("details"):
                self.log.note("tool_result", {"call_id": wire.get("toolCallId"), "details": wire["details"]})

    def _answer(self, wire: dict[str, Any], line: Line) -> None:
        message, fragments = read_answer(wire, self.log, line.number)
        stop, model = word(wire.get("stopReason")), word(wire.get("model"))
        if stop in CUT_SHORT or fragments:
            reason = word(wire.get("errorMessage")) or stop or "cut off"
            self.log.add(PartialAnswer(message=message, reason=reason, fragments=fragments, model=model))
            self.log.note("cut", {"source": _source(line), "stop": stop})
        else:
            answer_id = word(wire.get("responseId"))
            body = MessageRecord(message=message, model=model, stop=stop, response_id=answer_id, source=_source(line))
            self.log.add(body)
        usage = usage_of(wire, model)
        if usage is not None:
            self.log.add(usage)
        calls = any(isinstance(part, ToolCall) for part in message.parts)
        if stop in _ENDS and (stop in CUT_SHORT or not calls):
            self.log.close_turn(_ENDS[stop], word(wire.get("errorMessage")))

    def _compaction(self, line: Line) -> None:
        """From here on the model saw the summary, followed by the messages from the first kept entry on."""
        entry = dict(line.value)
        summary = word(entry.pop("summary", ""))
        if not summary or not self.log.last:
            self.log.note("compaction", without(line.value, _PLACE))
            return
        shown = [Message("user", (Text(summary),)), *self._kept_messages(entry)]
        self.log.compacted(1, self.log.last, "pi compacted", without(entry, _PLACE), shown)

    def _kept_messages(self, entry: dict[str, Any]) -> list[Message]:
        """The messages from the first kept entry to the compaction, on the compaction's branch."""
        path: list[str] = []
        entry_id = word(entry.get("parentId"))
        while entry_id and entry_id not in path:
            path.append(entry_id)
            entry_id = self.parent_of.get(entry_id, "")
        path.reverse()
        first, index = word(entry.get("firstKeptEntryId")), entry.get("firstKeptEntryIndex")
        if first in path:
            kept_ids = path[path.index(first) :]
            spans = [range(self.state_before[each], self.state_at[each]) for each in kept_ids]
        elif isinstance(index, int) and 0 < index < len(self.lines) and not path:
            # Version 1: no tree, but an index into the list of entries; the header has index 0.
            spans = [range(self._records_before(index), self.log.last)]
        else:
            spans = []
        bodies = [self.log.drafts[n].body for span in spans for n in span]
        return [body.message for body in bodies if isinstance(body, (MessageRecord, PartialAnswer))]

    def _records_before(self, index: int) -> int:
        place = f"line {self.lines[index].number}"
        for number, draft in enumerate(self.log.drafts):
            body = draft.body
            if isinstance(body, MessageRecord) and (body.source == place or body.source.startswith(f"{place} ")):
                return number
        return self.log.last

    def _branch_summary(self, line: Line) -> None:
        summary = word(line.value.get("summary"))
        if summary:
            self.log.add(MessageRecord(Message("user", (Text(summary),), by_program=True), source=_source(line)))
        self.log.note("branch_summary", without(line.value, (*_PLACE, "summary")))

    def _custom_message(self, line: Line) -> None:
        """Draft a message from an extension to the model; pi sends it as a user message."""
        wire = {"role": "custom", "content": line.value.get("content")}
        message = read_entry(wire, self.log, line.number)
        if message is not None:
            self.log.add(MessageRecord(message=message, source=_source(line)))
        self.log.note("custom_message", without(line.value, (*_PLACE, "content")))

    def _named(self, line: Line) -> None:
        self.title = word(line.value.get("name")).strip() or self.title
        self.log.note("session_info", without(line.value, _PLACE))


def _source(line: Line) -> str:
    entry_id = word(line.value.get("id"))
    return f"line {line.number}" + (f" id {entry_id}" if entry_id else "")
