"""Google: generateContent of the Gemini API and of Vertex."""

from __future__ import annotations

from .. import CONVERSATIONS
from ..protocol import Provider
from .enums import STOPS
from .form import NAME
from .keys import sdk_arguments
from .parse import parse
from .parts import declares, knows, unread_media
from .render import render
from .rules import SETTING_PATHS, SIGNS, rules
from .sanitize import sanitize
from .schema import BODY
from .stream import StreamAssembler, parse_response
from .tools import tool_choice, with_tool_choice

__all__ = ["PROVIDER", "sdk_arguments"]

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
    tool_choice=tool_choice,
    knows=knows,
    unread_media=unread_media,
    with_tool_choice=with_tool_choice,
)
