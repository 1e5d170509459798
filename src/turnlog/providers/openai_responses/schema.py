"""The schema of a Responses request: the types of openai 3.54.0.

`client_metadata` (sent by Codex) and `stream` are in no parameter type, but accepted.
"""

from __future__ import annotations

from ..schema.shapes import (
    CALL_OPTIONS,
    INTEGER,
    OBJECT,
    STRING,
    Each,
    Either,
    Many,
    Read,
    Shape,
    Tagged,
    Value,
    record,
    words,
)
from .schema_tools import TOOL, TOOLS_MAX

# -- parts ---------------------------------------------------------------------------------------

_STATUS = words("in_progress completed incomplete")
_SEARCH_STATUS = words("in_progress searching completed incomplete failed")
_CACHED: dict[str, Shape] = {
    "prompt_cache_breakpoint": record("", {"mode!": words("explicit"), "ttl": words("30m 12h")})
}
_DETAIL = words("low high auto original")


def _input_parts(*, output: bool) -> dict[str, Shape]:
    """Content parts that the model did not write. In the `output` of a function, more of their keys may be null."""
    null = "?" if output else ""
    cached: dict[str, Shape] = {key + null: shape for key, shape in _CACHED.items()}
    file = f"type! *file_data{null} *file_id? *file_url{null} *filename{null}"
    return {
        "input_text": record("type! *text!", cached),
        "input_image": record(
            "type! *file_id? *image_url?", {"detail" + null: _DETAIL, **cached}, needs="file_id image_url"
        ),
        "input_file": record(file, {"detail": words("auto low high"), **cached}, needs="file_data file_id file_url"),
    }


_ANNOTATION = Tagged(
    "type",
    {
        "file_citation": record("type! file_id! filename! index:int!"),
        "url_citation": record("type! end_index:int! start_index:int! title! url!"),
        "container_file_citation": record("type! container_id! end_index:int! file_id! filename! start_index:int!"),
        "file_path": record("type! file_id! index:int!"),
    },
)
_TOP_LOGPROB = record("token! logprob:num!", {"bytes!": Many(INTEGER)})
_LOGPROB = record("token! logprob:num!", {"bytes!": Many(INTEGER), "top_logprobs!": Many(_TOP_LOGPROB)})
INPUT_PARTS = _input_parts(output=False)
"""Content parts of users and system texts, by type."""

ANSWER_PARTS: dict[str, Shape] = {
    "output_text": record("type! *text!", {"annotations": Many(_ANNOTATION), "logprobs": Many(_LOGPROB)}),
    "refusal": record("type! *refusal!"),
}
"""Content parts of the model, by type."""

_PARTS = {**INPUT_PARTS, **ANSWER_PARTS}
_UNDERSTOOD = {**_PARTS, "text": record("*text"), "computer_screenshot": record("*image_url *file_id")}
"""Parts that are read in any content, even where they may not be sent."""


def _content(parts: dict[str, Shape]) -> Either:
    """A text, or a list of parts of these types."""
    return Either((STRING, Many(Tagged("type", parts, read=_UNDERSTOOD))))


_OUTPUT = Read(_content(_input_parts(output=True)), (OBJECT,))
_CUSTOM_OUTPUT = Read(_content(INPUT_PARTS), (OBJECT,))
_ARGUMENTS = Read(STRING, (OBJECT,))

# -- items ---------------------------------------------------------------------------------------

_CALLER = Tagged("type", {"direct": record("type!"), "program": record("type! caller_id!")})
_CHECKS = Many(record("id! code? message?"))
_EXECUTION = words("client server")
_POINT = record("x:int! y:int!")
_KEYS: dict[str, Shape] = {"keys?": Many(STRING)}
_ACTION = Tagged(
    "type",
    {
        "click": record("type! x:int! y:int!", {"button!": words("left right wheel back forward"), **_KEYS}),
        "double_click": record("type! x:int! y:int!", {"keys!?": Many(STRING)}),
        "drag": record("type!", {"path!": Many(_POINT), **_KEYS}),
        "keypress": record("type! keys:texts!"),
        "move": record("type! x:int! y:int!", _KEYS),
        "screenshot": record("type!"),
        "scroll": record("type! scroll_x:int! scroll_y:int! x:int! y:int!", _KEYS),
        "type": record("type! text!"),
        "wait": record("type!"),
    },
)
_SEARCH = Tagged(
    "type",
    {
        "search": record("type! queries:texts query", {"sources": Many(record("type! url!"))}),
        "open_page": record("type! url?"),
        "find_in_page": record("type! pattern! url!"),
    },
)
_SHELL_OUTPUT = record(
    "*stdout! *stderr!",
    {"*outcome!": Tagged("type", {"timeout": record("type!"), "exit": record("type! exit_code:int!")})},
)
_PATCH = Tagged(
    "type",
    {
        "create_file": record("type! diff! path!"),
        "delete_file": record("type! path!"),
        "update_file": record("type! diff! path!"),
    },
)
_EXEC = record("command:texts! timeout_ms:int? user? working_directory?", {"env": Each(STRING), "type!": words("exec")})
_EFFORT = words("none minimal low medium high xhigh max")
_TEXT_FORMAT = Tagged(
    "type",
    {
        "text": record("type!"),
        "json_object": record("type!"),
        "json_schema": record("type! name! schema:schema! description strict:flag?"),
    },
)

ITEM = Tagged(
    "type",
    {
        "message": record(
            "type? *role *id",
            {
                "*content": _content(_PARTS),
                "status?": _STATUS,
                "phase?": words("commentary final_answer"),
            },
        ),
        "reasoning": record(
            "type! *id *encrypted_content?",
            {
                "summary!": Many(record("text!", {"type!": words("summary_text")})),
                "content": Many(record("text!", {"type!": words("reasoning_text")})),
                "status?": _STATUS,
            },
        ),
        "function_call": record(
            "type! *id? *call_id:id! *name! async:flag namespace",
            {"*arguments!": _ARGUMENTS, "caller?": _CALLER, "status?": _STATUS},
        ),
        "function_call_output": record(
            "type! *id? *call_id:id? *name? namespace?", {"*output!": _OUTPUT, "caller?": _CALLER, "status?": _STATUS}
        ),
        "custom_tool_call": record(
            "type! *id *call_id:id! *name! async:flag namespace", {"*input!": _ARGUMENTS, "caller?": _CALLER}
        ),
        "custom_tool_call_output": record("type! *id *call_id:id!", {"*output!": _CUSTOM_OUTPUT, "caller?": _CALLER}),
        "local_shell_call": record("type! *id *call_id:id!", {"*action!": _EXEC, "status!": _STATUS}),
        "local_shell_call_output": record("type! *id *call_id:id? *output!", {"status?": _STATUS}),
        "shell_call": record(
            "type! *id? *call_id:id! environment:object?",
            {
                "*action!": record("commands:texts! max_output_length:int? timeout_ms:int?"),
                "caller?": _CALLER,
                "status?": _STATUS,
            },
        ),
        "shell_call_output": record(
            "type! *id? *call_id:id! max_output_length:int?",
            {"*output!": Many(_SHELL_OUTPUT), "caller?": _CALLER, "status?": _STATUS},
        ),
        "apply_patch_call": record(
            "type! *id? *call_id:id!",
            {"*operation!": _PATCH, "caller?": _CALLER, "status!": words("in_progress completed")},
        ),
        "apply_patch_call_output": record(
            "type! *id? *call_id:id! *output?", {"caller?": _CALLER, "status!": words("completed failed")}
        ),
        "computer_call": record(
            "type! *id! *call_id:id!",
            {"*action": _ACTION, "*actions": Many(_ACTION), "*pending_safety_checks!": _CHECKS, "status!": _STATUS},
        ),
        "computer_call_output": record(
            "type! *id? *call_id:id!",
            {
                "*output!": record("*file_id *image_url", {"type!": words("computer_screenshot")}),
                "acknowledged_safety_checks?": _CHECKS,
                "status?": _STATUS,
            },
        ),
        "tool_search_call": record(
            "type! *id? arguments:any! *call_id:id?", {"execution": _EXECUTION, "status?": _STATUS}
        ),
        "tool_search_output": record(
            "type! *id? *call_id:id?",
            {"execution": _EXECUTION, "*tools!": Many(Read(TOOL, (OBJECT,))), "status?": _STATUS},
        ),
        "additional_tools": record("type! id?", {"role!": words("developer"), "tools!": Many(TOOL)}),
        "configuration_update": record(
            "type! id?", {"reasoning": record("", {"effort?": _EFFORT}), "text": record("", {"format!": _TEXT_FORMAT})}
        ),
        "compaction": record("type! id? encrypted_content!"),
        "compaction_trigger": record("type! id?"),
        "item_reference": record("type? id!"),
        "program": record("type! id! call_id:id! code! fingerprint!"),
        "program_output": record("type! id! call_id:id! result!", {"status!": words("completed incomplete")}),
        "file_search_call": record(
            "type! id! queries:texts!",
            {
                "results?": Many(record("attributes:object? file_id filename score:num text")),
                "status!": _SEARCH_STATUS,
            },
        ),
        "web_search_call": record("type! id", {"action!": _SEARCH, "status": _SEARCH_STATUS}),
        "image_generation_call": record(
            "type! id! result? action? background? error:object output_format? quality? revised_prompt? size? "
            "svg_usage:object",
            {"status": words("in_progress completed generating failed")},
        ),
        "code_interpreter_call": record(
            "type! id! code!? container_id!",
            {
                "outputs!?": Many(Tagged("type", {"logs": record("type! logs!"), "image": record("type! url!")})),
                "status!": words("in_progress completed incomplete interpreting failed"),
            },
        ),
        "mcp_list_tools": record(
            "type! id! server_label! error?",
            {"tools!": Many(record("input_schema:any_schema! name! annotations:any? description?"))},
        ),
        "mcp_approval_request": record("type! id! arguments! name! server_label!"),
        "mcp_approval_response": record("type! id? approval_request_id! approve:flag! reason?"),
        "mcp_call": record(
            "type! id! arguments! name! server_label! approval_request_id? error:object? output?",
            {"status": words("in_progress completed incomplete calling failed")},
        ),
    },
    missing="message",
)
"""An item of the input."""

# -- requests ------------------------------------------------------------------------------------

_INCLUDED = words(
    "file_search_call.results web_search_call.results web_search_call.action.sources message.input_image.image_url "
    "computer_call_output.output.image_url code_interpreter_call.outputs reasoning.encrypted_content "
    "message.output_text.logprobs"
)
_NAMED_CHOICE = record("type! name!")
_OF_A_TYPE = (
    "file_search web_search_preview computer computer_use_preview computer_use web_search_preview_2025_03_11 "
    "image_generation code_interpreter programmatic_tool_calling apply_patch shell"
)
_CHOICE = Tagged(
    "type",
    {
        **dict.fromkeys(_OF_A_TYPE.split(), record("type!")),
        "allowed_tools": record("type!", {"mode!": words("auto required"), "tools!": Many(OBJECT)}),
        "function": _NAMED_CHOICE,
        "custom": _NAMED_CHOICE,
        "mcp": record("type! server_label! name?"),
    },
)
_SUMMARY = words("auto concise detailed")

BODY = record(
    "background:flag? client_metadata:any *instructions? max_tool_calls:int? *model parallel_tool_calls:flag? "
    "previous_response_id? prompt_cache_key? safety_identifier? store:flag? stream:flag? user " + CALL_OPTIONS,
    {
        "input?": Either((STRING, Many(ITEM))),
        "*tools": Many(TOOL, TOOLS_MAX),
        "tool_choice": Either((words("none auto required"), _CHOICE)),
        "access_programs": record("", {"cyber": words("standard daybreak_blue daybreak_red")}),
        "background_options": record("continuation_id", {"completion_window": words("soonest 2h 8h")}),
        "context_management?": Many(record("type! compact_threshold:int?")),
        "conversation?": Either((STRING, record("id!"))),
        "image": record("", {"context_compression": words("auto enabled disabled")}),
        "include?": Many(_INCLUDED),
        # "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead."
        "max_output_tokens?": Value("integer", 16),
        "metadata?": Each(Value("string", high=512), most=16, longest=64),
        "moderation?": record("model! policy:object?"),
        "prompt?": record("id! variables:object? version?"),
        "prompt_cache_options": record(
            "comparison_response_id? prewarm:flag", {"mode": words("implicit explicit"), "ttl": words("30m 12h")}
        ),
        "prompt_cache_retention?": words("in_memory 24h"),
        "reasoning?": record(
            "mode",
            {
                "context?": words("auto current_turn all_turns"),
                "effort?": _EFFORT,
                "generate_summary?": _SUMMARY,
                "summary?": _SUMMARY,
            },
        ),
        "service_tier?": words("auto default flex scale priority fast ultrafast"),
        "stream_options?": record("include_obfuscation:flag"),
        # "Invalid 'temperature': decimal below minimum value. Expected a value >= 0, but got -1 instead."
        "temperature?": Value("number", 0, 2),
        "top_p?": Value("number", 0, 1),
        "top_logprobs?": Value("integer", 0, 20),
        "text": record("", {"format": _TEXT_FORMAT, "verbosity?": words("low medium high")}),
        "truncation?": words("auto disabled"),
    },
)
"""A request body."""
