"""A session of Kimi Code with a subagent in a file beside it, and behind it a turn in the words of kimi-cli."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl

_USAGE = {"inputOther": 100, "inputCacheRead": 800, "inputCacheCreation": 10, "output": 40}
_BEFORE = {"input_other": 50, "input_cache_read": 20, "input_cache_creation": 0, "output": 7}


def _line(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def _said(role: str, *content: Any, origin: str = "user", **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": list(content), "toolCalls": [], "origin": {"kind": origin}, **more}
    return _line("context.append_message", message=message)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _event(kind: str, **more: Any) -> dict[str, Any]:
    return _line("context.append_loop_event", event={"type": kind, "uuid": "e", "turnId": "0", "step": 1, **more})


def _call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    display = {"kind": "command", "cwd": "/w/fjords"}
    return _event("tool.call", toolCallId=call_id, name=name, args=arguments, display=display)


def _done(call_id: str, output: Any, **more: Any) -> dict[str, Any]:
    return _event("tool.result", toolCallId=call_id, result={"output": output, **more})


def _old(kind: str, **payload: Any) -> dict[str, Any]:
    return {"message": {"type": kind, "payload": payload}}


_MADE = {"id": "m1", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls the lakes"}'}}
_READ = {"type": "function", "id": "o1", "function": {"name": "ReadFile", "arguments": '{"path": '}}
_LINES = [
    _line("metadata", protocol_version="1.4", created_at=1785612803000),
    _line("config.update", systemPrompt="You help with the fjords", modelAlias="moonshot-ai/kimi-k2.7-code"),
    _line("tools.set_active_tools", names=["Bash", "Write"]),
    _line("turn.prompt", input=[_text("Name the fjords of Norway")], origin={"kind": "user"}),
    _said("user", _text("Name the fjords of Norway")),
    _event("step.begin"),
    _line("llm.request", provider="kimi", model="kimi-k2.7-code", attempt="1/10", messageCount=1),
    _event("content.part", part={"type": "think", "think": "I have to look"}),
    _event("content.part", part=_text("I look at it.")),
    _call("Bash_0", "Bash", command="ls the fjords"),
    _call("Write_0", "Write", path="a.txt", content="Hardanger and so on"),
    _done("Bash_0", [_text("Hardanger and Sogne")]),
    _done("Write_0", "Created the file a.txt"),
    _event("step.end", usage=_USAGE, finishReason="tool_use", messageId="c"),
    _line("usage.record", model="moonshot-ai/kimi-k2.7-code", usage=_USAGE, usageScope="turn"),
    _event("step.begin"),
    _call("Bash_1", "Bash", command="cat no file"),
    _line("permission.record_approval_result", toolName="Bash", result={"decision": "approved"}),
    _done("Bash_1", "there is no such file", isError=True),
    _event("step.end", usage=_USAGE, finishReason="tool_use", messageId="d"),
    _line("turn.steer", input=[_text("And the lakes of Norway?")], origin={"kind": "user"}),
    _line("turn.cancel"),
    _said("user", _text("And the lakes of Norway?")),
    _said("assistant", _text("I count the lakes"), toolCalls=[_MADE]),
    _said("tool", _text("there are many lakes"), toolCallId="m1"),
    _said("user", _text("A job has ended now"), origin="system_trigger"),
    _line("context.undo", count=1),
    _line("context.apply_compaction", summary="We spoke of all the fjords", compactedCount=2, tokensAfter=9),
    _line("usage.record", model="kimi-k2.7-code", usage={**_USAGE, "output": 60}, usageScope="session"),
    _line("turn.ended"),
    _line("context.clear"),
    _line("later.kind", text="something that nobody knows"),
    _old("TurnBegin", user_input="And what of Sweden?"),
    _old("StepBegin", n=1),
    _old("ContentPart", type="think", think="There are no fjords", encrypted=None),
    _old("ContentPart", type="text", text="There are none there."),
    _old("ToolCall", **_READ),
    _old("ToolCallPart", arguments_part='"b of Sweden"}'),
    _old("StatusUpdate", context_usage=0.1, token_usage=_BEFORE, message_id="m"),
    _old("ToolResult", tool_call_id="o1", return_value={"is_error": True, "output": "", "message": "it is not there"}),
    _old(
        "SubagentEvent", task_tool_call_id="o1", event={"type": "ContentPart", "payload": _text("I count the Swedes")}
    ),
    _old("TurnEnd"),
]
for _second, _each in enumerate(_LINES):
    _each["timestamp" if "message" in _each and "type" not in _each else "time"] = 1785612803.0 + _second

SAMPLE = Sample(
    name="kimi-code",
    data=jsonl(_LINES),
    query="""
        map(if .event.type == "tool.call" or .message.type == "ToolCall" then "call"
            elif .event.type == "content.part" or .message.type == "ContentPart" then "part"
            elif .event.type == "tool.result" or .message.type == "ToolResult" or .message.role == "tool" then "result"
            elif (.message.type | IN("TurnBegin", "SubagentEvent")) or .message.role or .systemPrompt then "said"
            elif .event.type == "step.begin" then "step" else empty end) as $kinds
        | map(.event.usage, select(.usageScope == "session").usage | values) as $bills
        | map(.message.payload.token_usage? | values) as $older
        | {messages: [foreach $kinds[] as $one ({};
                {last: $one, is_new: ($one == "said" or ($one == "result" and .last != "result")
                     or (($one == "part" or $one == "call") and (.last != "part" and .last != "call")))})
              | select(.is_new)] | length,
           calls: map(.message.toolCalls[]?, (select(.event.type == "tool.call" or .message.type == "ToolCall")))
               | length,
           results: $kinds | map(select(. == "result")) | length,
           input: (($bills | map(.inputOther + .inputCacheRead + .inputCacheCreation) | add)
               + ($older | map(.input_other + .input_cache_read + .input_cache_creation) | add)),
           output: (($bills | map(.output) | add) + ($older | map(.output) | add))}""",
    path=".kimi-code/sessions/wd_fjords_1f/session_s-1/agents/main/wire.jsonl",
    warned=("'later.kind'",),
    others={
        "../agent-1/wire.jsonl": jsonl([_line("metadata", protocol_version="1.4"), _said("user", _text("Count them"))])
    },
)
