"""Google: the Interactions API, without stored interactions."""

from __future__ import annotations

from .. import CONVERSATIONS
from ..protocol import Provider
from .form import NAME
from .known import declares, knows, unread_media
from .parse import parse
from .render import render
from .response import STOPS, parse_response
from .rules import SETTING_PATHS, rules
from .sanitize import required_settings, sanitize
from .schema import BODY
from .signs import SIGNS
from .stream import StreamAssembler
from .tool_choice import tool_choice, with_tool_choice
from .tool_search import SEARCH_TOOL, tool_news

__all__ = ["PROVIDER"]

PROVIDER = Provider(
    name=NAME,
    conversation=CONVERSATIONS[NAME],
    setting_paths=SETTING_PATHS,
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
