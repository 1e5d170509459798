"""The provider `anthropic`: the Messages API."""

from __future__ import annotations

from .. import CONVERSATIONS
from ..protocol import Provider
from .cache_marks import mark_cache
from .compaction import after_compaction, compaction_request, takes_out
from .form import NAME
from .known import declares, knows, unread_media
from .on_demand import ON_DEMAND
from .parse import parse
from .render import render
from .response import STOPS, parse_response
from .rules import rules
from .sanitize import required_settings, sanitize, without_thinking
from .schema import BODY
from .signs import SIGNS
from .stream import StreamAssembler
from .tool_changes import tool_changes
from .tool_choice import tool_choice, with_tool_choice
from .tool_search import SEARCH_TOOL, tool_news

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name=NAME,
    conversation=CONVERSATIONS[NAME],
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
    assembler=StreamAssembler,
    rules=rules,
    render=render,
    sanitize=sanitize,
    stops=STOPS,
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
