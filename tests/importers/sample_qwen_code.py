"""A session of qwen-code with a branch, a compression, messages in pieces and all kinds of records."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl

_SIDES: dict[str, Any] = {"sessionId": "s-1", "cwd": "/w/fjords", "version": "0.21.13", "gitBranch": "main"}


def _record(n: int, kind: str, *parts: Any, parent: int | None = None, **more: Any) -> dict[str, Any]:
    """Record `n`, which follows the one before, or `parent`."""
    before = n - 1 if parent is None else parent
    about = {
        "uuid": f"u{n}",
        "parentUuid": f"u{before}" if before else None,
        "timestamp": f"2026-10-10T12:00:{n:02}.000Z",
    }
    role = "model" if kind == "assistant" else "user"
    message = {"message": {"role": role, "parts": list(parts)}} if parts else {}
    return {**about, **_SIDES, "type": kind, **message, **more}


def _side(n: int, kind: str, payload: Any, **more: Any) -> dict[str, Any]:
    return _record(n, "system", subtype=kind, systemPayload=payload, **more)


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, **more}


def _call(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"functionCall": {"id": call_id, "name": name, "args": arguments}}


def _result(call_id: str, name: str, **response: Any) -> dict[str, Any]:
    return {"functionResponse": {"id": call_id, "name": name, "response": response}}


def _usage(read: int, wrote: int, thoughts: int, total: int) -> dict[str, Any]:
    counts = {"promptTokenCount": read, "candidatesTokenCount": wrote, "cachedContentTokenCount": 10}
    return {**counts, "thoughtsTokenCount": thoughts, "totalTokenCount": total}


_DIFF = {"fileDiff": "the diff of it", "fileName": "a.txt", "originalContent": "one and two\n", "newContent": "one\n"}
_EDIT = {"file_path": "/w/fjords/a.txt", "old_string": "one and two", "new_string": "one"}
_EVENT = {"event.name": "qwen-code.api_response", "model": "qwen3-coder", "input_token_count": 1000}
_SNAPSHOT = [{"role": "user", "parts": [_text("<state>We spoke of fjords</state>")]}]
_LINES = [
    _side(1, "session_model", {"modelId": "qwen3-coder", "authType": "openai"}),
    _record(2, "user", _text("Name the fjords of Norway"), systemPayload={"displayText": "Name the @fjords of it"}),
    _record(3, "assistant", _text("I have to look", thought=True), model="qwen3-coder"),
    _record(
        3,
        "assistant",
        _text("I look at it."),
        _call("c1", "run_shell_command", command="ls the fjords"),
        _call("c2", "edit", **_EDIT),
        model="qwen3-coder",
        usageMetadata=_usage(1000, 40, 10, 1050),
        contextWindowSize=262144,
    ),
    _side(4, "ui_telemetry", {"uiEvent": _EVENT}),
    _record(
        5,
        "tool_result",
        _result("c1", "run_shell_command", output="Hardanger and Sogne"),
        toolCallResult={"callId": "c1", "status": "success", "resultDisplay": "Hardanger and Sogne"},
    ),
    _record(
        6,
        "tool_result",
        _result("c2", "edit", output="the file was changed"),
        toolCallResult={"callId": "c2", "status": "success", "resultDisplay": _DIFF},
    ),
    _record(7, "assistant", _text("Oslo is a fjord"), model="qwen3-coder", usageMetadata=_usage(1200, 20, 5, 1220)),
    _side(8, "custom_title", {"customTitle": "A title of before", "titleSource": "auto"}),
    _side(9, "rewind", {"truncatedCount": 1}, parent=6),
    _record(10, "user", _text("What of the lakes?"), subtype="mid_turn_user_message"),
    _record(11, "user", _text("The goal is not met yet"), provenance="goal_runtime"),
    _record(12, "assistant", _call("c3", "web_fetch", url="https://fjords.no"), model="qwen3-coder"),
    _record(
        13,
        "tool_result",
        toolCallResult={"callId": "c3", "status": "error", "error": {"message": "the page is gone"}},
    ),
    _side(14, "slash_command", {"phase": "invocation", "rawCommand": "/compress it all now"}),
    _side(
        15,
        "chat_compression",
        {
            "info": {"originalTokenCount": 90, "newTokenCount": 9, "compressionStatus": 1},
            "compressedHistory": _SNAPSHOT,
        },
    ),
    _side(16, "later_kind", {"text": "something that nobody knows"}),
    _record(17, "assistant", _text("There are many lakes."), model="qwen3-max"),
    _side(18, "custom_title", {"customTitle": "The fjords of Norway", "titleSource": "manual"}, parent=4),
    _side(19, "parent_session", {"parentSessionId": "s-0"}),
]

SAMPLE = Sample(
    name="qwen-code",
    data=jsonl(_LINES),
    query="""
        [.[] | select(.type | IN("user", "assistant"))] as $said
        | [.[].message.parts[]?] as $parts
        | [.[] | select(.type == "tool_result")] as $results
        | [.[] | .usageMetadata | values] as $bills
        | {messages: ([$said[].uuid] + [$results[] | .message == null] | unique | length),
           calls: [$parts[] | select(.functionCall)] | length, results: $results | length,
           input: $bills | map(.promptTokenCount) | add,
           output: $bills | map(.totalTokenCount - .promptTokenCount) | add}""",
    path=".qwen/projects/-w-fjords/chats/s-1.jsonl",
    warned=("'later_kind'",),
    silent=("A title of before", "the diff of it", "one and two\n"),
)
