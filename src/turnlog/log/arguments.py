"""What the arguments of a call mean where a server did not write one JSON object.

Servers that imitate OpenAI write no arguments as an empty text (vllm#19419, bedrock-access-gateway#258) or null
(1jehuang/jcode#225), JSON in JSON (quarkus-langchain4j#2642), and an object behind an empty one (openai-agents-js#712)
or twice (64bit/async-openai#427). The log keeps what they wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .messages import ToolCall, parse_arguments

_NESTED = 3
"""How many times JSON may be quoted in JSON."""


def meant_arguments(call: ToolCall) -> dict[str, Any] | None:
    """The arguments with which a call of a function is to run; None if it does not say one object."""
    return _meant(call.raw if call.arguments is None else call.arguments, _NESTED)


def are_objects(text: str) -> bool:
    """Whether a text is one JSON object, or several one behind the other."""
    return bool(text.strip()) and None not in _objects(text)


def _meant(value: Any, quoted: int) -> dict[str, Any] | None:
    if isinstance(value, dict):
        return value
    if not value and (value is None or isinstance(value, (str, list))):
        return {}
    if not isinstance(value, str):
        return None
    objects = [_meant(parse_arguments(value)[0], quoted - 1)] if quoted and value.lstrip()[:1] == '"' else None
    if objects is None:
        if not value.strip() or value.strip() == "null":
            return {}
        objects = list(_objects(value))
    different: list[dict[str, Any]] = []
    for each in objects:
        if each is None:
            return None
        if each and each not in different:
            different.append(each)
    return None if len(different) > 1 else different[0] if different else {}


def _objects(text: str) -> Iterator[dict[str, Any] | None]:
    """The JSON objects that stand one behind the other in a text; None for anything else."""
    decoder, place = json.JSONDecoder(), 0
    text = text.strip()
    while place < len(text):
        try:
            _, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            yield None
            return
        value = parse_arguments(text[place:end])[0]
        yield value if isinstance(value, dict) else None
        place = end + len(text[end:]) - len(text[end:].lstrip())
