"""A chat of Vercel's AI SDK: messages of its versions 4, 5 and 6 for a user interface, and messages for a model."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample

_USAGE = {
    "inputTokens": 200,
    "inputTokenDetails": {"noCacheTokens": 120, "cacheReadTokens": 80, "cacheWriteTokens": 0},
    "outputTokens": 20,
    "outputTokenDetails": {"textTokens": 16, "reasoningTokens": 4},
}
_IMAGE = "data:image/png;base64,aGVsbG8="


def _call(number: int, state: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool-look", "toolCallId": f"call_{number}", "state": state, "input": {"at": "the coast"}, **more}


def _invocation(number: int, **more: Any) -> dict[str, Any]:
    return {
        "step": 0,
        "toolCallId": f"call_{number}",
        "toolName": "look",
        "args": {"at": "the inner lakes"},
        **more,
    }


_ANSWERED = _invocation(11, state="result", result={"lakes": "Femund and Mjosa here"})

_MESSAGES = [
    {"id": "s", "role": "system", "parts": [{"type": "text", "text": "Answer in one line."}]},
    {
        "id": "u1",
        "role": "user",
        "metadata": {"createdAt": "2026-11-29T22:00:00.000Z", "from": "the test page"},
        "parts": [
            {"type": "text", "text": "Name the fjords of Norway"},
            {"type": "file", "mediaType": "image/png", "filename": "a.png", "url": _IMAGE},
        ],
    },
    {
        "id": "a1",
        "role": "assistant",
        "metadata": {"usage": _USAGE, "model": "claude-sonnet-4-5"},
        "parts": [
            {"type": "step-start"},
            {
                "type": "reasoning",
                "text": "I have to look",
                "state": "done",
                "providerMetadata": {"anthropic": {"signature": "sig"}},
            },
            {"type": "text", "text": "I look at the map.", "state": "done"},
            _call(1, "output-available", output={"fjords": "Hardanger and Sogne here"}),
            _call(2, "output-error", errorText="An error has occurred."),
            {**_call(3, "output-denied", approval={"id": "p", "approved": False, "reason": "it is too far"})},
            {**_call(4, "input-available"), "type": "dynamic-tool", "toolName": "count", "title": "Count"},
            {"type": "step-start"},
            {"type": "text", "text": "Hardanger and Sogne.", "state": "done"},
            {"type": "source-url", "sourceId": "s1", "url": "https://example.com", "title": "A page on fjords"},
            {"type": "data-weather", "data": {"sky": "it will rain there"}},
        ],
    },
    {
        "id": "u2",
        "role": "user",
        "content": "And the lakes there?",
        "createdAt": "2026-11-29T22:01:00.000Z",
        "parts": [{"type": "text", "text": "And the lakes there?"}],
        "experimental_attachments": [{"name": "b.png", "contentType": "image/png", "url": _IMAGE}],
    },
    {
        "id": "a2",
        "role": "assistant",
        "content": "Femund and Mjosa, they are.",
        "createdAt": "2026-11-29T22:01:02.000Z",
        "toolInvocations": [_ANSWERED],
        "annotations": [{"note": "it was rather slow"}],
        "parts": [
            {"type": "step-start"},
            {
                "type": "reasoning",
                "reasoning": "I think of lakes",
                "details": [{"type": "text", "text": "I think of lakes"}],
            },
            {"type": "tool-invocation", "toolInvocation": _ANSWERED},
            {"type": "step-start"},
            {"type": "text", "text": "Femund and Mjosa, they are."},
        ],
    },
    {
        "id": "a3",
        "role": "assistant",
        "content": "I look once more.",
        "toolInvocations": [_invocation(12, state="call")],
    },
    {"role": "user", "content": [{"type": "text", "text": "Say it once more"}, {"type": "image", "image": _IMAGE}]},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I do it now."},
            {"type": "tool-call", "toolCallId": "call_21", "toolName": "look", "input": {"at": "all of it"}},
            {"type": "tool-call", "toolCallId": "call_22", "toolName": "nosuch", "input": {}},
        ],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "call_21",
                "toolName": "look",
                "output": {"type": "json", "value": {"seen": "fjords and lakes here"}},
            },
            {
                "type": "tool-result",
                "toolCallId": "call_22",
                "toolName": "nosuch",
                "output": {"type": "error-text", "value": "there is no such tool"},
            },
        ],
    },
    {"role": "moderator", "content": "this is not allowed"},
]

SAMPLE = Sample(
    name="vercel-ui",
    data=json.dumps({"id": "chat-1", "title": "Norway", "messages": _MESSAGES}, indent=1).encode(),
    query="""
        [.[0].messages[] | select(.role != "moderator")] as $said
        | [$said[] | .parts[]? // empty] as $parts
        | ([$parts[] | select(.toolCallId)] + [$parts[] | .toolInvocation // empty]
           + [$said[] | select(.parts | not) | .toolInvocations[]?]
           + [$said[].content | arrays | .[] | select(.input)]) as $calls
        | [$calls[] | select(.state == "result" or (.state // "" | startswith("output-")))] as $answered
        | [$said[] | select(.parts | length > 1) | .parts | map(select(.type == "step-start")) | length] as $steps
        | {messages: (($said | length) + ([$steps[] | select(. > 0) | . - 1] | add) + 2),
           calls: $calls | length,
           results: (($answered | length) + ([$said[].content | arrays | .[] | select(.output)] | length)),
           input: [$said[].metadata.usage.inputTokens] | add, output: [$said[].metadata.usage.outputTokens] | add}""",
    warned=("an entry of type 'moderator'",),
    grows=False,
)
"""Each step of a message after its first is a message; so are the results of the steps of two of them."""
