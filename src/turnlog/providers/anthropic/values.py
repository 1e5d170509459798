"""What values the Messages API takes, as types that msgspec checks.

`shapes.py` says which keys there may be; what stands here says what their values must be, where a
body could hold something else: "tool_result.is_error: Input should be a valid boolean". Source: the
`Beta*Param` types of the anthropic SDK 2.12.0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ..values import Later, made

_ABSENT = object()


def _may(kind: Any) -> tuple[Any, Any]:
    """A field that may be left out, but is a `kind` where it is there."""
    return kind, _ABSENT


def _fields(fields: Mapping[str, Any]) -> list[Any]:
    given = [(name, kind if isinstance(kind, tuple) else (kind,)) for name, kind in fields.items()]
    return [(name, made(kind), *default) for name, (kind, *default) in given]


def _object(**fields: Any) -> Later:
    """An object with these fields at least; those from `_may` can be left out."""
    return Later(lambda: msgspec.defstruct("Object", _fields(fields), kw_only=True))


def _tagged(tag: Any, **fields: Any) -> Later:
    """An object of that `type`."""
    return _object(type=Literal[tag], **fields)


def _one_of(*shapes: Mapping[str, Any]) -> Later:
    """One of a few objects, told apart by `type`: `{type: fields, ...}`."""
    entries = [entry for shape in shapes for entry in shape.items()]
    if len(entries) == 1:  # a tag that stands alone could be missing
        return _tagged(entries[0][0], **entries[0][1])

    def tagged(tag: str, fields: Mapping[str, Any]) -> Any:
        return msgspec.defstruct("Object", _fields(fields), kw_only=True, tag_field="type", tag=tag)

    return Later(lambda: reduce(or_, [tagged(tag, fields) for tag, fields in entries]))


def _list(kind: Any) -> Later:
    return Later(lambda: list[made(kind)])  # type: ignore[misc]


MARK = _tagged("ephemeral", ttl=_may(Literal["5m", "1h"]))
"""A prompt-cache mark, `cache_control`."""

_OBJECT = dict[str, Any]
_CITED = {"cited_text": str, "document_index": int, "document_title": str | None}
_CITATION = _one_of(
    {
        "char_location": {**_CITED, "start_char_index": int, "end_char_index": int},
        "page_location": {**_CITED, "start_page_number": int, "end_page_number": int},
        "content_block_location": {**_CITED, "start_block_index": int, "end_block_index": int},
        "web_search_result_location": {"cited_text": str, "encrypted_index": str, "title": str | None, "url": str},
        "search_result_location": {
            "cited_text": str,
            "search_result_index": int,
            "source": str,
            "title": str | None,
            "start_block_index": int,
            "end_block_index": int,
        },
    }
)
_CALLER = _one_of(
    {"direct": {}, **{f"code_execution_{date}": {"tool_id": str} for date in ("20250825", "20260120", "20260521")}}
)
_CITING = _object(enabled=_may(bool))
_FILE = {"url": {"url": str}, "file": {"file_id": str}}
_PIXELS = {"base64": {"media_type": Literal["image/jpeg", "image/png", "image/gif", "image/webp"], "data": str}}
_TEXT = {"text": {"text": Annotated[str, Meta(min_length=1)]}}
_IMAGE = {"image": {"source": _one_of(_FILE, _PIXELS)}}
_DOCUMENT = {
    "document": {
        "source": _one_of(
            _FILE,
            {
                "base64": {"media_type": Literal["application/pdf"], "data": str},
                "text": {"media_type": Literal["text/plain"], "data": str},
                "content": {"content": str | _list(_one_of(_TEXT, _IMAGE))},
            },
        )
    }
}
_SEARCH_RESULT = {"search_result": {"source": str, "title": str, "content": _list(_one_of(_TEXT))}}
_REFERENCE = {"tool_reference": {"tool_name": str}}
_TAB = _object(tab_id=str, title=str, url=str, active=_may(bool))

INSIDE: Mapping[str, Any] = {
    kind: _tagged(kind, **fields)
    for shape in (_IMAGE, _DOCUMENT, _SEARCH_RESULT, _REFERENCE, {"browser_state": {"tabs": _list(_TAB)}})
    for kind, fields in shape.items()
}
"""Blocks that are kept whole, inside a tool result: what each must have."""

_CHANGED = {
    "mcp_tool_reference": {"name": str, "server_name": str},
    "mcp_toolset_reference": {"server_name": str},
    "tool_reference": {"name": str},
}
_OUTPUTS = _list(_object(file_id=str))
_RAN = {"stdout": str, "stderr": str, "return_code": int, "content": _OUTPUTS}
_FAILED = {"error_code": str}
_LISTED = _object(name=str, input_schema=_OBJECT, description=_may(str | None))
_ANSWERS: dict[str, Any] = {
    "web_search": _list(_tagged("web_search_result", encrypted_content=str, title=str, url=str))
    | _tagged("web_search_tool_result_error", **_FAILED),
    "web_fetch": _one_of(
        {
            "web_fetch_result": {"url": str, "content": _one_of(_DOCUMENT)},
            "web_fetch_tool_result_error": _FAILED,
        }
    ),
    "advisor": _one_of(
        {
            "advisor_result": {"text": str},
            "advisor_redacted_result": {"encrypted_content": str},
            "advisor_tool_result_error": _FAILED,
        }
    ),
    "code_execution": _one_of(
        {
            "code_execution_result": _RAN,
            "encrypted_code_execution_result": {
                "encrypted_stdout": str, "stderr": str, "return_code": int, "content": _OUTPUTS
            },
            "code_execution_tool_result_error": _FAILED,
        }
    ),
    "bash_code_execution": _one_of(
        {"bash_code_execution_result": _RAN, "bash_code_execution_tool_result_error": _FAILED}
    ),
    "text_editor_code_execution": _one_of(
        {
            "text_editor_code_execution_view_result": {"content": str, "file_type": str},
            "text_editor_code_execution_create_result": {"is_file_update": bool},
            "text_editor_code_execution_str_replace_result": {},
            "text_editor_code_execution_tool_result_error": _FAILED,
        }
    ),
    "tool_search": _one_of(
        {
            "tool_search_tool_search_result": {"tool_references": _list(_one_of(_REFERENCE))},
            "tool_search_tool_result_error": _FAILED,
        }
    ),
}  # fmt: skip

OWN: Mapping[str, Any] = {
    **{kind: INSIDE[kind] for kind in ("image", "document", "search_result")},
    "server_tool_use": _object(id=Annotated[str, Meta(pattern="^srvtoolu_[a-zA-Z0-9_]+$")], name=str, input=_OBJECT),
    **{f"{tool}_tool_result": _object(tool_use_id=str, content=content) for tool, content in _ANSWERS.items()},
    "mcp_tool_use": _object(id=str, name=str, server_name=str, input=_OBJECT),
    "mcp_tool_result": _object(tool_use_id=str, content=_may(str | _list(_one_of(_TEXT))), is_error=_may(bool)),
    "mcp_tool_listing": _object(mcp_server_name=str, tools=_list(_LISTED)),
    "container_upload": _object(file_id=str),
    "compaction": _object(
        content=_may(str | None),
        encrypted_content=_may(str | None),
        signature=_may(str | None),
        tool_changes=_may(list[_OBJECT] | None),
    ),
    "tool_addition": _object(tool=_one_of(_CHANGED, {"tool_definition": {"definition": _OBJECT}})),
    "tool_removal": _object(tool=_one_of(_CHANGED)),
    "fallback": _object(**{"from": _object(model=str), "to": _object(model=str)}),
}
"""Blocks that are kept whole, in a message: what each must have."""

OPTIONAL: Mapping[str, Mapping[str, Any]] = {
    "text": {"citations": _list(_CITATION) | None},
    "image": {"transformations": _object(oversized_image=_may(Literal["downsize", "error"])) | None},
    "document": {"citations": _CITING | None, "context": str | None, "title": str | None},
    "search_result": {"citations": _CITING},
    "tool_use": {"caller": _CALLER, "toolset_name": str | None},
    "tool_result": {"toolset_name": str | None},
    "server_tool_use": {"caller": _CALLER},
    "web_search_tool_result": {"caller": _CALLER},
    "web_fetch_tool_result": {"caller": _CALLER},
    "browser_state": {"state_changes": list[_OBJECT] | None},
}
"""Keys that a block can do without: what their values must be."""

# --- settings and tools --------------------------------------------------------------------------
_ALLOWANCE = {"disable_parallel_tool_use": _may(bool)}
_SHOWN = _may(Literal["summarized", "omitted", "updates"] | None)

SETTINGS: Mapping[str, Any] = {
    "billing_policy": _object(type=str) | None,
    "cache_control": MARK | None,
    "compaction": _object(type=Literal["summarize"], instructions=_may(str | None)) | None,
    "container": str | _OBJECT | None,
    "context_management": _OBJECT | None,
    "diagnostics": _object(previous_message_id=_may(str | None)) | None,
    "fallback_credit_token": str | _object(token=str) | None,
    "fallbacks": _list(_object(model=str)) | Literal["default"] | None,
    "inference_geo": str | None,
    "max_tokens": Annotated[int, Meta(ge=0)],
    "mcp_servers": _list(_tagged("url", name=str, url=str)),
    "metadata": _object(user_id=_may(str | None)),
    "output_config": _object(
        effort=_may(Literal["low", "medium", "high", "xhigh", "max"] | None),
        format=_may(_object(type=Literal["json_schema"], schema=_OBJECT) | None),
        task_budget=_may(_object(type=str, total=int) | None),
    ),
    "output_format": _OBJECT | None,
    "service_tier": Literal["auto", "standard_only"],
    "speed": Literal["fast", "standard"] | None,
    "stop_sequences": list[str],
    "stream": bool,
    "temperature": float | None,
    "thinking": _one_of(
        {
            "enabled": {"budget_tokens": int, "display": _SHOWN, "block_binding": _may(_OBJECT | None)},
            "adaptive": {"display": _SHOWN, "block_binding": _may(_OBJECT | None)},
            "disabled": {},
            "between_tools": {},
        }
    ),
    "thread": _one_of({"create": {}, "continue": {"previous_message_id": str}}) | None,
    "tool_choice": _one_of({"auto": _ALLOWANCE, "any": _ALLOWANCE, "none": {}, "tool": {"name": str, **_ALLOWANCE}}),
    "top_k": int | None,
    "top_p": float | None,
}
"""Top-level settings."""

TOOL_KEYS: Mapping[str, Any] = {
    "allowed_callers": list[str],
    "defer_loading": bool,
    "description": str,
    "eager_input_streaming": bool | None,
    "input_examples": list[_OBJECT],
    "strict": bool,
    "type": str | None,
    "allowed_domains": list[str] | None,
    "blocked_domains": list[str] | None,
    "citations": _CITING | None,
    "display_number": int | None,
    "enable_zoom": bool,
    "max_characters": int | None,
    "max_content_tokens": int | None,
    "max_uses": int | None,
    "url_sources": _OBJECT | None,
    "use_cache": bool,
    "user_location": _tagged("approximate") | None,
    "configs": _OBJECT | None,
    "default_config": _OBJECT,
}
"""Keys that a tool declaration can do without."""

_SCREEN = {"display_height_px": int, "display_width_px": int}

TOOLS: Mapping[str, tuple[str, Any]] = {
    "bash": ("bash", _object()),
    "memory": ("memory", _object()),
    "code_execution": ("code_execution", _object()),
    "text_editor_20241022": ("str_replace_editor", _object()),
    "text_editor_20250124": ("str_replace_editor", _object()),
    "text_editor": ("str_replace_based_edit_tool", _object()),
    "computer": ("computer", _object(**_SCREEN)),
    "web_search": ("web_search", _object()),
    "web_fetch": ("web_fetch", _object()),
    "advisor": ("advisor", _object(model=str)),
    "tool_search_tool_bm25": ("tool_search_tool_bm25", _object()),
    "tool_search_tool_regex": ("tool_search_tool_regex", _object()),
    "browser_toolset": ("", _object()),
    "computer_toolset": ("", _object()),
    "mcp_toolset": ("", _object(mcp_server_name=str)),
}
"""Tools that the API runs or defines, by type, its date left out where all dates are alike: the name
that one must have (empty for none), and what else it needs."""
