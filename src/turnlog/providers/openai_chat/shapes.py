"""Wire keys of Chat Completions as data. Source: request types of the openai SDK 3.54."""

from __future__ import annotations

import re

from ..shapes import ANY, Keys, Many, Shape, Tagged

__all__ = [
    "CALL_OPTIONS",
    "MEDIA_TYPES",
    "NAME",
    "NOT_NULL",
    "OPAQUE_FIELDS",
    "PART_TYPES",
    "REASONING_FIELDS",
    "request_shape",
    "takes_reasoning",
]

NAME = "openai-chat"

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Keys of an assistant message under which compatible servers show reasoning as a text:
`reasoning_content` (DeepSeek, Moonshot, vLLM), `reasoning` (OpenRouter, Groq, newer vLLM)."""

OPAQUE_FIELDS = ("reasoning_details", "audio")
"""Keys of an assistant message that hold a thing of the provider's own."""

MEDIA_TYPES = ("image_url", "input_audio", "file")
"""Types of content parts that hold media, under a key of the same name."""

PART_TYPES = {
    "system": ("text",),
    "developer": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text", "refusal"),
    "tool": ("text",),
}
"""Types of content parts by role."""

CALL_OPTIONS = ("extra_body", "extra_headers", "extra_query", "timeout")
"""Options of the SDK's method that may stand beside the request and are not part of the body."""

NOT_NULL = frozenset(
    """function_call functions logit_bias parallel_tool_calls prompt_cache_key prompt_cache_options response_format
    tool_choice tools user web_search_options""".split()
)
"""Top-level keys that may be absent but not null."""

_SETTINGS = """audio frequency_penalty function_call logit_bias logprobs max_completion_tokens max_tokens metadata
    modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key
    prompt_cache_options prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier
    stop store stream temperature tool_choice top_logprobs top_p user verbosity web_search_options""".split()

# Servers of these families want (DeepSeek V3.2, Kimi K2 thinking, MiniMax M2: within tool loops) or take
# their own reasoning back; Gemini's compatible endpoint signs calls in `extra_content`. OpenAI refuses all of it.
_TAKES_REASONING = re.compile(r"deepseek|kimi|moonshot|glm-|qwen|qwq|minimax|mimo|gemini|gpt-oss", re.IGNORECASE)
_REASONING_KEYS = (*REASONING_FIELDS, "reasoning_details")


def takes_reasoning(model: str) -> bool:
    """Whether the servers of this model take their reasoning back."""
    return bool(_TAKES_REASONING.search(model))


def _keys(*names: str, **shapes: Shape) -> Keys:
    return Keys({**dict.fromkeys(names, ANY), **shapes})


def _part(kind: str, **inner: Shape) -> Keys:
    return _keys("type", "prompt_cache_breakpoint", *(() if inner else (kind,)), **inner)


_TEXT = _part("text")
_USER_PARTS = Many(
    Tagged(
        "type",
        {
            "text": _TEXT,
            "image_url": _part("image_url", image_url=_keys("url", "detail")),
            "input_audio": _part("input_audio", input_audio=_keys("data", "format")),
            "file": _part("file", file=_keys("file_data", "file_id", "filename")),
        },
    )
)
_TEXTS = Many(Tagged("type", {"text": _TEXT}))
_ANSWER_PARTS = Many(Tagged("type", {"text": _TEXT, "refusal": _keys("type", "refusal")}))


def _calls(*extra: str) -> Shape:
    function = _keys("id", "type", *extra, function=_keys("name", "arguments"))
    custom = _keys("id", "type", *extra, custom=_keys("name", "input"))
    return Many(Tagged("type", {"function": function, "custom": custom}, missing="function"))


def _message(*, reasoning: bool) -> Shape:
    calls = _calls("extra_content") if reasoning else _calls()
    extra = _REASONING_KEYS if reasoning else ()
    assistant = _keys(
        "role",
        "name",
        "refusal",
        *extra,
        content=_ANSWER_PARTS,
        tool_calls=calls,
        audio=_keys("id"),
        function_call=_keys("name", "arguments"),
    )
    system = _keys("role", "name", content=_TEXTS)
    return Tagged(
        "role",
        {
            "system": system,
            "developer": system,
            "user": _keys("role", "name", content=_USER_PARTS),
            "assistant": assistant,
            "tool": _keys("role", "tool_call_id", content=_TEXTS),
            "function": _keys("role", "name", "content"),
        },
    )


def _body(*, reasoning: bool) -> Shape:
    function = _keys("name", "description", "parameters", "strict")
    tool = Tagged(
        "type",
        {
            "function": _keys("type", function=function),
            "custom": _keys("type", custom=_keys("name", "description", "format")),
        },
        missing="function",
    )
    return _keys(
        *_SETTINGS,
        *CALL_OPTIONS,
        messages=Many(_message(reasoning=reasoning)),
        tools=Many(tool),
        functions=Many(_keys("name", "description", "parameters")),
        stream_options=_keys("include_obfuscation", "include_usage"),
    )


_STRICT = _body(reasoning=False)
_COMPATIBLE = _body(reasoning=True)


def request_shape(model: str) -> Shape:
    """The shape of a request body for `model`."""
    return _COMPATIBLE if takes_reasoning(model) else _STRICT
