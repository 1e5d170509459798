"""Google: generateContent of the Gemini API and of Vertex."""

from __future__ import annotations

from ..protocol import Provider
from .keys import NAME
from .known import knows
from .parse import parse
from .render import render
from .response import ResponseAssembler, parse_response
from .rules import SETTING_PATHS, rules, tool_choice, with_tool_choice
from .sanitize import sanitize
from .sdk import sdk_arguments

__all__ = ["PROVIDER", "sdk_arguments"]

PROVIDER = Provider(
    name=NAME,
    conversation="contents",
    setting_paths=SETTING_PATHS,
    parse=parse,
    parse_response=parse_response,
    assembler=ResponseAssembler,
    rules=rules,
    render=render,
    sanitize=sanitize,
    tool_choice=tool_choice,
    knows=knows,
    with_tool_choice=with_tool_choice,
)
