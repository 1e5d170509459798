"""Steps of a Claude Code chain to drafts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...errors import FormatError
from ...log.messages import Message, Part, ToolResult
from ...log.records import Decision, MessageRecord, TurnClosed, TurnOpened, UsageRecord
from ...providers.anthropic import PROVIDER
from ..drafting import Drafting, result_text, title_from, without_repeats
from .steps import Entry, Step, Steps, blocks_of, is_results, message_of
from .tools import after_results, judged

_IDENTITY = frozenset(
    {
        *("type", "message", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "timestamp", "requestId"),
        *("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage"),
        *("agentId", "promptId", "toolUseResult", "sourceToolAssistantUUID", "sourceToolUseID", "compactMetadata"),
    }
)
"""Envelope keys that differ from record to record; the others are noted when they change."""

_ENVELOPE = (_IDENTITY - {"message", "toolUseResult", "compactMetadata"}) | frozenset(
    {"userType", "cwd", "version", "gitBranch", "entrypoint", "slug"}
)
"""What a note of a record that is no conversation leaves out."""

_CONVERSATION = ("user", "assistant")
_INTERRUPTED = "[Request interrupted by user"
_LOCAL = ("<local-command-", "<command-name>", "<command-message>", "<bash-")
"""What Claude Code writes as the user's words when the user ran one of its own commands."""

_UNKNOWN_TURN = "unknown"

_SOURCES = {
    "cli": "interactive",
    "claude-vscode": "interactive",
    "claude-desktop": "interactive",
    "sdk-cli": "non-interactive",
    "sdk-py": "non-interactive",
    "sdk-ts": "non-interactive",
    "mcp": "embedded-server",
}
"""What Claude Code says in `entrypoint`: `claude -p` and the SDKs ask nobody."""

_TITLES = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2), "summary": ("summary", 1)}
"""Records that name the session: their key, and how they rank."""


def draft_conversation(steps: Steps, log: Drafting) -> str:
    """Fill `log` with the drafts of a chain; returns the session's title."""
    return _Conversation(steps, log).run()


class _Conversation:
    """One pass over the steps, and what it has to remember on the way."""

    def __init__(self, steps: Steps, log: Drafting) -> None:
        self.steps = steps
        self.log = log
        self.turn = ""
        self.title, self.title_rank = "", -1
        self.compacted = 0
        self.boundary: Mapping[str, Any] | None = None
        self.number_of: dict[str, int] = {}
        self.parent_of: dict[str, str] = {}
        self.prompt_after: dict[str, int] = {}

    def run(self) -> str:
        """Draft every step; returns the title."""
        for step in self.steps:
            self.log.at(step.record.get("timestamp"))
            self.log.files.work_in(step.record.get("cwd"))
            self.log.opened(step.record.get("entrypoint"), _SOURCES)
            self._link(step)
            if step.record.get("type") in _CONVERSATION and message_of(step.record):
                context = {key: value for key, value in step.record.items() if key not in _IDENTITY}
                self.log.note_changes("context", context)
                (self._assistant if step.record["type"] == "assistant" else self._user)(step)
            else:
                self._other(step)
        return self.title

    def _link(self, step: Step) -> None:
        for entry in step.entries:
            uuid, parent = entry.record.get("uuid"), entry.record.get("parentUuid")
            if isinstance(uuid, str):
                self.number_of.setdefault(uuid, self.log.last + 1)
                if isinstance(parent, str):
                    self.parent_of[uuid] = parent

    def _message(self, step: Step, role: str) -> Message | None:
        """The step's canonical message; blocks that are none become notes and warnings."""
        blocks = [(entry, block) for entry in step.entries for block in blocks_of(entry.record)]
        content: Any = [block for _, block in blocks]
        if len(step.entries) == 1:
            content = message_of(step.record).get("content")
        message = self._parsed(role, content)
        if message is not None:
            return message
        parts: list[Part] = []
        for entry, block in blocks:
            single = self._parsed(role, [block])
            if single is None:
                self._unreadable(entry, block)
            else:
                parts.extend(single.parts)
        return Message(role=role, parts=tuple(parts)) if parts else None  # type: ignore[arg-type]

    def _parsed(self, role: str, content: Any) -> Message | None:
        try:
            parsed = PROVIDER.parse({"messages": [{"role": role, "content": content}]})
        except FormatError:
            return None
        self.log.blobs.update(parsed.blobs)
        return parsed.messages[0] if parsed.messages else None

    def _unreadable(self, entry: Entry, block: Any) -> None:
        self.log.warn(entry.line, "a content block could not be read; it is kept as a note")
        self.log.note("unreadable", block)

    def _assistant(self, step: Step) -> None:
        wire = message_of(step.entries[-1].record)
        if any(entry.record.get("isApiErrorMessage") for entry in step.entries):
            texts = [str(block.get("text", "")) for block in blocks_of(step.record) if isinstance(block, dict)]
            self.log.note("api_error", _without_envelope(step.record), "\n".join(texts))
            return
        message = self._message(step, "assistant")
        if message is None:
            self.log.warn(step.line, "an answer without readable content; it is kept as a note")
            self.log.note("unreadable", wire)
            return
        model, answer_id = wire.get("model"), wire.get("id")
        model = model if isinstance(model, str) else ""
        body = MessageRecord(
            message=message,
            model=model,
            stop=str(wire.get("stop_reason") or ""),
            response_id=answer_id if isinstance(answer_id, str) else "",
            source=step.source,
        )
        self._remember(step, self.log.add(body))
        self._usage(wire, model)
        rest = without_repeats({key: item for key, item in wire.items() if key not in _ANSWER_KEYS}, (), {})
        if rest is not None:
            self.log.note("answer", rest)

    def _usage(self, wire: Mapping[str, Any], model: str) -> None:
        raw = wire.get("usage")
        if not isinstance(raw, dict) or model == "<synthetic>":
            return
        try:
            usage = PROVIDER.parse_response({**_EMPTY_ANSWER, "model": model, "usage": raw}).usage
        except FormatError:
            usage = None
        if usage is None:
            self.log.note("usage", raw)
        else:
            self.log.add(UsageRecord(provider=PROVIDER.name, model=model, usage=usage, raw=raw))

    def _user(self, step: Step) -> None:
        record = step.record
        if is_results(record):
            self._results(step)
            return
        message = self._message(step, "user")
        if message is None:
            self.log.warn(step.line, "a user message without readable content; it is kept as a note")
            self.log.note("unreadable", record.get("message"))
            return
        text = result_text(message.parts)
        if record.get("isCompactSummary"):
            self._compact(step, message)
            return
        interrupted = text.startswith(_INTERRUPTED)
        if not interrupted and not record.get("isMeta") and not text.startswith(_LOCAL):
            self._open_turn(step, text)
        self._remember(step, self.log.add(MessageRecord(message=message, source=step.source)))
        if interrupted:
            self._close_turn("cancelled", text)

    def _results(self, step: Step) -> None:
        message = self._message(step, "user")
        extra = step.record.get("toolUseResult")
        if message is None:
            self.log.note("tool_result", extra)
            return
        single = sum(isinstance(part, ToolResult) for part in message.parts) == 1
        parts = tuple(
            judged(part, extra if single else None, self.log) if isinstance(part, ToolResult) else part
            for part in message.parts
        )
        message = msgspec.structs.replace(message, parts=parts)
        self._remember(step, self.log.add(MessageRecord(message=message, source=step.source)))
        known: list[str] = []
        for part in parts:
            if isinstance(part, ToolResult):
                known += self.steps.known.get(part.call_id, ())
        after_results(message, extra, known, self.log)

    def _open_turn(self, step: Step, text: str) -> None:
        self._rewind(step)
        if self.title_rank < 0:
            self.title = title_from(text)
            self.title_rank = 0 if self.title else -1
        own = step.record.get("promptId") or step.record.get("uuid")
        self.turn = own if isinstance(own, str) else f"line-{step.line}"
        self.log.add(TurnOpened(turn_id=self.turn))

    def _close_turn(self, status: str, reason: str = "") -> None:
        """The open turn ended. One that began before this file was cut has no id here."""
        self.log.add(TurnClosed(turn_id=self.turn or _UNKNOWN_TURN, status=status, reason=reason))
        self.turn = ""

    def _rewind(self, step: Step) -> None:
        """Somebody went back and wrote another prompt after the same message: what had come of the
        earlier prompt leaves the view. Only a second prompt with the very same place counts;
        parents are missing in real files too often to conclude more."""
        place = self._conversation_parent(str(step.record.get("parentUuid") or ""))
        if not place:
            return
        earlier = self.prompt_after.get(place)
        if earlier is not None and earlier > self.compacted and self.log.last >= earlier:
            why = "the user went back and wrote another prompt"
            self.log.add(Decision(action="rewind", first=earlier, last=self.log.last, why=why))
        self.prompt_after[place] = self.log.last + 1

    def _conversation_parent(self, uuid: str) -> str:
        """The nearest ancestor that drafted a message, by uuid."""
        seen: set[str] = set()
        while uuid and uuid not in seen:
            seen.add(uuid)
            number = self.number_of.get(uuid, 0)
            if 0 < number <= self.log.last and isinstance(self.log.drafts[number - 1].body, MessageRecord):
                return uuid
            uuid = self.parent_of.get(uuid, "")
        return ""

    def _remember(self, step: Step, number: int) -> None:
        for entry in step.entries:
            if isinstance(entry.record.get("uuid"), str):
                self.number_of[entry.record["uuid"]] = number

    def _compact(self, step: Step, summary: Message) -> None:
        boundary, self.boundary = self.boundary, None
        facts = boundary.get("compactMetadata") if boundary else None
        facts = facts if isinstance(facts, dict) else {}
        last = self.log.last
        kept = facts.get("preservedSegment")
        if isinstance(kept, dict) and isinstance(kept.get("headUuid"), str):
            last = min(last, self.number_of.get(kept["headUuid"], last + 1) - 1)
        if last > self.compacted:
            detail = {"summary": self.log.last + 2, **facts}
            first = max(1, self.compacted)
            decision = Decision(action="compact", first=first, last=last, why="Claude Code compacted", detail=detail)
            self.compacted = self.log.add(decision)
        self._remember(step, self.log.add(MessageRecord(message=summary, source=step.source)))

    def _other(self, step: Step) -> None:
        record = step.record
        kind = str(record.get("type", "unknown"))
        topic = kind
        for holder, key in ((record, "subtype"), (record.get("data"), "type"), (record.get("attachment"), "type")):
            if isinstance(holder, dict) and isinstance(holder.get(key), str):
                topic = f"{kind}/{holder[key]}"
                break
        if topic == "system/compact_boundary":
            self.boundary = record
        self._name(kind, record)
        parent_call = str(record.get("parentToolUseID") or record.get("toolUseID") or "")
        known = self.steps.known.get(parent_call, [])
        note = _without_envelope(record)
        data = note.get("data")
        if isinstance(data, dict):
            fuller = data.get("fullOutput")
            known = [*known, fuller] if isinstance(fuller, str) and fuller != data.get("output") else known
            note = {**note, "data": without_repeats(data, known, self.log.blobs)}
        self.log.note(topic, note)
        if topic == "system/turn_duration" and self.turn:
            self._close_turn("completed")

    def _name(self, kind: str, record: Mapping[str, Any]) -> None:
        if kind not in _TITLES:
            return
        key, rank = _TITLES[kind]
        name, leaf = record.get(key), record.get("leafUuid")
        foreign = leaf is not None and str(leaf) not in self.steps.uuids
        if isinstance(name, str) and name.strip() and not foreign and rank >= self.title_rank:
            self.title, self.title_rank = name.strip(), rank


_ANSWER_KEYS = frozenset({"id", "type", "role", "model", "content", "stop_reason", "usage"})
_EMPTY_ANSWER: dict[str, Any] = {"type": "message", "role": "assistant", "content": [], "stop_reason": None}


def _without_envelope(record: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in _ENVELOPE}
