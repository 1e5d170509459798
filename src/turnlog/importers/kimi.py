"""Sessions of two programs for Kimi: Kimi Code, `~/.kimi-code/sessions/<folder>/<session>/agents/main/wire.jsonl`, and
kimi-cli before it, `~/.kimi/sessions/<folder>/<session>/wire.jsonl`.

Lines of Kimi Code have dotted kinds, those of kimi-cli hold a message with a payload. Kimi Code writes a prompt when it
is typed, and again when the model is given it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..log.messages import Message, Outcome, Part, Text, ToolResult
from ..log.records import Body, Decision, MessageRecord, Note
from ..providers.openai_chat import PROVIDER
from .fields import Fields
from .json_values import items, mapping, within, word
from .parts import called, shown, texts
from .protocol import Imported, Origin, hashed_id, with_own_ids, with_subagents
from .transcript import Transcript
from .writing import Handler, SessionWriter, ends, kinds

_ENVELOPE = ("type", "time", "timestamp", "agentId", "uuid", "turnId", "step", "stepUuid", "parentUuid")
_NOISE = (
    "display description origin n usageScope messageId llmFirstTokenLatencyMs llmStreamDurationMs finishReason "
    "context_usage context_tokens max_context_tokens message_id plan_mode"
)
_CACHED, _WRITTEN = "inputCacheRead|input_cache_read", "inputCacheCreation|input_cache_creation"
_USAGE = {
    "input": f"inputOther|input_other {_CACHED} {_WRITTEN}",
    "output": "output",
    "cached": _CACHED,
    "cache_write": _WRITTEN,
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
    if not any(_unwrapped(line.value)[0] in _HANDLERS for line in lines):
        raise file.refused("line of Kimi", "give a wire.jsonl of ~/.kimi-code/sessions or ~/.kimi/sessions")
    is_older = any("payload" in mapping(line.value.get("message")) for line in lines[:2])
    program = "kimi-cli" if is_older else "kimi-code"
    main = SessionWriter(file, "kimi-code", PROVIDER, envelope=_ENVELOPE, noise=_NOISE, agent=program)
    _describe(main, parent)
    first = (line.value for line in lines if line.value.keys() & {"time", "timestamp", "created_at"})
    main.id = main.id or hashed_id("kimi-code", next(first, lines[0].value))
    for line in lines:
        kind, value = _unwrapped(line.value)
        agent = ""
        while kind == "SubagentEvent":
            agent = word(value.get("task_tool_call_id"))
            kind, value = _unwrapped({"message": value.get("event")})
        writer = main.child(agent)
        if kind != "ToolCallPart" and "call" in writer.state:
            _call_made(writer)
        writer.at(line.value.get("time") or line.value.get("timestamp") or line.value.get("created_at"))
        writer.take(Fields(value), line.number, kind, _HANDLERS)
    writers = (main, *main.children.values())
    for writer in writers:
        call_id, name, arguments, at = writer.state.get("call", ("", "", {}, 0))
        if called(call_id, name, arguments).raw and not word(arguments).rstrip().endswith("}"):
            file.warn(at, f"left out: the arguments of the last call, of {name!r}, are cut off: {arguments!r}")
        else:
            _call_made(writer)
    return with_own_ids(writer.done() for writer in writers)


def _unwrapped(line: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The kind of a line and its fields: those of the event or message in it, if it is one that wraps another."""
    kind = word(line.get("type"))
    outer = "event" if kind == "context.append_loop_event" else "" if kind else "message"
    inner = line.get(outer)
    if not isinstance(inner, dict) or not inner:
        return kind or "unknown", dict(line)
    value = inner if outer == "event" else inner.get("payload")
    fields = value if isinstance(value, dict) else {"payload": value}
    rest = {name: each for name, each in line.items() if name != outer and name not in _ENVELOPE}
    return word(inner.get("type")) or "unknown", {**rest, **fields}


def _describe(writer: SessionWriter, parent: str) -> None:
    """Set the id from the folders of the file, and title and folder from the `state.json` of its session."""
    path = writer.file.path
    if path is None or path.name != "wire.jsonl":
        return
    is_agent = path.parent.parent.name == "agents"
    session = path.parents[2] if is_agent else path.parent
    writer.parent = parent
    writer.id = f"{session.name}.{path.parent.name}" if is_agent and path.parent.name != "main" else session.name
    facts = writer.beside(session / "state.json")
    writer.title = "" if parent else word(facts.get("title"))
    writer.place(word(facts.get("cwd")) or word(facts.get("workDir")))


def _configured(writer: SessionWriter, entry: Fields, line: int) -> None:
    prompt, folder = entry.text("systemPrompt"), entry.text("cwd")
    writer.model = entry.text("modelAlias").rpartition("/")[2] or writer.model
    writer.place(folder)
    if prompt and prompt != writer.state.get("system"):
        writer.state["system"] = prompt
        writer.say("system", texts(prompt), line)
    writer.facts("config", entry.unread())
    entry.skip(*entry.value)


def _prompted(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A prompt that was typed: a note, until the message with it comes."""
    if entry.value.get("type") == "turn.prompt":
        writer.turn(f"line-{line}")
    parts = shown(entry.get("input"), writer.log.blob)
    if text := "\n".join(part.text for part in parts if isinstance(part, Text)):
        writer.add(Note(topic="prompt", data={"text": text}))
        writer.log.echo("prompt", "text")


def _began(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.turn(f"line-{line}")
    _steered(writer, entry, line)


def _steered(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.say("user", _parts(writer, entry.get("user_input")), line)


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
            parts += writer.thinking(word(block.get("think")), encrypted=encrypted)
        else:
            parts += shown(block, writer.log.blob)
    return parts


def _said(writer: SessionWriter, entry: Fields, line: int) -> None:
    part = entry.get("part") if "part" in entry.value else dict(entry.value)
    writer.say("assistant", _parts(writer, part), line, joined=True)
    entry.skip(*entry.value)


def _called(writer: SessionWriter, entry: Fields, line: int) -> None:
    """Remember a call: kimi-cli writes pieces of its arguments behind it."""
    function = entry.inside("function") if "function" in entry.value else entry
    writer.place(within(entry.value, "display", "cwd"))
    call_id = entry.text("toolCallId", "id")
    writer.state["call"] = [call_id, function.text("name"), function.get("args", "arguments"), line]


def _call_grown(writer: SessionWriter, entry: Fields, line: int) -> None:
    piece, call = entry.text("arguments_part"), writer.state.get("call")
    if call is None:
        writer.log.count("arguments of no call", line)
        writer.note("ToolCallPart", {"arguments": piece})
    else:
        call[2] = word(call[2]) + piece


def _call_made(writer: SessionWriter) -> None:
    if call := writer.state.pop("call", None):
        writer.say("assistant", [called(*call[:3])], call[3], joined=True)


def _returned(writer: SessionWriter, entry: Fields, line: int) -> None:
    result = entry.inside("result" if "result" in entry.value else "return_value")
    outcome: Outcome = "failed" if result.get("isError", "is_error") is True else "ok"
    content = result.get("output") or result.text("message")
    writer.result(entry.text("toolCallId", "tool_call_id"), content, line, outcome=outcome)


def _answered(writer: SessionWriter, entry: Fields, line: int) -> None:
    """The end of a step, or its figures."""
    usage = entry.get("usage", "token_usage")
    writer.usage(usage, _USAGE)
    writer.state["usage"] = usage


def _billed(writer: SessionWriter, entry: Fields, line: int) -> None:
    """Usage, which the end of a step told already, but for that of compactions."""
    usage, model = entry.get("usage"), entry.text("model").rpartition("/")[2]
    if usage != writer.state.pop("usage", None):
        writer.usage(usage, _USAGE, model=model)


def _asked(writer: SessionWriter, entry: Fields, line: int) -> None:
    writer.model = entry.text("model").rpartition("/")[2] or writer.model
    writer.facts("request", {key: entry.get(key) for key in ("provider", "thinkingEffort", "maxTokens", "attempt")})
    entry.skip(*entry.value)


def _context(writer: SessionWriter) -> list[int]:
    """The record of each message that the program has in its context: results are messages of their own there."""
    writer.flush()
    context: list[int] = writer.state.setdefault("context", [])
    for number in range(writer.state.get("seen", 0) + 1, writer.log.last + 1):
        body = writer.log.drafts[number - 1].body
        if isinstance(body, MessageRecord) and body.message.role != "system":
            context += [number] * max(1, _results_in(body.message))
    writer.state["seen"] = writer.log.last
    return context


def _compacted(writer: SessionWriter, entry: Fields, line: int) -> None:
    """A summary takes the place of the first messages of the context."""
    summary, count, context = entry.text("summary"), entry.get("compactedCount"), _context(writer)
    number = count if type(count) is int and 0 < count <= len(context) else len(context)
    if summary and context:
        writer.compact("Kimi Code compacted", summary, first=context[0], last=context[number - 1])
        writer.state["context"] = [context[0], *context[number:]]
    else:
        writer.note("compaction", {"summary": summary})


def _cleared(writer: SessionWriter, entry: Fields, line: int) -> None:
    if context := _context(writer):
        writer.add(Decision(action="clear", first=context[0], last=writer.log.last, why="the user cleared the context"))
        context.clear()


def _undone(writer: SessionWriter, entry: Fields, line: int) -> None:
    """Take back the last prompts of the user, and what came after."""
    count, context = entry.get("count"), _context(writer)
    prompts = [number for number in dict.fromkeys(context) if _is_prompt(writer.log.drafts[number - 1].body)]
    if type(count) is int and 0 < count <= len(prompts):
        writer.log.rewound(prompts[-count], "the user took prompts back")
        writer.state["context"] = [number for number in context if number < prompts[-count]]


def _is_prompt(body: Body) -> bool:
    message = body.message if isinstance(body, MessageRecord) else None
    return message is not None and message.role == "user" and not (message.by_program or _results_in(message))


def _results_in(message: Message) -> int:
    return sum(isinstance(part, ToolResult) for part in message.parts)


_HANDLERS: dict[str, Handler | None] = {
    **kinds("config.update profile.bind", _configured),
    **kinds("turn.prompt turn.steer", _prompted),
    "turn.cancel": ends("cancelled"),
    "context.append_message": _appended,
    "context.apply_compaction": _compacted,
    "context.clear": _cleared,
    "context.undo": _undone,
    "TurnBegin": _began,
    "SteerInput": _steered,
    "llm.request": _asked,
    "usage.record": _billed,
    **kinds("step.begin StepBegin", lambda writer, entry, line: writer.flush()),
    **kinds("content.part ContentPart", _said),
    **kinds("tool.call ToolCall", _called),
    "ToolCallPart": _call_grown,
    **kinds("tool.result ToolResult", _returned),
    **kinds("step.end StatusUpdate", _answered),
    **kinds("turn.ended TurnEnd", ends("completed")),
    **kinds(
        "metadata llm.tools_snapshot tools.set_active_tools tools.register_user_tool tools.update_store "
        "tools.unregister_user_tool permission.set_mode permission.record_approval_result forked "
        "full_compaction.begin full_compaction.cancel full_compaction.complete micro_compaction.apply "
        "plan_mode.enter plan_mode.cancel plan_mode.exit swarm_mode.enter swarm_mode.exit goal.create goal.update "
        "goal.clear mcp.tools_discovered context.update_token_count task.started task.terminated skill.activate "
        "turn.started cron.add cron.delete cron.cursor file_history.checkpoint file_history.tracked plan.revision "
        "StepInterrupted CompactionBegin CompactionEnd ApprovalRequest ApprovalResponse ApprovalRequestResolved "
        "MCPLoadingBegin MCPLoadingEnd"
    ),
}
