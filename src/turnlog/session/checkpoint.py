"""Checkpoints of a streamed answer: the part that has arrived is recorded from time to time, so that it is not lost if
the process is killed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable

import msgspec

from .._platform.lazy import lazy_pattern
from ..log.actions import HIDING, SHRINKING
from ..log.messages import Message, Part, Reasoning, Text, ToolCall
from ..log.records import Binding, Body, Decision, MessageRecord, PartialAnswer, Record, StreamCheckpoint
from ..providers.protocol import Reply
from ..view.decisions import active_decisions
from ..view.fold import is_answer

_GROWTH = 1.25
"""A checkpoint holds the whole answer so far, so the next one waits until it is larger by this factor. All of an
answer's checkpoints together are then at most five times its size, and a kill loses at most a fifth of it."""

KILLED = "the process ended while the answer was being streamed"
"""The reason that is recorded for an interrupted answer if only checkpoints of it were found."""

_WORD_BREAK = lazy_pattern(r"[\s\u2e80-\U0010ffff]")
"""Ends a run of characters that may be the beginning of a secret not recognised yet: a space, or a character of a
script written without spaces (from U+2E80 on: Chinese, Japanese, Korean). Hardly any secret contains such characters,
and texts in these scripts would otherwise be a single word."""

_LINE_BREAK = lazy_pattern(r"[\r\n]")
"""The same if a secret may contain spaces."""

_TAKES_BACK = HIDING - SHRINKING
"""Actions of decisions after which an unfinished answer is not wanted any more: the user made them."""


class Checkpoints:
    """The checkpoints of one stream. `reply` returns the answer so far, `append` records it. With `by_lines`, a secret
    may contain spaces: then the last line of a text is left out, not only its last word. `binding` returns what the
    reasoning that has arrived is bound to."""

    def __init__(
        self,
        reply: Callable[[], Reply],
        append: Callable[[Body], object],
        every: float,
        *,
        by_lines: bool = False,
        binding: Callable[[Reply], Binding | None] = lambda reply: None,
    ) -> None:
        self._reply = reply
        self._binding = binding
        self._break = _LINE_BREAK if by_lines else _WORD_BREAK
        self._append = append
        self._every = every
        self._due = time.monotonic() + every
        self._least = 1

    @property
    def is_due(self) -> bool:
        """Whether it is time to look."""
        return time.monotonic() >= self._due

    def look(self) -> None:
        """Record the part that has arrived, if it is time and the part is long enough. Called after every chunk."""
        if not self.is_due:
            return
        reply = self._reply()
        body = StreamCheckpoint(
            _kept(reply.message, self._break),
            _growing(reply.fragments, self._break),
            reply.model,
            self._binding(reply),
        )
        size = sum(map(_size, (*body.message.parts, *body.fragments)))
        if size >= self._least:
            self._append(body)
            self._least = int(size * _GROWTH) + 1 if self._every else size + 1
        self._due = time.monotonic() + self._every


def unfinished_stream(backwards: Iterable[Record]) -> Record | None:
    """The newest checkpoint, unless an answer came after it, or a clearing or rewind in force took it back.

    `backwards` gives records, the last first. Messages of users and tools that were recorded while the answer was
    streamed do not matter.
    """
    since: list[Record] = []
    for record in backwards:
        match record.body:
            case StreamCheckpoint():
                decisions = active_decisions(reversed(since)).values()
                taken = any(
                    decision.action in _TAKES_BACK and decision.first <= record.n <= decision.last
                    for decision in decisions
                )
                return None if taken else record
            case PartialAnswer() | MessageRecord() if is_answer(record):
                return None
            case Decision():
                since.append(record)
    return None


def as_interrupted(checkpoint: StreamCheckpoint) -> PartialAnswer:
    """The interrupted answer that a checkpoint contains."""
    return PartialAnswer(
        checkpoint.message, KILLED, checkpoint.fragments, model=checkpoint.model, binding=checkpoint.binding
    )


def _kept(message: Message, end: re.Pattern[str]) -> Message:
    """The part of a message that a checkpoint records: its texts, and the calls that have arrived completely.

    A call may arrive before a text ends, so any text may be unfinished, not only the last part.
    """
    parts = (part if isinstance(part, ToolCall) else _cut(part, end) for part in message.parts)
    return msgspec.structs.replace(message, parts=tuple(part for part in parts if part is not None), form=None)


def _growing(fragments: Iterable[Part], end: re.Pattern[str]) -> tuple[Part, ...]:
    """The fragments of an answer that a checkpoint records."""
    return tuple(cut for part in fragments if (cut := _cut(part, end)) is not None)


def _cut(part: Part, end: re.Pattern[str]) -> Part | None:
    """An unfinished part, without the last word of each of its texts, which may be the beginning of a secret; None if
    nothing is left, or if it is not known where a secret may begin."""
    match part:
        case Text(text=text):
            cut = _whole(text, end)
            return msgspec.structs.replace(part, text=cut) if cut else None
        case Reasoning() if not (part.signature or part.encrypted or part.id):
            summary = tuple(filter(None, (_whole(text, end) for text in part.summary)))
            reasoning = msgspec.structs.replace(part, text=_whole(part.text, end), summary=summary)
            return reasoning if reasoning.text or summary else None
        case Reasoning():  # whole: providers give these last, and a signature holds for just this text
            return part
        case ToolCall():
            return msgspec.structs.replace(part, arguments=None, raw=_whole(part.raw_arguments, end))
        case _:
            return None


def _whole(text: str, end: re.Pattern[str]) -> str:
    """`text` up to the last match of `end` in it. Searches backwards, so the time is linear in the length."""
    match = end.search(text[::-1])
    return text[: len(text) - match.start()] if match else ""


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
