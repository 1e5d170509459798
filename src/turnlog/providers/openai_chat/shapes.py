"""What Chat Completions takes in a request, as data. Source: request types of the openai SDK 3.54."""

from __future__ import annotations

import re
from functools import lru_cache

from ..shapes import ANY, OBJECT, STRING, Each, Either, Loose, Many, Shape, Tagged, Value, maybe, record, words

NAME = "openai-chat"

REASONING_FIELDS = ("reasoning_content", "reasoning")
"""Keys of an assistant message under which compatible servers show reasoning as a text:
`reasoning_content` (DeepSeek, Moonshot, vLLM), `reasoning` (OpenRouter, Groq, newer vLLM)."""

OPAQUE_FIELDS = ("reasoning_details", "audio")
"""Keys of an assistant message that hold a thing of the provider's own."""

TEXT_TYPES = ("text", "input_text", "output_text")
"""Types of content parts that hold a text; all but the first are another API's, and mended."""

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

CALL_OPTIONS = "extra_body:any extra_headers:any extra_query:any timeout:any"
"""Options of the SDK's method that may stand beside the request and are not part of the body."""

# Servers of these families want (DeepSeek V3.2, Kimi K2 thinking, MiniMax M2: within tool loops) or take
# their own reasoning back; Gemini's compatible endpoint signs calls in `extra_content`. OpenAI refuses all of it.
_TAKES_REASONING = re.compile(r"deepseek|kimi|moonshot|glm-|qwen|qwq|minimax|mimo|gemini|gpt-oss", re.IGNORECASE)


@lru_cache
def takes_reasoning(model: str) -> bool:
    """Whether the servers of this model take their reasoning back."""
    return bool(_TAKES_REASONING.search(model))


# -- messages ------------------------------------------------------------------------------------

_BREAKPOINT = record("", {"mode!": words("explicit"), "ttl": words("30m 12h")})
_CACHED: dict[str, Shape] = {"prompt_cache_breakpoint": _BREAKPOINT}
_IMAGE = record("url!", {"detail": words("auto low high original")})
_SOUND = record("data!", {"format!": words("wav mp3")})
_PARTS: dict[str, Shape] = {
    "text": record("type! text!", _CACHED),
    "refusal": record("type! refusal!"),
    "image_url": record("type!", {"image_url!": _IMAGE, **_CACHED}),
    "input_audio": record("type!", {"input_audio!": _SOUND, **_CACHED}),
    "file": record("type!", {"file!": record("file_data file_id filename", needs="file_data file_id"), **_CACHED}),
}
PART = Tagged("type", _PARTS)
"""A content part of any role."""

_FUNCTION_CALL = record("name! arguments!")
_CALL: dict[str, Shape] = {
    "function": record("id! type! extra_content:any", {"function!": _FUNCTION_CALL}),
    "custom": record("id! type! extra_content:any", {"custom!": record("name! input!")}),
}
_STRICT_CALL: dict[str, Shape] = {
    "function": record("id! type!", {"function!": _FUNCTION_CALL}),
    "custom": record("id! type!", {"custom!": record("name! input!")}),
}


def _message(*, compatible: bool) -> Shape:
    """A message; `compatible` servers have parts and calls of their own, and take reasoning back."""

    def content(role: str) -> Either:
        table = {kind: _PARTS[kind] for kind in PART_TYPES[role]}
        return Either((STRING, Many(Loose("type", table) if compatible else Tagged("type", table))))

    own = {**dict.fromkeys(REASONING_FIELDS, maybe(STRING)), "reasoning_details": ANY} if compatible else {}
    assistant = record(
        "name refusal?",
        {
            "role!": words("assistant"),
            "content?": content("assistant"),
            "tool_calls": Many(Loose("type", _CALL) if compatible else Tagged("type", _STRICT_CALL)),
            "audio?": record("id!"),
            "function_call?": _FUNCTION_CALL,
            **own,
        },
    )
    return Tagged(
        "role",
        {
            **{role: record("role! name", {"content?": content(role)}) for role in ("system", "developer", "user")},
            "assistant": assistant,
            "tool": record("role! tool_call_id", {"content?": content("tool")}),
            "function": record("role! name content?"),
        },
    )


def _readable_content() -> Shape:
    """What a reader must be able to tell apart: a text, or parts as any server may spell them."""
    url = Either((STRING, record("url detail")))
    parts: dict[str, Shape] = {
        **dict.fromkeys(TEXT_TYPES, record("type text")),
        "refusal": record("type refusal"),
        "image_url": record("type", {"image_url": url}),
        "input_audio": record("type", {"input_audio": record("data format")}),
        "file": record("type", {"file": record("file_data file_id filename")}),
    }
    return Either((STRING, Many(Tagged("type", parts))))


_READABLE_CONTENT = _readable_content()


def _readable() -> Shape:
    """A message likewise."""
    arguments = Either((STRING, OBJECT))
    function = record("name", {"arguments": arguments})
    call = record("id type:any", {"function": function, "custom": record("name", {"input": STRING})})
    return record(
        "role name tool_call_id refusal",
        {
            **dict.fromkeys(REASONING_FIELDS, STRING),
            "content": _READABLE_CONTENT,
            "tool_calls": Many(call),
            "function_call": function,
            "audio": OBJECT,
        },
    )


READABLE_SOUND = record("data transcript")
"""The JSON types without which a spoken answer cannot be read."""

_PIECE = record("name arguments input")
READABLE_DELTA = record(
    "refusal",
    {
        **dict.fromkeys(REASONING_FIELDS, STRING),
        "content": _READABLE_CONTENT,
        "audio": READABLE_SOUND,
        "function_call": _PIECE,
        "tool_calls": Many(record("id", {"function": _PIECE, "custom": _PIECE})),
    },
)
"""The JSON types without which a piece of a stream cannot be read."""

READABLE_MESSAGE = _readable()
"""The JSON types without which a message cannot be read, whatever server it was for."""

# -- tools and settings --------------------------------------------------------------------------

_FUNCTION = record("name! description parameters:object strict:flag?")
_GRAMMAR = record("definition!", {"syntax!": words("lark regex")})
_FORMAT = Tagged("type", {"text": record("type!"), "grammar": record("type!", {"grammar!": _GRAMMAR})})
_TOOL: dict[str, Shape] = {
    "function": record("type!", {"function!": _FUNCTION}),
    "custom": record("type!", {"custom!": record("name! description", {"format": _FORMAT})}),
}
READABLE_TOOL = record(
    "type", {"function": record("name description parameters:object"), "custom": record("name description")}
)
"""The JSON types without which a tool cannot be read."""

_CHOICE = Tagged(
    "type",
    {
        "allowed_tools": record(
            "type!", {"allowed_tools!": record("", {"mode!": words("auto required"), "tools!": Many(OBJECT)})}
        ),
        "function": record("type!", {"function!": record("name!")}),
        "custom": record("type!", {"custom!": record("name!")}),
    },
)
_ANSWER_FORMAT = Tagged(
    "type",
    {
        "text": record("type!"),
        "json_object": record("type!"),
        "json_schema": record("type!", {"json_schema!": record("name! description schema:object strict:flag?")}),
    },
)
_PREDICTED = Either((STRING, Many(Tagged("type", {"text": _PARTS["text"]}))))
_AREA = record("", {"type!": words("approximate"), "approximate!": record("city country region timezone")})
_VOICE = Either((STRING, record("id!")))
_SEARCH = record("", {"search_context_size": words("low medium high"), "user_location?": _AREA})
# "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead."
_PENALTY = Value("number", -2, 2)
_AT_LEAST_ONE = Value("integer", 1)
_METADATA = Each(Value("string", high=512), most=16, longest=64)


def _body(*, compatible: bool) -> Shape:
    """A request; the words of `compatible` servers (efforts, tiers, voices) are their own."""

    def some(of: str) -> Shape:
        return STRING if compatible else words(of)

    tools = Loose("type", _TOOL) if compatible else Tagged("type", _TOOL)
    return record(
        "model logprobs:flag? parallel_tool_calls:flag prompt_cache_key? safety_identifier? seed:int? "
        f"store:flag? stream:flag? user {CALL_OPTIONS}",
        {
            "messages": Many(_message(compatible=compatible)),
            "tools": Many(tools),
            "tool_choice": Either((some("none auto required"), _CHOICE)),
            "functions": Many(record("name! description parameters:object")),
            "function_call": Either((words("none auto"), record("name!"))),
            "audio?": record("", {"format!": some("wav aac mp3 flac opus pcm16"), "voice!": _VOICE}),
            "frequency_penalty?": _PENALTY,
            "presence_penalty?": _PENALTY,
            "temperature?": Value("number", 0, 2),
            "top_p?": Value("number", 0, 1),
            "top_logprobs?": Value("integer", 0, 20),
            "max_completion_tokens?": _AT_LEAST_ONE,
            "max_tokens?": _AT_LEAST_ONE,
            "n?": _AT_LEAST_ONE,
            "logit_bias?": Each(Value("integer", -100, 100)),
            "metadata?": _METADATA,
            "modalities?": Many(some("text audio")),
            "moderation?": record("model! policy:object?"),
            "prediction?": record("", {"type!": words("content"), "content!": _PREDICTED}),
            "prompt_cache_options": record("", {"mode": words("implicit explicit"), "ttl": words("30m")}),
            "prompt_cache_retention?": some("in_memory 24h"),
            "reasoning_effort?": some("none minimal low medium high xhigh max"),
            "response_format": _ANSWER_FORMAT,
            "service_tier?": some("auto default flex scale priority fast"),
            "stop?": Either((STRING, Many(STRING))),
            "stream_options?": record("include_obfuscation:flag include_usage:flag"),
            "verbosity?": some("low medium high"),
            "web_search_options": _SEARCH,
        },
    )


_STRICT = _body(compatible=False)
_COMPATIBLE = _body(compatible=True)


def request_shape(model: str) -> Shape:
    """The shape of a request body for `model`."""
    return _COMPATIBLE if takes_reasoning(model) else _STRICT
