"""The schema of a request to the Interactions API: `CreateModelInteraction` and its step types of google-genai 3.4.0.

A null is refused everywhere, as the SDK's types do not allow it. Media types and resolutions are not checked: their
lists are open.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..gemini import NAME_MAX, NAME_PATTERN
from ..schema.shapes import FLAG, NUMBER, OBJECT, STRING, Each, Either, Many, Read, Shape, Tagged, Value, record, words

# -- schema settings -------------------------------------------------------------------------------
#
# The schema of settings: `generation_config` and safety settings (google-genai 3.4.0).

_RATIOS = words("1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:8 8:1 1:4 4:1")
_SIZES = words("512 1K 2K 4K")
_SPEECH = record("language speaker voice")
_MODE = words("auto any none validated")
_TIMED = "diarization_mode timestamp_granularities:texts"

GENERATION = record(
    "max_output_tokens:int seed:int",
    {
        "image_config": record("", {"aspect_ratio": _RATIOS, "image_size": _SIZES}),
        "speech_config": Either((Many(_SPEECH), record("", {"speakers": Many(_SPEECH)}))),
        # "at most 5 stop sequences are supported." (generateContent)
        "stop_sequences": Many(STRING, 5),
        # "temperature must be in the range [0.0, 2.0]." (generateContent)
        "temperature": Value("number", 0, 2),
        "thinking_level": words("minimal low medium high xhigh"),
        "thinking_summaries": words("auto none"),
        "tool_choice": Either((record("", {"allowed_tools": record("tools:texts", {"mode": _MODE})}), _MODE)),
        "top_p": Value("number"),
        "transcription_config": record(
            f"adaptation_phrases:texts custom_vocabulary:texts language_codes:texts language_hints:texts {_TIMED}",
            {
                "mode": Either(
                    (
                        Tagged(
                            "type",
                            {"smart": record("type! source_text"), "verbatim": record(f"type! {_TIMED}")},
                        ),
                        words("verbatim smart"),
                    )
                )
            },
        ),
        "video_config": record(
            "", {"task": words("text_to_video image_to_video reference_to_video edit extend upscale")}
        ),
    },
)
"""`generation_config`."""

SAFETY = record(
    "",
    {
        "threshold!": words("block_low_and_above block_medium_and_above block_only_high block_none off"),
        "type!": words(
            "hate_speech dangerous_content harassment sexually_explicit civic_integrity image_hate "
            "image_dangerous_content image_harassment image_sexually_explicit jailbreak"
        ),
        "method": words("severity probability"),
    },
)
"""A safety setting."""


# -- contents ------------------------------------------------------------------------------------

_ANNOTATION = Tagged(
    "type",
    {
        "file_citation": record(
            "type! custom_metadata:object document_uri end_index:int file_name media_id page_number:int source "
            "start_index:int"
        ),
        "place_citation": record(
            "type! end_index:int name place_id start_index:int url",
            {"review_snippets": Many(record("review_id title url"))},
        ),
        "speech_metadata": record("type! end_index:int speaker start_index:int style"),
        "url_citation": record("type! end_index:int start_index:int title url"),
        "word_info": record(
            "type! end_index:int end_offset speaker start_index:int start_offset text",
        ),
    },
)
_STATIC = words("static")


def _media(keys: str, processing: Shape | None = None) -> Shape:
    nested = {} if processing is None else {"processing": processing}
    return record(f"type! *data *mime_type *uri {keys}", nested, needs="data uri")


_PAGES = record("end_page:int start_page:int", {"content_layers": Many(words("page_image page_text"))})
_SHEETS = record("sheet_index:int visible_cells", {"content_layers": Many(words("visual data formulas"))})
_OFFSETS = "type! end_offset start_offset"
MEDIA: Mapping[str, Shape] = {
    "image": _media("resolution"),
    "document": _media(
        "resolution", Either((record("type!", {"page_options": _PAGES, "spreadsheet_options": _SHEETS}), _STATIC))
    ),
    "audio": _media("channels:int sample_rate:int", Either((record(_OFFSETS), _STATIC))),
    "video": _media(
        "name resolution",
        Either(
            (
                record(f"{_OFFSETS} fps:num", {"content_layers": Many(words("frames audio transcript"))}),
                words("static agentic"),
            )
        ),
    ),
}
"""Contents that are media, by type."""
CONTENTS: Mapping[str, Shape] = {"text": record("type! *text!", {"annotations": Many(_ANNOTATION)}), **MEDIA}
"""Contents, by type."""
_CONTENT = Tagged("type", CONTENTS)
_SAID = Read(Many(_CONTENT), (STRING, _CONTENT))
_FUNCTION_KEYS = "type! *description defer_loading:flag *parameters:any_schema short_description"
_FUNCTION_NAME = Value("string", 1, NAME_MAX, pattern=NAME_PATTERN)
_FOUND = record(_FUNCTION_KEYS, {"name": _FUNCTION_NAME})  # as in the result of a tool search
_RESULT = Either((Many(Tagged("type", {**CONTENTS, "function": _FOUND})), STRING, OBJECT))

# -- steps ---------------------------------------------------------------------------------------

_SIGNED_CALL = "type! id! signature"
_SIGNED_RESULT = "type! call_id! signature"
_QUERIES = record("queries:texts")
OWN_CALLS: Mapping[str, Shape] = {
    "code_execution_call": record(_SIGNED_CALL, {"arguments!": record("code", {"language": words("python bash")})}),
    "file_search_call": record(_SIGNED_CALL),
    "google_maps_call": record(_SIGNED_CALL, {"arguments": _QUERIES}),
    "google_search_call": record(
        _SIGNED_CALL,
        {"arguments!": _QUERIES, "search_type": words("web_search image_search enterprise_web_search")},
    ),
    "mcp_server_tool_call": record("type! id! name! server_name! arguments:object!"),
    "processing_call": record(_SIGNED_CALL),
    "retrieval_call": record(
        _SIGNED_CALL,
        {
            "arguments!": _QUERIES,
            "retrieval_type": words("vertex_ai_search rag_store exa_ai_search parallel_ai_search"),
        },
    ),
    "tool_search_call": record(_SIGNED_CALL, {"arguments!": record("function_names:texts")}),
    "url_context_call": record(_SIGNED_CALL, {"arguments!": record("urls:texts")}),
}
"""Calls of tools that Google runs."""
OWN_RESULTS: Mapping[str, Shape] = {
    "code_execution_result": record(f"{_SIGNED_RESULT} is_error:flag", {"result!": Either((STRING, Many(_CONTENT)))}),
    "file_search_result": record(_SIGNED_RESULT),
    "google_maps_result": record(
        _SIGNED_RESULT,
        {
            "result!": Many(
                record(
                    "widget_context_token",
                    {
                        "places": Many(
                            record("name place_id url", {"review_snippets": Many(record("review_id title url"))})
                        )
                    },
                )
            )
        },
    ),
    "google_search_result": record(f"{_SIGNED_RESULT} is_error:flag", {"result!": Many(record("search_suggestions"))}),
    "mcp_server_tool_result": record("type! call_id! name server_name", {"result!": _RESULT}),
    "processing_result": record(_SIGNED_RESULT),
    "retrieval_result": record(f"{_SIGNED_RESULT} is_error:flag"),
    "tool_search_result": record(_SIGNED_RESULT, {"result": Many(_FOUND)}),
    "url_context_result": record(
        f"{_SIGNED_RESULT} is_error:flag",
        {"result!": Many(record("url", {"status": words("success error paywall unsafe")}))},
    ),
}
"""Results of tools that Google runs."""
_THOUGHT = record("type! *signature", {"*summary": Many(Tagged("type", {k: CONTENTS[k] for k in ("text", "image")}))})
STEP = Tagged(
    "type",
    {
        "user_input": record("type!", {"*content": _SAID}),
        "model_output": record(
            "type!", {"*content": _SAID, "error": record("code:int message", {"details": Many(OBJECT)})}
        ),
        "thought": _THOUGHT,
        "function_call": record("type! *id! *name!", {"arguments!": OBJECT}),
        "function_result": record("type! *call_id! *name *is_error:flag", {"*result!": Read(_RESULT, (NUMBER, FLAG))}),
        **OWN_CALLS,
        **OWN_RESULTS,
    },
)
"""A step of a conversation."""

# -- tools and the body --------------------------------------------------------------------------

_SEARCHES = words("web_search image_search enterprise_web_search")
_CONFIG: Shape = record("api_key custom_config:object")
TOOL = Tagged(
    "type",
    {
        "function": record(_FUNCTION_KEYS, {"*name!": _FUNCTION_NAME}),
        "code_execution": record("type!"),
        "computer_use": record(
            "type! enable_prompt_injection_detection:flag excluded_predefined_functions:texts",
            {
                "environment": words("browser mobile desktop"),
                "disabled_safety_policies": Many(
                    words(
                        "financial_transactions sensitive_data_modification communication_tool account_creation "
                        "data_modification user_consent_management legal_terms_and_agreements"
                    )
                ),
            },
        ),
        "file_search": record("type! file_search_store_names:texts metadata_filter top_k:int"),
        "google_maps": record("type! enable_widget:flag latitude:num longitude:num"),
        "google_search": record("type!", {"search_types": Many(_SEARCHES)}),
        "mcp_server": record(
            "type! name url",
            {
                "allowed_tools": Many(record("tools:texts", {"mode": words("auto any none validated")})),
                "headers": Each(STRING),
            },
        ),
        "retrieval": record(
            "type! rag_store_config:object",
            {
                "exa_ai_search_config": record("api_key! custom_config:object"),
                "parallel_ai_search_config": _CONFIG,
                "retrieval_types": Many(words("vertex_ai_search rag_store exa_ai_search parallel_ai_search")),
                "vertex_ai_search_config": record("datastores:texts engine"),
            },
        ),
        "tool_search": record("type! description name parameters:any_schema", {"execution": words("server client")}),
        "url_context": record("type!"),
    },
)
"""An element of `tools`."""

BODY = record(
    "*model background:flag cached_content continuation_token previous_interaction_id response_mime_type service_tier "
    "store:flag stream:flag *system_instruction",
    {
        "environment": Either((STRING, OBJECT)),
        "generation_config": GENERATION,
        "*input": Either((STRING, Many(Tagged("type", {**STEP.shapes, **CONTENTS})), _CONTENT)),
        "labels": Each(Value("string", high=63), longest=63),
        "response_format": Either((OBJECT, Many(OBJECT))),  # a format, or a JSON schema by itself
        "response_modalities": Many(words("text image audio video document")),
        "safety_settings": Many(SAFETY),
        "*tools": Many(TOOL),
        "webhook_config": record("uris:texts user_metadata:object"),
    },
)
"""A request body."""

RESPONSE = record(
    "*id *model *status",
    {"*steps": Many(STEP), "*errors": Many(OBJECT), "*usage": OBJECT},
)
"""An answer: the keys that are read."""

EVENT = record(
    "*event_type *index:int *status *interaction_id",
    {
        "*interaction": RESPONSE,
        "*step": STEP,
        "*delta": record("*type", {"*content": OBJECT, "*annotations": Many(_ANNOTATION)}),
        "*usage": OBJECT,
        "*metadata": record("", {"*total_usage": OBJECT}),
    },
)
"""An event of a streamed answer: the keys that are read."""
