"""Answers of models as the log records them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import RLock
from types import TracebackType
from typing import Any, Self, get_args

import msgspec

from .._platform.exceptions import described
from ..errors import InputError
from ..log.messages import Part, Text, ToolCall
from ..log.records import MessageRecord, Record
from ..models.pricing import Cost, cost
from ..models.target import Target
from ..providers import PROVIDERS, provider
from ..providers.error_bodies import is_error_body
from ..providers.protocol import Delta, Reply, Stop, meaning
from ..providers.sdk_objects import advice
from .checkpoint import Checkpoints
from .inputs import to_run
from .threads import recorded

# -- receiving -------------------------------------------------------------------------------------
#
# An answer while its chunks come, from whatever kind of stream: recorded when they end, however they end.

GONE = "whoever read the answer went away"
"""The reason recorded for an interrupted answer if its reader stopped reading."""


class Receiving:
    """Takes the chunks of one answer; a context manager around the stream, also with `async`. On leaving, the answer is
    recorded: whole or, after an exception, the part that had come; the exception is raised again.

    `feed` takes a chunk, `keep` records the answer with the reason why it broke off.
    """

    def __init__(
        self, feed: Callable[[Any], Sequence[Delta]], checkpoints: Checkpoints, keep: Callable[[str], Answer]
    ) -> None:
        self._feed = feed
        self._checkpoints = checkpoints
        self._keep = keep
        self._lock = RLock()  # a checkpoint behind the answer would be taken for another answer
        self._answer: Answer | None = None
        self.is_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(_reason(error))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await recorded(partial(self.end, _reason(error)))

    def feed(self, chunk: Any, *, look: bool = True) -> Sequence[Delta]:
        """Take a chunk; returns the text that it adds. Without `look`, a checkpoint that is due is left to `look()`."""
        deltas = self._taken(chunk)
        if look:
            self.look()
        return deltas

    async def afeed(self, chunk: Any) -> Sequence[Delta]:
        """As `feed`; checkpoints are recorded in a thread."""
        deltas = self._taken(chunk)
        if self.is_due:
            await recorded(self.look)
        return deltas

    def end(self, reason: str = "") -> None:
        """Record the answer, or with `reason` what has come of it. A second call does nothing."""
        with self._lock:
            if not self.is_over:
                self.is_over = True
                self._answer = self._keep(reason)

    def _taken(self, chunk: Any) -> Sequence[Delta]:
        if self.is_over:
            raise InputError("this answer is recorded already; no more of it can be received")
        return self._feed(chunk)

    @property
    def is_due(self) -> bool:
        """Whether it is time to put on record what has come."""
        return self._checkpoints.is_due

    def look(self) -> None:
        """Put what has come on record, if it is time."""
        with self._lock:
            if not self.is_over:
                self._checkpoints.look()

    @property
    def answer(self) -> Answer:
        """The answer on record."""
        assert self._answer is not None
        return self._answer


def _reason(error: BaseException | None) -> str:
    """Why an answer broke off; empty if it did not."""
    return "" if error is None else GONE if isinstance(error, GeneratorExit) else described(error)


RESPONSE = "response"
"""The topic of the note after an answer that says what the provider did with the request."""

RUNNER = "runner"
"""The topic of the note about a request that a runner mended, or waits with."""


TRANSPORT = "transport"
"""The topic of the note about a request over `turnlog.transport` that got no answer, or was not recorded as a whole."""


class Answer:
    """What `receive` recorded: the message, its text, its tool calls, and whether it is `complete` (not interrupted).

    `stop` is how the answer ended, in the same words for every provider: `end`, `tool_calls`, `length` (a limit cut it
    off), `refusal` (the model declined), `filtered` (the provider withheld it, or the rest of it) or `interrupted`.
    `usage` is what the provider billed, None if it did not say. `model` is the model's name as the provider reports it,
    else that of the target. A tool call whose arguments are no JSON has a `turnlog.session.InvalidArguments` as
    `arguments`."""

    def __init__(self, reply: Reply, record: Record, asked: Target) -> None:
        self.record = record
        self.message = reply.message
        self.model = reply.model or asked.model
        self.usage = reply.usage
        self._seller = asked.seller
        self.complete = isinstance(record.body, MessageRecord)
        self.tool_calls = [to_run(part) for part in reply.message.parts if isinstance(part, ToolCall)]
        self.text = "".join(part.text for part in reply.message.parts if isinstance(part, Text))
        self.stop = stop_of(reply, asked)

    def __repr__(self) -> str:
        calls = [call.name for call in self.tool_calls]
        return f"Answer({self.text!r:.100}, stop={self.stop!r}, tool_calls={calls}, record={self.record.n})"

    @property
    def cost(self) -> Cost | None:
        """The cost of the request and this answer: what the provider charged if it said so, else at list prices; None
        if it did not report what it billed."""
        sold_as = f"{self._seller}/{self.model}" if self._seller else self.model
        return None if self.usage is None else cost(self.usage, sold_as)


def end_of(word: str, asked: Target) -> Stop | None:
    """What a word for the end of an answer means, in the table of the target's provider or server; None if the parts of
    the answer decide."""
    told = asked.server_row.stops.get(word)
    known = next((stop for stop in get_args(Stop) if stop == told), None)
    return known or meaning(word, provider(asked.provider).stops)


def stop_of(reply: Reply, asked: Target) -> Stop:
    """How an answer of the target `asked` ended."""
    speaker = provider(asked.provider)
    if not reply.complete:
        return "interrupted"
    if (known := end_of(reply.stop, asked)) is not None:
        return known
    if reply.fragments:
        return "interrupted"
    forms = [part.form.shape for part in reply.message.parts if isinstance(part, Text) and part.form is not None]
    if any(not speaker.refusals.isdisjoint(shape.split()) for shape in forms):
        return "refusal"
    return "tool_calls" if any(isinstance(part, ToolCall) for part in reply.message.parts) else "end"


def is_stream(answer: Any) -> bool:
    """Whether an answer comes in chunks: it is an iterable, but not a whole response, not a list with one error, and
    not a response object of `requests`, which is iterable too."""
    if isinstance(whole_of(answer), (Mapping, str, bytes)) or hasattr(answer, "model_dump") or advice(answer):
        return False
    return hasattr(answer, "__iter__") or hasattr(answer, "__next__")


def whole_of(answer: Any) -> Any:
    """The answer itself, or the error inside a list of one, which Google's REST API returns for a stream."""
    if not isinstance(answer, list) or len(answer) != 1 or not isinstance(answer[0], Mapping):
        return answer
    keys = {key for each in PROVIDERS.values() for key in each.answer_keys}
    return answer[0] if is_error_body(answer[0], keys) else answer


def told_apart(reply: Reply) -> Reply:
    """The answer with new ids for calls that have no id, or the id of another call. Results are matched to calls by id:
    without this, results in another order would go to the wrong calls."""
    calls = [part for part in reply.message.parts if isinstance(part, ToolCall)]
    taken = {call.id for call in calls}
    if len(taken) == len(calls):
        return reply
    free = (name for i in range(len(calls) + len(taken)) if (name := f"call_{i}") not in taken)
    parts: list[Part] = []
    seen = {""}
    for part in reply.message.parts:
        if isinstance(part, ToolCall):
            part = msgspec.structs.replace(part, id=next(free)) if part.id in seen else part
            seen.add(part.id)
        parts.append(part)
    return msgspec.structs.replace(reply, message=msgspec.structs.replace(reply.message, parts=tuple(parts)))
