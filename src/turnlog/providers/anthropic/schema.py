"""The values that the Messages API accepts in a request, as data.

Source: the `Beta*Param` types of the anthropic SDK 2.12.0, plus keys that its v2 removed and the API still accepts with
status 200 (`temperature`, `top_p`, `top_k`, `output_format`). The API refuses any other key: "messages.0.token_count:
Extra inputs are not permitted".
"""

from __future__ import annotations

from collections.abc import Mapping

from ..schema.shapes import (
    CALL_OPTIONS,
    FLAG,
    INTEGER,
    OBJECT,
    STRING,
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
from .schema_tools import CITING, LISTED, MARK, MARKED, TOOL

# -- blocks that may be inside others ------------------------------------------------------------
_CITED = "type! cited_text! document_index:int! document_title!?"
_CITATION = Tagged(
    "type",
    {
        "char_location": record(f"{_CITED} start_char_index:int! end_char_index:int!"),
        "content_block_location": record(f"{_CITED} start_block_index:int! end_block_index:int!"),
        "page_location": record(f"{_CITED} start_page_number:int! end_page_number:int!"),
        "search_result_location": record(
            "type! cited_text! search_result_index:int! source! title!? start_block_index:int! end_block_index:int!"
        ),
        "web_search_result_location": record("type! cited_text! encrypted_index! title!? url!"),
    },
)


def _text(text: Shape) -> ObjectShape:
    return record("", {"type!": words("text"), "*text!": text, "citations?": Many(_CITATION, vanishes=True), **MARKED})


_NOT_BLANK = Value("string", pattern=r"(?s).*\S.*")
_TEXT, _SAYING = _text(STRING), _text(Value("string", 1))
_FILE: Mapping[str, Shape] = {"url": record("type! *url!"), "file": record("type! *file_id!")}


def _encoded(types: str) -> ObjectShape:
    return record("type! *data!", {"*media_type!": words(types)})


_IMAGE = record(
    "type!",
    {
        "*source!": Tagged("type", {**_FILE, "base64": _encoded("image/jpeg image/png image/gif image/webp")}),
        "transformations?": record("", {"oversized_image": words("downsize error")}),
        **MARKED,
    },
)
_PIECES = Either((STRING, Many(Tagged("type", {"text": _SAYING, "image": _IMAGE}))))
_DOCUMENT = record(
    "type! context? title?",
    {
        "*source!": Tagged(
            "type",
            {
                **_FILE,
                "base64": _encoded("application/pdf"),
                "text": _encoded("text/plain"),
                "content": record("type!", {"content!": _PIECES}),
            },
        ),
        "citations?": CITING,
        **MARKED,
    },
)
_SEARCH_RESULT = record("type! source! title!", {"content!": Many(_SAYING), "citations": CITING, **MARKED})
_REFERENCE = record("type! tool_name!", MARKED)
_TAB = record("tab_id! title! url! active:flag")
IN_RESULT = Tagged(
    "type",
    {
        "text": _TEXT,
        "image": _IMAGE,
        "search_result": _SEARCH_RESULT,
        "document": _DOCUMENT,
        "tool_reference": _REFERENCE,
        "browser_state": record("type! state_changes:objects?", {"tabs!": Many(_TAB), **MARKED}),
    },
)
"""A block inside a tool result."""

# -- tools that the provider runs ----------------------------------------------------------------
_BY_TOOL = record("type! tool_id!")
_CALLER = Tagged(
    "type",
    {"direct": record("type!"), **{f"code_execution_{date}": _BY_TOOL for date in (20250825, 20260120, 20260521)}},
)
_CALLED: Mapping[str, Shape] = {"caller": _CALLER}
_ERROR = record("type! error_code!")
_TOLD_ERROR = record("type! error_code! error_message?")
_OUTPUTS: Mapping[str, Shape] = {"content!": Many(record("type! file_id!"))}
_RAN = record("type! stdout! stderr! return_code:int!", _OUTPUTS)
_FOUND = record("encrypted_content! title! url! page_age?", {"type!": words("web_search_result")})


def _answer(content: Shape, other_keys: Mapping[str, Shape] | None = None) -> ObjectShape:
    return record("type! tool_use_id!", {"content!": content, **MARKED, **(other_keys or {})})


_ANSWERS: Mapping[str, Shape] = {
    "web_search": _answer(
        Either((Many(_FOUND), Tagged("type", {"web_search_tool_result_error": _ERROR}))), _CALLED
    ),
    "web_fetch": _answer(
        Tagged(
            "type",
            {
                "web_fetch_result": record("type! url! retrieved_at?", {"content!": _DOCUMENT}),
                "web_fetch_tool_result_error": _ERROR,
            },
        ),
        _CALLED,
    ),
    "advisor": _answer(
        Tagged(
            "type",
            {
                "advisor_result": record("type! text! stop_reason?"),
                "advisor_redacted_result": record("type! encrypted_content! stop_reason?"),
                "advisor_tool_result_error": _ERROR,
            },
        )
    ),
    "code_execution": _answer(
        Tagged(
            "type",
            {
                "code_execution_result": _RAN,
                "encrypted_code_execution_result": record(
                    "type! encrypted_stdout! stderr! return_code:int!", _OUTPUTS
                ),
                "code_execution_tool_result_error": _ERROR,
            },
        )
    ),
    "bash_code_execution": _answer(
        Tagged("type", {"bash_code_execution_result": _RAN, "bash_code_execution_tool_result_error": _ERROR})
    ),
    "text_editor_code_execution": _answer(
        Tagged(
            "type",
            {
                "text_editor_code_execution_view_result": record(
                    "type! content! file_type! num_lines:int? start_line:int? total_lines:int?"
                ),
                "text_editor_code_execution_create_result": record("type! is_file_update:flag!"),
                "text_editor_code_execution_str_replace_result": record(
                    "type! lines:texts? new_lines:int? new_start:int? old_lines:int? old_start:int?"
                ),
                "text_editor_code_execution_tool_result_error": _TOLD_ERROR,
            },
        )
    ),
    "tool_search": _answer(
        Tagged(
            "type",
            {
                "tool_search_tool_search_result": record("type!", {"tool_references!": Many(_REFERENCE)}),
                "tool_search_tool_result_error": _TOLD_ERROR,
            },
        )
    ),
}  # fmt: skip

# -- messages ------------------------------------------------------------------------------------
_CHANGED: Mapping[str, Shape] = {
    "mcp_tool_reference": record("type! name! server_name!"),
    "mcp_toolset_reference": record("type! server_name!"),
    "tool_reference": record("type! name!"),
}
_ADDED: Mapping[str, Shape] = {**_CHANGED, "tool_definition": record("type!", {"definition!": TOOL})}
_SERVER_CALL = Value("string", pattern=r"srvtoolu_[a-zA-Z0-9_]+")
_MODEL = record("*model!")

BLOCK = Tagged(
    "type",
    {
        "text": _TEXT,
        "image": _IMAGE,
        "document": _DOCUMENT,
        "search_result": _SEARCH_RESULT,
        "thinking": record("type! *thinking! *signature!"),
        "redacted_thinking": record("type! *data!"),
        "tool_use": record("type! *id! *name! input:object! toolset_name?", {**_CALLED, **MARKED}),
        "tool_result": record(
            "type! *tool_use_id! toolset_name?",
            {
                "*is_error": Read(FLAG, (INTEGER,)),
                "*content": Read(Either((STRING, Many(IN_RESULT, vanishes=True))), (OBJECT,)),
                **MARKED,
            },
        ),
        "server_tool_use": record("type! name! input:object!", {"id!": _SERVER_CALL, **_CALLED, **MARKED}),
        **{f"{tool}_tool_result": shape for tool, shape in _ANSWERS.items()},
        "mcp_tool_use": record("type! id! name! input:object! server_name!", MARKED),
        "mcp_tool_result": record(
            "type! tool_use_id! is_error:flag", {"content": Either((STRING, Many(_SAYING))), **MARKED}
        ),
        "mcp_tool_listing": record("type! mcp_server_name!", {"tools!": Many(LISTED)}),
        "container_upload": record("type! file_id!", MARKED),
        "compaction": record("type! content? encrypted_content? signature? tool_changes:objects?", MARKED),
        "tool_addition": record("type!", {"tool!": Tagged("type", _ADDED), **MARKED}),
        "tool_removal": record("type!", {"tool!": Tagged("type", _CHANGED), **MARKED}),
        "fallback": record("type! trigger:any", {"from!": _MODEL, "*to!": _MODEL}),
    },
    others=".+_tool_(use|result)",
)
"""A content block of a message. Calls and results of server tools that are newer than this table are accepted."""

_CONTENT: Mapping[str, Shape] = {"*content?": Either((STRING, Many(BLOCK)))}
_EFFORT = words("low medium high xhigh max")
_TALK = record("*role!", _CONTENT)
_MESSAGE = Tagged(
    "role",
    {
        "user": _TALK,
        "assistant": _TALK,
        "system": record("*role! clear_at?", {**_CONTENT, "output_config": record("", {"effort?": _EFFORT})}),
    },
)

# -- the body ------------------------------------------------------------------------------------
_BINDING: Mapping[str, Shape] = {
    "display?": words("summarized omitted updates"),
    "block_binding?": record("", {"prefix_mismatch_behavior?": words("error drop_block")}),
}
_ALONE = "type! disable_parallel_tool_use:flag"
_CONTEXT_EDIT = Tagged(
    "type",
    {
        "clear_tool_uses_20250919": record(
            "type! clear_at_least:object? clear_tool_inputs:any exclude_tools:texts? keep:object trigger:object"
        ),
        "clear_thinking_20251015": record("type! keep:any"),
        "compact_20260112": record("type! instructions? pause_after_compaction:flag trigger:object?"),
    },
    others=".*",
)
_MCP_SERVER = record(
    "name! url! authorization_token?",
    {"type!": words("url"), "tool_configuration?": record("allowed_tools:texts? enabled:flag?")},
)
_FALLBACK = record("model! max_tokens:int? output_config:any speed:any thinking:any")
_SHARE = Value("number", 0, 1)
MIN_BUDGET = 1024
"""Smallest thinking budget, in tokens ("Input should be greater than or equal to 1024")."""

BODY = record(
    # `anthropic_version` and `anthropic_beta`: requests of Vertex AI and Amazon Bedrock, which have no model.
    f"*model anthropic_beta:texts anthropic_version betas:texts inference_geo? stream:flag top_k:int? {CALL_OPTIONS}",
    {
        "*messages": Many(_MESSAGE),
        # "system: text content blocks must contain non-whitespace text"
        "*system": Either((STRING, Many(_text(_NOT_BLANK), vanishes=True))),
        "*tools": Many(TOOL),
        "billing_policy?": record("type!", {"bill_to": words("self user_profile")}),
        "cache_control?": MARK,
        "compaction?": record("instructions?", {"type!": words("summarize")}),
        "container?": Either((STRING, record("id?", {"skills?": Many(record("type! skill_id! version?"))}))),
        "context_management?": record("", {"edits": Many(_CONTEXT_EDIT)}),
        "diagnostics?": record("previous_message_id?"),
        "fallback_credit_token?": Either((STRING, record("token!", {"mode": words("strict best_effort")}))),
        "fallbacks?": Either((words("default"), Many(_FALLBACK))),
        "max_tokens": Value("integer", 0),
        "mcp_servers": Many(_MCP_SERVER),
        "metadata": record("user_id?"),
        "output_config": record(
            "",
            {
                "effort?": _EFFORT,
                "format?": record("schema:schema!", {"type!": words("json_schema")}),
                "task_budget?": record("type! total:int! remaining:int?"),
            },
        ),
        # The beta's name for `output_config.format`.
        "output_format?": Tagged(
            "type", {"json_schema": record("type schema:schema")}, missing="json_schema", others=".*"
        ),
        # "stop_sequences: each stop sequence must contain non-whitespace"
        "stop_sequences": Many(_NOT_BLANK, vanishes=True),
        "service_tier": words("auto standard_only"),
        "speed?": words("fast standard"),
        "temperature?": _SHARE,
        "top_p?": _SHARE,
        "thinking": Tagged(
            "type",
            {
                "enabled": record("type!", {"budget_tokens!": Value("integer", MIN_BUDGET), **_BINDING}),
                "adaptive": record("type!", _BINDING),
                "disabled": record("type!"),
                "between_tools": record("type!"),
            },
        ),
        "thread?": Tagged("type", {"create": record("type!"), "continue": record("type! previous_message_id!")}),
        "tool_choice": Tagged(
            "type",
            {
                "auto": record(_ALONE),
                "any": record(_ALONE),
                "tool": record(f"{_ALONE} name!"),
                "none": record("type!"),
            },
        ),
    },
)
"""A request body, and arguments that SDKs send as headers (`betas`, `extra_headers`)."""

# -- answers -------------------------------------------------------------------------------------
RESPONSE = record("*id *model *stop_reason")
"""The keys of a response that are read besides its content."""
_BEGUN = record("*type *id *name *tool_use_id *text *thinking *signature", {"*to": _MODEL})
EVENT = Tagged(
    "type",
    {
        "message_start": record("", {"*message": RESPONSE}),
        "content_block_start": record("*index:int", {"*content_block": _BEGUN}),
        "content_block_delta": record("*index:int", {"*delta": record("*text *thinking *partial_json *signature")}),
        "content_block_stop": record("*index:int"),
        "message_delta": record("", {"*delta": RESPONSE}),
    },
)
"""An event of a streamed response: the keys that are read."""
