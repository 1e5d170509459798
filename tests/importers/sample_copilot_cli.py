"""Two runs of a session of Copilot CLI, with a subagent, a rewind and all other events."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl


def _events(*events: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "type": kind,
            "data": data,
            "id": f"e{n}",
            "timestamp": f"2026-10-10T12:00:{n:02}.000Z",
            "parentId": f"e{n - 1}" if n else None,
        }
        for n, (kind, data) in enumerate(events)
    ]


def _call(call_id: str, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"toolCallId": call_id, "name": name, "arguments": arguments, "type": "function", **more}


def _done(call_id: str, content: str, **more: Any) -> tuple[str, dict[str, Any]]:
    result = {"content": content, "detailedContent": content}
    return "tool.execution_complete", {"toolCallId": call_id, "success": True, "result": result, **more}


def _usage(read: int, wrote: int, cached: int) -> dict[str, Any]:
    usage = {"inputTokens": read, "outputTokens": wrote, "cacheReadTokens": cached, "cacheWriteTokens": 0}
    return {"requests": {"count": 2, "cost": 1}, "usage": usage, "totalNanoAiu": 10_000_000}


_PLACE = {"cwd": "/w/fjords", "gitRoot": "/w/fjords", "repository": "me/fjords", "branch": "main"}
_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
_IMAGE = {"type": "blob", "mimeType": "image/png", "data": _PNG}
_FILE = {"type": "selection", "path": "a.txt", "text": "a line of the file"}
_EDIT = {"path": "a.txt", "old_str": "Hardanger", "new_str": "Sogne"}
_BILL = {"inputTokens": 300, "outputTokens": 40, "cacheReadTokens": 100, "cacheWriteTokens": 0, "model": "gpt-5"}

_EVENTS = _events(
    ("session.start", {"sessionId": "s-1", "version": 1, "producer": "copilot-agent", "selectedModel": "gpt-5"}),
    ("session.info", {"infoType": "folder_trust", "message": "The folder is trusted now"}),
    ("session.context_changed", _PLACE),
    ("system.message", {"content": "You help with the fjords", "role": "system"}),
    (
        "user.message",
        {"content": "Name the fjords of Norway", "transformedContent": "<now>It is day</now> Name them"},
    ),
    ("assistant.turn_start", {"turnId": "t-1"}),
    ("assistant.reasoning", {"reasoningId": "r", "content": "I have to look"}),
    (
        "assistant.message",
        {
            "messageId": "m-1",
            "content": "I look at it.",
            "reasoningText": "I have to look",
            "reasoningOpaque": "c2VhbGVk",
            "toolRequests": [
                _call("c1", "bash", {"command": "ls the fjords"}),
                _call("c2", "create", '{"path": "a.txt", "file_text": "Hardanger and so on"}'),
                _call("c3", "edit", _EDIT),
            ],
            "outputTokens": 40,
        },
    ),
    ("permission.completed", {"result": {"kind": "approved by the user"}}),
    ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "ls the fjords"}}),
    _done("c1", "Hardanger and Sogne", toolTelemetry={"x": 1}),
    _done("c2", "Created file a.txt with 19 characters"),
    _done("c3", "the file was changed"),
    ("assistant.turn_end", {"turnId": "t-1"}),
    ("tool.execution_start", {"toolCallId": "c4", "toolName": "bash", "arguments": {"command": "cat no file"}}),
    (
        "tool.execution_complete",
        {"toolCallId": "c4", "success": False, "error": {"message": "there is no such file", "code": "1"}},
    ),
    ("session.model_change", {"previousModel": "gpt-5", "newModel": "claude-sonnet-5"}),
    ("subagent.started", {"toolCallId": "c1", "agentName": "explore", "agentDescription": "looks at all files"}),
    ("assistant.message", {"content": "I count them for you", "parentToolCallId": "c1", "model": "gpt-5-mini"}),
    ("assistant.message", {"content": "Hardanger and Sogne, they are", "phase": "final_answer"}),
    (
        "session.shutdown",
        {
            "shutdownType": "routine",
            "modelMetrics": {"gpt-5": _usage(1000, 50, 800), "claude-sonnet-5": _usage(200, 10, 0)},
        },
    ),
    ("session.resume", {"resumeTime": "2026-10-10T12:00:20.000Z", "eventCount": 20, "context": _PLACE}),
    ("user.message", {"content": "And the lakes of Norway?", "attachments": [_IMAGE, _FILE]}),
    ("session.error", {"errorType": "rate_limit", "message": "You are out of requests", "statusCode": 429}),
    ("abort", {"reason": "the user stopped it"}),
    ("session.snapshot_rewind", {"upToEventId": "e22", "eventsRemoved": 3}),
    ("user.message", {"content": "A skill says so to you", "source": "skill-lakes"}),
    (
        "session.compaction_complete",
        {"success": True, "summaryContent": "We spoke of all the fjords", "compactionTokensUsed": {**_BILL}},
    ),
    ("later.kind", {"text": "something that nobody knows"}),
    ("session.title_changed", {"title": "The fjords of Norway"}),
    ("model.call_start", {"turnId": "2", "model": "gpt-5"}),
    ("assistant.message_start", {"messageId": "m-4", "phase": "commentary"}),
    ("assistant.message_delta", {"messageId": "m-4", "deltaContent": "This was cut "}),
    ("assistant.message_delta", {"messageId": "m-4", "deltaContent": "off at once"}),
)

SAMPLE = Sample(
    name="copilot-cli",
    data=jsonl(_EVENTS),
    query="""
        [.[].data.toolRequests[]?.toolCallId] as $asked
        | [.[] | select(.type == "tool.execution_complete") | .data.toolCallId] as $results
        | ($results - $asked) as $others
        | [.[] | if .type | IN("user.message", "system.message", "assistant.message") then "said"
            elif .data.deltaContent then "piece"
            elif .type != "tool.execution_complete" then empty
            elif .data.toolCallId | IN($others[]) then "said", "result" else "result" end] as $speakers
        | ([.[] | select(.type == "session.shutdown") | .data.modelMetrics[].usage]
            + [.[].data.compactionTokensUsed | values]) as $bills
        | {messages: [foreach $speakers[] as $one ({}; {last: $one, is_new: ($one != .last or $one == "said")})
              | select(.is_new)] | length,
           calls: ($asked + $others | length), results: $results | length,
           input: $bills | map(.inputTokens) | add, output: $bills | map(.outputTokens) | add}""",
    path=".copilot/session-state/s-1/events.jsonl",
    warned=("'later.kind'",),
    silent=("2026-10-10T12:00:20.000Z",),
)
