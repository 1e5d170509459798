"""A session of ADK with every kind of part and action: tools, a transfer, pieces, an error, a compaction, a rewind."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample


def _event(second: int, author: str, *parts: dict[str, Any], turn: int = 1, **more: Any) -> dict[str, Any]:
    role = more.pop("role", "user" if author == "user" else "model")
    return {
        **({"content": {"role": role, "parts": list(parts)}} if parts else {}),
        "invocationId": f"e-{turn}",
        "author": author,
        "id": f"event-{second}",
        "timestamp": 1795989600.25 + second,
        "actions": {"stateDelta": {}, "artifactDelta": {}, **more.pop("actions", {})},
        **more,
    }


def _model(second: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    usage = {"promptTokenCount": 100 + second, "candidatesTokenCount": 10, "thoughtsTokenCount": 5}
    about: dict[str, Any] = {"modelVersion": "gemini-3-pro", "finishReason": "STOP", "nodeInfo": {"path": "finder@1"}}
    return _event(second, "finder", *parts, usageMetadata={**usage, "cachedContentTokenCount": 40}, **about, **more)


_EVENTS = [
    _event(
        0, "user", {"text": "Name the fjords of Norway"}, {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}
    ),
    _event(1, "finder", {"text": "I have"}, partial=True),
    _model(
        2,
        {"text": "I have to look", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "I look at the map."},
        {"functionCall": {"id": "call_1", "name": "look", "args": {"at": "the west coast"}}},
        {"functionCall": {"name": "count", "args": {"what": "all of them"}}},
        longRunningToolIds=[],
    ),
    _event(
        3,
        "finder",
        {"functionResponse": {"id": "call_1", "name": "look", "response": {"seen": "Hardanger and Sogne"}}},
        {"functionResponse": {"name": "count", "response": {"error": "no such tool here"}}},
        role="user",
        actions={"stateDelta": {"counted": "not at all, no"}},
    ),
    _model(
        4,
        {"text": None, "functionCall": {"id": "call_2", "name": "transfer_to_agent", "args": {"agent_name": "writer"}}},
    ),
    _event(
        5,
        "finder",
        {"functionResponse": {"id": "call_2", "name": "transfer_to_agent", "response": {"result": None}}},
        role="user",
        actions={"transferToAgent": "writer"},
    ),
    _event(
        6,
        "writer",
        {"text": "Hardanger and Sogne, they are."},
        {"executableCode": {"code": "print('a b c')", "language": "PYTHON"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "a b c"}},
    ),
    _event(7, "user", {"text": "And the lakes?"}, turn=2),
    _event(8, "writer", turn=2, errorCode="SAFETY", errorMessage="it was not safe"),
    _event(9, "user", turn=3, actions={"rewindBeforeInvocationId": "e-2"}),
    _event(10, "user", {"text": "Name the lakes, then"}, turn=4),
    _event(
        11,
        "writer",
        turn=4,
        actions={
            "compaction": {
                "startTimestamp": 1795989600.0,
                "endTimestamp": 1795989606.5,
                "compactedContent": {"role": "model", "parts": [{"text": "The fjords were named."}]},
            }
        },
    ),
    _model(
        12, {"text": "Femund and Mjosa, they are."}, turn=4, groundingMetadata={"webSearchQueries": ["lakes of Norway"]}
    ),
]

SAMPLE = Sample(
    name="adk",
    data=json.dumps(
        {"id": "s-1", "appName": "app", "userId": "u", "state": {"k": "a state it has"}, "events": _EVENTS}, indent=1
    ).encode(),
    query="""
        [.[0].events[] | select(.partial | not)] as $events
        | [$events[].content.parts[]?] as $parts
        | {messages: [$events[] | select(.content)] | length,
           calls: [$parts[] | select(.functionCall)] | length,
           results: [$parts[] | select(.functionResponse)] | length,
           input: [$events[].usageMetadata.promptTokenCount] | add,
           output: [$events[].usageMetadata | .candidatesTokenCount, .thoughtsTokenCount] | add}""",
    grows=False,
)
