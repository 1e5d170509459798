"""Read a whole response as a stream of one chunk, so that both give the same answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import FormatError
from ..error_bodies import answer_body
from ..protocol import Reply
from .stream import NO_RESPONSE, StreamAssembler


def parse_response(response: Any) -> Reply:
    """Read a whole response: a GenerateContentResponse of the SDK, its JSON in either spelling, or the list of chunks
    of a stream. Raises FormatError, also for an error body."""
    whole = response[0] if isinstance(response, list) and len(response) == 1 else response
    if isinstance(whole, Mapping):
        answer_body(whole)
    assembler = StreamAssembler()
    assembler.feed(response)
    if not assembler.begun:
        raise FormatError(NO_RESPONSE, path="response")
    return assembler.reply()
