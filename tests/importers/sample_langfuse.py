"""A trace of Langfuse with all that an observation holds: calls, a tool, an agent, an event, an error."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample


def _step(second: int, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "id": f"o-{second}",
        "traceId": "t-1",
        "type": kind,
        "startTime": f"2026-07-05T00:00:0{second}.000Z",
        "endTime": f"2026-07-05T00:00:0{second}.900Z",
        "parentObservationId": "o-0",
        "level": "DEFAULT",
        "statusMessage": None,
        **more,
    }


def _called(second: int, given: Any, answer: Any, **more: Any) -> dict[str, Any]:
    about = {"name": "llm", "model": "claude-sonnet-4-5", "modelParameters": {"temperature": 1}}
    return _step(second, "GENERATION", **about, input=given, output=answer, **more)


_ASKED = [
    {"role": "system", "content": "Answer in one line."},
    {"role": "user", "content": [{"type": "text", "text": "Name the fjords of Norway"}]},
]
_ANSWER = {
    "role": "assistant",
    "content": None,
    "reasoning_content": "I have to look",
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"at":"the west coast"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "count", "arguments": "{}"}},
    ],
}
_HISTORY = [*_ASKED, _ANSWER, {"role": "tool", "tool_call_id": "call_1", "content": "Hardanger and Sogne"}]
_HISTORY += [{"role": "tool", "tool_call_id": "call_2", "content": "no such tool here"}]
_BLOCKS = [
    {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "the inner lakes"}},
    {"type": "text", "text": "I look once more."},
]
_LATER = [
    *_HISTORY,
    {"role": "assistant", "content": "Hardanger and Sogne."},
    {"role": "user", "content": "And lakes?"},
]

_TRACE = {
    "id": "t-1",
    "timestamp": "2026-07-05T00:00:00.000Z",
    "name": "my agent",
    "sessionId": "s-1",
    "input": {"messages": _ASKED[1:]},
    "output": "There are three lakes",
    "metadata": {"from": "a test"},
    "tags": ["x"],
    "totalCost": 0.01,
    "scores": [{"name": "quality", "value": 1, "comment": "rather good answer"}],
    "observations": [
        {**_step(0, "AGENT", name="agent.run"), "endTime": "2026-07-05T00:00:09.000Z"},
        _called(
            1,
            _ASKED,
            _ANSWER,
            usageDetails={"input": 20, "output": 8, "cache_read_input_tokens": 100, "total": 128},
            costDetails={"input": 0.005, "total": 0.007},
        ),
        _step(2, "TOOL", name="look", input={"at": "the west coast"}, output="Hardanger and Sogne"),
        _step(3, "TOOL", name="count", level="ERROR", statusMessage="it is not there"),
        _called(4, json.dumps(_HISTORY), "Hardanger and Sogne.", usage={"promptTokens": 150, "completionTokens": 9}),
        _step(5, "EVENT", name="seen", input="something that was seen"),
        _called(
            6,
            {"messages": _LATER, "tools": []},
            {"role": "assistant", "content": _BLOCKS},
            usageDetails={"input": 170, "output": 7},
        ),
        _step(7, "TOOL", name="look", output={"lakes": "Femund and Mjosa here"}),
        _called(8, "Say it in one word", "Lakes and fjords", level="ERROR", statusMessage="the answer was cut"),
    ],
}

SAMPLE = Sample(
    name="langfuse",
    data=json.dumps(_TRACE, indent=1).encode(),
    query="""
        .[0].observations | map(select(.type == "GENERATION")) as $calls
        | ([$calls[] | .input | if type == "object" then .messages else . end] | map(select(type == "array"))
           | max_by(length)) as $history
        | [$calls[] | .usageDetails // .usage] as $usage
        | {messages: (($history | map(select(.role != "tool")) | length) + 1 + 1 + 1 + 2),
           calls: ([$history[].tool_calls[]?] + [$calls[2].output.content[] | select(.type == "tool_use")] | length),
           results: (($history | map(select(.role == "tool")) | length) + 1),
           input: [$usage[] | .input, .cache_read_input_tokens, .promptTokens] | add,
           output: [$usage[] | .output, .completionTokens] | add}""",
    grows=False,
)
"""Beside the longest history: the results in it are one message, then come an answer and the result of a tool, and a
call with another history, of two messages."""
