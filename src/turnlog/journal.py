"""What comes in goes on record first: messages with their size, answers with their bill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from .content import Message, Part, ToolCall
from .context import Context
from .errors import InputError
from .exchange import Answer, is_stream
from .intake import admitted
from .log import Draft, Store
from .models import Target
from .providers import provider
from .providers.protocol import Reply
from .records import Body, MessageRecord, PartialAnswer, Record, Usage, UsageRecord
from .redaction import has_mark
from .tokens.counters import count_message, counter_for

__all__ = ["Journal"]


class Journal:
    """The writing side of one session."""

    def __init__(self, store: Store, session_id: str, context: Context) -> None:
        self._store = store
        self._id = session_id
        self._context = context

    def append(self, *bodies: Body) -> tuple[Record, ...]:
        """Put these on record, all or none."""
        records = self._store.append(self._id, [Draft(self._counted(admitted(body))) for body in bodies])
        self._context.take(records)
        return records

    def receive(self, answer: Any, asked: Target) -> Answer:
        """Put a model's answer on record; arguments and errors as for `Session.receive`."""
        if hasattr(answer, "__aiter__"):
            raise InputError("this stream is asynchronous: collect it first, `[chunk async for chunk in stream]`")
        if is_stream(answer):
            return self._receive_stream(answer, asked)
        return self._keep(provider(asked.provider).parse_response(answer), asked)

    def call(self, call_id: str) -> ToolCall | None:
        """The newest call of that id."""
        for _, message in self._newest():
            for part in message.parts:
                if isinstance(part, ToolCall) and part.id == call_id:
                    return part
        return None

    def record_of(self, call: ToolCall) -> int:
        """The number of the record that holds a call. Raises InputError if none does."""
        if not isinstance(call, ToolCall):
            raise InputError(f"a call is one of `Answer.tool_calls`, not {type(call).__name__}")
        for n, message in self._newest():
            if any(_is_kept_as(part, call) for part in message.parts):
                return n
        raise InputError(f"call {call.id!r} of {call.name!r} is not in session {self._id!r}: receive the answer first")

    def _newest(self) -> Iterator[tuple[int, Message]]:
        """The messages on record, newest first: those at hand, then, where decisions have hidden some, all."""
        self._context.refresh()
        for shown in self._context.newest():
            yield shown.records[0], shown.message
        if self._context.decisions:
            for record in self._store.read(self._id, reverse=True):
                if record.message is not None:
                    yield record.n, record.message

    def _counted(self, body: Body) -> Body:
        """A message with its tokens: counted once, when it is recorded."""
        if not isinstance(body, (MessageRecord, PartialAnswer)) or body.count is not None:
            return body
        now = self._context.configuration
        counter = counter_for(now.provider, now.model)
        return msgspec.structs.replace(body, count=count_message(body.message, counter, self._store.get_blob))

    def _receive_stream(self, chunks: Iterable[Any], asked: Target) -> Answer:
        assembler = provider(asked.provider).assembler()
        try:
            for chunk in chunks:
                assembler.feed(chunk)
        except BaseException as error:
            self._keep(assembler.reply(), asked, reason=f"{type(error).__name__}: {error}")
            raise
        return self._keep(assembler.reply(), asked)

    def _keep(self, reply: Reply, asked: Target, *, reason: str = "") -> Answer:
        for data in reply.blobs.values():
            self._store.put_blob(data)
        bodies: list[Body] = []
        if reply.complete and not reason:
            bodies.append(
                MessageRecord(reply.message, model=reply.model, stop=reply.stop, response_id=reply.response_id)
            )
        else:
            why = reason or reply.error or "the stream ended early"
            bodies.append(PartialAnswer(reply.message, why, fragments=reply.fragments, model=reply.model))
        if reply.usage is not None:
            bodies.append(self._bill(reply, reply.usage, asked))
        records = self.append(*bodies)
        return Answer(reply, records[0], asked.model)

    def _bill(self, reply: Reply, usage: Usage, asked: Target) -> UsageRecord:
        """What the request cost, beside what it was counted as before it was sent."""
        counter = counter_for(asked.provider, asked.model)
        sent, self._context.asked = self._context.asked, None
        counted = sent if sent is not None and sent.counter == counter.id else None
        answer = count_message(reply.message, counter, self._store.get_blob).tokens if counted else 0
        return UsageRecord(asked.provider, reply.model or asked.model, usage, reply.raw_usage, counted, answer)


def _is_kept_as(part: Part, call: ToolCall) -> bool:
    """Whether `part` is what the log has of `call`, whose arguments may have held secrets."""
    if not isinstance(part, ToolCall) or (part.id, part.name) != (call.id, call.name):
        return False
    return part == call or has_mark(part.raw_arguments)
