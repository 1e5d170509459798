"""Output of `claude -p --output-format stream-json`, and recordings of the Claude Agent SDK.

One JSON object a line, or a recording `{"messages": [{"direction", "message"}]}` of the same objects in both
directions. Kinds as declared in npm @anthropic-ai/claude-agent-sdk, sdk.d.ts. The records mean the same as those of
Claude Code's session files under other names, so they are renamed and read by the same code. Without
`--replay-user-messages` the prompt is not in the output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .._platform.lazy import lazy_pattern
from ..errors import FormatError
from ..log.messages import text_of
from ..log.records import MessageRecord, PartialAnswer
from ..providers.anthropic import PROVIDER
from ..providers.protocol import Assembler
from .claude_code.conversation import draft_conversation
from .claude_code.steps import ClaudeRecord, Steps
from .drafting import Drafting
from .json_values import objects, within, without, word
from .protocol import Imported, Origin, hashed_id
from .transcript import Line, Transcript

_FORMAT = "claude-stream-json"

_KINDS = frozenset({"system", "assistant", "user", "result", "stream_event", "control_request", "control_response"})
_TYPED = lazy_pattern(rb'"type"\s*:\s*"(%s)"' % "|".join(sorted(_KINDS)).encode())
_MARKS = lazy_pattern(
    rb'"(parent_tool_use_id|claude_code_version|duration_api_ms)"\s*:|"subtype"\s*:\s*"(init|success)"'
)
_RECORDING = lazy_pattern(rb'"direction"\s*:\s*"(send|recv)"')
_HEAD = 1 << 16
_SESSION = lazy_pattern(rb'"(session_id|request_id)"\s*:')
_OURS = ("parentUuid", "isSidechain", "leafUuid")
_CONVERSATION = ("user", "assistant")
_ENVELOPE = frozenset({"type", "subtype", "session_id", "uuid", "timestamp"})


def sniff(head: bytes, path: Path | None) -> int:
    """Recognised by the kinds of records of a session file, with keys in snake case."""
    if not head.lstrip(b"\0 \t\r\n").startswith(b"{"):
        return 0
    return 75 if _TYPED.search(head) and _SESSION.search(head) and _MARKS.search(head) else 0


def read(origin: Origin) -> list[Imported]:
    """The session, then its subagents."""
    file = Transcript(origin)
    lines = _records(file)
    if not any(_is_kind(line.value) for line in lines):
        printed = "what `claude -p --output-format stream-json --verbose` printed"
        raise file.refused("record of Claude's stream-json output", f"give {printed}")
    session_id = _session_of(lines) or hashed_id("claude", lines[0].value)
    chains: dict[str, list[Line]] = {"": []}
    for line in lines:
        chains.setdefault(_chain(line.value), []).append(line)
    return [_imported(chain, session_id, agent, Drafting(file, beside=bool(agent))) for agent, chain in chains.items()]


def _records(file: Transcript) -> list[Line]:
    """The records of the lines, or of a recording; positions in a recording count from 1."""
    # A recording extends over many lines; in a stream, the first line already is a record.
    recorded = _RECORDING.search(file.data[:_HEAD])
    messages = within(file.document_or_rest("messages"), "messages") if recorded else None
    lines = file.lines()
    if isinstance(messages, list):
        lines = (
            Line(number, entry.get("message") if isinstance(entry, dict) and "direction" in entry else entry)
            for number, entry in enumerate(messages, 1)
        )
    records: list[Line] = []
    user_messages: list[Any] = []
    for line in file.objects("record", lines):
        if not (line.value.get("isReplay") is True and line.value.get("message") in user_messages):
            records.append(line)
            if line.value.get("type") == "user":
                user_messages.append(line.value.get("message"))
    return records


def _is_kind(value: Mapping[str, Any]) -> bool:
    return word(value.get("type")) in _KINDS and not any(key in value for key in _OURS)


def _session_of(lines: Iterable[Line]) -> str:
    """The first session id that Claude assigned. Messages sent to Claude may call the session "default"."""
    ids = (word(line.value.get("session_id")) for line in lines)
    return next((session_id for session_id in ids if session_id not in ("", "default")), "")


def _chain(record: Mapping[str, Any]) -> str:
    """The id of the call that started the subagent of this record; "" for the main conversation."""
    return word(record.get("parent_tool_use_id")) if record.get("type") in (*_CONVERSATION, "stream_event") else ""


def _imported(lines: list[Line], main_id: str, agent: str, log: Drafting) -> Imported:
    entries = _as_session_file([line for line in lines if line.value.get("type") != "stream_event"])
    title = draft_conversation(Steps(entries), log)
    _streamed(lines, log)
    if not agent:
        _report_results(lines, log)
    session_id, parent = (f"{main_id}.agent-{agent}", main_id) if agent else (main_id, "")
    return log.imported(session_id, _FORMAT, title, parent=parent)


def _as_session_file(lines: Iterable[Line]) -> list[ClaudeRecord]:
    """The records in the shape of a session file."""
    entries: list[ClaudeRecord] = []
    compacted = False
    answer = ""
    for line in lines:
        record = line.value
        kind, subtype = record.get("type"), record.get("subtype")
        if kind in _CONVERSATION and isinstance(record.get("message"), dict):
            entry = {key: record[key] for key in ("type", "message", "uuid", "timestamp") if key in record}
            if "tool_use_result" in record:
                entry["toolUseResult"] = record["tool_use_result"]
            if record.get("isSynthetic") is True:
                # After a compaction Claude writes the summary as a user message.
                entry["isCompactSummary" if compacted else "isMeta"] = True
                compacted = False
            if error := word(record.get("error")):
                entry |= {"isApiErrorMessage": True, "error": error}
            answer = _text(record["message"]) if kind == "assistant" else answer
        else:
            rest = without(record, _ENVELOPE)
            if kind == "result" and rest.get("result") == answer:
                del rest["result"]
            entry = {key: record[key] for key in ("type", "subtype", "uuid", "timestamp") if key in record}
            entry["data"] = rest
            if subtype == "compact_boundary":
                compacted = True
                entry["compactMetadata"] = record.get("compact_metadata")
            call_id = within(rest, "request", "tool_use_id")
            if isinstance(call_id, str):
                entry["toolUseID"] = call_id
        entries.append(ClaudeRecord(line.number, entry))
    return entries


def _report_results(lines: Iterable[Line], log: Drafting) -> None:
    """Report the answer of a run that printed only its result (`--output-format json`) and no message."""
    if any(isinstance(draft.body, PartialAnswer) for draft in log.drafts) or log.messages:
        return
    for line in lines:
        if line.value.get("type") == "result" and line.value.get("is_error") is not True:
            log.left_unread(line.number, "", {"result": line.value.get("result")}, is_empty=True, of="a run")


def _text(message: Mapping[str, Any]) -> str:
    texts = [block.get("text") for block in objects(message.get("content")) if block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _streamed(lines: Iterable[Line], log: Drafting) -> None:
    """Record answers that exist only as partial messages (`--include-partial-messages`) because the stream ended before
    the whole message. The other partial messages repeat whole messages."""
    bodies = [draft.body for draft in log.drafts if isinstance(draft.body, MessageRecord) and draft.body.response_id]
    whole = {body.response_id: text_of(body.message) for body in bodies}
    assembler: Assembler | None = None
    begun = 0
    for line in [line for line in lines if line.value.get("type") == "stream_event"]:
        event = line.value.get("event")
        if within(event, "type") == "message_start":
            _cut_answer(assembler, begun, whole, log)
            assembler, begun = PROVIDER.assembler(), line.number
        if assembler is None:
            log.warn(line.number, "left out: a piece of an answer without its beginning")
            continue
        try:
            assembler.feed(event)
        except FormatError as error:
            log.warn(line.number, f"left out: a piece of an answer: {error}")
    _cut_answer(assembler, begun, whole, log)


def _cut_answer(assembler: Assembler | None, begun: int, whole: Mapping[str, str], log: Drafting) -> None:
    if assembler is None:
        return
    reply = assembler.reply()
    text = whole.get(reply.response_id)
    if text is None:
        if (reply.complete and not reply.fragments) or reply.message.parts or reply.fragments:
            log.reply(reply, f"line {begun}", "the stream ended early")
    elif not reply.complete and text_of(reply.message) not in text:  # complete blocks are already a message
        log.blobs.update(reply.blobs)
        log.note("partial", {"response_id": reply.response_id}, text_of(reply.message))
