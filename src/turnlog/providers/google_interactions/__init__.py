"""Google: the Interactions API, without stored interactions."""

from __future__ import annotations

from ..answer_forms import EFFORT, SCHEMA
from ..protocol import Provider, sdk_method
from .form import NAME
from .parse import parse
from .parts import declares, knows, unread_media
from .render import render, user_message
from .response import ANSWER_KEYS, STOPS, parse_response
from .rules import SETTING_PATHS, SIGNS, rules
from .sanitize import required_settings, sanitize
from .schema import BODY
from .stream import StreamAssembler
from .tools import SEARCH_TOOL, tool_choice, tool_news, with_tool_choice

PROVIDER = Provider(
    name=NAME,
    setting_paths=SETTING_PATHS,
    settings=frozenset(BODY.keys),
    signs=SIGNS,
    parse=parse,
    declares=declares,
    parse_response=parse_response,
    answer_keys=ANSWER_KEYS,
    chunk_keys=("steps", "usage"),
    sdk_call=sdk_method("aio.interactions.create", extra_body=False, stream=True),
    user_message=user_message,
    effort_form={"generation_config": {"thinking_level": EFFORT}},
    answer_forms=({"response_format": {"type": "text", "mime_type": "application/json", "schema": SCHEMA}},),
    answers_loosely=True,
    answer_schemas=(("response_format", "schema"),),
    assembler=StreamAssembler,
    rules=rules,
    render=render,
    sanitize=sanitize,
    stops=STOPS,
    knows=knows,
    unread_media=unread_media,
    tool_choice=tool_choice,
    with_tool_choice=with_tool_choice,
    required_settings=required_settings,
    turns_of_steps=True,
    # By analogy with the Responses API, whose items have the same names: a found function comes with its schema.
    deferred="schema",
    search_tool=SEARCH_TOOL,
    tool_news=tool_news,
)
