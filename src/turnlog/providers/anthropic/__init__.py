"""The provider `anthropic`: the Messages API."""

from __future__ import annotations

from ..answer_forms import EFFORT, SCHEMA
from ..protocol import Provider
from ..strict_schemas import ANTHROPIC_LIMITS
from .cache_marks import mark_cache
from .compaction import after_compaction, compaction_request, takes_out
from .containers import handed_on
from .form import NAME
from .parse import parse
from .parts import declares, knows, unread_media
from .render import render, sdk_call
from .response import ANSWER_KEYS, STOPS, parse_response
from .rules import SIGNS, rules
from .sanitize import required_settings, sanitize, without_thinking
from .schema import BODY
from .stream import StreamAssembler
from .tools import ON_DEMAND, SEARCH_TOOL, tool_changes, tool_choice, tool_news, with_tool_choice

PROVIDER = Provider(
    name=NAME,
    counted_key="cache_control",
    setting_paths={
        "max_output_tokens": ("max_tokens",),
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "stop": ("stop_sequences",),
        "stream": ("stream",),
    },
    settings=frozenset(BODY.keys),
    signs=SIGNS,
    parse=parse,
    declares=declares,
    parse_response=parse_response,
    answer_keys=ANSWER_KEYS,
    chunk_keys=("content", "usage"),
    sdk_call=sdk_call,
    effort_form={"output_config": {"effort": EFFORT}},
    answer_forms=(
        {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
        {"output_format": {"type": "json_schema", "schema": SCHEMA}},
    ),
    answer_limits=ANTHROPIC_LIMITS,
    answer_schemas=(("output_format", "schema"), ("output_config", "format", "schema")),
    assembler=StreamAssembler,
    rules=rules,
    render=render,
    sanitize=sanitize,
    stops=STOPS,
    handed_on=handed_on,
    tool_choice=tool_choice,
    knows=knows,
    unread_media=unread_media,
    mark_cache=mark_cache,
    with_tool_choice=with_tool_choice,
    # https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
    on_demand=ON_DEMAND,
    deferred="tool",
    search_tool=SEARCH_TOOL,
    tool_news=tool_news,
    tool_changes=tool_changes,
    without_thinking=without_thinking,
    required_settings=required_settings,
    after_compaction=after_compaction,
    compaction_request=compaction_request,
    takes_out=takes_out,
)
