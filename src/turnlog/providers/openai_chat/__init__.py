"""OpenAI Chat Completions (`POST /v1/chat/completions`), and servers compatible with it."""

from __future__ import annotations

from ..answer_forms import EFFORT, NAMED, SCHEMA, STRICT
from ..protocol import OPENAI_SETTINGS, Provider
from ..strict_schemas import OPENAI_LIMITS
from .form import NAME
from .parse import parse
from .parts import declares, knows, tool_choice, unread_media, with_tool_choice
from .render import render
from .response import ANSWER_KEYS, REFUSALS, STOPS, parse_response
from .rules import SIGNS, mark_cache, rules
from .sanitize import sanitize
from .schema import BODY
from .servers import sdk_call, without_reasoning
from .stream import StreamAssembler

PROVIDER = Provider(
    name=NAME,
    setting_paths={
        "max_output_tokens": ("max_completion_tokens",),
        "temperature": ("temperature",),
        "top_p": ("top_p",),
        "stop": ("stop",),
        "stream": ("stream",),
        "seed": ("seed",),
        **OPENAI_SETTINGS,
    },
    older_paths={"max_output_tokens": ("max_tokens",)},
    settings=frozenset(BODY.keys),
    signs=SIGNS,
    parse=parse,
    declares=declares,
    parse_response=parse_response,
    answer_keys=ANSWER_KEYS,
    chunk_keys=("choices", "chunk", "usage"),
    sdk_call=sdk_call,
    effort_form={"reasoning_effort": EFFORT},
    answer_forms=(
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": NAMED, "schema": SCHEMA, "strict": STRICT},
            }
        },
    ),
    answers_loosely=True,
    answers_recursively=True,
    answer_limits=OPENAI_LIMITS,
    answer_schemas=(("response_format", "json_schema", "schema"), ("response_format", "schema")),
    assembler=StreamAssembler,
    rules=rules,
    render=render,
    sanitize=sanitize,
    stops=STOPS,
    refusals=REFUSALS,
    text_documents=False,  # the media types of `rules` hold none
    knows=knows,
    unread_media=unread_media,
    tool_choice=tool_choice,
    mark_cache=mark_cache,
    marks_every_model=False,
    with_tool_choice=with_tool_choice,
    without_thinking=without_reasoning,
)
