"""The schema of tools in a Responses request: the types of openai 3.54.0."""

from __future__ import annotations

from ..schema.shapes import OBJECT, STRING, Either, Many, Tagged, maybe, record, words

_CALLERS = maybe(Many(words("direct programmatic")))
_FUNCTION = record(
    "type! *name! *parameters:schema? strict:flag? async:flag defer_loading:flag *description? output_schema:schema?",
    {"allowed_callers": _CALLERS},
)
_GRAMMAR = record("type! definition!", {"syntax!": words("lark regex")})
_CUSTOM = record(
    "type! *name! *description async:flag defer_loading:flag",
    {"allowed_callers": _CALLERS, "format": Tagged("type", {"text": record("type!"), "grammar": _GRAMMAR})},
)
_NAMESPACE = record(
    "type! name! description!", {"tools!": Many(Tagged("type", {"function": _FUNCTION, "custom": _CUSTOM}))}
)
_SIZE = words("low medium high")
_PLACE = record("city? country? region? timezone?", {"type": words("approximate")})
_WEB_SEARCH = record(
    "type! external_web_access:flag",
    {
        "filters?": record("", {"allowed_domains?": Many(STRING)}),
        "search_context_size": _SIZE,
        "user_location?": _PLACE,
    },
)
_WEB_PREVIEW = record(
    "type!",
    {"search_content_types": Many(words("text image")), "search_context_size": _SIZE, "user_location?": _PLACE},
)
_MCP = record(
    "type! server_label! authorization connector_id defer_loading:flag headers:object? server_description server_url "
    "tunnel_id",
    {
        "allowed_callers": _CALLERS,
        "allowed_tools?": Either((Many(STRING), record("read_only:flag tool_names:texts"))),
        "require_approval?": Either((words("always never"), record("always:object never:object"))),
    },
)
_IMAGE_TOOL = record(
    "type! frame_count:int frame_duration_ms:int input_image_mask:object model output_compression:int "
    "partial_images:int size svg:object",
    {
        "action": words("generate edit auto"),
        "background": words("transparent opaque auto"),
        "complexity": _SIZE,
        "input_fidelity?": words("high low"),
        "moderation": words("auto low"),
        "output_format": words("png webp jpeg gif svg"),
        "quality": words("low medium high xhigh max auto"),
    },
)
TOOL = Tagged(
    "type",
    {
        "function": _FUNCTION,
        "custom": _CUSTOM,
        "namespace": _NAMESPACE,
        "file_search": record(
            "type! vector_store_ids:texts! filters:object? max_num_results:int ranking_options:object"
        ),
        "computer": record("type!"),
        "computer_use_preview": record(
            "type! display_height:int! display_width:int!", {"environment!": words("windows mac linux ubuntu browser")}
        ),
        "web_search": _WEB_SEARCH,
        "web_search_2025_08_26": _WEB_SEARCH,
        "web_search_preview": _WEB_PREVIEW,
        "web_search_preview_2025_03_11": _WEB_PREVIEW,
        "mcp": _MCP,
        "code_interpreter": record("type!", {"container!": Either((STRING, OBJECT)), "allowed_callers": _CALLERS}),
        "programmatic_tool_calling": record("type!"),
        "image_generation": _IMAGE_TOOL,
        "local_shell": record("type!"),
        "shell": record("type! environment:object?", {"allowed_callers": _CALLERS}),
        "tool_search": record("type! description? parameters:any_schema", {"execution": words("server client")}),
        "apply_patch": record("type!", {"allowed_callers": _CALLERS}),
    },
)
TOOLS_MAX = 128
"""Maximum number of tools in a request ("Invalid 'tools': array too long. Expected an array with maximum length
128")."""
