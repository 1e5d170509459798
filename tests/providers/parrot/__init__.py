"""The provider `parrot`, which nobody has: a wire format of its own, for `test_sixth_provider.py`."""

from __future__ import annotations

from turnlog.providers.protocol import Provider, SdkCall

from .parse import ANSWER_KEYS, StreamAssembler, parse, parse_response
from .render import declares, render, user_message
from .rules import SIGNS, rules, sanitize, tool_choice, with_tool_choice
from .schema import BODY, NAME

__all__ = ["PROVIDER"]


PROVIDER = Provider(
    name=NAME,
    setting_paths={"max_output_tokens": ("manner", "max_tokens"), "stream": ("bit_by_bit",)},
    settings=frozenset(BODY.keys),
    signs=SIGNS,
    parse=parse,
    declares=declares,
    parse_response=parse_response,
    answer_keys=ANSWER_KEYS,
    chunk_keys=ANSWER_KEYS,
    assembler=StreamAssembler,
    sdk_call=lambda body, target, streamed: SdkCall("cage.talk", {**body, "bit_by_bit": streamed}),
    user_message=user_message,
    answer_schemas=(("mould",),),
    rules=rules,
    render=render,
    sanitize=sanitize,
    stops={"done": "end", "asks": "tool_calls"},
    tool_choice=tool_choice,
    with_tool_choice=with_tool_choice,
)
