"""The schema of a Chat Completions request. Source: the request types of the openai SDK 3.54."""

from __future__ import annotations

from ...models.catalog import model_abilities
from ...models.servers import OPENAI, Server
from ..schema.shapes import (
    ANY,
    CALL_OPTIONS,
    OBJECT,
    STRING,
    Each,
    Either,
    Many,
    ObjectShape,
    Read,
    Shape,
    Tagged,
    Value,
    record,
    words,
)

REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
"""Keys of an assistant message in which compatible servers return reasoning as a text: `reasoning_content` (DeepSeek,
Moonshot, vLLM), `reasoning` (OpenRouter, Groq, newer vLLM), `reasoning_text` (Copilot)."""

OPAQUE_FIELDS = ("reasoning_details", "audio", "reasoning_opaque")
"""Keys of an assistant message that are kept as opaque parts."""

TEXT_TYPES = ("text", "input_text", "output_text")
"""Types of content parts that contain a text. Only the first belongs to this API; parts of the others are read, and
sent as the first."""

MEDIA_TYPES = ("image_url", "input_audio", "file")
"""Types of content parts that contain media, with a key of the same name."""

# -- messages ------------------------------------------------------------------------------------

_BREAKPOINT = record("", {"mode!": words("explicit"), "ttl": words("30m 12h")})
_CACHED: dict[str, Shape] = {"prompt_cache_breakpoint": _BREAKPOINT}
_IMAGE = record("*url!", {"detail": words("auto low high original")})
_SOUND = record("*data!", {"*format!": words("wav mp3")})
_FILE = record("*file_data *file_id *filename", needs="file_data file_id")
PARTS: dict[str, Shape] = {
    "text": record("type! *text!", _CACHED),
    "refusal": record("type! *refusal!"),
    "image_url": record("type!", {"*image_url!": Read(_IMAGE, (STRING,)), **_CACHED}),
    "input_audio": record("type!", {"*input_audio!": _SOUND, **_CACHED}),
    "file": record("type!", {"*file!": _FILE, **_CACHED}),
}
"""Content parts, by type."""

_UNDERSTOOD = {**PARTS, **dict.fromkeys(TEXT_TYPES[1:], record("*text"))}
"""Parts that are read in any message, even where they may not be sent."""

_ARGUMENTS = Read(STRING, (OBJECT,))
_FUNCTION_CALL = record("*name!", {"*arguments!": _ARGUMENTS})
_CUSTOM_CALL = record("*name! *input!")


def _content(types: str, *, compatible: bool) -> Either:
    """A text, or a list of parts of these types; `compatible` servers have additional types."""
    table = {kind: PARTS[kind] for kind in types.split()}
    return Either((STRING, Many(Tagged("type", table, others=".*" if compatible else "", read=_UNDERSTOOD))))


def _message(*, compatible: bool) -> Tagged:
    """A message; `compatible` servers have additional part and call types, and accept reasoning."""
    text = _content("text", compatible=compatible)
    user_content = _content("text image_url input_audio file", compatible=compatible)
    extra = "extra_content:any" if compatible else ""
    calls: dict[str, Shape] = {
        "function": record(f"*id! type! {extra}", {"*function!": _FUNCTION_CALL}),
        "custom": record(f"*id! type! {extra}", {"*custom!": _CUSTOM_CALL}),
    }
    reasoning = {**_REASONING, "reasoning_details": ANY, "reasoning_opaque": ANY} if compatible else {}
    return Tagged(
        "role",
        {
            "system": record("role! *name", {"*content?": text}),
            "developer": record("role! *name", {"*content?": text}),
            "user": record("role! *name", {"*content?": user_content}),
            "assistant": record(
                "role! *name *refusal?",
                {
                    "*content?": _content("text refusal", compatible=compatible),
                    "*tool_calls": Many(Tagged("type", calls, missing="function", others=".*" if compatible else "")),
                    "*audio?": record("id!"),
                    "*function_call?": _FUNCTION_CALL,
                    **reasoning,
                },
            ),
            "tool": record("role! *tool_call_id", {"*content?": Read(text, (OBJECT,))}),
            "function": record("role! *name", {"*content?": Read(STRING, (Many(Tagged("type", _UNDERSTOOD)), OBJECT))}),
        },
    )


_REASONING: dict[str, Shape] = {f"*{key}?": STRING for key in REASONING_FIELDS}
MESSAGE = _message(compatible=True)
"""A message of any server; readers rely on the same keys for all."""

SPOKEN = record("*data *transcript")
"""A spoken answer in a response."""

_PIECE = record("*name *arguments *input")
DELTA = record(
    "*refusal",
    {
        **_REASONING,
        "*content": _content("text refusal", compatible=True),
        "*audio": SPOKEN,
        "*function_call": _PIECE,
        "*tool_calls": Many(record("*id", {"*function": _PIECE, "*custom": _PIECE})),
    },
)
"""A chunk of a streamed answer."""

# -- tools and settings --------------------------------------------------------------------------

_FUNCTION = record("*name! *description *parameters:schema strict:flag?")
_GRAMMAR = record("definition!", {"syntax!": words("lark regex")})
_FORMAT = Tagged("type", {"text": record("type!"), "grammar": record("type!", {"grammar!": _GRAMMAR})})
_TOOL: dict[str, Shape] = {
    "function": record("type!", {"*function!": _FUNCTION}),
    "custom": record("type!", {"*custom!": record("*name! *description", {"format": _FORMAT})}),
}
TOOL = Tagged("type", _TOOL, missing="function")
"""An element of `tools`."""

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
        "json_schema": record("type!", {"json_schema!": record("name! description schema:schema strict:flag?")}),
    },
)
_PREDICTED = Either((STRING, Many(Tagged("type", {"text": PARTS["text"]}))))
_AREA = record("", {"type!": words("approximate"), "approximate!": record("city country region timezone")})
_VOICE = Either((STRING, record("id!")))
_SEARCH = record("", {"search_context_size": words("low medium high"), "user_location?": _AREA})
# "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 instead."
_PENALTY = Value("number", -2, 2)
_AT_LEAST_ONE = Value("integer", 1)
_METADATA = Each(Value("string", high=512), most=16, longest=64)
TOOLS_MAX = 128
"""Maximum number of tools in a request ("Invalid 'tools': array too long. Expected an array with maximum length
128")."""


def _body(*, compatible: bool) -> ObjectShape:
    """A request; `compatible` servers have other values for efforts, tiers and voices."""

    def some(of: str) -> Shape:
        return STRING if compatible else words(of)

    return record(
        "*model logprobs:flag? parallel_tool_calls:flag prompt_cache_key? safety_identifier? seed:int? "
        f"store:flag? stream:flag? user {CALL_OPTIONS}",
        {
            "messages": Many(_message(compatible=compatible)),
            "*tools": Many(Tagged("type", _TOOL, missing="function", others=".*" if compatible else ""), TOOLS_MAX),
            "tool_choice": Either((some("none auto required"), _CHOICE)),
            "functions": Many(record("name! description parameters:schema"), TOOLS_MAX),
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
            "stop?": Either((STRING, Many(STRING, 4))),
            "stream_options?": record("include_obfuscation:flag include_usage:flag"),
            "verbosity?": some("low medium high"),
            "web_search_options": _SEARCH,
        },
    )


_STRICT = _body(compatible=False)
BODY = _body(compatible=True)
"""A request to any server; readers rely on the same keys for all."""


def body_shape(model: str, server: Server = OPENAI) -> ObjectShape:
    """A request body for `model` at a server; the API's own if nothing is known of the server."""
    return BODY if not server.own_api or model_abilities(model).replays_reasoning else _STRICT
