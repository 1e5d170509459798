"""The keys that the Messages API documents, as data for `shapes.prune`.

Source: the `Beta*Param` types of the anthropic SDK 2.12.0, plus keys that its v2 dropped and the
API still answers with 200 (`temperature`, `top_p`, `top_k`, `output_format`). The API refuses any
other key: "messages.0.token_count: Extra inputs are not permitted".
"""

from __future__ import annotations

from collections.abc import Iterable

from ..shapes import ANY, Keys, Many, Shape, Tagged

NOT_NULL = frozenset(
    "mcp_servers metadata output_config service_tier stop_sequences stream system thinking tool_choice tools".split()
)
"""Top-level keys whose value may be left out but not null ("system: Input should be a valid list")."""


def _keys(names: str, **nested: Shape) -> Keys:
    return Keys({**{name: ANY for name in names.split()}, **nested})


def _alike(types: str, shape: Shape) -> dict[str, Shape]:
    return {name: shape for name in types.split()}


_CACHE = _keys("type ttl")
_CITED = "type cited_text "
_CITATION = Tagged(
    "type",
    {
        "char_location": _keys(_CITED + "document_index document_title start_char_index end_char_index"),
        "content_block_location": _keys(_CITED + "document_index document_title start_block_index end_block_index"),
        "page_location": _keys(_CITED + "document_index document_title start_page_number end_page_number"),
        "search_result_location": _keys(_CITED + "search_result_index source title start_block_index end_block_index"),
        "web_search_result_location": _keys(_CITED + "encrypted_index title url"),
    },
)
_TEXT = _keys("type text", citations=Many(_CITATION), cache_control=_CACHE)
_SOURCE = Tagged(
    "type",
    {
        "base64": _keys("type media_type data"),
        "text": _keys("type media_type data"),
        "url": _keys("type url"),
        "file": _keys("type file_id"),
    },
)
_IMAGE = _keys("type", source=_SOURCE, cache_control=_CACHE, transformations=_keys("oversized_image"))
_CONTENT_SOURCE = _keys("type", content=Many(Tagged("type", {"text": _TEXT, "image": _IMAGE})))
_DOCUMENT = _keys(
    "type context title",
    source=Tagged("type", {**_SOURCE.shapes, "content": _CONTENT_SOURCE}),
    citations=_keys("enabled"),
    cache_control=_CACHE,
)
_SEARCH_RESULT = _keys("type source title", content=Many(_TEXT), citations=_keys("enabled"), cache_control=_CACHE)
_TOOL_REFERENCE = _keys("type tool_name", cache_control=_CACHE)
_BROWSER_STATE = _keys("type tabs state_changes", cache_control=_CACHE)
IN_RESULT = Tagged(
    "type",
    {
        "text": _TEXT,
        "image": _IMAGE,
        "search_result": _SEARCH_RESULT,
        "document": _DOCUMENT,
        "tool_reference": _TOOL_REFERENCE,
        "browser_state": _BROWSER_STATE,
    },
)
"""A block inside a tool result."""

_CALLER = _keys("type tool_id")


def _server_result(content: Shape, *, caller: bool = False) -> Keys:
    base = _keys("type tool_use_id", content=content, cache_control=_CACHE)
    return Keys({**base.keys, "caller": _CALLER}) if caller else base


_ERROR = _keys("type error_code error_message")
_OUTPUTS = Many(_keys("type file_id"))
_EXECUTED = _keys("type stdout stderr return_code", content=_OUTPUTS)
_WEB_FETCH = Tagged(
    "type",
    {
        "web_fetch_result": _keys("type url retrieved_at", content=_DOCUMENT),
        "web_fetch_tool_result_error": _keys("type error_code"),
    },
)
_CODE = Tagged(
    "type",
    {
        "code_execution_result": _EXECUTED,
        "encrypted_code_execution_result": _keys("type encrypted_stdout stderr return_code", content=_OUTPUTS),
        "code_execution_tool_result_error": _keys("type error_code"),
    },
)
_BASH = Tagged(
    "type",
    {"bash_code_execution_result": _EXECUTED, "bash_code_execution_tool_result_error": _keys("type error_code")},
)
_EDITOR = Tagged(
    "type",
    {
        "text_editor_code_execution_view_result": _keys("type content file_type num_lines start_line total_lines"),
        "text_editor_code_execution_create_result": _keys("type is_file_update"),
        "text_editor_code_execution_str_replace_result": _keys("type lines new_lines new_start old_lines old_start"),
        "text_editor_code_execution_tool_result_error": _ERROR,
    },
)
_FOUND_TOOLS = Tagged(
    "type",
    {
        "tool_search_tool_search_result": _keys("type", tool_references=Many(_TOOL_REFERENCE)),
        "tool_search_tool_result_error": _ERROR,
    },
)
_ADVICE = Tagged(
    "type",
    {
        "advisor_result": _keys("type text stop_reason"),
        "advisor_redacted_result": _keys("type encrypted_content stop_reason"),
        "advisor_tool_result_error": _keys("type error_code"),
    },
)

# --- tools -------------------------------------------------------------------------------------
_COMMON = "type name allowed_callers defer_loading strict"
_EXAMPLES = _COMMON + " input_examples"


def _tool(names: str, **nested: Shape) -> Keys:
    return _keys(names, cache_control=_CACHE, **nested)


def _dated(stem: str, dates: Iterable[str], shape: Shape) -> dict[str, Shape]:
    return {f"{stem}_{date}": shape for date in dates}


_LOCATED = _keys("type city country region timezone")
_SEARCH = _COMMON + " allowed_domains blocked_domains max_uses"
_FETCH = _SEARCH + " max_content_tokens url_sources"
_SCREEN = _EXAMPLES + " display_height_px display_width_px display_number"
_FUNCTION = _tool(_EXAMPLES + " description input_schema eager_input_streaming")
_LISTED = _keys("name description input_schema")
_TOOLS: dict[str, Shape] = {
    "custom": _FUNCTION,
    "None": _FUNCTION,
    **_dated("bash", ("20241022", "20250124"), _tool(_EXAMPLES)),
    **_dated("memory", ("20250818",), _tool(_EXAMPLES)),
    **_dated("code_execution", ("20250522", "20250825", "20260120", "20260521"), _tool(_COMMON)),
    **_dated("text_editor", ("20241022", "20250124", "20250429"), _tool(_EXAMPLES)),
    **_dated("text_editor", ("20250728",), _tool(_EXAMPLES + " max_characters")),
    **_dated("computer", ("20241022", "20250124"), _tool(_SCREEN)),
    **_dated("computer", ("20251124",), _tool(_SCREEN + " enable_zoom")),
    **_dated("web_search", ("20250305", "20260209"), _tool(_SEARCH, user_location=_LOCATED)),
    **_dated("web_search", ("20260318",), _tool(_SEARCH + " response_inclusion", user_location=_LOCATED)),
    **_dated("web_fetch", ("20250910", "20260209"), _tool(_FETCH, citations=_keys("enabled"))),
    **_dated("web_fetch", ("20260309",), _tool(_FETCH + " use_cache", citations=_keys("enabled"))),
    **_dated("web_fetch", ("20260318",), _tool(_FETCH + " use_cache response_inclusion", citations=_keys("enabled"))),
    **_dated("advisor", ("20260301",), _tool(_COMMON + " model caching max_tokens max_uses")),
    **_alike(
        "tool_search_tool_bm25 tool_search_tool_bm25_20251119 tool_search_tool_regex tool_search_tool_regex_20251119",
        _tool(_COMMON),
    ),
    **_alike("browser_toolset_20260801 computer_toolset_20260801", _tool("type configs")),
    "mcp_toolset": _tool("type mcp_server_name configs default_config", tools=Many(_LISTED)),
}
TOOL = Tagged("type", _TOOLS, missing="custom")
"""A tool declaration."""
_CHANGE = Tagged(
    "type",
    {
        "mcp_tool_reference": _keys("type name server_name"),
        "mcp_toolset_reference": _keys("type server_name"),
        "tool_reference": _keys("type name"),
        "tool_definition": _keys("type", definition=TOOL),
    },
)
_TOOL_CHANGE = _keys("type", tool=_CHANGE, cache_control=_CACHE)

# --- blocks and messages -----------------------------------------------------------------------
BLOCK = Tagged(
    "type",
    {
        "text": _TEXT,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "search_result": _SEARCH_RESULT,
        "thinking": _keys("type thinking signature"),
        "redacted_thinking": _keys("type data"),
        "tool_use": _keys("type id name input toolset_name", caller=_CALLER, cache_control=_CACHE),
        "tool_result": _keys("type tool_use_id is_error toolset_name", content=Many(IN_RESULT), cache_control=_CACHE),
        "server_tool_use": _keys("type id name input", caller=_CALLER, cache_control=_CACHE),
        "web_search_tool_result": _server_result(Many(_keys("type encrypted_content title url page_age")), caller=True),
        "web_fetch_tool_result": _server_result(_WEB_FETCH, caller=True),
        "advisor_tool_result": _server_result(_ADVICE),
        "code_execution_tool_result": _server_result(_CODE),
        "bash_code_execution_tool_result": _server_result(_BASH),
        "text_editor_code_execution_tool_result": _server_result(_EDITOR),
        "tool_search_tool_result": _server_result(_FOUND_TOOLS),
        "mcp_tool_use": _keys("type id name input server_name", cache_control=_CACHE),
        "mcp_tool_result": _keys("type tool_use_id is_error", content=Many(_TEXT), cache_control=_CACHE),
        "mcp_tool_listing": _keys("type mcp_server_name", tools=Many(_LISTED)),
        "container_upload": _keys("type file_id", cache_control=_CACHE),
        "compaction": _keys("type content encrypted_content signature tool_changes", cache_control=_CACHE),
        "tool_addition": _TOOL_CHANGE,
        "tool_removal": _TOOL_CHANGE,
        "fallback": _keys("type from to trigger"),
    },
)
"""A content block of a message; what a response holds beyond it is not sent back."""

_TALK = _keys("role", content=Many(BLOCK))
_MESSAGE = Tagged(
    "role",
    {
        "user": _TALK,
        "assistant": _TALK,
        "system": _keys("role clear_at", content=Many(BLOCK), output_config=_keys("effort")),
    },
)

# --- the body ----------------------------------------------------------------------------------
_THINKING = Tagged(
    "type",
    {
        "enabled": _keys("type budget_tokens display", block_binding=_keys("prefix_mismatch_behavior")),
        "adaptive": _keys("type display", block_binding=_keys("prefix_mismatch_behavior")),
        "disabled": _keys("type"),
        "between_tools": _keys("type"),
    },
)
_CHOICE = Tagged(
    "type",
    {
        "auto": _keys("type disable_parallel_tool_use"),
        "any": _keys("type disable_parallel_tool_use"),
        "tool": _keys("type name disable_parallel_tool_use"),
        "none": _keys("type"),
    },
)
_CONTEXT_EDIT = Tagged(
    "type",
    {
        "clear_tool_uses_20250919": _keys("type clear_at_least clear_tool_inputs exclude_tools keep trigger"),
        "clear_thinking_20251015": _keys("type keep"),
        "compact_20260112": _keys("type instructions pause_after_compaction trigger"),
    },
)
BODY = _keys(
    "model max_tokens stream stop_sequences temperature top_p top_k service_tier speed inference_geo output_format"
    " fallback_credit_token fallbacks",
    billing_policy=_keys("type bill_to"),
    cache_control=_CACHE,
    compaction=_keys("type instructions"),
    container=_keys("id", skills=Many(_keys("type skill_id version"))),
    context_management=_keys("", edits=Many(_CONTEXT_EDIT)),
    diagnostics=_keys("previous_message_id"),
    mcp_servers=Many(_keys("type name url authorization_token", tool_configuration=_keys("allowed_tools enabled"))),
    messages=Many(_MESSAGE),
    metadata=_keys("user_id"),
    output_config=_keys("effort", format=_keys("type schema"), task_budget=_keys("type total remaining")),
    system=Many(_TEXT),
    thinking=_THINKING,
    thread=_keys("type previous_message_id"),
    tool_choice=_CHOICE,
    tools=Many(TOOL),
)
"""A request body. Headers that SDKs take as arguments (`betas`, `extra_headers`) are no part of it."""
