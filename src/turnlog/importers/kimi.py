"""Sessions of two programs for Kimi: Kimi Code, `~/.kimi-code/sessions/<folder>/<session>/agents/main/wire.jsonl`, and
kimi-cli before it, `~/.kimi/sessions/<folder>/<session>/wire.jsonl`.

Lines of Kimi Code have dotted kinds, those of kimi-cli hold a message with a payload. Kimi Code writes a prompt when it
is typed, and again when the model is given it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..log.messages import Message, Outcome, Part, Text, ToolResult
from ..log.records import Decision, MessageRecord, Note
from ..providers.openai_chat import PROVIDER
from .fields import Fields, as_text, kind_of
from .json_values import items, mapping, within, word
from .parts import called, shown, texts, thoughts
from .protocol import Imported, Origin, hashed_id, with_own_ids, with_subagents
from .transcript import Transcript
from .writing import Handler, SessionWriter

_USAGE = {
    "input": "inputOther inputCacheRead inputCacheCreation",
    "output": "output",
    "cached": "inputCacheRead",
    "cache_write": "inputCacheCreation",
}
_USAGE_BEFORE = {
    "input": "input_other input_cache_read input_cache_creation",
    "output": "output",
    "cached": "input_cache_read",
    "cache_write": "input_cache_creation",
}


def read(origin: Origin) -> list[Imported]:
    """The session, then those of its subagents."""
    sessions = _read_one(origin, "")
    folder = origin.parent if not isinstance(origin, bytes) and origin.parent.name == "main" else None
    agents = folder.parent.glob("*/wire.jsonl") if folder is not None else ()
    others = [path for path in agents if path.parent != folder]
    return with_subagents(sessions, others, lambda path: _read_one(path, sessions[0].session_id))


def _read_one(origin: Origin, parent: str) -> list[Imported]:
    file = Transcript(origin)
    lines = file.objects("line")
    if not any(_kind(line.value) in _HANDLERS for line in lines):
        raise file.refused("line of Kimi", "give a wire.jsonl of ~/.kimi-code/sessions or ~/.kimi/sessions")
    main = SessionWriter(file, "kimi-code", PROVIDER, envelope=("type", "time", "timestamp", "agentId"))
    writers = {"": main}
    _describe(main, parent)
    first = (line.value for line in lines if line.value.keys() & {"time", "timestamp", "created_at"})
    main.id = main.id or hashed_id("kimi-code", next(first, lines[0].value))
    for line in lines:
        value, agent = line.value, ""
        while _kind(value) == "SubagentEvent":
            payload = mapping(within(value, "message", "payload"))
            agent = word(payload.get("task_tool_call_id"))
            value = {"timestamp": value.get("timestamp"), "message": payload.get("event")}
        if agent not in writers:
            writers[agent] = SessionWriter(file, "kimi-code", PROVIDER, beside=True, envelope=("timestamp",))
            writers[agent].id, writers[agent].parent = f"{main.id}.agent-{agent}", main.id
        entry = Fields(value)
        writers[agent].at(value.get("time", value.get("timestamp", value.get("created_at"))))
        writers[agent].take(entry, line.number, _kind(value), _HANDLERS)
    for writer in writers.values():
        call_id, name, arguments, at = writer.state.get("call", ("", "", {}, 0))
        if called(call_id, name, arguments).raw and not word(arguments).rstrip().endswith("}"):
            file.warn(at, f"left out: the arguments of the last call, of {name!r}, are cut off: {arguments!r}")
        else:
            _called(writer)
    return with_own_ids(writer.done() for writer in writers.values())


def _kind(value: Mapping[str, Any]) -> str:
    message, event = mapping(value.get("message")), mapping(value.get("event"))
    kind = kind_of(Fields(value), "type") if "type" in value else kind_of(Fields(message), "type")
    return kind_of(Fields(event), "type") if kind == "context.append_loop_event" else kind


def _describe(writer: SessionWriter, parent: str) -> None:
    """Set the id from the folders of the file, and title and folder from the `state.json` of its session."""
    path = writer.file.path
    if path is None or path.name != "wire.jsonl":
        return
    is_agent = path.parent.parent.name == "agents"
    session = path.parents[2] if is_agent else path.parent
    writer.parent = parent
    writer.id = f"{session.name}.{path.parent.name}" if is_agent and path.parent.name != "main" else session.name
    state = session / "state.json"
    if state.is_file():
        writer.files = [str(state)]
        try:
            facts = mapping(json.loads(state.read_bytes()))
        except (ValueError, OSError, RecursionError):
            facts = {}
        writer.title = "" if parent else word(facts.get("title"))
        _placed(writer, word(facts.get("cwd")) or word(facts.get("workDir")))


def _placed(writer: SessionWriter, folder: str) -> None:
    writer.log.files.work_in(folder)
    writer.facts("context", {"cwd": folder})


# -- Kimi Code -------------------------------------------------------------------------------------


def _configured(writer: SessionWriter, entry: Fields, line: int) -> None:
    prompt, folder = entry.text("systemPrompt"), entry.text("cwd")
    writer.model = entry.text("modelAlias").rpartition("/")[2] or writer.model
    if folder:
        _placed(writer, folder)
    if prompt and prompt != writer.state.get("system"):
        writer.state["system"] = prompt
        writer.say("system", texts(prompt), line)
    writer.facts("config", entry.unread())
    entry.skip(*entry.value)


def _prompted(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A prompt that was typed: a note, until the message with it comes."""
    if entry.value.get("type") == "turn.prompt":
        writer.turn(f"line-{line}")
    content = entry.get("input")
    entry.skip("origin")
    parts = shown(content, writer.log.blob)
    text = "\n".join(part.text for part in parts if isinstance(part, Text))
    if text:
        writer.add(Note(topic="prompt", data={"text": text}))
        writer.log.echo("prompt", "text")


def _appended(writer: SessionWriter, entry: Fields, line: int) -> None:
    message = entry.inside("message")
    role, content = message.text("role"), message.get("content")
    is_program = message.inside("origin").text("kind") not in ("", "user")
    if role == "tool":
        writer.result(message.text("toolCallId"), content, line)
        return
    parts = _parts(writer, content)
    for call in message.each("toolCalls"):
        function = call.inside("function") if "function" in call.value else call
        call.skip("type")
        parts.append(called(call.text("id"), function.text("name"), function.get("arguments", "args")))
    role = role if role in ("assistant", "system") else "user"
    writer.say(role, parts, line, by_program=is_program and role == "user")
    writer.flush()


def _parts(writer: SessionWriter, content: Any) -> list[Part]:
    """The parts of a message: thinking, and what else can be shown."""
    parts: list[Part] = []
    for block in [content] if isinstance(content, (str, dict)) else items(content):
        if isinstance(block, dict) and block.get("type") == "think":
            encrypted = word(block.get("encrypted"))
            parts += thoughts(word(block.get("think")), PROVIDER.name, encrypted=encrypted)
        else:
            parts += shown(block, writer.log.blob)
    return parts


def _stepped(writer: SessionWriter, entry: Fields, line: int) -> None:
    _called(writer)
    writer.flush()
    entry.skip("event", "message")


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.say("assistant", _parts(writer, entry.inside("event").get("part")), line, joined=True)
    _skip(entry)


def _skip(entry: Fields) -> None:
    entry.inside("event").skip("type", "uuid", "turnId", "step", "stepUuid", "parentUuid")


def _call(writer: SessionWriter, entry: Fields, line: int) -> None:
    event = entry.inside("event")
    folder = event.inside("display").value.get("cwd")
    writer.log.files.work_in(folder)
    if folder:
        writer.facts("context", {"cwd": folder})
    event.skip("display", "description")
    call = called(event.text("toolCallId"), event.text("name"), event.get("args"))
    writer.say("assistant", [call], line, joined=True)
    _skip(entry)


def _result(writer: SessionWriter, entry: Fields, line: int) -> None:
    result = entry.inside("event").inside("result")
    outcome: Outcome = "failed" if result.get("isError") is True else "ok"
    writer.result(entry.inside("event").text("toolCallId"), result.get("output"), line, outcome=outcome)
    _skip(entry)


def _step_ended(writer: SessionWriter, entry: Fields, line: int) -> None:
    event = entry.inside("event")
    usage = event.get("usage")
    writer.usage(usage, _USAGE)
    writer.state["usage"] = usage
    event.skip("messageId", "llmFirstTokenLatencyMs", "llmStreamDurationMs", "finishReason")
    _skip(entry)


def _billed(writer: SessionWriter, entry: Fields, line: int) -> None:
    """Usage, which the end of a step told already, but for that of compactions."""
    usage, model = entry.get("usage"), entry.text("model").rpartition("/")[2]
    entry.skip("usageScope")
    if usage != writer.state.pop("usage", None):
        writer.usage(usage, _USAGE, model=model)


def _asked(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.model = entry.text("model").rpartition("/")[2] or writer.model
    writer.facts("request", {key: entry.get(key) for key in ("provider", "thinkingEffort", "maxTokens", "attempt")})
    entry.skip(*entry.value)


def _cancelled(writer: SessionWriter, entry: Fields, line: int) -> None:
    if writer.log.turn:
        writer.end("cancelled")


def _ended(writer: SessionWriter, entry: Fields, line: int) -> None:
    if writer.log.turn:
        writer.end("completed")


def _context(writer: SessionWriter) -> list[int]:
    """The record of each message that the program has in its context: results are messages of their own there."""
    writer.flush()
    context: list[int] = writer.state.setdefault("context", [])
    for number in range(writer.state.get("seen", 0) + 1, writer.log.last + 1):
        body = writer.log.drafts[number - 1].body
        if isinstance(body, MessageRecord) and body.message.role != "system":
            context += [number] * max(1, sum(isinstance(part, ToolResult) for part in body.message.parts))
    writer.state["seen"] = writer.log.last
    return context


def _compacted(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A summary takes the place of the first messages of the context."""
    summary, count, context = entry.text("summary"), entry.get("compactedCount"), _context(writer)
    number = count if type(count) is int and 0 < count <= len(context) else len(context)
    if summary and number:
        message = Message("user", (Text(summary),), by_program=True)
        writer.log.compacted(context[0], context[number - 1], "Kimi Code compacted", {}, [message])
        writer.state["context"] = [context[0], *context[number:]]
    elif summary:
        writer.note("compaction", {"summary": summary})


def _cleared(writer: SessionWriter, entry: Fields, line: int) -> None:
    if context := _context(writer):
        writer.add(Decision(action="clear", first=context[0], last=writer.log.last, why="the user cleared the context"))
        context.clear()


def _undone(writer: SessionWriter, entry: Fields, line: int) -> None:
    """Take back the last prompts of the user, and what came after."""
    count, context = entry.get("count"), _context(writer)
    bodies = [(number, writer.log.drafts[number - 1].body) for number in dict.fromkeys(context)]
    prompts = [number for number, body in bodies if isinstance(body, MessageRecord) and _is_prompt(body.message)]
    if type(count) is int and 0 < count <= len(prompts):
        writer.log.rewound(prompts[-count], "the user took prompts back")
        writer.state["context"] = [number for number in context if number < prompts[-count]]


def _is_prompt(message: Message) -> bool:
    has_results = any(isinstance(part, ToolResult) for part in message.parts)
    return message.role == "user" and not message.by_program and not has_results


# -- kimi-cli --------------------------------------------------------------------------------------


def _payload(entry: Fields) -> Fields:
    entry.inside("message").skip("type")
    return entry.inside("message", "payload")


def _begun(writer: SessionWriter, entry: Fields, line: int) -> None:
    if entry.inside("message").text("type") == "TurnBegin":
        writer.turn(f"line-{line}")
    writer.say("user", _parts(writer, _payload(entry).get("user_input")), line)


def _told(writer: SessionWriter, entry: Fields, line: int) -> None:
    _called(writer)
    payload = _payload(entry)
    writer.say("assistant", _parts(writer, dict(payload.value)), line, joined=True)
    payload.skip(*payload.value)


def _call_begun(writer: SessionWriter, entry: Fields, line: int) -> None:
    _called(writer)
    payload = _payload(entry)
    function = payload.inside("function")
    payload.skip("type")
    arguments = function.get("arguments")
    writer.state["call"] = [payload.text("id"), function.text("name"), arguments, line]


def _call_grown(writer: SessionWriter, entry: Fields, line: int) -> None:
    piece, call = _payload(entry).text("arguments_part"), writer.state.get("call")
    if call is None:
        writer.log.count("arguments of no call", line)
        writer.note("ToolCallPart", {"arguments": piece})
    else:
        call[2] = as_text(call[2]) + piece


def _called(writer: SessionWriter) -> None:
    """Say the call whose arguments came in pieces."""
    if call := writer.state.pop("call", None):
        writer.say("assistant", [called(*call[:3])], call[3], joined=True)


def _returned(writer: SessionWriter, entry: Fields, line: int) -> None:
    _called(writer)
    payload = _payload(entry)
    value = payload.inside("return_value")
    outcome: Outcome = "failed" if value.get("is_error") is True else "ok"
    content = value.get("output") or value.text("message")
    writer.result(payload.text("tool_call_id"), content, line, outcome=outcome)


def _status(writer: SessionWriter, entry: Fields, line: int) -> None:
    payload = _payload(entry)
    _called(writer)
    writer.usage(payload.get("token_usage"), _USAGE_BEFORE)
    payload.skip("context_usage", "context_tokens", "max_context_tokens", "message_id", "plan_mode")


def _finished(writer: SessionWriter, entry: Fields, line: int) -> None:
    _called(writer)
    writer.end("completed")
    entry.skip("message")


_HANDLERS: dict[str, Handler | None] = {
    "metadata": None,
    "config.update": _configured,
    "profile.bind": _configured,
    "turn.prompt": _prompted,
    "turn.steer": _prompted,
    "turn.cancel": _cancelled,
    "turn.ended": _ended,
    "context.append_message": _appended,
    "context.apply_compaction": _compacted,
    "context.clear": _cleared,
    "context.undo": _undone,
    "step.begin": _stepped,
    "content.part": _said,
    "tool.call": _call,
    "tool.result": _result,
    "step.end": _step_ended,
    "usage.record": _billed,
    "llm.request": _asked,
    **dict.fromkeys(
        (
            *("llm.tools_snapshot", "tools.set_active_tools", "tools.register_user_tool", "tools.update_store"),
            *("tools.unregister_user_tool", "permission.set_mode", "permission.record_approval_result", "forked"),
            *("full_compaction.begin", "full_compaction.cancel", "full_compaction.complete", "micro_compaction.apply"),
            *("plan_mode.enter", "plan_mode.cancel", "plan_mode.exit", "swarm_mode.enter", "swarm_mode.exit"),
            *("goal.create", "goal.update", "goal.clear", "mcp.tools_discovered", "context.update_token_count"),
            *("task.started", "task.terminated", "skill.activate", "turn.started", "cron.add", "cron.delete"),
            *("cron.cursor", "file_history.checkpoint", "file_history.tracked", "plan.revision"),
        )
    ),
    "TurnBegin": _begun,
    "StepBegin": _stepped,
    "SteerInput": _begun,
    "ContentPart": _told,
    "ToolCall": _call_begun,
    "ToolCallPart": _call_grown,
    "ToolResult": _returned,
    "StatusUpdate": _status,
    "TurnEnd": _finished,
    **dict.fromkeys(("StepInterrupted", "CompactionBegin", "CompactionEnd", "ApprovalRequest")),
    **dict.fromkeys(("ApprovalResponse", "ApprovalRequestResolved", "MCPLoadingBegin", "MCPLoadingEnd")),
}
