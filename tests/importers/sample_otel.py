"""Spans of two conversations, as a collector writes them: the newest attributes, and what older writers used."""

from __future__ import annotations

import json
from typing import Any

from samples import Sample
from transcripts import jsonl

_START = 1795989600000000000


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _attributes(value)}}
    return {"stringValue": value}


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _span(second: int, name: str, attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    span = {
        "traceId": "5332ca110e95b58e6369878bae61d88d",
        "spanId": f"{second:016x}",
        "parentSpanId": "926b5caf74354461",
        "name": name,
        "kind": 3,
        "startTimeUnixNano": str(_START + second * 1_000_000_000),
        "endTimeUnixNano": str(_START + second * 1_000_000_000 + 900_000_000),
        "attributes": _attributes(attributes),
        "status": {},
        **more,
    }
    scope = {"scope": {"name": "my-agent", "version": "1"}, "spans": [span]}
    resource = {"attributes": _attributes({"service.name": "agent"})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _chat(given: Any, answer: Any, tokens: tuple[int, int], **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": "c-1",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.input.messages": given,
        "gen_ai.output.messages": answer,
        "gen_ai.usage.input_tokens": tokens[0],
        "gen_ai.usage.output_tokens": tokens[1],
        **more,
    }


def _said(role: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts), **more}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


_USER = _said(
    "user",
    _text("Name the fjords of Norway"),
    {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "aGVsbG8="},
    {"type": "uri", "modality": "image", "mime_type": "image/png", "uri": "https://example.com/a.png"},
)
_CALLED = _said(
    "assistant",
    {"type": "reasoning", "content": "I have to look"},
    _text("I look at the map."),
    {"type": "tool_call", "id": "call_1", "name": "look", "arguments": {"at": "the west coast"}},
    {"type": "tool_call", "id": "call_2", "name": "count", "arguments": '{"what": "all fjords"}'},
)
_RETURNED = [
    _said("tool", {"type": "tool_call_response", "id": "call_1", "response": "Hardanger and Sogne"}),
    _said("tool", {"type": "tool_call_response", "id": "call_2", "result": "no such tool here"}),
]
_SUBAGENT = [_said("system", _text("You count the fjords.")), _said("user", _text("Count all of them"))]
_SYSTEM = {"gen_ai.system_instructions": json.dumps([_text("Answer in one line.")])}
_HISTORY = [_USER, _CALLED, *_RETURNED]
_DONE = _said("assistant", _text("Hardanger and Sogne, they are."), finish_reason="stop")
_LAST = [*_HISTORY, _DONE, _said("user", _text("And the lakes?"))]

_LINES = [
    _span(
        1,
        "chat claude",
        _chat(json.dumps([_USER]), json.dumps([{**_CALLED, "finish_reason": "tool_call"}]), (100, 20), **_SYSTEM),
    ),
    _span(
        2,
        "execute_tool look",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look",
            "gen_ai.tool.call.id": "call_1",
            "gen_ai.tool.call.result": "Hardanger and Sogne",
        },
    ),
    _span(
        3,
        "execute_tool count",
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "count", "gen_ai.tool.call.id": "call_2"},
        status={"code": 2, "message": "no such tool here"},
        events=[{"name": "exception", "timeUnixNano": "1", "attributes": _attributes({"exception.type": "KeyError"})}],
    ),
    _span(
        4,
        "chat counter",
        _chat(json.dumps(_SUBAGENT), json.dumps([_said("assistant", _text("I found two of them."))]), (30, 5)),
    ),
    _span(
        5,
        "chat claude",
        _chat(
            [_said("system", _text("Answer in one line.")), *_HISTORY],
            [_DONE],
            (150, 10),
            **{"gen_ai.usage.cache_read.input_tokens": 90},
        ),
    ),
    _span(
        6,
        "chat claude",
        _chat(
            [_said("system", _text("Answer in one line.")), *_LAST],
            [_said("assistant", _text("I do not know it."))],
            (170, 10),
        ),
    ),
    _span(
        7,
        "chat claude",
        _chat(
            [_said("system", _text("Answer in one line.")), *_LAST],
            [_said("assistant", _text("Femund and Mjosa, they are."))],
            (170, 12),
        ),
    ),
    _span(
        8,
        "invoke_agent",
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.conversation.id": "c-1",
            "pydantic_ai.all_messages": json.dumps(_LAST),
            "final_result": "Those are all the lakes",
        },
    ),
    _span(
        9,
        "openai.chat",
        {
            "gen_ai.system": "openai",
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": "gpt-4.1",
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.usage.prompt_tokens": 40,
            "gen_ai.usage.completion_tokens": 4,
        },
        traceId="7777ca110e95b58e6369878bae61d88d",
        events=[
            {"name": "gen_ai.system.message", "attributes": _attributes({"content": "Be brief and kind."})},
            {"name": "gen_ai.user.message", "attributes": _attributes({"content": "Greet the people here"})},
            {
                "name": "gen_ai.choice",
                "attributes": _attributes(
                    {"index": 0, "message": '{"role": "assistant", "content": "Hello to all of you"}'}
                ),
            },
        ],
    ),
    _span(
        10,
        "openai.chat",
        {
            "llm.request.type": "chat",
            "gen_ai.system": "OpenAI",
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": "Say how you are",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "I am rather well",
            "gen_ai.completion.0.tool_calls.0.id": "call_9",
            "gen_ai.completion.0.tool_calls.0.name": "wave",
            "gen_ai.completion.0.tool_calls.0.arguments": "{}",
        },
        traceId="8888ca110e95b58e6369878bae61d88d",
    ),
    _span(11, "GET", {"http.url": "https://example.com"}),
]

SAMPLE = Sample(
    name="otel-genai",
    data=jsonl(_LINES),
    query="""
        def plain: if .stringValue then .stringValue | (fromjson? // .)
          elif .arrayValue then [.arrayValue.values[]? | plain]
          elif .kvlistValue then [.kvlistValue.values[]? | {key, value: (.value | plain)}] | from_entries
          else .intValue | tonumber? end;
        [.[].resourceSpans[].scopeSpans[].spans[]
         | {id: .spanId, a: ([.attributes[] | {key, value: (.value | plain)}] | from_entries)}] as $all
        | ($all | map(select(.a["gen_ai.input.messages"]))) as $chats
        | [$chats[] | select(.id | endswith("4")).a] as $sub
        | $chats[-1].a as $last
        | [$last["gen_ai.input.messages"][], $sub[]["gen_ai.input.messages"][],
           ($chats[] | select(.id | endswith("4", "6", "7")).a["gen_ai.output.messages"][])] as $said
        | [$said[].parts[].type] as $parts
        | {messages: (($said | map(select(.role != "tool")) | length) + 1 + 3 + 2),
           calls: (($parts | map(select(. == "tool_call")) | length) + 1),
           results: $parts | map(select(. == "tool_call_response")) | length,
           input: [$all[].a | .["gen_ai.usage.input_tokens"], .["gen_ai.usage.prompt_tokens"]] | add,
           output: [$all[].a | .["gen_ai.usage.output_tokens"], .["gen_ai.usage.completion_tokens"]] | add}""",
    warned=("1 span without",),
)
"""The results of both tools are one message. Of the last two traces, messages are in events and in numbered attributes:
three and two, with one call."""
