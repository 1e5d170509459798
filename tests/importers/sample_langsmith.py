"""Runs of two threads of LangSmith: messages of each shape, tools, a chain, prompts that are one text, a failure."""

from __future__ import annotations

from typing import Any

from samples import Sample
from transcripts import jsonl


def _run(second: int, kind: str, inputs: Any, outputs: Any, *, thread: str = "th-1", **more: Any) -> dict[str, Any]:
    metadata = {"thread_id": thread, "ls_provider": "anthropic", "ls_model_name": "claude"}
    return {
        "id": f"r-{second}",
        "name": more.pop("name", kind),
        "run_type": kind,
        "start_time": f"2026-11-29T22:00:{second:02}.100000Z",
        "end_time": f"2026-11-29T22:00:{second:02}.900000Z",
        "extra": {"metadata": metadata, **more.pop("extra", {})},
        "error": None,
        "inputs": inputs,
        "outputs": outputs,
        "parent_run_id": "r-0",
        "tags": ["x"],
        "dotted_order": f"{second:02}",
        "trace_id": f"trace-{thread}",
        **more,
    }


def _lc(name: str, /, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": kwargs}


def _generated(message: dict[str, Any], text: str) -> dict[str, Any]:
    generation = {"text": text, "generation_info": None, "type": "ChatGeneration", "message": message}
    return {"generations": [[generation]], "llm_output": None, "type": "LLMResult"}


_SYSTEM = _lc("SystemMessage", content="Answer in one line.", type="system")
_HUMAN = _lc("HumanMessage", content="Name the fjords of Norway", type="human")
_CALL = {"name": "look", "args": {"at": "the west coast"}, "id": "toolu_1", "type": "tool_call"}
_ANSWER = _lc(
    "AIMessage",
    content=[
        {"type": "thinking", "thinking": "I have to look", "signature": "sig"},
        {"type": "text", "text": "I look at the map."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "the west coast"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}},
    ],
    type="ai",
    id="run--1",
    tool_calls=[_CALL, {"name": "count", "args": {"what": "all of them"}, "id": "toolu_2", "type": "tool_call"}],
    response_metadata={"model_name": "claude-sonnet-4-5", "stop_reason": "tool_use"},
    usage_metadata={
        "input_tokens": 120,
        "output_tokens": 30,
        "input_token_details": {"cache_creation": 10, "cache_read": 100},
        "output_token_details": {"reasoning": 5},
    },
)
_RESULTS = [
    _lc("ToolMessage", content="Hardanger and Sogne", type="tool", tool_call_id="toolu_1", name="look"),
    _lc("ToolMessage", content="no such tool here", type="tool", tool_call_id="toolu_2", status="error"),
]
_DONE = _lc(
    "AIMessage",
    content="Hardanger and Sogne, they are.",
    type="ai",
    usage_metadata={"input_tokens": 150, "output_tokens": 8},
)
_PLAIN = [
    {"type": "human", "content": "Greet the people here", "id": None},
    {
        "type": "ai",
        "content": "",
        "tool_calls": [{"name": "wave", "args": {}, "id": "call_7"}],
        "response_metadata": {"model_name": "gpt-4.1"},
    },
    {"type": "tool", "content": "they wave back at you", "tool_call_id": "call_7", "name": "wave"},
    {"type": "ai", "content": "Hello to all of you", "response_metadata": {"model_name": "gpt-4.1"}},
]

_LINES = [
    _run(1, "llm", {"messages": [[_SYSTEM, _HUMAN]]}, _generated(_ANSWER, "I look at the map.")),
    _run(2, "tool", {"at": "the west coast"}, {"output": _RESULTS[0]["kwargs"]}, extra={"tool_call_id": "toolu_1"}),
    _run(3, "tool", {"input": "{}"}, {}, name="count", error="it is not there", extra={"tool_call_id": "toolu_2"}),
    _run(
        4,
        "chat_model",
        {"messages": [[_SYSTEM, _HUMAN, _ANSWER, *_RESULTS]]},
        _generated(_DONE, "Hardanger and Sogne, they are."),
    ),
    _run(5, "retriever", {"query": "fjords in the west"}, {"documents": [{"page_content": "A fjord is deep"}]}),
    _run(
        6,
        "llm",
        {"messages": [{"role": "user", "content": "Count the lakes, too"}]},
        {
            "choices": [
                {
                    "message": {"role": "assistant", "content": "I found two of them."},
                    "finish_reason": "stop",
                    "index": 0,
                }
            ]
        },
        prompt_tokens=12,
        completion_tokens=6,
    ),
    _run(
        7,
        "llm",
        {"prompts": ["Human: Greet the people here"]},
        _generated(_lc("AIMessage", type="ai", content="", usage_metadata={"input_tokens": 9, "output_tokens": 3}), ""),
        thread="th-2",
    ),
    _run(
        8,
        "llm",
        {"prompts": ["Human: Greet the people here\nAI: \nTool: they wave back at you"]},
        _generated(
            _lc(
                "AIMessage",
                type="ai",
                content="Hello to all of you",
                usage_metadata={"input_tokens": 19, "output_tokens": 4},
            ),
            "Hello to all of you",
        ),
        thread="th-2",
    ),
    _run(9, "chain", {"input": "Greet the people here"}, {"messages": _PLAIN}, thread="th-2", parent_run_id=None),
]

SAMPLE = Sample(
    name="langsmith",
    data=jsonl(_LINES),
    query="""
        map(select(.run_type == "llm" or .run_type == "chat_model")) as $calls
        | ($calls | map(.inputs.messages[0] | arrays) | max_by(length)) as $history
        | (.[] | select(.run_type == "chain").outputs.messages) as $whole
        | [$calls[] | .outputs.generations[0][0].message.kwargs.usage_metadata? // empty] as $usage
        | {messages: (($history | map(select(.kwargs.type != "tool")) | length) + 1 + 1 + ($whole | length) + 2),
           calls: [$history[].kwargs.tool_calls[]?, $whole[].tool_calls[]?] | length,
           results: [$history[].kwargs, $whole[] | select(.type == "tool")] | length,
           input: ([$usage[].input_tokens] + [$calls[].prompt_tokens] | add),
           output: ([$usage[].output_tokens] + [$calls[].completion_tokens] | add)}""",
    grows=False,
)
"""Beside the longest history, in which two results are one message: its answer, and a call with another history, of two
messages. Calls whose prompt is one text are in what their chain returned, at the end of the file."""
