"""Google: generateContent of the Gemini API and of Vertex."""

from __future__ import annotations

from functools import partial

from ..answer_forms import EFFORT, SCHEMA, TYPED
from ..protocol import Provider
from .enums import STOPS
from .form import NAME
from .keys import sdk_arguments, sdk_call
from .parse import parse
from .parts import billed_by, declares, knows, unread_media, user_message
from .render import render
from .rules import SETTING_PATHS, SIGNS, rules
from .sanitize import sanitize
from .schema import BODY
from .stream import ANSWER_KEYS, StreamAssembler, parse_response
from .tools import tool_choice, with_tool_choice

__all__ = ["sdk_arguments"]

PROVIDER = Provider(
    name=NAME,
    setting_paths=SETTING_PATHS,
    settings=frozenset(BODY.keys),
    signs=SIGNS,
    parse=parse,
    declares=declares,
    parse_response=parse_response,
    answer_keys=ANSWER_KEYS,
    chunk_keys=("candidates", "prompt_feedback", "usage_metadata"),
    sdk_call=sdk_call,
    user_message=user_message,
    effort_form={"generationConfig": {"thinkingConfig": {"thinkingLevel": EFFORT}}},
    answer_forms=(
        {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}},
        {"generationConfig": {"responseMimeType": "application/json", "responseSchema": TYPED}},
    ),
    answers_loosely=True,
    answer_schemas=(
        ("generationConfig", "responseSchema"),
        ("generationConfig", "responseJsonSchema"),
        ("generationConfig", "responseFormat", "text", "schema"),
    ),
    billed_by=billed_by,
    assembler=StreamAssembler,
    rules=rules,
    render=render,
    render_as_recorded=partial(render, joins=False),
    sanitize=sanitize,
    stops=STOPS,
    tool_choice=tool_choice,
    knows=knows,
    unread_media=unread_media,
    with_tool_choice=with_tool_choice,
)
