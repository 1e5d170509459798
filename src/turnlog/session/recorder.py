"""Recording what comes in: messages with their size, answers with their bill."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal

import msgspec

from .._platform.units import an
from ..errors import Conflict, InputError
from ..log.messages import Media, Message, Opaque, Outcome, Part, Text, ToolCall, ToolResult, is_compaction, unchanged
from ..log.records import (
    Binding,
    Body,
    Decision,
    MessageBody,
    MessageRecord,
    Note,
    PartialAnswer,
    Record,
    ToolStarted,
    UsageRecord,
)
from ..log.store import Draft, Store
from ..log.usage import Count, Usage
from ..log.validation import admitted, unreadable
from ..models.target import Target
from ..providers import PROVIDERS, provider
from ..providers.answer_events import AnswerAssembler
from ..providers.protocol import Delta, Reply
from ..providers.sdk_objects import advice
from ..redaction.redactor import has_mark
from ..requests.request import Request
from ..tokens.counters import count_message, counter_for
from ..view.bound_reasoning import has_reasoning
from ..view.repair.clean import sendable_name
from ..view.repair.pairing import may_answer
from .answer import RESPONSE, Answer, Receiving, is_stream, stop_of, told_apart, whole_of
from .caches import doubt
from .checkpoint import Checkpoints
from .inputs import Content, outcome_given, parts_of, to_run
from .provider_compaction import ProviderCompactions, is_alone, split
from .reader import SessionLog
from .state import Context
from .threads import recorded

_RACES = 8
"""How often another process may append first if the new record contains its own number."""


class Journal:
    """The writing side of one session. `tell` is called with the records appended and, for an answer, its target;
    `checkpoint` is the number of seconds between two checkpoints of a stream; `by_lines` as in `Checkpoints`.
    `warn` is called with warnings; `check` raises an error if nothing may be written."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        context: Context,
        tell: Callable[[Sequence[Record], Target | None], None],
        checkpoint: float,
        *,
        by_lines: bool = False,
        warn: Callable[[str], None] = lambda text: None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._check = check
        self._store = store
        self._id = session_id
        self._context = context
        self._tell = tell
        self._checkpoint, self._by_lines = checkpoint, by_lines
        self._streams: dict[Checkpoints, list[Delta]] = {}
        self.warn = warn
        self.compactions = ProviderCompactions(store, session_id, context)
        """The compactions that the provider makes."""
        self._remark = ""  # the provider's last one: what it leaves out of each request is told once
        self._told_of_truncation = False

    @property
    def is_streaming(self) -> bool:
        """Whether an answer is being received here, piece by piece, by whatever thread or task."""
        return bool(self._streams)

    def said(self, kind: Literal["text", "reasoning"]) -> str:
        """The text or the reasoning that has come so far of the answer that is being received here; the newest, if
        there are several."""
        deltas = next(reversed([*self._streams.values()]), [])
        return "".join(delta.text for delta in tuple(deltas) if delta.kind == kind)

    def append(self, *bodies: Body, expected: int | None = None) -> tuple[Record, ...]:
        """Append these records, all or none. With `expected`, the number of the last record as the caller knows it,
        raises Conflict if somebody else appended since."""
        return self._told_of_silence(self._append(bodies, expected=expected))

    def append_at(
        self, make: Callable[[int], Sequence[Body]], *, exact: bool = True, asked: Target | None = None
    ) -> tuple[Record, ...]:
        """Append the records that `make` returns for the number that the first of them gets, and for the records before
        it. If other processes keep appending, raises Conflict or, unless `exact`, appends after the newest record.
        `asked` is the target whose answer they are."""
        for left in reversed(range(_RACES)):
            try:
                with self._context.lock:  # no other thread appends meanwhile
                    self._context.refresh()
                    last = self._context.last
                    records = self._put(make(last + 1), expected=last if exact or left else None)
            except Conflict:
                continue
            self._tell(records, asked)
            return self._told_of_silence(records)
        raise Conflict(self._id, expected=last, actual=self._store.info(self._id).records)

    def _told_of_silence(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """The records. Warns of each message in which a model can read nothing, unless a model wrote it."""
        for record in records:
            if isinstance(record.body, MessageRecord) and not (record.body.model or record.body.response_id):
                why = unreadable(record.body.message, _is_known)
                if why:
                    role = record.body.message.role
                    self.warn(f"record {record.n} is {an(role)} message of which a model can read nothing: {why}")
        return records

    def _append(
        self, bodies: Sequence[Body], *, expected: int | None = None, asked: Target | None = None
    ) -> tuple[Record, ...]:
        records = self._put(bodies, expected=expected)
        self._tell(records, asked)
        return records

    def _put(self, bodies: Sequence[Body], *, expected: int | None) -> tuple[Record, ...]:
        self._check()
        drafts = [Draft(body) for body in self._counted([*self._belonging([admitted(body) for body in bodies])])]
        with self._context.lock:
            records = self._store.append(self._id, drafts, expected=expected)
            self._context.take(records)
        return records

    def receive(self, answer: Any, request: Target | Request) -> Answer:
        """Put a model's answer on record; arguments and errors as for `Session.receive`."""
        asked, compacts = _asked(request)
        if hasattr(answer, "__aiter__"):
            raise InputError("this stream is asynchronous: `await areceive(stream)` takes it")
        if is_stream(answer):
            return self._receive_stream(answer, request)
        return self._keep(provider(asked.provider).parse_response(whole_of(answer)), asked, compacts)

    async def areceive(self, answer: Any, request: Target | Request) -> Answer:
        """Put an answer on record, in a thread; arguments and errors as for `Session.areceive`."""
        if is_whole(answer):
            return await recorded(partial(self.receive, answer, request))
        chunks = asynchronous(answer, "areceive")
        receiving = self.receiving(request)
        async with receiving:
            async for chunk in chunks:
                await receiving.afeed(chunk)
        return receiving.answer

    def receiving(self, request: Target | Request) -> Receiving:
        """A context manager that takes the chunks of an answer."""
        asked, compacts = _asked(request)
        assembler = AnswerAssembler(provider(asked.provider))
        checkpoints = self._checkpoints(assembler, asked)
        said = self._streams[checkpoints] = []

        def feed(chunk: Any) -> Sequence[Delta]:
            deltas = assembler.feed(chunk)
            said.extend(deltas)
            return deltas

        def keep(reason: str) -> Answer:
            try:
                return self._keep(assembler.reply(), asked, 0 if reason else compacts, reason=reason)
            finally:
                self._streams.pop(checkpoints, None)

        return Receiving(feed, checkpoints, keep)

    def call(self, call_id: str) -> ToolCall | None:
        """The newest call of that id."""
        for _, message in self._newest():
            for part in message.parts:
                if isinstance(part, ToolCall) and part.id == call_id:
                    return part
        return None

    def result_of(self, call: ToolCall | str, content: Content, outcome: Outcome) -> ToolResult:
        """The result of a call on record, given as the call itself or its id. Raises InputError for another call, and
        for content that no result has."""
        on_record = self.call(call.id if isinstance(call, ToolCall) else call)
        if on_record is None:
            raise InputError(self._no_call(call))
        answered_call = call if isinstance(call, ToolCall) else on_record
        outcome = outcome_given(outcome)
        parts = parts_of(content)
        allowed = tuple(part for part in parts if isinstance(part, (Text, Media, Opaque)))
        if len(allowed) != len(parts):
            raise InputError("a tool result may contain only text and media")
        return ToolResult(
            call_id=answered_call.id,
            name=answered_call.name,
            parts=allowed,
            outcome=outcome,
            kind=answered_call.kind,
        )

    def _no_call(self, call: ToolCall | str) -> str:
        calls = SessionLog(self._store, self._id).unfinished()
        waiting = ", ".join(f"{info.call.id!r} of {info.call.name!r}" for info in calls)
        named = call.id if isinstance(call, ToolCall) else call
        return (
            f"session {self._id!r} has no call with the id {named!r} (open calls: {waiting or 'none'}); to record a "
            "result without its call, use add()"
        )

    def record_of(self, call: ToolCall) -> int:
        """The number of the record that contains a call. If no record has it unchanged, the newest with its id and
        name, as a tool may have changed the arguments since. Raises InputError if there is none."""
        if not isinstance(call, ToolCall):
            raise InputError(f"call must be a ToolCall, one of `Answer.tool_calls`, not {type(call).__name__}")
        changed = 0
        for n, message in self._newest():
            named = [part for part in message.parts if isinstance(part, ToolCall) and _is_named_as(part, call)]
            if any(call in (part, to_run(part)) or has_mark(part.raw_arguments) for part in named):
                return n
            changed = changed or (n if named else 0)
        if changed:
            return changed
        raise InputError(f"call {call.id!r} of {call.name!r} is not in session {self._id!r}: receive the answer first")

    def tool_started(self, call: ToolCall) -> Record:
        """Record that a tool begins to run."""
        record = self.record_of(call)
        return self.append(ToolStarted(call.id, record, call.name))[0]

    def tool_result(self, call: ToolCall | str, content: Content, outcome: Outcome) -> Record:
        """Record the result of a call. Arguments and errors as for `result_of`."""
        return self.append(MessageRecord(Message("user", (self.result_of(call, content, outcome),))))[0]

    def _newest(self) -> Iterator[tuple[int, Message]]:
        """The messages on record, newest first: those in memory, then, if some are hidden or not in memory, all."""
        with self._context.lock:
            self._context.refresh()
            at_hand = list(self._context.newest())
        for shown in at_hand:
            yield shown.records[0], shown.message
        if self._context.decisions or self._context.gap is not None:
            for record in self._store.read(self._id, reverse=True):
                if record.message is not None:
                    yield record.n, record.message

    def _belonging(self, bodies: Sequence[Body]) -> Iterator[Body]:
        """The bodies; each result whose call has left the conversation names the record of that call."""
        earlier: list[Message] = []
        for body in bodies:
            if isinstance(body, MessageBody):
                earlier.append(body.message)
            if isinstance(body, MessageRecord):
                parts = tuple(self._of_call(part, earlier) for part in body.message.parts)
                if not unchanged(parts, body.message.parts):
                    message = msgspec.structs.replace(body.message, parts=parts)
                    body = msgspec.structs.replace(body, message=message)
            yield body

    def _of_call(self, part: Part, said: Sequence[Message]) -> Part:
        """A part of the last of these messages, which are about to be recorded; a result gets its `call_record`."""
        if not isinstance(part, ToolResult):
            return part
        n = 0 if any(_calls_for(part, message) for message in said) else self._left_call(part)
        return part if part.call_record == n else msgspec.structs.replace(part, call_record=n)

    def _left_call(self, result: ToolResult) -> int:
        """The number of the newest record with a call that a result may belong to, if that record is not in memory; 0
        if it is, or if there is none."""
        with self._context.lock:
            self._context.refresh()
            at_hand = (shown.records[0] for shown in self._context.newest() if _calls_for(result, shown.message))
            n = next(at_hand, 0)
            if not self._context.hides_after(n):
                return 0
        newer = self._store.read(self._id, first=n + 1, reverse=True)
        return next((r.n for r in newer if r.message is not None and _calls_for(result, r.message)), 0)

    def _counted(self, bodies: Sequence[Body]) -> Iterator[Body]:
        """The bodies, messages with their tokens: counted once, when they are recorded."""
        configuration = self._context.configuration
        sizing = self._context.sizing(counter_for(configuration.provider, configuration.model))
        new_messages: list[Message] = []
        for body in bodies:
            if isinstance(body, MessageBody):
                if body.count is None:
                    earlier = chain(reversed(new_messages), (shown.message for shown in self._context.newest()))
                    body = msgspec.structs.replace(body, count=sizing.count(body.message, earlier))
                new_messages.append(body.message)
            yield body

    def _checkpoints(self, assembler: AnswerAssembler, asked: Target) -> Checkpoints:
        return Checkpoints(
            lambda: self._by_own_names(assembler.reply(), asked),
            self.append,
            self._checkpoint,
            by_lines=self._by_lines,
            binding=lambda reply: self._binding(reply, asked),
        )

    def _receive_stream(self, chunks: Iterable[Any], request: Target | Request) -> Answer:
        receiving = self.receiving(request)
        with receiving:
            for chunk in chunks:
                receiving.feed(chunk)
        return receiving.answer

    def _keep(self, reply: Reply, asked: Target, compacts: int = 0, *, reason: str = "") -> Answer:
        self.compactions.check(reply, asked, compacts)
        reply = self._by_own_names(reply, asked)
        for data in reply.blobs.values():
            self._store.put_blob(data)
        binding = self._binding(reply, asked)
        body: MessageBody
        begun: tuple[MessageRecord, ...] = ()
        if not reply.complete and not reason:
            reason = reply.error or "the stream ended early"
            if not _says_anything(reply):
                other = "if another target was asked, give it as `target`"
                reason = f"{reason}; nothing in it is an answer of {asked.provider}: {other}"
        elif reply.fragments:
            reason = reason or "the answer ended before all of it had come" + (f" ({reply.stop})" if reply.stop else "")
        elif not reason and stop_of(reply, asked) == "interrupted":
            reason = f"the provider ended the answer with {reply.stop}"
        if not reason:
            *ahead, message = split(reply)
            begun = tuple(
                MessageRecord(earlier_message, model=reply.model, response_id=reply.response_id)
                for earlier_message in ahead
            )
            body = MessageRecord(
                message, model=reply.model, stop=reply.stop, response_id=reply.response_id, binding=binding
            )
        else:
            body = PartialAnswer(reply.message, reason, reply.fragments, model=reply.model, binding=binding)
        bodies: list[Body] = [*begun, body]
        if reply.usage is not None:
            [counted_body] = self._counted([admitted(body)])
            assert isinstance(counted_body, MessageBody)
            bodies = [*begun, counted_body, self._bill(reply, reply.usage, asked, counted_body.count, compacts)]
        if reply.beside:
            again, self._remark = reply.remark == self._remark, reply.remark
            bodies.append(Note(RESPONSE, "" if again else reply.remark, reply.beside))
        if not reason and any(map(is_compaction, reply.message.parts)):
            records = self.append_at(
                lambda n: self._compacted(reply, asked, compacts, bodies, n), exact=False, asked=asked
            )
        else:
            records = self._append(bodies, asked=asked)
        return Answer(reply, records[0], asked)

    def _compacted(self, reply: Reply, asked: Target, compacts: int, bodies: Sequence[Body], n: int) -> list[Body]:
        """The records of an answer with a compaction, from record `n` on, and those of its effect on the conversation.
        The bill is compared with the view that the decision leaves: that is what the model read after the
        compaction."""
        decided = self.compactions.decided(reply, asked, compacts, n)
        decision = next((body for body in decided if isinstance(body, Decision)), None)
        adjusted: list[Body] = []
        for body in bodies:
            if isinstance(body, UsageRecord) and body.counted and body.usage.window and decision is not None:
                left = msgspec.structs.replace(body.counted, tokens=decision.detail["after"])
                body = msgspec.structs.replace(body, counted=left)
            adjusted.append(body)
        return [*adjusted, *decided]

    def _binding(self, reply: Reply, asked: Target) -> Binding | None:
        """What the reasoning of an answer is bound to, if it holds any that its model binds."""
        if not has_reasoning(reply.message, asked.provider):
            return None
        with self._context.lock:
            return self.compactions.binding(reply, asked)

    def _by_own_names(self, reply: Reply, asked: Target) -> Reply:
        """The answer with unique call ids, and with the tools' own names: a provider that does not accept a name was
        sent another one, which only this request knows."""
        reply = told_apart(reply)
        names = {tool.name for tool in self._context.configuration.tools if tool.kind != "hosted"}
        called = {part.name for part in (*reply.message.parts, *reply.fragments) if isinstance(part, ToolCall)}
        if called <= names or not names:
            return reply
        rules = provider(asked.provider).rules(asked, asked.settings)
        given = {sent: name for name in names if (sent := sendable_name(name, rules)) not in names}
        if called.isdisjoint(given):
            return reply

        def named(parts: Iterable[Part]) -> tuple[Part, ...]:
            calls = ((part, given.get(part.name, part.name) if isinstance(part, ToolCall) else "") for part in parts)
            return tuple(msgspec.structs.replace(part, name=name) if name else part for part, name in calls)

        message = msgspec.structs.replace(reply.message, parts=named(reply.message.parts))
        return msgspec.structs.replace(reply, message=message, fragments=named(reply.fragments))

    def _bill(self, reply: Reply, usage: Usage, asked: Target, size: Count | None, compacts: int) -> UsageRecord:
        """The usage record of a request, with the count made before it was sent; `size` is the size of the answer on
        record."""
        counter = counter_for(asked.provider, asked.model)
        if is_alone(reply):  # it answers no ordinary request, one of which may be under way
            with self._context.lock:
                sent = self.compactions.counted(asked, compacts)
            model = reply.model or asked.model
            return UsageRecord(asked.provider, model, usage, reply.raw_usage, sent, seller=asked.seller)
        sent, expected = self._context.caches.answered(asked)
        if sent is not None and not self._told_of_truncation and (text := _truncation(asked, sent.tokens, usage.input)):
            self._told_of_truncation = True
            self.warn(text)
        counted = sent if sent is not None and sent.counter == counter.id else None
        if counted is None:
            answer = 0  # it is of use beside the other only
        elif size is not None and size.counter == counter.id:
            answer = size.tokens
        else:
            answer = count_message(reply.message, counter, self._store.get_blob).tokens
        if expected is not None and reply.cache_miss is not None:
            expected = msgspec.structs.replace(expected, reason=reply.cache_miss.reason)
            if warning := doubt(expected, reply.cache_miss):
                self.warn(warning)
        model = reply.model or asked.model
        raw, seller = reply.raw_usage, asked.seller
        return UsageRecord(asked.provider, model, usage, raw, counted, answer, expected, seller=seller)


_TRUNCATED = 0.6
"""The share of what was sent below which a server's own count means that it did not read all; counts differ by less."""
_SHORT = 1_000
"""Requests of fewer tokens are not compared: what a server adds or leaves out of itself would count."""


def _truncation(asked: Target, sent: int, read: int) -> str:
    """A warning if a server that silently leaves out the beginning of long requests read less than was sent; ""
    if not."""
    row = asked.server_row
    if not row.truncates or sent < _SHORT or not 0 < read < sent * _TRUNCATED:
        return ""
    return (
        f"{row.title or 'the server'} read {read:,} tokens of a request of about {sent:,}: it leaves out the beginning "
        f"of longer ones without a word. Give it a larger window ({row.truncates}), or this session a smaller budget"
    )


def is_whole(answer: Any) -> bool:
    """Whether this can be a whole answer, neither a stream nor something that leads to one."""
    return not (isinstance(answer, AsyncIterable) or is_stream(answer) or advice(answer))


def asynchronous(chunks: Any, method: str) -> AsyncIterable[Any]:
    """The chunks of an answer, if they come asynchronously; otherwise raises InputError."""
    if not isinstance(chunks, AsyncIterable):
        what = advice(chunks) or "`receive(answer)` takes any other answer"
        raise InputError(f"{method} takes an asynchronous stream, not {type(chunks).__name__}: {what}")
    return chunks


def _is_known(part: Opaque) -> bool:
    """Whether the provider of an opaque part accepts it, or shows a text in its place."""
    if part.provider not in PROVIDERS:
        return True
    its_provider = PROVIDERS[part.provider]
    return its_provider.knows(part) or bool(its_provider.unread_media(part))


def _says_anything(reply: Reply) -> bool:
    """Whether a stream was in its provider's format: a stream of another provider has no keys that this one knows."""
    return bool(reply.message.parts or reply.fragments or reply.model or reply.response_id or reply.stop)


def _asked(request: Target | Request) -> tuple[Target, int]:
    """The target of a request, and `Request.compacts`."""
    return (request.target, request.compacts) if isinstance(request, Request) else (request, 0)


def _calls_for(result: ToolResult, message: Message) -> bool:
    """Whether a message has a call that a result may belong to."""
    return message.role == "assistant" and any(
        isinstance(part, ToolCall) and may_answer(result, part) for part in message.parts
    )


def _is_named_as(part: ToolCall, call: ToolCall) -> bool:
    return (part.id, part.name) == (call.id, call.name)
