"""Messages of LangChain in its three forms, with all blocks, as the state of a graph."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample


def _plain(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"content": content, "additional_kwargs": {}, "response_metadata": {}, "type": kind, "name": None, **more}


def _stored(kind: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": kind, "data": _plain(kind, content, **more)}


def _dumped(name: str, content: Any, **more: Any) -> dict[str, Any]:
    kwargs = {"content": content, **more}
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", name], "kwargs": kwargs}


_CALL = {"name": "look", "args": {"what": "fjords"}, "id": "toolu_1", "type": "tool_call"}
_WIRE = {"id": "toolu_3", "type": "function", "function": {"name": "count", "arguments": '{"what": "fjords"}'}}
_USAGE = {
    "input_tokens": 120,
    "output_tokens": 30,
    "total_tokens": 150,
    "input_token_details": {"cache_read": 100},
    "output_token_details": {"reasoning": 5},
}
_MESSAGES = [
    _stored("system", "Be brief and kind.", id="s1"),
    _stored(
        "human",
        [
            "Name the fjords of Norway",
            {"type": "text", "text": "and the lakes of it"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8="}},
            {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"},
            {"type": "later_block", "words": "a block that nobody knows"},
        ],
    ),
    _dumped(
        "AIMessage",
        [
            {"type": "thinking", "thinking": "I have to look.", "signature": "sig"},
            {"type": "text", "text": "I look them up.", "citations": [{"title": "a page of fjords"}]},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"what": "fjords"}},
        ],
        tool_calls=[_CALL],
        invalid_tool_calls=[{"name": "write_file", "args": '{"path": a broken text', "id": "toolu_2", "error": None}],
        usage_metadata=_USAGE,
        response_metadata={"model_name": "claude-sonnet-4-5", "stop_reason": "tool_use"},
    ),
    _plain("tool", "Hardanger and Sogne", tool_call_id="toolu_1", name="look", artifact={"raw": 1}),
    _plain("tool", [{"type": "text", "text": "it is broken"}], tool_call_id="toolu_2", status="error"),
    _plain(
        "AIMessageChunk",
        [{"type": "reasoning", "reasoning": "I have to count them."}],
        additional_kwargs={"tool_calls": [_WIRE], "reasoning_content": "It goes without saying.", "refusal": None},
        response_metadata={"model_name": "gpt-5", "token_usage": {"prompt_tokens": 80, "completion_tokens": 9}},
    ),
    _plain("function", "there are two", name="count"),
    _dumped("ChatMessage", "What is a lake?", role="user"),
    _plain("ai", "Hardanger, Sogne.", response_metadata={"model": "claude-sonnet-4-5"}, usage_metadata=_USAGE),
    _stored("remove", "", id="s1"),
    _plain("later", "something that nobody knows"),
]

SAMPLE = Sample(
    name="langchain",
    data=json.dumps({"messages": _MESSAGES, "plan": {"text": "the plan of it"}}).encode(),
    # Results in a row are one message; calls stand in up to three places.
    query="""
        [.[].messages[] | (.data // .kwargs // .) + {kind: ((.id | arrays | last) // .type)}] as $all
        | ($all | map(select(.kind | test("^(ai|AI)"))
                      | . + {older: .response_metadata.token_usage, billed: .usage_metadata})) as $answers
        | ($all | map(select(.kind == "tool" or .kind == "function"))) as $results
        | {messages: ($all | map(select(.kind != "remove" and .kind != "later")) | length - 1),
           calls: [$answers[] | .tool_calls[]?, .invalid_tool_calls[]?, .additional_kwargs.tool_calls[]?] | length,
           results: $results | length,
           input: $answers | map(.billed.input_tokens // .older.prompt_tokens) | add,
           output: $answers | map(.billed.output_tokens // .older.completion_tokens) | add}
        """,
    grows=False,
    warned=("`plan`", "'later_block'", "'later'"),
)
