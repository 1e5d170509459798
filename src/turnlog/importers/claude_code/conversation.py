"""Convert the steps of a Claude Code chain into drafts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ...errors import FormatError
from ...log.messages import Message, Reasoning, Text, ToolCall, ToolResult
from ...log.records import Approval, MessageRecord, ToolFinished, UsageRecord
from ...providers.anthropic import PROVIDER
from ..drafting import Drafting
from ..file_changes import is_patch
from ..json_values import mapping, objects, within, without, word
from ..messages import parse, read_message
from ..repeats import result_text, without_repeats
from .steps import ClaudeStep, Steps, blocks_of, is_results, message_of

# -- tools -----------------------------------------------------------------------------------------
#
# Claude Code's records about a tool result: outcome, time, changed files, and the rest.

_REFUSED = (
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
)
_TIMED_OUT = "Command timed out after"
_DURATIONS = {"durationMs": 0.001, "totalDurationMs": 0.001, "durationSeconds": 1.0}
"""Keys for the duration of a tool run, with their units in seconds."""


def judged(result: ToolResult, extra: Any) -> ToolResult:
    """The result with its outcome from the transcript."""
    text = result_text(result.parts)
    if text.startswith(_INTERRUPTED) or within(extra, "interrupted") is True:
        return replace(result, outcome="aborted")
    timed_out = result.outcome == "failed" and _TIMED_OUT in text[:200]
    return replace(result, outcome="timeout") if timed_out else result


def after_results(message: Message, extra: Any, texts: Sequence[str], log: Drafting) -> None:
    """Record what is known of the tool runs whose results are in `message`. `extra` is the record's `toolUseResult`; a
    note keeps what `texts`, the texts of the call and its result, do not contain."""
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in results:
        text = result_text(result.parts)
        call_record = log.call_record(result.call_id)
        if text.startswith(_REFUSED):
            log.add(Approval(call_id=result.call_id, state="denied", call_record=call_record, by="user", reason=text))
        elif extra is not None:
            seconds = _seconds(extra) if len(results) == 1 else 0.0
            log.add(
                ToolFinished(call_id=result.call_id, call_record=call_record, outcome=result.outcome, seconds=seconds)
            )
    call_id = results[0].call_id if results else ""
    texts = [*texts, *(_unnumbered(text) for text in texts)]
    if isinstance(extra, dict):
        recorded, has_patch = _file_change(extra, log.call_record(call_id), log)
        texts += recorded
        if has_patch:
            extra = without(extra, ("structuredPatch",))
    elif isinstance(extra, str):
        # The text of an error; the result already contains it without the prefix "Error: ".
        extra = extra.removeprefix("Error: ")
    rest = without_repeats(extra, texts, log.blobs)
    if rest is not None and not (isinstance(extra, str) and any(extra.strip() in text for text in texts)):
        log.note("tool_result", {"call_id": call_id, "result": rest})


def _seconds(extra: Any) -> float:
    for key, unit in _DURATIONS.items():
        value = within(extra, key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return round(value * unit, 6)
    return 0.0


def _unnumbered(text: str) -> str:
    """The text of a file without the line numbers that the Read tool puts before each line."""
    lines = text.split("\n")
    if "→" not in lines[0] and "\t" not in lines[0]:
        return text
    plain = []
    for line in lines:
        number, arrow, rest = line.partition("→" if "→" in line[:12] else "\t")
        plain.append(rest if arrow and number.strip().isdigit() else line)
    return "\n".join(plain)


def _file_change(extra: Mapping[str, Any], call_record: int, log: Drafting) -> tuple[list[str], bool]:
    """Record the file that an Edit, MultiEdit or Write changed. Returns the contents that were stored, and whether the
    patch can be computed from them."""
    path, old, new = extra.get("filePath"), extra.get("oldString"), extra.get("newString")
    before = extra.get("originalFile", extra.get("originalFileContents"))
    content, patch = extra.get("content"), extra.get("structuredPatch")
    if not isinstance(path, str) or not isinstance(before, (str, type(None))):
        return [], False
    if isinstance(old, str) and isinstance(new, str):
        edits: list[Any] = [{"old_string": old, "new_string": new, "replace_all": extra.get("replaceAll")}]
    elif isinstance(extra.get("edits"), list):
        edits = extra["edits"]
    elif isinstance(content, str) and extra.get("type") in ("create", "update"):
        if extra["type"] == "create":
            log.files.created(path, content, call_record)
        elif before is None:
            log.files.rewritten(path, patch, content, call_record)
        else:
            log.files.modified(path, before, content, call_record)
        return [content, before or ""], before is not None or extra["type"] == "create" or is_patch(patch)
    else:
        return [], False
    after = _edited(before, edits)
    if after is None and is_patch(patch) and _is_exact(patch, edits):
        log.files.patched(path, patch, call_record)
        return [] if before is None else [before], True
    # A file with unknown content is not a new file: the change is recorded without contents.
    log.files.modified(path, before, after, call_record)
    return [text for text in (before, after) if text is not None], after is not None


def _is_exact(patch: Any, edits: Sequence[Any]) -> bool:
    """Whether a `structuredPatch` has the exact bytes of its file. Claude Code writes a tab in it as two spaces (in 109
    of 147 real patches), so two spaces may be a tab; the texts of the edits show which."""
    lines = "".join(line[1:] for piece in patch for line in piece["lines"])
    if "\t" in lines or "  " not in lines:
        return True
    texts = "".join(str(edit.get(key)) for edit in objects(edits) for key in ("old_string", "new_string"))
    return "  " in texts and "\t" not in texts


def _edited(before: str | None, edits: Sequence[Any]) -> str | None:
    """`before` with the edits applied; None if one of them does not fit."""
    text = before
    for edit in map(mapping, edits):
        old, new = edit.get("old_string"), edit.get("new_string")
        if text is None or not isinstance(old, str) or not isinstance(new, str) or (old and old not in text):
            return None
        text = text.replace(old, new) if edit.get("replace_all") else text.replace(old, new, 1)
    return text


_IDENTITY = frozenset(
    {
        *("type", "message", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "timestamp", "requestId"),
        *("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isApiErrorMessage"),
        *("agentId", "promptId", "toolUseResult", "sourceToolAssistantUUID", "sourceToolUseID", "compactMetadata"),
    }
)
"""Envelope keys that differ in every record. The other keys are noted when their values change."""

_ENVELOPE = (_IDENTITY - {"message", "toolUseResult", "compactMetadata"}) | frozenset(
    {"userType", "cwd", "version", "gitBranch", "entrypoint", "slug"}
)
"""Keys that are left out of notes."""

_CONVERSATION = ("user", "assistant")
_INTERRUPTED = "[Request interrupted by user"
_LOCAL = ("<local-command-", "<command-name>", "<command-message>", "<bash-")
"""The beginnings of user messages that Claude Code writes when the user runs one of its commands."""

_SOURCES = {
    "cli": "interactive",
    "claude-vscode": "interactive",
    "claude-desktop": "interactive",
    "sdk-cli": "non-interactive",
    "sdk-py": "non-interactive",
    "sdk-ts": "non-interactive",
    "mcp": "mcp",
}
"""Values of `entrypoint`. With `claude -p` and the SDKs there is no user who can answer questions."""

_TITLES = {"custom-title": ("customTitle", 3), "ai-title": ("aiTitle", 2), "summary": ("summary", 1)}
"""Records with a title for the session: the key of the title, and its rank (the highest wins)."""


def draft_conversation(steps: Steps, log: Drafting) -> str:
    """Add the drafts of a chain to `log`; returns the title that the transcript has for it."""
    return _Conversation(steps, log).run()


class _Conversation:
    """One pass over the steps, with its state."""

    def __init__(self, steps: Steps, log: Drafting) -> None:
        self.steps = steps
        self.log = log
        self.title, self.title_rank = "", 0
        self.compacted = 0
        self.boundary: Mapping[str, Any] = {}
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
                self.log.note_changes("context", without(step.record, _IDENTITY))
                (self._assistant if step.record["type"] == "assistant" else self._user)(step)
            else:
                self._other(step)
        return self.title

    def _link(self, step: ClaudeStep) -> None:
        for entry in step.entries:
            uuid, parent = entry.record.get("uuid"), entry.record.get("parentUuid")
            if isinstance(uuid, str):
                self.number_of.setdefault(uuid, self.log.last + 1)
                if isinstance(parent, str):
                    self.parent_of[uuid] = parent

    def _message(self, step: ClaudeStep, role: str) -> Message | None:
        """The step's message; blocks that cannot be read become notes and warnings."""
        blocks = step.blocks
        content: Any = [block for _, block in blocks]
        for entry in step.entries[len(step.entries) == 1 :]:
            if not isinstance(message_of(entry.record).get("content"), (str, list)):
                self.log.unreadable(entry.line, "the content of a record", message_of(entry.record), "entry")
        if len(step.entries) == 1:
            content = message_of(step.record).get("content")
            if not isinstance(content, (str, list)):
                return None
        lines = [entry.line for entry, _ in blocks]
        return read_message(PROVIDER, {"role": role, "content": content}, self.log, step.line, lines=lines)

    def _assistant(self, step: ClaudeStep) -> None:
        wire = message_of(step.entries[-1].record)
        if any(entry.record.get("isApiErrorMessage") for entry in step.entries):
            texts = [str(block.get("text", "")) for block in blocks_of(step.record) if isinstance(block, dict)]
            self.log.note("api_error", without(step.record, _ENVELOPE), "\n".join(texts))
            return
        message = self._message(step, "assistant")
        if message is None:
            self.log.unreadable(step.line, "the content of an answer", wire, "entry")
            return
        model = word(wire.get("model"))
        body = MessageRecord(
            message=message,
            model=model,
            stop=str(wire.get("stop_reason") or ""),
            response_id=word(wire.get("id")),
            source=step.source,
        )
        self._remember(step, self.log.add(body))
        self._usage(step, wire, message, model)
        self.log.note_rest("answer", without(wire, _ANSWER_KEYS))

    def _usage(self, step: ClaudeStep, wire: Mapping[str, Any], said: Message, model: str) -> None:
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
            unknown = raw.get("input_tokens") is None or raw.get("output_tokens") is None
            cut = unknown or _is_placeholder(step) or _says_more(said, usage.output)
            usage = replace(usage, incomplete=usage.incomplete or cut)
            answer = word(wire.get("id"))
            self.log.add(UsageRecord(provider=PROVIDER.name, model=model, usage=usage, raw=raw, response_id=answer))

    def _user(self, step: ClaudeStep) -> None:
        record = step.record
        if is_results(record):
            self._results(step)
            return
        message = self._message(step, "user")
        if message is None:
            self.log.unreadable(step.line, "the content of a user message", record.get("message"), "entry")
            return
        text = result_text(message.parts)
        if record.get("isCompactSummary"):
            self._compact(step, message)
            return
        if record.get("isMeta"):
            message = replace(message, by_program=True)
        interrupted = text.startswith(_INTERRUPTED)
        if not interrupted and not record.get("isMeta") and not text.startswith(_LOCAL):
            self._open_turn(step)
        self._remember(step, self.log.add(MessageRecord(message=message, source=step.source)))
        if interrupted:
            self.log.close_turn("cancelled", text)

    def _results(self, step: ClaudeStep) -> None:
        message = self._message(step, "user")
        extra = step.record.get("toolUseResult")
        if message is None:
            self.log.note("tool_result", extra)
            return
        results = [part for part in message.parts if isinstance(part, ToolResult)]
        tool_extra = extra if len(results) == 1 else None
        message = self.log.with_results(message, lambda result: judged(result, tool_extra))
        self._remember(step, self.log.add(MessageRecord(message=message, source=step.source)))
        texts = [text for result in results for text in self.steps.texts_by_call.get(result.call_id, ())]
        after_results(message, extra, texts, self.log)

    def _open_turn(self, step: ClaudeStep) -> None:
        self._rewind(step)
        turn_id = step.record.get("promptId") or step.record.get("uuid")
        self.log.open_turn(turn_id if isinstance(turn_id, str) else f"line-{step.line}")

    def _rewind(self, step: ClaudeStep) -> None:
        """Record a rewind if the user went back and wrote another prompt after the same message. Only a second prompt
        with the same parent counts: in real files, parents are missing too often to conclude more."""
        place = self._conversation_parent(str(step.record.get("parentUuid") or ""))
        if not place:
            return
        earlier = self.prompt_after.get(place)
        if earlier is not None and earlier > self.compacted and self.log.last >= earlier:
            self.log.rewound(earlier, "the user went back and wrote another prompt")
        self.prompt_after[place] = self.log.last + 1

    def _conversation_parent(self, uuid: str) -> str:
        """The uuid of the nearest ancestor that became a message; "" if there is none."""
        seen: set[str] = set()
        while uuid and uuid not in seen:
            seen.add(uuid)
            number = self.number_of.get(uuid, 0)
            if 0 < number <= self.log.last and isinstance(self.log.drafts[number - 1].body, MessageRecord):
                return uuid
            uuid = self.parent_of.get(uuid, "")
        return ""

    def _remember(self, step: ClaudeStep, number: int) -> None:
        for entry in step.entries:
            if isinstance(entry.record.get("uuid"), str):
                self.number_of[entry.record["uuid"]] = number

    def _compact(self, step: ClaudeStep, summary: Message) -> None:
        facts, self.boundary = mapping(self.boundary.get("compactMetadata")), {}
        last = self.log.last
        first_kept = within(facts, "preservedSegment", "headUuid")
        if isinstance(first_kept, str):
            last = min(last, self.number_of.get(first_kept, last + 1) - 1)
        if last > self.compacted:
            detail = {"summary": self.log.last + 2, **facts}
            first = max(1, self.compacted)
            self.compacted = self.log.compacted(first, last, "Claude Code compacted", detail)
        summary = replace(summary, by_program=True)
        self._remember(step, self.log.add(MessageRecord(message=summary, source=step.source)))

    def _other(self, step: ClaudeStep) -> None:
        record = step.record
        kind = str(record.get("type", "unknown"))
        kinds = (record.get("subtype"), within(record, "data", "type"), within(record, "attachment", "type"))
        topic = next((f"{kind}/{subtype}" for subtype in kinds if isinstance(subtype, str)), kind)
        if topic == _QUEUED:
            self._queued(step, mapping(record.get("attachment")))
            return
        if topic == "system/compact_boundary":
            self.boundary = record
        self._name(kind, record)
        if message_of(record) or kind in _CONVERSATION:
            self.log.unreadable(step.line, f"the message of a record of type {kind!r}", record, "entry")
            return
        parent_call = str(record.get("parentToolUseID") or record.get("toolUseID") or "")
        texts = self.steps.texts_by_call.get(parent_call, [])
        note = without(record, _ENVELOPE)
        data = note.get("data")
        if isinstance(data, dict):
            fuller = data.get("fullOutput")
            texts = [*texts, fuller] if isinstance(fuller, str) and fuller != data.get("output") else texts
            note = {**note, "data": without_repeats(data, texts, self.log.blobs)}
        self.log.note(topic, note)
        if topic == "system/turn_duration" and self.log.turn:
            self.log.close_turn("completed")

    def _queued(self, step: ClaudeStep, attachment: Mapping[str, Any]) -> None:
        """Draft a message that was queued while the model worked and sent with the next results. The user wrote it, or
        a program (a finished task, another agent)."""
        body = {"messages": [{"role": "user", "content": attachment.get("prompt")}]}
        message = next(iter(parse(PROVIDER, body, self.log)), None)
        if message is None or not message.parts:
            self.log.unreadable(step.line, "the prompt of a queued command", attachment)
            return
        by = word(within(attachment, "origin", "kind")) or "human"
        typed = attachment.get("commandMode", "prompt") == "prompt" and by == "human" and not _is_meta(step, attachment)
        message = replace(message, by_program=not typed)
        self._remember(step, self.log.add(MessageRecord(message=message, source=step.source)))
        self.log.note_rest(_QUEUED, without(attachment, ("type", "prompt")))

    def _name(self, kind: str, record: Mapping[str, Any]) -> None:
        if kind not in _TITLES:
            return
        key, rank = _TITLES[kind]
        name, leaf = word(record.get(key)).strip(), record.get("leafUuid")
        foreign = leaf is not None and str(leaf) not in self.steps.uuids
        if name and not foreign and rank >= self.title_rank:
            self.title, self.title_rank = name, rank


def _is_meta(step: ClaudeStep, attachment: Mapping[str, Any]) -> bool:
    return True in (step.record.get("isMeta"), attachment.get("isMeta"))


def _is_placeholder(step: ClaudeStep) -> bool:
    """Whether an answer's usage was written when the answer began: no record says how it ended, and the output never
    grew. Claude Code writes such records while it streams, with outputs of 1 to 20 tokens."""
    wires = [message_of(entry.record) for entry in step.entries]
    outputs = [within(wire, "usage", "output_tokens") for wire in wires]
    return not any(wire.get("stop_reason") for wire in wires) and all(output == outputs[0] for output in outputs)


def _says_more(message: Message, output: int) -> bool:
    """Whether an answer is much longer than its billed output, which then is a figure from before its end. Of 411
    recorded answers with a final figure, none has more than 1.15 estimated tokens for each that was billed."""
    texts = [part.text for part in message.parts if isinstance(part, (Text, Reasoning))]
    texts += [part.raw_arguments for part in message.parts if isinstance(part, ToolCall)]
    tokens = sum(map(len, texts)) // _CHARACTERS
    return tokens > 2 * output and tokens - output > _MORE


_CHARACTERS = 4
"""The usual number of characters of a token."""
_MORE = 50
"""Tokens by which an estimate of a short answer may be wrong."""

_QUEUED = "attachment/queued_command"
_ANSWER_KEYS = frozenset({"id", "type", "role", "model", "content", "stop_reason", "usage"})
_EMPTY_ANSWER: dict[str, Any] = {"type": "message", "role": "assistant", "content": [], "stop_reason": None}
