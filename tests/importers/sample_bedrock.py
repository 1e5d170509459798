"""A request of Bedrock Converse with every kind of block, and what Strands keeps beside messages."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample


def _usage(given: int, cached: int, written: int) -> dict[str, Any]:
    counts = {
        "inputTokens": given,
        "outputTokens": 10,
        "cacheReadInputTokens": cached,
        "cacheWriteInputTokens": written,
    }
    return {"usage": {**counts, "totalTokens": given + 10}, "metrics": {"latencyMs": 12}}


def _use(number: int, name: str, arguments: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": f"tooluse_{number}", "name": name, "input": arguments}}


def _result(number: int, status: str, *content: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": f"tooluse_{number}", "status": status, "content": list(content)}}


_IMAGE = {"format": "png", "source": {"bytes": "aGVsbG8="}}
_THINKING = {"reasoningText": {"text": "I have to look", "signature": "sig"}}
_MESSAGES = [
    {
        "role": "user",
        "content": [
            {"text": "Name the fjords of Norway"},
            {"image": _IMAGE},
            {"image": {"format": "png", "source": {"bytes": {"__bytes_encoded__": True, "data": "aGVsbG8="}}}},
            {"document": {"format": "pdf", "name": "a map of it", "source": {"bytes": "aGVsbG8="}}},
            {"cachePoint": {"type": "default"}},
        ],
        "tracking_id": "t-1",
    },
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": _THINKING},
            {"reasoningContent": {"redactedContent": "aGVsbG8="}},
            {"text": "I look at the map."},
            _use(1, "look", {"at": "the west coast"}),
            _use(2, "count", {"what": "all of them"}),
            _use(3, "look", {"at": "the inner lakes"}),
        ],
        "metadata": _usage(150, 40, 5),
    },
    {
        "role": "user",
        "content": [
            _result(1, "success", {"text": "Hardanger and Sogne"}, {"image": _IMAGE}),
            _result(2, "error", {"text": "no such tool here"}),
            _result(3, "success", {"json": {"lakes": "Femund and Mjosa here"}}),
            {"text": "Go on with it"},
        ],
    },
    {"role": "assistant", "content": [{"text": "Sogne and others, they are."}], "metadata": _usage(200, 0, 0)},
    {"role": "user", "content": [{"guardContent": {"text": {"text": "a text to guard"}}}, {"text": "Thank you"}]},
]

SAMPLE = Sample(
    name="bedrock-converse",
    data=json.dumps(
        {
            "modelId": "anthropic.claude-sonnet-4-5",
            "messages": _MESSAGES,
            "system": [{"text": "Answer in one line."}, {"cachePoint": {"type": "default"}}],
            "inferenceConfig": {"maxTokens": 100},
            "toolConfig": {"tools": [{"toolSpec": {"name": "look", "description": "Looks at a map"}}]},
        },
        indent=1,
    ).encode(),
    query="""
        .[0] as $body
        | [$body.messages[].content[]] as $blocks
        | [$body.messages[].metadata.usage // empty] as $usage
        | {messages: (($body.messages | length) + 1 + 1), calls: [$blocks[] | .toolUse // empty] | length,
           results: [$blocks[] | .toolResult // empty] | length,
           input: [$usage[] | .inputTokens, .cacheReadInputTokens, .cacheWriteInputTokens] | add,
           output: [$usage[].outputTokens] | add}""",
    warned=("guardContent",),
    grows=False,
)
"""The system text is a message, and so is the text beside the results."""
