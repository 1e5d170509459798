"""An answer while it is being streamed: what has come is put on record now and then, so that killing the process
does not lose it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from .content import Message, Part, Reasoning, Text, ToolCall
from .providers.protocol import Assembler
from .records import Body, MessageRecord, PartialAnswer, Record, StreamCheckpoint

__all__ = ["CHECKPOINT_SECONDS", "Checkpoints", "KILLED", "as_interrupted", "unfinished_stream"]

CHECKPOINT_SECONDS = 1.0
"""At least so long lies between two checkpoints of a stream, and before the first."""

_GROWTH = 1.25
"""A checkpoint holds the whole answer so far, so the next one waits until it is larger by this factor. All of an
answer's checkpoints together are then at most five times its size, and a kill loses at most a fifth of it."""

_P = TypeVar("_P", bound=Part)

KILLED = "the process ended while the answer was being streamed"
"""Why an answer was interrupted of which only checkpoints were on record."""

_WORD_AT_END = re.compile(r"[!-~]{1,512}\Z")
"""The end of a text that may be the beginning of a secret, which nobody could tell yet."""


class Checkpoints:
    """Looks after one stream. `append` puts on record."""

    def __init__(self, assembler: Assembler, append: Callable[[Body], object], every: float) -> None:
        self._assembler = assembler
        self._append = append
        self._every = every
        self._due = time.monotonic() + every
        self._least = 1

    def look(self) -> None:
        """To be called after every chunk."""
        if time.monotonic() < self._due:
            return
        reply = self._assembler.reply()
        body = StreamCheckpoint(_kept(reply.message), tuple(map(_cut, reply.fragments)), reply.model)
        size = sum(map(_size, (*body.message.parts, *body.fragments)))
        if size >= self._least:
            self._append(body)
            self._least = int(size * _GROWTH) + 1 if self._every else size + 1
        self._due = time.monotonic() + self._every


def unfinished_stream(backwards: Iterable[Record]) -> Record | None:
    """The newest checkpoint, if no message came after it. `backwards` gives records, the last first."""
    for record in backwards:
        if isinstance(record.body, StreamCheckpoint):
            return record
        if isinstance(record.body, (MessageRecord, PartialAnswer)):
            return None
    return None


def as_interrupted(checkpoint: StreamCheckpoint) -> PartialAnswer:
    """The interrupted answer that a checkpoint tells of."""
    return PartialAnswer(checkpoint.message, KILLED, checkpoint.fragments, model=checkpoint.model)


def _kept(message: Message) -> Message:
    """What of a message a checkpoint holds: its words, and calls that have fully come."""
    parts = [part for part in message.parts if isinstance(part, (Text, Reasoning, ToolCall))]
    if parts and not isinstance(parts[-1], ToolCall):
        parts[-1] = _cut(parts[-1])
    return msgspec.structs.replace(message, parts=tuple(part for part in parts if part != Text("")), form=None)


def _cut(part: _P) -> _P:
    """A part that may go on, without the beginning of a word at its end."""
    match part:
        case Text(text=text) | Reasoning(text=text, signature=""):
            return msgspec.structs.replace(part, text=_WORD_AT_END.sub("", text))
        case ToolCall(raw=str(raw)):
            return msgspec.structs.replace(part, raw=_WORD_AT_END.sub("", raw))
        case _:
            return part


def _size(part: Part) -> int:
    match part:
        case Text(text=text):
            return len(text)
        case Reasoning(text=text, summary=summary):
            return len(text) + sum(map(len, summary))
        case ToolCall():
            return 1 + len(part.raw_arguments)
        case _:
            return 1
