"""Events of GitHub Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`, `<id>.jsonl` before; and what
`copilot --output-format json` printed, which has pieces of answers too.

Kinds are those of docs/features/streaming-events.md in github/copilot-sdk. Subagents write into the same file.
"""

from __future__ import annotations

from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.messages import Message, Text
from ..log.usage import tokens_billed
from ..providers.openai_chat import PROVIDER
from ..redaction.store import cut_title
from .fields import Fields
from .json_values import mapping, objects, word
from .parts import called, media, texts, thoughts
from .protocol import Imported, Origin, hashed_id, with_own_ids
from .transcript import Line, Transcript
from .writing import Handler, SessionWriter

_USAGE = {
    "input": "inputTokens",
    "output": "outputTokens",
    "cached": "cacheReadTokens",
    "cache_write": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
}
_USAGE_BEFORE = {"input": "input", "output": "output", "cached": "cachedInput"}
"""The figures of a compaction in earlier versions."""
_NAME = lazy_pattern(r"(?m)^(?:name|summary):[ \t]*([^\s|>].*?)[ \t]*$")
_ENVELOPE = ("type", "id", "timestamp", "parentId", "ephemeral", "agentId", "parentToolCallId")


def read(origin: Origin) -> list[Imported]:
    """The session, then those of its subagents."""
    file = Transcript(origin)
    lines = file.objects("event", file.lines(among_text=True))
    if not any(word(line.value.get("type")) in _HANDLERS for line in lines):
        raise file.refused("event of Copilot CLI", "give a file of ~/.copilot/session-state")
    main = SessionWriter(file, "copilot-cli", PROVIDER, envelope=_ENVELOPE)
    writers = {"": main}
    main.title, main.files = _titled_beside(file)
    main.id = (
        next(filter(None, map(_session_id, lines)), "") or _named(file) or hashed_id("copilot-cli", lines[0].value)
    )
    for line in lines:
        event, data = line.value, mapping(line.value.get("data"))
        agent = word(event.get("agentId")) or word(data.get("parentToolCallId"))
        if agent not in writers:
            writers[agent] = SessionWriter(file, "copilot-cli", PROVIDER, beside=True, envelope=_ENVELOPE)
            writers[agent].id, writers[agent].parent = f"{main.id}.agent-{agent}", main.id
        writer = writers[agent]
        writer.at(event.get("timestamp"))
        event_id, before = word(event.get("id")) or f"line-{line.number}", writer.state.get("event", "")
        writer.state.setdefault("before", {})[event_id] = before
        kind = word(event.get("type")) or "unknown"
        if kind != "session.snapshot_rewind":
            writer.branch(event_id, before, line.number)
        writer.state |= {"event": event_id, "kind": kind}
        rest = {key: value for key, value in event.items() if key not in _ENVELOPE and not (key == "data" and data)}
        writer.take(Fields({**rest, **data}), line.number, kind, _HANDLERS)
    for writer in writers.values():
        _cut_off(writer)
    return with_own_ids(writer.done() for writer in writers.values())


def _session_id(line: Line) -> str:
    data = mapping(line.value.get("data"))
    is_start = line.value.get("type") == "session.start"
    return word(data.get("sessionId")) if is_start else word(line.value.get("sessionId"))


def _named(file: Transcript) -> str:
    if file.path is None or "session-state" not in file.path.parts:
        return ""
    return file.path.parent.name if file.path.stem == "events" else file.path.stem


def _titled_beside(file: Transcript) -> tuple[str, list[str]]:
    """The title in the `workspace.yaml` beside the file, and that file."""
    path = file.path.with_name("workspace.yaml") if file.path is not None else None
    if path is None or not path.is_file():
        return "", []
    named = _NAME.search(path.read_text("utf-8", "replace"))
    return cut_title(named[1].strip("\"'")) if named else "", [str(path)]


def _began(writer: SessionWriter, data: Fields, line: int) -> None:
    _unbilled(writer)
    writer.model = data.text("selectedModel") or writer.model
    _placed(writer, data.inside("context") if "context" in data.value else data)
    data.skip("sessionId", "startTime", "resumeTime", "eventCount", "version")


def _placed(writer: SessionWriter, context: Fields) -> None:
    writer.log.files.work_in(context.text("cwd"))
    writer.facts("context", {key: context.text(key) for key in ("cwd", "gitRoot", "repository", "branch")})


def _moved(writer: SessionWriter, data: Fields, line: int) -> None:
    _placed(writer, data)


def _switched(writer: SessionWriter, data: Fields, line: int) -> None:
    writer.model = data.text("newModel") or writer.model
    writer.facts("model", {"model": writer.model})
    data.skip("previousModel")


def _instructed(writer: SessionWriter, data: Fields, line: int) -> None:
    content = data.text("content")
    data.skip("role")
    if content != writer.state.get("system"):
        writer.state["system"] = content
        writer.say("system", texts(content), line)


def _asked(writer: SessionWriter, data: Fields, line: int) -> None:
    content, source = data.text("content"), data.text("source")
    is_program = source not in ("", "user")
    if not is_program:
        writer.turn(f"line-{line}")
    blobs = [mapping(each) for each in objects(data.value.get("attachments")) if each.get("type") == "blob"]
    shown = [media(word(each.get("data")), word(each.get("mimeType")), writer.log.blob) for each in blobs]
    writer.say("user", [*texts(content), *filter(None, shown)], line, by_program=is_program)
    sent = data.text("transformedContent")
    others = [each for each in objects(data.value.get("attachments")) if each not in blobs or None in shown]
    if blobs or others:
        data.skip("attachments")
    data.skip(
        "interactionId", "messageId", "turnId", "delivery", "parentAgentTaskId", "supportedNativeDocumentMimeTypes"
    )
    writer.note("user.message", {"sent": sent if sent != content else "", "attachments": others, "source": source})


def _thought(writer: SessionWriter, data: Fields, line: int) -> None:
    """Thinking as an event of its own, which the message before or behind it may repeat."""
    text, before = data.text("content"), writer.state.get("thought", "")
    data.skip("reasoningId")
    if text not in (before, writer.state.get("told", "")):
        writer.say("assistant", thoughts(text, PROVIDER.name), line, joined=bool(before))
        writer.state["thought"] = text


def _answered(writer: SessionWriter, data: Fields, line: int) -> None:
    before, text = writer.state.pop("thought", ""), data.text("reasoningText")
    writer.state["told"] = text
    writer.state.pop("pieces", None)
    writer.model = data.text("model") or writer.model
    encrypted = data.text("reasoningOpaque") or data.text("encryptedContent")
    text = "" if text == before else text
    parts: list[Any] = [*thoughts(text, PROVIDER.name, encrypted=encrypted), *texts(data.text("content"))]
    for request in data.each("toolRequests"):
        call_id = request.text("toolCallId")
        request.skip("type", "toolTitle", "intentionSummary")
        call = called(call_id, request.text("name"), request.get("arguments"))
        if call_id not in writer.state.setdefault("calls", {}):
            parts.append(call)
        writer.state["calls"][call_id] = True
    written = writer.state.setdefault("written", {})
    written[writer.model] = written.get(writer.model, 0) + tokens_billed(data.get("outputTokens"))
    data.skip("messageId", "interactionId", "phase", "turnId")
    data.skip("requestId", "serviceRequestId", "apiCallId")
    writer.say("assistant", parts, line, joined=bool(before), model=writer.model)


def _piece(writer: SessionWriter, data: Fields, line: int) -> None:
    """A printed piece of an answer: the whole answer comes behind it, unless the run was broken off."""
    text = data.text("deltaContent", "inputDelta")
    data.skip("messageId", "reasoningId", "phase", "toolCallId", "toolType", "toolName", "totalResponseSizeBytes")
    writer.state.setdefault("pieces", []).append((writer.state["kind"], text, line))


def _cut_off(writer: SessionWriter) -> None:
    for kind, text, line in writer.state.pop("pieces", []):
        if kind == "assistant.tool_call_delta":
            writer.log.count("a piece of a call that was never made", line)
        elif text:
            part = thoughts(text, PROVIDER.name) if kind == "assistant.reasoning_delta" else texts(text)
            writer.say("assistant", part, line, piece=True)
    writer.flush()


def _started(writer: SessionWriter, data: Fields, line: int) -> None:
    """Remember a call of which no message tells: the user made it, or the message is missing."""
    call_id = data.text("toolCallId")
    call = called(call_id, data.text("toolName"), data.get("arguments"))
    writer.state.setdefault("started", {})[call_id] = (call, line)
    data.skip("mcpToolName", "turnId", "model")


def _returned(writer: SessionWriter, data: Fields, line: int) -> None:
    call_id = data.text("toolCallId")
    call, begun = writer.state.get("started", {}).pop(call_id, (None, 0))
    calls = writer.state.setdefault("calls", {})
    if call is not None and call_id not in calls:
        writer.say("assistant", [call], begun, joined=True)
        calls[call_id] = True
    result = data.inside("result")
    content = result.get("content", "contents") if result.value else data.get("result")
    if result.get("detailedContent") == content:
        result.skip("detailedContent")
    if isinstance(content, str):
        result.skip("contents")
    said = data.inside("error").text("message") if data.inside("error").value else data.text("error")
    writer.result(call_id, content or said, line, outcome="ok" if data.get("success") is True else "failed")
    data.skip("interactionId", "model", "toolTelemetry", "turnId")


def _compacted(writer: SessionWriter, data: Fields, line: int) -> None:
    used = data.inside("compactionTokensUsed")
    keys = _USAGE_BEFORE if "input" in used.value else _USAGE
    model = used.text("model")
    used.skip(*used.value)
    summary = data.text("summaryContent")
    writer.flush()
    if summary and data.get("success") is not False and writer.log.messages:
        shown = [Message("user", (Text(summary),), by_program=True)]
        writer.log.compacted(1, writer.log.last, "Copilot CLI compacted", {}, shown)
    elif summary:
        writer.note("compaction", {"summary": summary})
    writer.usage(used.value, keys, model=model)


def _went_back(writer: SessionWriter, data: Fields, line: int) -> None:
    target = data.text("upToEventId")
    before = writer.state.get("before", {}).get(target)
    writer.branch(writer.state["event"], target if before is None else before, line)
    data.skip("eventsRemoved")


def _billed(writer: SessionWriter, data: Fields, line: int) -> None:
    """What one answer was billed, which only the printed output tells."""
    model = data.text("model")
    writer.state["is_billed"] = True
    writer.state.pop("written", None)
    writer.usage(dict(data.value), _USAGE, model=model)
    data.skip(*data.value)


def _closed(writer: SessionWriter, data: Fields, line: int) -> None:
    """The end of a run, with what its answers were billed: each run of a session has its own."""
    for model, metrics in mapping(data.get("modelMetrics")).items():
        usage = mapping(metrics).get("usage")
        if not writer.state.get("is_billed"):
            writer.usage(usage, _USAGE, model=model)
        writer.note("requests", {"model": model, **mapping(metrics)})
    writer.state.pop("is_billed", None)
    writer.state.pop("written", None)
    data.skip("sessionStartTime")
    _cut_off(writer)
    if writer.log.turn:
        failed = data.text("shutdownType") == "error"
        writer.end("failed" if failed else "completed", data.text("errorReason"))


def _unbilled(writer: SessionWriter) -> None:
    """Record what is known of a run whose bill is missing: the tokens of its answers."""
    for model, tokens in writer.state.pop("written", {}).items():
        writer.usage({"outputTokens": tokens}, _USAGE, model=model)


def _aborted(writer: SessionWriter, data: Fields, line: int) -> None:
    _cut_off(writer)
    writer.end("cancelled", data.text("reason"))


def _printed_end(writer: SessionWriter, data: Fields, line: int) -> None:
    data.skip("sessionId")
    _cut_off(writer)
    _unbilled(writer)
    writer.end("failed" if data.get("exitCode") else "completed")


def _unsaid(writer: SessionWriter, data: Fields, line: int) -> None:
    """Events that say only that something began or ended."""
    data.skip(*data.value)


def _titled(writer: SessionWriter, data: Fields, line: int) -> None:
    writer.title = data.text("title") or writer.title


_HANDLERS: dict[str, Handler | None] = {
    "session.start": _began,
    "session.resume": _began,
    "session.context_changed": _moved,
    "session.model_change": _switched,
    "session.title_changed": _titled,
    "session.compaction_complete": _compacted,
    "session.snapshot_rewind": _went_back,
    "session.shutdown": _closed,
    "system.message": _instructed,
    "user.message": _asked,
    "assistant.reasoning": _thought,
    "assistant.message": _answered,
    "assistant.message_start": _piece,
    "assistant.message_delta": _piece,
    "assistant.reasoning_delta": _piece,
    "assistant.streaming_delta": _piece,
    "assistant.tool_call_delta": _piece,
    "assistant.usage": _billed,
    "tool.execution_start": _started,
    "tool.execution_complete": _returned,
    "abort": _aborted,
    "result": _printed_end,
    **dict.fromkeys(
        f"session.{kind}"
        for kind in (
            *("info", "warning", "error", "mode_changed", "plan_changed", "handoff", "truncation", "compaction_start"),
            *("usage_checkpoint", "session_limits_changed", "task_complete", "idle", "usage_info", "tools_updated"),
            *("mcp_server_status_changed", "mcp_servers_loaded", "skills_loaded", "custom_agents_updated"),
        )
    ),
    **dict.fromkeys(f"subagent.{kind}" for kind in ("started", "completed", "failed", "selected", "deselected")),
    **dict.fromkeys(("hook.start", "hook.end", "permission.requested", "permission.completed", "skill.invoked")),
    **dict.fromkeys(("assistant.turn_start", "assistant.turn_end", "model.call_start"), _unsaid),
    **dict.fromkeys(("assistant.intent", "tool.user_requested")),
    **dict.fromkeys(("external_tool.requested", "external_tool.completed")),
}
