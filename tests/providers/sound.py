"""A sound body of every provider, an answer, and a stream of one: what the tests of damage begin with."""

from __future__ import annotations

import base64
from typing import Any

from turnlog.testing.histories import PIXEL as PICTURE

__all__ = ["ANSWERS", "BODIES", "ODD_BODIES", "PIXEL", "STREAMS"]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

# -- Anthropic -----------------------------------------------------------------------------------

_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
_MARK = {"type": "ephemeral"}
_CITATION = {
    "type": "char_location", "cited_text": "c", "document_index": 0, "document_title": None,
    "start_char_index": 0, "end_char_index": 1,
}  # fmt: skip
_TALK: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "Look.", "cache_control": _MARK}, _IMAGE]},
    {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "Calling.", "citations": [_CITATION]},
        {"type": "tool_use", "id": "call_1", "name": "look", "input": {"at": "a"}},
        {"type": "tool_use", "id": "call_2", "name": "look", "input": {}},
    ]},
    {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "seen"}, _IMAGE]},
        {"type": "tool_result", "tool_use_id": "call_2", "is_error": True, "content": "no", "cache_control": _MARK},
        {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
        {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "found"}]},
    ]},
]  # fmt: skip
_ANTHROPIC_BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 4000,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {**_MARK, "ttl": "1h"}}],
    "messages": _TALK,
    "tools": [
        {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 3},
    ],
    "tool_choice": {"type": "auto"},
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "stop_sequences": ["END"],
    "metadata": {"user_id": "u"},
    "temperature": 1,
}
_ANTHROPIC_ANSWER: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "tool_use",
    "content": _TALK[1]["content"], "usage": {"input_tokens": 1, "output_tokens": 2},
}  # fmt: skip
_ANTHROPIC_EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**_ANTHROPIC_ANSWER, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "", "citations": []}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": _CITATION}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "a", "name": "look", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]

# -- Google: generateContent ---------------------------------------------------------------------

_INLINE = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
_CONTENTS: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "Look."}, _INLINE]},
    {"role": "model", "parts": [
        {"text": "Hm.", "thought": True},
        {"functionCall": {"id": "1", "name": "look", "args": {"at": "a"}}, "thoughtSignature": "AAAA"},
        {"functionCall": {"id": "2", "name": "look", "args": {}}},
    ]},
    {"role": "user", "parts": [
        {"functionResponse": {"id": "1", "name": "look", "response": {"output": "seen"}}},
        {"functionResponse": {"id": "2", "name": "look", "response": {"a": [1, {"b": 2}]}}},
    ]},
    {"role": "model", "parts": [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"text": "One.", "thoughtSignature": "BBBB"},
    ]},
    {"role": "user", "parts": [
        {"text": "And this?"},
        {"fileData": {"fileUri": "https://youtu.be/x", "mimeType": "video/mp4"}, "videoMetadata": {"fps": 1}},
    ]},
]  # fmt: skip
_GOOGLE_BODY: dict[str, Any] = {
    "contents": _CONTENTS,
    "systemInstruction": {"parts": [{"text": "Be brief."}]},
    "tools": [
        {"functionDeclarations": [
            {"name": "look", "description": "Looks.", "parameters": {"type": "OBJECT", "properties": {}}},
        ]},
        {"googleSearch": {}},
    ],
    "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
    "generationConfig": {
        "temperature": 1, "maxOutputTokens": 100, "stopSequences": ["END"], "thinkingConfig": {"thinkingBudget": 5},
    },
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
}  # fmt: skip
_GOOGLE_ANSWER: dict[str, Any] = {
    "candidates": [{"content": _CONTENTS[1], "finishReason": "STOP", "index": 0}],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    "modelVersion": "gemini-2.5-pro",
    "responseId": "r",
}
_PIECES: list[dict[str, Any]] = [
    {"text": "Hi"},
    {"functionCall": {"name": "f", "willContinue": True}, "thoughtSignature": "AAAA"},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "x", "willContinue": True}],
                      "willContinue": True}},
    {"functionCall": {"partialArgs": [{"jsonPath": "$.a[0]", "stringValue": "y"}], "willContinue": True}},
    {"functionCall": {}},
]  # fmt: skip
_GOOGLE_STREAM = [
    {"candidates": [{"content": {"role": "model", "parts": [piece]}}], "usageMetadata": {"promptTokenCount": 1}}
    for piece in _PIECES
]

# -- Google: Interactions ------------------------------------------------------------------------

_INTERACTIONS_BODY: dict[str, Any] = {
    "model": "gemini-2.5-pro",
    "store": False,
    "system_instruction": "Be brief.",
    "input": [
        {
            "type": "user_input",
            "content": [
                {"type": "text", "text": "Look."},
                {
                    "type": "image",
                    "data": base64.b64encode(PICTURE).decode(),
                    "mime_type": "image/png",
                    "resolution": "low",
                },
            ],
        },
        {"type": "thought", "signature": "AAAA", "summary": [{"type": "text", "text": "Two looks."}]},
        {"type": "function_call", "id": "1", "name": "look", "arguments": {"at": "a"}},
        {"type": "function_call", "id": "2", "name": "look", "arguments": {}},
        {"type": "function_result", "call_id": "1", "name": "look", "result": "seen"},
        {"type": "function_result", "call_id": "2", "result": {"a": [1, {"b": 2}]}, "is_error": True},
        {"type": "google_search_call", "id": "3", "arguments": {"queries": ["q"]}, "signature": "BBBB"},
        {"type": "google_search_result", "call_id": "3", "result": [{"search_suggestions": "s"}]},
        {
            "type": "model_output",
            "content": [{"type": "text", "text": "One.", "annotations": [{"type": "url_citation", "url": "u"}]}],
        },
        {"type": "user_input", "content": [{"type": "video", "uri": "https://youtu.be/x", "mime_type": "video/mp4"}]},
    ],
    "tools": [
        {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}},
        {"type": "google_search"},
    ],
    "generation_config": {
        "temperature": 1,
        "max_output_tokens": 100,
        "stop_sequences": ["END"],
        "thinking_level": "low",
        "tool_choice": {"allowed_tools": {"mode": "any", "tools": ["look"]}},
    },
    "safety_settings": [{"type": "harassment", "threshold": "block_none"}],
}

# -- OpenAI: both APIs ---------------------------------------------------------------------------

_TOOLS = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}, "strict": True}}
]
_CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
_CHAT: dict[str, Any] = {
    "model": "gpt-5.1",
    "temperature": 0.5,
    "stop": ["end"],
    "stream": True,
    "stream_options": {"include_usage": True},
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    "metadata": {"k": "v"},
    "tools": _TOOLS,
    "messages": [
        {"role": "system", "content": "be brief"},
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
            ],
        },
        {"role": "assistant", "content": "hm", "refusal": None, "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "42"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        {"role": "user", "content": "thanks"},
    ],
}
_RESPONSES: dict[str, Any] = {
    "model": "gpt-5.1",
    "instructions": "be brief",
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    "tool_choice": "auto",
    "tools": [
        {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False},
        {"type": "web_search"},
    ],
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "low"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "s"}],
            "encrypted_content": "blob",
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": "{}",
            "status": "completed",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "42"}]},
        {"type": "custom_tool_call", "call_id": "call_2", "name": "p", "input": "free"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "ok"},
        {"type": "shell_call", "call_id": "call_3", "action": {"commands": ["ls"]}},
        {
            "type": "shell_call_output",
            "call_id": "call_3",
            "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
        },
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "done", "annotations": []}],
        },
        {"role": "user", "content": "thanks"},
    ],
}

_ODD: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "openai-chat": (
        "messages",
        [
            {"role": "assistant", "content": "a", "reasoning_content": "why", "reasoning_details": [{"type": "t"}]},
            {"role": "assistant", "content": None, "function_call": {"name": "g", "arguments": "{}"}},
            {"role": "function", "name": "g", "content": "1"},
            {"role": "function", "name": "nobody", "content": [{"type": "text", "text": "asked"}]},
            {"role": "assistant", "tool_calls": [{"index": 0, "id": None, "type": "?", "function": {"name": "a b"}}]},
            {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "p", "input": "x"}}]},
            {"role": "user", "content": [{"type": "input_text", "text": "habit"}, {"type": "video_url"}]},
            {"role": "user", "content": [{"type": "file", "file": {"file_data": "data:,x", "file_id": "f"}}]},
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}],
            },
            {"role": "user", "content": [{"type": "image_url", "image_url": "https://example.com/a.png"}]},
        ],
    ),
    "openai-responses": (
        "input",
        [
            {"role": "USER", "content": [{"type": "text", "text": "habit"}, {"type": "output_text", "text": "other"}]},
            {"role": "tool", "content": "42"},
            {"role": "assistant", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image"}]},
            {"type": "reasoning", "id": "nobody's", "encrypted_content": "b", "summary": None},
            {"type": "message", "id": "msg_9", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"type": "item_reference", "id": "msg_1"},
            {"type": "function_call", "callId": "x", "name": "f", "arguments": {"a": 1}},
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "a b", "status": "completed", "action": {}},
            {"type": "computer_call", "call_id": "c9", "action": {"type": "wait"}},
            {"type": "tool_search_call", "call_id": "c8", "execution": "client", "arguments": {}},
            {"type": "mcp_call", "id": "mcp_1", "name": "n", "arguments": "{}", "server_label": "s"},
            {"type": "of_tomorrow", "payload": 1},
        ],
    ),
}
"""Items that are read, and not sent as they are."""

# -- all of them ---------------------------------------------------------------------------------

BODIES: dict[str, dict[str, Any]] = {
    "anthropic": _ANTHROPIC_BODY,
    "google": _GOOGLE_BODY,
    "google-interactions": _INTERACTIONS_BODY,
    "openai-chat": _CHAT,
    "openai-responses": _RESPONSES,
}

ODD_BODIES = BODIES | {name: {**BODIES[name], key: [*BODIES[name][key], *odd]} for name, (key, odd) in _ODD.items()}
"""The bodies with items that are read, and not sent as they are."""

ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": _ANTHROPIC_ANSWER,
    "google": _GOOGLE_ANSWER,
    "openai-chat": {
        "id": "c",
        "model": "m",
        "usage": {"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 1}},
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "a",
                    "annotations": [{"u": 1}],
                    "audio": {"id": "a", "data": "UklGRg==", "transcript": "said"},
                    "reasoning_details": [{"type": "x"}],
                    "tool_calls": [_CALL],
                },
            }
        ],
    },
    "openai-responses": {
        "id": "r",
        "status": "completed",
        "model": "m",
        "usage": {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 1}},
        "output": [item for item in _RESPONSES["input"] if item.get("role") != "user"],
    },
}


def _chunks(name: str) -> list[dict[str, Any]]:
    """A stream of the answer."""
    if name == "openai-chat":
        message = ANSWERS[name]["choices"][0]["message"]
        deltas = [{key: value} for key, value in (*message.items(), ("function_call", {"name": "f"}))]
        ends: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {"choices": []},
        ]
        return [*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), *ends]
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r", "output": []}}]
    for i, item in enumerate(ANSWERS[name]["output"]):
        events.append({"type": "response.output_item.added", "output_index": i, "item": item})
        events.append({"type": "response.output_text.delta", "output_index": i, "content_index": 0, "delta": "d"})
        events.append({"type": "response.function_call_arguments.delta", "output_index": i, "delta": "{"})
        if i % 2:
            events.append({"type": "response.output_item.done", "output_index": i, "item": item})
    return [*events, {"type": "response.completed", "response": ANSWERS[name]}]


STREAMS: dict[str, list[dict[str, Any]]] = {
    "anthropic": _ANTHROPIC_EVENTS,
    "google": _GOOGLE_STREAM,
    "openai-chat": _chunks("openai-chat"),
    "openai-responses": _chunks("openai-responses"),
}
"""The events of a streamed answer."""
