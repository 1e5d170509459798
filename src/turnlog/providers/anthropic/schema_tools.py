"""The tools that the Messages API accepts, as data: the `Beta*Param` types of the anthropic SDK 2.12.0."""

from __future__ import annotations

from collections.abc import Mapping

from ..schema.shapes import INTEGER, Many, ObjectShape, Shape, Tagged, record, words

MARK = record("", {"type!": words("ephemeral"), "ttl": words("5m 1h")})
"""A prompt-cache mark, `cache_control`."""
MARKED: Mapping[str, Shape] = {"cache_control?": MARK}

CITING = record("enabled:flag")
"""Whether citations are enabled."""

_OPTIONS = "type! allowed_callers:texts defer_loading:flag strict:flag"


def _tool(name: str, keys: str = "", nested: Mapping[str, Shape] | None = None) -> ObjectShape:
    """A tool that the API defines; it has a fixed name."""
    return record(f"{_OPTIONS} {keys}", {"name!": words(name), **MARKED, **(nested or {})})


def _dated(stem: str, dates: str, shape: Shape) -> dict[str, Shape]:
    return {f"{stem}_{date}": shape for date in dates.split()}


FUNCTION = record(
    "*type? *name! *description *input_schema:schema! allowed_callers:texts defer_loading:flag strict:flag "
    "input_examples:objects eager_input_streaming:flag?",
    MARKED,
)
"""A function that the client runs."""

_EXAMPLES = "input_examples:objects"
_SCREEN: Mapping[str, Shape] = {
    "display_height_px!": INTEGER, "display_width_px!": INTEGER, "display_number?": INTEGER
}  # fmt: skip
_PLACE = record("city? country? region? timezone?", {"type!": words("approximate")})
_SEARCH = "allowed_domains:texts? blocked_domains:texts? max_uses:int?"
_FETCH = f"{_SEARCH} max_content_tokens:int? url_sources:object?"
_CITED: Mapping[str, Shape] = {"citations?": CITING}
_EXCLUDED: Mapping[str, Shape] = {"response_inclusion": words("full excluded")}
_BASED_EDIT = "str_replace_based_edit_tool"
_BM25, _REGEX = _tool("tool_search_tool_bm25"), _tool("tool_search_tool_regex")
_TOOLSET = record("type! configs:object?", MARKED)
LISTED = record("name! input_schema:schema! description?")
"""A tool in the listing of an MCP server."""

TOOL = Tagged(
    "type",
    {
        "custom": FUNCTION,
        **_dated("bash", "20241022 20250124", _tool("bash", _EXAMPLES)),
        **_dated("memory", "20250818", _tool("memory", _EXAMPLES)),
        **_dated("code_execution", "20250522 20250825 20260120 20260521", _tool("code_execution")),
        **_dated("text_editor", "20241022 20250124", _tool("str_replace_editor", _EXAMPLES)),
        **_dated("text_editor", "20250429", _tool(_BASED_EDIT, _EXAMPLES)),
        **_dated("text_editor", "20250728", _tool(_BASED_EDIT, f"{_EXAMPLES} max_characters:int?")),
        **_dated("computer", "20241022 20250124", _tool("computer", _EXAMPLES, _SCREEN)),
        **_dated("computer", "20251124", _tool("computer", f"{_EXAMPLES} enable_zoom:flag", _SCREEN)),
        **_dated("web_search", "20250305 20260209", _tool("web_search", _SEARCH, {"user_location?": _PLACE})),
        **_dated("web_search", "20260318", _tool("web_search", _SEARCH, {"user_location?": _PLACE, **_EXCLUDED})),
        **_dated("web_fetch", "20250910 20260209", _tool("web_fetch", _FETCH, _CITED)),
        **_dated("web_fetch", "20260309", _tool("web_fetch", f"{_FETCH} use_cache:flag", _CITED)),
        **_dated("web_fetch", "20260318", _tool("web_fetch", f"{_FETCH} use_cache:flag", {**_CITED, **_EXCLUDED})),
        **_dated("advisor", "20260301", _tool("advisor", "model! max_tokens:int? max_uses:int?", {"caching?": MARK})),
        "tool_search_tool_bm25": _BM25,
        **_dated("tool_search_tool_bm25", "20251119", _BM25),
        "tool_search_tool_regex": _REGEX,
        **_dated("tool_search_tool_regex", "20251119", _REGEX),
        **_dated("browser_toolset", "20260801", _TOOLSET),
        **_dated("computer_toolset", "20260801", _TOOLSET),
        "mcp_toolset": record(
            "type! mcp_server_name! configs:object? default_config:object", {"tools?": Many(LISTED), **MARKED}
        ),
    },
    missing="custom",
    others=r".+_\d{8}",
)
"""A tool declaration. Dated types that are not in the table may be newer than it."""
