"""The OpenAI Responses API."""

from __future__ import annotations

from functools import partial

from ..answer_forms import EFFORT, NAMED, SCHEMA, STRICT
from ..protocol import OPENAI_SETTINGS, Provider, sdk_method
from ..strict_schemas import OPENAI_LIMITS
from .compaction import after_compaction, compaction_request, takes_out
from .form import NAME
from .items import parse
from .parts import declares, knows, unread_media
from .render import render
from .response import REFUSALS, STOPS, parse_response
from .rules import SIGNS, mark_cache, rules
from .sanitize import sanitize
from .schema import BODY
from .stream import StreamAssembler
from .tools import ON_DEMAND, SEARCH_TOOL, client_tools, tool_choice, tool_news, with_tool_choice

PROVIDER = Provider(
    name=NAME,
    setting_paths={
        "max_output_tokens": ("max_output_tokens",),
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "stream": ("stream",),
        **OPENAI_SETTINGS,
    },
    settings=frozenset(BODY.keys),
    signs=SIGNS,
    parse=parse,
    declares=declares,
    declares_rest=True,
    parse_response=parse_response,
    answer_keys=("output",),
    chunk_keys=("output", "usage"),
    sdk_call=sdk_method("responses.create", stream=True),
    effort_form={"reasoning": {"effort": EFFORT}},
    answer_forms=({"text": {"format": {"type": "json_schema", "name": NAMED, "schema": SCHEMA, "strict": STRICT}}},),
    answers_loosely=True,
    answers_recursively=True,
    answer_limits=OPENAI_LIMITS,
    answer_schemas=(("text", "format", "schema"),),
    assembler=StreamAssembler,
    rules=rules,
    render=render,
    render_linked=render,
    render_as_recorded=partial(render, keep_ids=True),
    sanitize=sanitize,
    stops=STOPS,
    refusals=REFUSALS,
    # https://developers.openai.com/api/docs/guides/tools-tool-search: name and description of a function stay
    on_demand=ON_DEMAND,
    deferred="schema",
    search_tool=SEARCH_TOOL,
    tool_news=tool_news,
    client_tools=client_tools,
    knows=knows,
    unread_media=unread_media,
    after_compaction=after_compaction,
    compaction_request=compaction_request,
    takes_out=takes_out,
    tool_choice=tool_choice,
    mark_cache=mark_cache,
    marks_every_model=False,
    with_tool_choice=with_tool_choice,
)
