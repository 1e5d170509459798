"""Answers to a streamed request that are no stream: a server that cannot stream sends its whole answer, or an error.

SDKs read such a body and find no event in it: the answer would be empty, and nobody would know why.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ..providers.error_bodies import error_chunk
from ..redaction import Redactor

_SHOWN = 300
"""Characters of an unreadable body that an error quotes."""

ANSWERS = ("candidates", "choices", "chunk", "content", "output", "prompt_feedback", "steps", "usage", "usage_metadata")
"""Keys of which each answer has one, and each chunk of a stream that is no event with a type."""

_REDACTOR = Redactor()


class Overheard:
    """The HTTP response of a stream, which keeps the bytes that its SDK reads until `found` is set: until then the SDK
    has found no event in them."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self._pieces: list[bytes] = []
        self.found = False
        self._asked = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    async def aiter_bytes(self, *arguments: Any, **named: Any) -> AsyncIterator[bytes]:
        """The bytes of the response, as the SDK asks for them."""
        self._asked = True
        async for piece in self._response.aiter_bytes(*arguments, **named):
            if self.found:
                self._pieces.clear()
            else:
                self._pieces.append(piece)
            yield piece

    @property
    def text(self) -> str:
        """What came without an event in it."""
        return b"".join(self._pieces).decode("utf-8", "replace")

    @property
    def description(self) -> str:
        """What came, for an error."""
        if not self._asked:
            return ""
        shown = _REDACTOR.text(self.text.strip())[0][:_SHOWN]
        kind = self._response.headers.get("content-type") or "a body without a content type"
        return f"{kind}: {shown!r}" if shown else "nothing"


def overheard(stream: Any) -> Overheard | None:
    """Listen to the response of an SDK's stream; None if it does not show one."""
    response = getattr(stream, "response", None)
    if not hasattr(response, "aiter_bytes"):
        return None
    stream.response = Overheard(response)
    found: Overheard = stream.response
    return found


def values_in(text: str) -> list[dict[str, Any]]:
    """The JSON objects that a body consists of: one, a list, one on each line, or the data of events that an SDK did
    not know."""
    lines = [line.removeprefix("data:") for line in text.splitlines()]
    for pieces in ([text], lines):
        found: list[Any] = []
        for piece in pieces:
            try:
                value = json.loads(piece)
            except (ValueError, RecursionError):
                continue
            found += value if isinstance(value, list) else [value]
        if objects := [one for one in found if isinstance(one, dict)]:
            return objects
    return []


def is_answer(value: Mapping[str, Any]) -> bool:
    """Whether a JSON object is an answer, an event of one, or an error."""
    kind = value.get("type") or value.get("event_type")
    return isinstance(kind, str) or not value.keys().isdisjoint(ANSWERS) or bool(error_chunk(value))


def no_answer(heard: Overheard | None) -> str:
    """The message of the error for a stream without any part of an answer."""
    came = heard.description if heard is not None else ""
    said = f"but {came}" if came else "and the SDK does not show what it sent"
    return f"the server answered with no part of an answer, {said}"
