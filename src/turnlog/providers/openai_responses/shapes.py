"""Which keys a request may have, at every level: the types of openai 3.54.0 as data.

`client_metadata` (Codex sends it) and `stream` stand in no parameter type and are taken.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..shapes import ANY, Keys, Many, OneOf, Shape, Tagged

__all__ = ["CONTENT", "ITEM", "NULL_REFUSED", "REQUEST"]


def _keys(names: str, nested: Mapping[str, Shape] | None = None) -> Keys:
    """An object with the keys `names`, whatever their values, and `nested` ones."""
    return Keys({**_named(names), **(nested or {})})


def _named(names: str) -> dict[str, Shape]:
    return dict.fromkeys(names.split(), ANY)


_DETAIL = OneOf(frozenset({"low", "high", "auto", "original"}))
_EXECUTION = OneOf(frozenset({"client", "server"}))
_PHASE = OneOf(frozenset({"commentary", "final_answer"}))
_SEARCH = Tagged(
    "type",
    {
        "search": _keys("type query queries sources"),
        "open_page": _keys("type url"),
        "find_in_page": _keys("type pattern url"),
    },
)


_BREAKPOINT = _keys("mode ttl")
_CALLER = _keys("type caller_id")

CONTENT = Tagged(
    "type",
    {
        "input_text": _keys("type text", {"prompt_cache_breakpoint": _BREAKPOINT}),
        "input_image": Keys(
            {**_named("type file_id image_url"), "detail": _DETAIL, "prompt_cache_breakpoint": _BREAKPOINT},
            needs=frozenset({"file_id", "image_url"}),
        ),
        "input_file": Keys(
            {**_named("type detail file_data file_id file_url filename"), "prompt_cache_breakpoint": _BREAKPOINT},
            needs=frozenset({"file_data", "file_id", "file_url"}),
        ),
        "output_text": _keys(
            "type text",
            {
                "annotations": Many(
                    Tagged(
                        "type",
                        {
                            "file_citation": _keys("type file_id filename index"),
                            "url_citation": _keys("type end_index start_index title url"),
                            "container_file_citation": _keys(
                                "type container_id end_index file_id filename start_index"
                            ),
                            "file_path": _keys("type file_id index"),
                        },
                    )
                ),
                "logprobs": Many(_keys("token bytes logprob", {"top_logprobs": Many(_keys("token bytes logprob"))})),
            },
        ),
        "refusal": _keys("type refusal"),
    },
)

_FUNCTION = _keys("type name parameters strict async allowed_callers defer_loading description output_schema")
_CUSTOM = _keys(
    "type name description async allowed_callers defer_loading",
    {"format": Tagged("type", {"text": _keys("type"), "grammar": _keys("type definition syntax")})},
)
_NAMESPACE = _keys("type name description", {"tools": Many(Tagged("type", {"function": _FUNCTION, "custom": _CUSTOM}))})
_LOCATION = _keys("type city country region timezone")
_WEB_SEARCH = _keys(
    "type external_web_access search_context_size",
    {"filters": _keys("allowed_domains"), "user_location": _LOCATION},
)
_WEB_PREVIEW = _keys("type search_content_types search_context_size", {"user_location": _LOCATION})
_TOOL = Tagged(
    "type",
    {
        "function": _FUNCTION,
        "custom": _CUSTOM,
        "namespace": _NAMESPACE,
        "file_search": _keys("type vector_store_ids filters max_num_results ranking_options"),
        "computer": _keys("type"),
        "computer_use_preview": _keys("type display_height display_width environment"),
        "web_search": _WEB_SEARCH,
        "web_search_2025_08_26": _WEB_SEARCH,
        "web_search_preview": _WEB_PREVIEW,
        "web_search_preview_2025_03_11": _WEB_PREVIEW,
        "mcp": _keys(
            "type server_label allowed_callers allowed_tools authorization connector_id defer_loading headers "
            "require_approval server_description server_url tunnel_id"
        ),
        "code_interpreter": _keys("type container allowed_callers"),
        "programmatic_tool_calling": _keys("type"),
        "image_generation": _keys(
            "type action background complexity frame_count frame_duration_ms input_fidelity input_image_mask model "
            "moderation output_compression output_format partial_images quality size svg"
        ),
        "local_shell": _keys("type"),
        "shell": _keys("type allowed_callers environment"),
        "tool_search": _keys("type description execution parameters"),
        "apply_patch": _keys("type allowed_callers"),
    },
)

_CHECKS = Many(_keys("id code message"))
_OUTPUT: Mapping[str, Shape] = {"output": Many(CONTENT), "caller": _CALLER}
ITEM = Tagged(
    "type",
    {
        "message": _keys("type role id status", {"phase": _PHASE, "content": Many(CONTENT)}),
        "reasoning": _keys(
            "type id encrypted_content status",
            {"summary": Many(_keys("type text")), "content": Many(_keys("type text"))},
        ),
        "function_call": _keys("type id async arguments call_id name namespace status", {"caller": _CALLER}),
        "function_call_output": _keys("type id call_id name namespace status", _OUTPUT),
        "custom_tool_call": _keys("type id async call_id input name namespace", {"caller": _CALLER}),
        "custom_tool_call_output": _keys("type id call_id", _OUTPUT),
        "local_shell_call": _keys(
            "type id call_id status", {"action": _keys("type command env timeout_ms user working_directory")}
        ),
        "local_shell_call_output": _keys("type id output status"),
        "shell_call": _keys(
            "type id call_id environment status",
            {"action": _keys("commands max_output_length timeout_ms"), "caller": _CALLER},
        ),
        "shell_call_output": _keys(
            "type id call_id max_output_length status",
            {"output": Many(_keys("stdout stderr", {"outcome": _keys("type exit_code")})), "caller": _CALLER},
        ),
        "apply_patch_call": _keys("type id call_id status", {"operation": _keys("type path diff"), "caller": _CALLER}),
        "apply_patch_call_output": _keys("type id call_id output status", {"caller": _CALLER}),
        "computer_call": _keys("type id call_id status action actions", {"pending_safety_checks": _CHECKS}),
        "computer_call_output": _keys(
            "type id call_id status",
            {"output": _keys("type file_id image_url"), "acknowledged_safety_checks": _CHECKS},
        ),
        "tool_search_call": _keys("type id arguments call_id status", {"execution": _EXECUTION}),
        "tool_search_output": _keys("type id call_id status", {"execution": _EXECUTION, "tools": Many(_TOOL)}),
        "additional_tools": _keys("type id role", {"tools": Many(_TOOL)}),
        "configuration_update": _keys("type id reasoning text"),
        "compaction": _keys("type id encrypted_content"),
        "compaction_trigger": _keys("type id"),
        "item_reference": _keys("type id"),
        "program": _keys("type id call_id code fingerprint"),
        "program_output": _keys("type id call_id result status"),
        "file_search_call": _keys(
            "type id queries status", {"results": Many(_keys("attributes file_id filename score text"))}
        ),
        "web_search_call": _keys("type id status", {"action": _SEARCH}),
        "image_generation_call": _keys(
            "type id result status action background error output_format quality revised_prompt size svg_usage"
        ),
        "code_interpreter_call": _keys("type id code container_id outputs status"),
        "mcp_list_tools": _keys(
            "type id server_label error", {"tools": Many(_keys("input_schema name annotations description"))}
        ),
        "mcp_approval_request": _keys("type id arguments name server_label"),
        "mcp_approval_response": _keys("type id approval_request_id approve reason"),
        "mcp_call": _keys("type id arguments name server_label approval_request_id error output status"),
    },
    missing="message",
)

REQUEST = _keys(
    "access_programs background background_options client_metadata conversation image include instructions "
    "max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls previous_response_id "
    "prompt_cache_key prompt_cache_retention safety_identifier service_tier store stream temperature "
    "tool_choice top_logprobs top_p truncation user reasoning",
    {
        "input": Many(ITEM),
        "tools": Many(_TOOL),
        "context_management": Many(_keys("type compact_threshold")),
        "prompt": _keys("id variables version"),
        "prompt_cache_options": _keys("comparison_response_id mode prewarm ttl"),
        "stream_options": _keys("include_obfuscation"),
        "text": _keys(
            "verbosity",
            {
                "format": Tagged(
                    "type",
                    {
                        "text": _keys("type"),
                        "json_object": _keys("type"),
                        "json_schema": _keys("type name schema description strict"),
                    },
                )
            },
        ),
    },
)
"""A request body."""

NULL_REFUSED: Mapping[str, frozenset[str]] = {
    "": frozenset(
        {
            "access_programs",
            "background_options",
            "image",
            "model",
            "prompt_cache_key",
            "safety_identifier",
            "text",
            "tool_choice",
            "tools",
            "user",
        }
    ),
    "reasoning": frozenset({"content", "id"}),
    "function_call": frozenset({"async", "namespace"}),
    "custom_tool_call": frozenset({"async", "id", "namespace"}),
    "custom_tool_call_output": frozenset({"id"}),
    "web_search_call": frozenset({"id", "status"}),
    "local_shell_call": frozenset({"id"}),
    "tool_search_call": frozenset({"execution"}),
    "tool_search_output": frozenset({"execution"}),
    "image_generation_call": frozenset({"error", "status", "svg_usage"}),
    "mcp_call": frozenset({"status"}),
}
"""Optional keys whose value may not be null, by item type; "" is the request itself."""
