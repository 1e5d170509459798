"""Sessions of qwen-code: `~/.qwen/projects/<folder>/chats/<id>.jsonl`. Claude Code's tree of lines around messages of
Google's API.

Kinds are those of `ChatRecord` in packages/core/src/services/chatRecordingService.ts of QwenLM/qwen-code. A message may
be written in pieces, each a line of the same `uuid`. Side records do not move the conversation: they may be written
again at the end, or below a branch that the user left.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ..log.messages import Message, Outcome, ToolResult
from ..log.usage import tokens_billed
from ..providers.google import PROVIDER
from .fields import Fields, kind_of
from .json_values import mapping, objects, without, word
from .messages import read_message
from .protocol import Imported, Origin, hashed_id
from .repeats import is_empty, result_text
from .transcript import Transcript
from .writing import Handler, SessionWriter, kinds, sets

_USAGE = {
    "input": "promptTokenCount toolUsePromptTokenCount",
    "output": "candidatesTokenCount",
    "cached": "cachedContentTokenCount",
    "reasoning": "thoughtsTokenCount",
}
_WITH_THOUGHTS = {**_USAGE, "output": "candidatesTokenCount thoughtsTokenCount"}
_OUTCOMES: dict[str, Outcome] = {"success": "ok", "error": "failed", "cancelled": "canceled"}
_MOVING = ("user", "assistant", "tool_result", "rewind")
_ENVELOPE = (
    *("uuid", "parentUuid", "sessionId", "timestamp", "type", "subtype", "version", "provenance", "promptId"),
    *("isSidechain", "daemonPromptId", "agentName", "agentId"),
)
_NOISE = "contextWindowSize responseParts titleSource"


def read(origin: Origin) -> list[Imported]:
    """The session."""
    file = Transcript(origin)
    lines = file.objects("record")
    if not any(word(line.value.get("type")) in (*_MOVING, "system") for line in lines):
        raise file.refused("record of qwen-code", "give a file of ~/.qwen/projects/*/chats")
    writer = SessionWriter(file, "qwen-code", PROVIDER, envelope=_ENVELOPE, noise=_NOISE)
    for line in lines:
        entry = Fields(line.value)
        writer.id = writer.id or word(entry.value.get("sessionId"))
        writer.at(entry.value.get("timestamp"))
        kind = kind_of(entry, "type")
        kind = kind_of(entry, "subtype") if kind == "system" else kind
        _follow(writer, entry, kind, line.number)
        folder, branch = entry.text("cwd"), entry.text("gitBranch")
        if kind in _MOVING:
            writer.place(folder, gitBranch=branch)
        writer.take(entry, line.number, kind, _HANDLERS)
    writer.id = writer.id or (file.path.stem if file.path else hashed_id("qwen-code", lines[0].value))
    return [writer.done()]


def _follow(writer: SessionWriter, entry: Fields, kind: str, line: int) -> None:
    """Put the record at its place in the tree; the children of side records follow the record before these."""
    record, parent = word(entry.value.get("uuid")), word(entry.value.get("parentUuid"))
    sides = writer.state.setdefault("sides", {})
    parent = sides.get(parent, parent)
    if kind not in _MOVING:
        sides[record] = parent
    elif record and record != writer.state.get("last"):
        writer.branch(record, parent, line)
        writer.state["last"] = record


def _message(writer: SessionWriter, content: Any, line: int) -> Message:
    """A content of Google's API as a message, an empty one if there is nothing in it that can be read."""
    has_parts = not is_empty(mapping(content).get("parts"))
    read = read_message(PROVIDER, content, writer.log, line) if has_parts else None
    return read or Message("user", ())


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    typed, wire, model = entry.inside("systemPayload").text("displayText"), entry.get("message"), entry.text("model")
    message = _message(writer, wire, line)
    is_user = entry.text("type") == "user"
    is_program = is_user and entry.value.get("provenance") not in (None, "", "real_user")
    if is_user and not is_program and entry.value.get("subtype") != "mid_turn_user_message":
        writer.turn(f"line-{line}")
    writer.model = model or writer.model
    is_more = writer.state.get("record") == entry.value.get("uuid")
    writer.state["record"] = entry.value.get("uuid")
    if entry.value.get("type") == "assistant":
        writer.say("assistant", message.parts, line, joined=is_more, model=model)
    else:
        writer.say(message.role, message.parts, line, joined=is_more, by_program=is_program)
    if typed not in result_text(message.parts):
        writer.note("typed", {"text": typed})
    writer.note("message", without(mapping(wire), ("role", "parts")))
    _billed(writer, entry)


def _billed(writer: SessionWriter, entry: Fields) -> None:
    """Some servers count thoughts in the candidates: the total tells."""
    usage = mapping(entry.get("usageMetadata"))
    known = tokens_billed(usage.get("promptTokenCount")) + tokens_billed(usage.get("candidatesTokenCount"))
    is_more = tokens_billed(usage.get("totalTokenCount")) > known
    writer.usage(usage, _WITH_THOUGHTS if is_more else _USAGE)


def _returned(writer: SessionWriter, entry: Fields, line: int) -> None:
    ran = entry.inside("toolCallResult")
    status = ran.text("status")
    message = _message(writer, entry.get("message"), line)
    outcome: Outcome | None = _OUTCOMES.get(status)
    parts = [
        replace(part, outcome=outcome or part.outcome) if isinstance(part, ToolResult) else part
        for part in message.parts
    ]
    writer.say("user", parts, line, joined=True)
    call_id, display = ran.text("callId"), ran.value.get("resultDisplay")
    before, call = mapping(display).get("originalContent"), writer.log.call(call_id)
    if isinstance(before, str) and call is not None:
        path = word(mapping(call.arguments).get("file_path"))
        writer.log.files.seen(path, before)
        ran.inside("resultDisplay").skip("originalContent", "newContent", "fileDiff", "fileName")
    if isinstance(display, str) and display in result_text(message.parts):
        ran.skip("resultDisplay")
    if not message.parts:
        writer.result(call_id, display or ran.get("error"), line, outcome=outcome or "ok")


def _compressed(writer: SessionWriter, entry: Fields, line: int) -> None:
    payload = entry.inside("systemPayload")
    history = (_message(writer, content, line) for content in objects(payload.get("compressedHistory")))
    shown = [message for message in history if message.parts]
    info = mapping(payload.get("info"))
    if info.get("compressionStatus") in (1, None) and shown and writer.log.messages:
        writer.compact("qwen-code compressed", "", info, messages=shown)
    else:
        writer.note("compression", payload.value)


def _counted(writer: SessionWriter, entry: Fields, line: int) -> None:
    """Figures of an answer that its record has too, and what else the program counts."""
    event = entry.inside("systemPayload", "uiEvent")
    if event.text("event.name").endswith(".api_response"):
        event.skip(*event.value)


_HANDLERS: dict[str, Handler | None] = {
    **kinds("user assistant", _said),
    "tool_result": _returned,
    "chat_compression": _compressed,
    "custom_title": sets(title="systemPayload.customTitle"),
    "parent_session": sets(parent="systemPayload.parentSessionId"),
    "ui_telemetry": _counted,
    **kinds(
        "rewind slash_command at_command session_source session_model session_approval_mode goal_state "
        "attribution_snapshot file_history_snapshot notification background_task_completed agent_bootstrap "
        "agent_retry agent_launch_prompt agent_session_ready branch_checkpoint session_artifact_event "
        "session_artifact_snapshot session_sources_snapshot goal_turn_end turn_result session_notes "
        "user_text_elements omni_recall session_execution_engine"
    ),
}
