"""Events of GitHub Copilot CLI: `~/.copilot/session-state/<id>/events.jsonl`, `<id>.jsonl` before; and what
`copilot --output-format json` printed, which has pieces of answers too.

Kinds are those of docs/features/streaming-events.md in github/copilot-sdk. Subagents write into the same file.
"""

from __future__ import annotations

from typing import Any

from .._platform.lazy import lazy_pattern
from ..log.usage import tokens_billed
from ..providers.openai_chat import PROVIDER
from ..redaction.store import cut_title
from .fields import Fields
from .json_values import mapping, objects, within, word
from .parts import called, media, texts
from .protocol import Imported, Origin, hashed_id, with_own_ids
from .transcript import Line, Transcript
from .writing import Handler, SessionWriter, ignored, kinds, sets

_USAGE = {
    "input": "inputTokens|input",
    "output": "outputTokens|output",
    "cached": "cacheReadTokens|cachedInput",
    "cache_write": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
}
"""Figures of an answer or a compaction; the second names are those of compactions in earlier versions."""
_NAME = lazy_pattern(r"(?m)^(?:name|summary):[ \t]*([^\s|>].*?)[ \t]*$")
_ENVELOPE = ("type", "id", "timestamp", "parentId", "ephemeral", "agentId", "parentToolCallId")
_NOISE = (
    "interactionId messageId turnId delivery parentAgentTaskId supportedNativeDocumentMimeTypes reasoningId phase "
    "requestId serviceRequestId apiCallId toolTitle intentionSummary toolTelemetry mcpToolName previousModel "
    "sessionStartTime sessionId startTime resumeTime eventCount version eventsRemoved"
)


def read(origin: Origin) -> list[Imported]:
    """The session of each run, then those of its subagents."""
    file = Transcript(origin)
    lines = file.objects("event", file.lines(among_text=True))
    if not any(word(line.value.get("type")) in _HANDLERS for line in lines):
        raise file.refused("event of Copilot CLI", "give a file of ~/.copilot/session-state")
    runs = enumerate(_runs(lines))
    return with_own_ids(session for number, run in runs for session in _read_run(file, run, beside=number > 0))


def _runs(lines: list[Line]) -> list[list[Line]]:
    """The events of each session: the log of a build may have several runs, each with a `result` at its end, or broken
    off before the next one begins."""
    pieces: list[list[Line]] = [[]]
    current = ""
    for line in lines:
        kind, session = line.value.get("type"), _session_of([line])
        if kind == "session.start" and current and session not in ("", current):
            pieces.append([])
            current = ""
        pieces[-1].append(line)
        current = current or session
        if kind == "result":
            pieces.append([])
            current = ""
    runs: dict[str, list[Line]] = {}
    name = ""
    for piece in filter(None, pieces):
        says = any(word(line.value.get("type")) in ("user.message", "assistant.message") for line in piece)
        name = _session_of(piece) or (f"line {piece[0].number}" if says else name)
        before = runs.pop("", []) if name else []  # events before the first run
        runs.setdefault(name, before).extend(piece)
    return list(runs.values())


def _session_of(lines: list[Line]) -> str:
    ids = (line.value.get("sessionId") or within(line.value, "data", "sessionId") for line in lines)
    return next(filter(None, map(word, ids)), "")


def _read_run(file: Transcript, lines: list[Line], *, beside: bool) -> list[Imported]:
    main = SessionWriter(file, "copilot-cli", PROVIDER, beside=beside, envelope=_ENVELOPE, noise=_NOISE)
    main.id = _session_of(lines)
    _describe(main)
    main.id = main.id or hashed_id("copilot-cli", lines[0].value)
    for line in lines:
        event, data = line.value, mapping(line.value.get("data"))
        writer = main.child(word(event.get("agentId")) or word(data.get("parentToolCallId")))
        writer.at(event.get("timestamp"))
        event_id, before = word(event.get("id")) or f"line-{line.number}", writer.state.get("event", "")
        writer.state.setdefault("before", {})[event_id] = before
        kind = word(event.get("type")) or "unknown"
        if kind != "session.snapshot_rewind":
            writer.branch(event_id, before, line.number)
        writer.state |= {"event": event_id, "kind": kind}
        rest = {key: value for key, value in event.items() if key not in _ENVELOPE and not (key == "data" and data)}
        writer.take(Fields({**rest, **data}), line.number, kind, _HANDLERS)
    writers = (main, *main.children.values())
    for writer in writers:
        _cut_off(writer)
    return [writer.done() for writer in writers]


def _describe(writer: SessionWriter) -> None:
    """Set the id from the place of the file, and the title from the `workspace.yaml` beside it."""
    path = writer.file.path
    if path is not None and "session-state" in path.parts:
        writer.id = writer.id or (path.parent.name if path.stem == "events" else path.stem)
    beside = path.with_name("workspace.yaml") if path is not None else None
    if beside is not None and beside.is_file():
        writer.files = [str(beside)]
        named = _NAME.search(beside.read_text("utf-8", "replace"))
        writer.title = cut_title(named[1].strip("\"'")) if named else ""


def _began(writer: SessionWriter, data: Fields, line: int) -> None:
    _unbilled(writer)
    writer.model = data.text("selectedModel") or writer.model
    context = data.inside("context") if "context" in data.value else data
    writer.place(context.text("cwd"), **{key: context.text(key) for key in ("gitRoot", "repository", "branch")})


def _switched(writer: SessionWriter, data: Fields, line: int) -> None:
    writer.model = data.text("newModel") or writer.model
    writer.facts("model", {"model": writer.model})


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
    attached = objects(data.value.get("attachments"))
    shown = [media(word(each.get("data")), word(each.get("mimeType")), writer.log.blob) for each in attached]
    writer.say("user", [*texts(content), *filter(None, shown)], line, by_program=is_program)
    sent = data.text("transformedContent")
    others = [each for each, part in zip(attached, shown, strict=True) if part is None]
    data.skip("attachments" if attached else "")
    writer.note("user.message", {"sent": sent if sent != content else "", "attachments": others, "source": source})


def _thought(writer: SessionWriter, data: Fields, line: int) -> None:
    """Thinking as an event of its own, which the message before or behind it may repeat."""
    text, before = data.text("content"), writer.state.get("thought", "")
    if text not in (before, writer.state.get("told", "")):
        writer.say("assistant", writer.thinking(text), line, joined=bool(before))
        writer.state["thought"] = text


def _answered(writer: SessionWriter, data: Fields, line: int) -> None:
    before, text = writer.state.pop("thought", ""), data.text("reasoningText")
    writer.state["told"] = text
    writer.state.pop("pieces", None)
    writer.model = data.text("model") or writer.model
    encrypted = data.text("reasoningOpaque") or data.text("encryptedContent")
    text = "" if text == before else text
    parts: list[Any] = [*writer.thinking(text, encrypted=encrypted), *texts(data.text("content"))]
    for request in data.each("toolRequests"):
        call_id = request.text("toolCallId")
        request.skip("type")
        call = called(call_id, request.text("name"), request.get("arguments"))
        if _is_new(writer, call_id):
            parts.append(call)
    written = writer.state.setdefault("written", {})
    written[writer.model] = written.get(writer.model, 0) + tokens_billed(data.get("outputTokens"))
    writer.say("assistant", parts, line, joined=bool(before), model=writer.model)


def _piece(writer: SessionWriter, data: Fields, line: int) -> None:
    """A printed piece of an answer: the whole answer comes behind it, unless the run was broken off."""
    text = data.text("deltaContent", "inputDelta")
    data.skip("toolCallId", "toolType", "toolName", "totalResponseSizeBytes")
    writer.state.setdefault("pieces", []).append((writer.state["kind"], text, line))


def _cut_off(writer: SessionWriter) -> None:
    for kind, text, line in writer.state.pop("pieces", []):
        if kind == "assistant.tool_call_delta":
            writer.log.count("a piece of a call that was never made", line)
        elif text:
            part = writer.thinking(text) if kind == "assistant.reasoning_delta" else texts(text)
            writer.say("assistant", part, line, piece=True)
    writer.flush()


def _started(writer: SessionWriter, data: Fields, line: int) -> None:
    """Remember a call of which no message tells: the user made it, or the message is missing."""
    call_id = data.text("toolCallId")
    call = called(call_id, data.text("toolName"), data.get("arguments"))
    writer.state.setdefault("started", {})[call_id] = (call, line)
    data.skip("model")


def _is_new(writer: SessionWriter, call_id: str) -> bool:
    calls: set[str] = writer.state.setdefault("calls", set())
    is_new = call_id not in calls
    calls.add(call_id)
    return is_new


def _returned(writer: SessionWriter, data: Fields, line: int) -> None:
    call_id = data.text("toolCallId")
    call, begun = writer.state.get("started", {}).pop(call_id, (None, 0))
    if call is not None and _is_new(writer, call_id):
        writer.say("assistant", [call], begun, joined=True)
    result = data.inside("result")
    content = result.get("content", "contents") if result.value else data.get("result")
    if result.get("detailedContent") == content:
        result.skip("detailedContent")
    if isinstance(content, str):
        result.skip("contents")
    said = data.inside("error").text("message") if data.inside("error").value else data.text("error")
    writer.result(call_id, content or said, line, outcome="ok" if data.get("success") is True else "failed")
    data.skip("model")


def _compacted(writer: SessionWriter, data: Fields, line: int) -> None:
    summary, used = data.text("summaryContent"), mapping(data.get("compactionTokensUsed"))
    if data.get("success") is not False:
        writer.compact("Copilot CLI compacted", summary)
    else:
        writer.note("compaction", {"summary": summary})
    writer.usage(used, _USAGE, model=word(used.get("model")))


def _went_back(writer: SessionWriter, data: Fields, line: int) -> None:
    target = data.text("upToEventId")
    before = writer.state.get("before", {}).get(target)
    writer.branch(writer.state["event"], target if before is None else before, line)


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
    _cut_off(writer)
    _unbilled(writer)
    writer.end("failed" if data.get("exitCode") else "completed")


_HANDLERS: dict[str, Handler | None] = {
    "session.start": _began,
    "session.resume": _began,
    "session.context_changed": _began,
    "session.model_change": _switched,
    "session.title_changed": sets(title="title"),
    "session.compaction_complete": _compacted,
    "session.snapshot_rewind": _went_back,
    "session.shutdown": _closed,
    "system.message": _instructed,
    "user.message": _asked,
    "assistant.reasoning": _thought,
    "assistant.message": _answered,
    **kinds("assistant.message_start assistant.message_delta assistant.reasoning_delta", _piece),
    **kinds("assistant.streaming_delta assistant.tool_call_delta", _piece),
    "assistant.usage": _billed,
    "tool.execution_start": _started,
    "tool.execution_complete": _returned,
    "abort": _aborted,
    "result": _printed_end,
    **kinds("assistant.turn_start assistant.turn_end model.call_start", ignored),
    **kinds(
        "session.info session.warning session.error session.mode_changed session.plan_changed session.handoff "
        "session.truncation session.compaction_start session.usage_checkpoint session.session_limits_changed "
        "session.task_complete session.idle session.usage_info session.tools_updated session.mcp_servers_loaded "
        "session.mcp_server_status_changed session.skills_loaded session.custom_agents_updated subagent.started "
        "subagent.completed subagent.failed subagent.selected subagent.deselected hook.start hook.end "
        "permission.requested permission.completed skill.invoked assistant.intent tool.user_requested "
        "external_tool.requested external_tool.completed"
    ),
}
