"""Prompt-cache breakpoints of both OpenAI APIs, for models whose cache entries end at breakpoints.

https://developers.openai.com/api/docs/guides/prompt-caching: the provider itself sets an implicit breakpoint at the
newest message, and writes up to three explicit ones. Answers cannot have a breakpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from .edits import Object
from .protocol import CacheMarks

MAX_BREAKPOINTS = 3
"""Maximum number of explicit breakpoints that a request writes beside the implicit one."""

_KEY = "prompt_cache_breakpoint"
_BREAKPOINT = {"mode": "explicit"}


class Format(Struct, frozen=True):
    """Names that an API uses: the key of the `conversation`, the type of a `text` part, the types of `parts` that can
    have a breakpoint, and the key of a message's content that can have one (`holds`; "" if none can)."""

    conversation: str
    text: str
    parts: frozenset[str]
    holds: Callable[[Mapping[str, Any]], str]


def marker(api: Format) -> Callable[[Object, CacheMarks], Object]:
    """A function that adds the cache's key and the breakpoints to requests of this API."""

    def mark_cache(request: Object, marks: CacheMarks) -> Object:
        if marks.key and request.get("prompt_cache_key") is None:
            request = {**request, "prompt_cache_key": marks.key}
        wire = request.get(api.conversation)
        if not isinstance(wire, list) or _is_marked(request, wire, api):
            return request
        wire = list(wire)
        newest = _markable(wire, len(wire) - 1, api)
        places = {_markable(wire, index, api) for index in marks.messages[:-1]} - {newest, -1}
        for index in sorted(places)[-MAX_BREAKPOINTS:]:
            wire[index] = _with_breakpoint(wire[index], api)
        return {**request, api.conversation: wire}

    return mark_cache


def _is_marked(request: Object, wire: list[Any], api: Format) -> bool:
    """Whether the caller sets breakpoints: some are in the request, or only the caller's are wanted."""
    options = request.get("prompt_cache_options")
    if isinstance(options, Mapping) and options.get("mode") == "explicit":
        return True
    return any(_KEY in part for message in wire for part in _parts(message, api))


def _parts(message: Any, api: Format) -> Iterator[Mapping[str, Any]]:
    """The parts of a message that can have a breakpoint. A text instead of a list counts as one part."""
    holds = api.holds(message) if isinstance(message, Mapping) else ""
    content = message.get(holds) if holds else None
    if isinstance(content, str):
        content = [{"type": api.text, "text": content}]
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") in api.parts and part.get("text") != "":
            yield part


def _markable(wire: list[Any], index: int, api: Format) -> int:
    """The index of the last message up to this one that can have a breakpoint, else -1."""
    return next((i for i in range(min(index, len(wire) - 1), -1, -1) if next(_parts(wire[i], api), None)), -1)


def _with_breakpoint(message: Object, api: Format) -> Object:
    """A message with a breakpoint on the last of its parts that can have one."""
    holds = api.holds(message)
    *_, last = _parts(message, api)
    if isinstance(message[holds], str):
        return {**message, holds: [{**last, _KEY: _BREAKPOINT}]}
    return {**message, holds: [{**part, _KEY: _BREAKPOINT} if part is last else part for part in message[holds]]}
