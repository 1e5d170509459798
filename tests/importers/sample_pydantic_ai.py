"""A history of pydantic-ai with the parts of all versions."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample


def _part(kind: str, content: Any = None, **more: Any) -> dict[str, Any]:
    return {**({} if content is None else {"content": content}), "timestamp": None, **more, "part_kind": kind}


def _request(second: int, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "parts": list(parts),
        "timestamp": f"2026-10-07T10:00:{second:02}Z",
        "kind": "request",
        "run_id": "r",
        **more,
    }


def _response(second: int, usage: dict[str, Any], *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"model_name": "claude-x", "provider_name": "anthropic", "conversation_id": "c-1", **more}
    return {**_request(second, *parts), "usage": usage, "kind": "response", **about}


_SAILOR = "You are a sailor and a cook."
_IMAGE = {"data": "aGVsbG8_", "media_type": "image/png", "kind": "binary", "identifier": "x"}
_MESSAGES = [
    _request(
        1,
        _part("system-prompt", "Be brief and kind."),
        _part(
            "user-prompt",
            [
                "Name the fjords of Norway",
                _IMAGE,
                {"url": "https://example.com/a.pdf", "media_type": "application/pdf", "kind": "document-url"},
                {"content": "and the lakes of it", "kind": "text-content"},
                {"kind": "cache-point"},
                {"kind": "later-content", "words": "content that nobody knows"},
            ],
        ),
        instructions=_SAILOR,
    ),
    _response(
        2,
        {"input_tokens": 100, "cache_read_tokens": 40, "output_tokens": 10, "details": {"reasoning_tokens": 5}},
        _part("thinking", "I have to look.", signature="sig", provider_name="anthropic"),
        _part("text", "I look them up."),
        _part("tool-call", tool_name="look", args='{"what": "fjords"}', tool_call_id="a"),
        _part("tool-call", tool_name="write_file", args={"path": "a.md", "content": "one two"}, tool_call_id="b"),
        _part("tool-call", tool_name="count", args=None, tool_call_id="c"),
        finish_reason="tool_call",
        provider_response_id="msg_1",
    ),
    _request(
        3,
        _part("tool-return", {"names": ["Hardanger and Sogne"]}, tool_name="look", tool_call_id="a", outcome="success"),
        _part(
            "retry-prompt",
            [{"type": "missing", "msg": "a field is required"}],
            tool_name="write_file",
            tool_call_id="b",
        ),
        _part("tool-return", 0, tool_name="count", tool_call_id="c", outcome="failed"),
        _part("retry-prompt", "answer in one line", tool_name=None, tool_call_id="d"),
        instructions=_SAILOR,
    ),
    _response(
        4,
        {"request_tokens": 150, "response_tokens": 10, "total_tokens": 160, "details": None},
        _part("builtin-tool-call", tool_name="web_search", args={"query": "fjords"}, tool_call_id="e"),
        _part("builtin-tool-return", {"page": "the text of a page"}, tool_name="web_search", tool_call_id="e"),
        _part("file", {"data": "aGVsbG8=", "media_type": "image/png", "kind": "binary"}),
        _part("text", "Hardanger, Sogne."),
        _part("later-part", "a part that nobody knows"),
    ),
    {"kind": "note", "parts": [_part("text", "something that nobody knows")]},
]

SAMPLE = Sample(
    name="pydantic-ai",
    data=json.dumps(_MESSAGES).encode(),
    query="""
        map(.[] | select(.kind != "note")) as $all
        | [$all[] | (.instructions // empty | {part_kind: "instructions", content: .}), .parts[]] as $parts
        | [$parts[] | if .part_kind == "instructions" or .part_kind == "system-prompt" then "system"
            elif .part_kind == "user-prompt" or (.part_kind == "retry-prompt" and .tool_name == null) then "user"
            elif (.part_kind | endswith("tool-return")) or .part_kind == "retry-prompt" then "result"
            elif .part_kind == "later-part" then empty else "assistant" end] as $speakers
        | {messages: ([foreach $speakers[] as $one ({}; {last: $one, is_new: ($one != .last or $one == "system")})
                       | select(.is_new)] | length - 1),
           calls: $parts | map(select(.part_kind | endswith("tool-call"))) | length,
           results: $speakers | map(select(. == "result")) | length,
           input: $all | map(.usage // empty | .input_tokens // .request_tokens) | add,
           output: $all | map(.usage // empty | .output_tokens // .response_tokens) | add}""",
    grows=False,
    warned=("'later-content'", "'later-part'", "'note'"),
)
