"""Compaction by the provider: asking for it, and recording what it answered as a decision.

turnlog prepares the request, the caller sends it, and `Session.receive` takes the answer, which may come while the
conversation goes on: the decision covers exactly what was sent. A provider may also compact by itself, while it answers
an ordinary request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ..errors import InputError
from ..log.actions import HIDING, SHRINKING
from ..log.messages import COMPACTION, Message, Text, ToolCall, is_compaction
from ..log.records import Binding, Body, Decision, Note, SummaryRecord
from ..log.store import Store
from ..log.usage import Count
from ..models.target import Target
from ..providers import provider
from ..providers.protocol import Compacted, Reply
from ..requests.prompt_cache import LastRequest
from ..requests.request import Request
from ..tokens.counters import counter_for
from ..view.bound_reasoning import compacted, has_reasoning
from ..view.compaction.situation import Block, blocks_of, ranges_of
from ..view.provider_compaction import BOUND, ELSEWHERE, PROVIDER, Prefix
from .caches import marks_wanted
from .changes import folding
from .state import Context

_LATE = "the conversation was changed before the compaction came, so it is not used"
_REMEMBERED = 8
"""How many requests for a compaction are remembered, with what was sent."""

_FAILED = "the provider did not compact the conversation"


class Asked(Struct, frozen=True, eq=False):
    """A request for a compaction of the records up to `last`. `key` is the key of its record; `sent` is what was sent,
    if this process made the request."""

    key: str
    last: int
    sent: LastRequest | None = None


class ProviderCompactions:
    """The compactions of one session that its provider makes."""

    def __init__(self, store: Store, session_id: str, context: Context) -> None:
        self._store = store
        self._id = session_id
        self._context = context
        self._asked: list[Asked] = []

    # -- asking ----------------------------------------------------------------------------------

    def request(self, target: Target, record: Callable[[Body], object]) -> Request:
        """The request that asks a target's provider to compact the conversation as it is now. `record` appends the
        record that says so. Raises InputError if the provider cannot, or if there is nothing to compact."""
        speaker, context = provider(target.provider), self._context
        make = speaker.compaction_request
        if make is None or not target.abilities.server_compaction:
            raise InputError(f"{target} cannot be asked to compact a conversation; session.compact() does it here")
        if all(item.shown.message.role == "system" for item in context.items):
            raise InputError(f"session {self._id!r} has no conversation yet that could be compacted")
        if context.gap is not None:
            raise InputError(f"session {self._id!r} is too long to be sent whole: session.compact() makes it smaller")
        with context.lock:
            changes = context.aim_at(target)
            told = [shown.records[0] for shown in changes.messages]
            fold = folding(told[0], told[-1], 1) if changes.tools_told else None
        if fold is not None:  # else the compaction would tell these changes too, and the tools could not move any more
            record(fold)
        with context.lock:
            prepared, sent = context.compaction(target)
        asked = Asked(f"{_key(target)}{sent.last}", sent.last, sent)
        record(SummaryRecord(asked.key, "claimed", summarizer=str(target)))
        self._asked = [*self._asked[1 - _REMEMBERED :], asked]
        wanted = marks_wanted(self._id, target, context.strategy, context.decisions)
        prepared = context.builder(target).marked(prepared, sent.view.tokens, wanted)
        request = prepared.changed(make)
        request.compacts = sent.last
        return request

    def is_open(self, request: Request) -> bool:
        """Whether a request for a compaction is still to be answered."""
        key = f"{_key(request.target)}{request.compacts}"
        return any(asked.key == key for asked in self._asked)

    def give_up(self, request: Request, reason: str, record: Callable[[Body], object]) -> None:
        """Record that the answer to a request for a compaction did not come."""
        key = f"{_key(request.target)}{request.compacts}"
        self._asked = [asked for asked in self._asked if asked.key != key]
        record(SummaryRecord(key, "failed", reason=reason, summarizer=str(request.target)))

    def _pending(self, target: Target, compacts: int) -> Asked | None:
        """The compaction that an answer is for: of the records up to `compacts`; if that is 0, the one that was asked
        for and is not answered yet. None if there is none. Raises InputError if there are several."""
        begin = _key(target)
        pending = [
            asked for asked in self._asked if asked.key.startswith(begin) and asked.last == (compacts or asked.last)
        ]
        if compacts:
            return pending[0] if pending else Asked(f"{begin}{compacts}", compacts)
        if len(pending) > 1:
            raise InputError(
                "several compactions were asked for: hand over the request with its answer, receive(answer, request)"
            )
        return pending[0] if pending else self._claimed(begin)

    def _claimed(self, begin: str) -> Asked | None:
        """The last compaction that was asked for by any process and is not answered."""
        answered = set[str]()
        for record in self._store.of_kinds(self._id, ("summary",), reverse=True):
            body = record.body
            if isinstance(body, SummaryRecord) and body.key.startswith(begin):
                last = body.key.removeprefix(begin)
                if body.state != "claimed":
                    answered.add(body.key)
                elif body.key not in answered and last.isdecimal():
                    return Asked(body.key, int(last))
        return None

    # -- answers ---------------------------------------------------------------------------------

    def binding(self, reply: Reply, target: Target) -> Binding | None:
        """What the reasoning of an answer is bound to, if its model binds any of it: everything that was sent or, if
        the answer compacts, the compaction."""
        if not has_reasoning(reply.message, target.provider):
            return None
        sent, builder = self._context.sent_to(target), self._context.builder(target)
        if reply.compacted is None:
            return builder.binding(sent.view)
        if not sent.plan.rules.reasoning_bound or _stays(reply, reply.compacted):
            return None
        return _compacted(sent, reply.compacted)[1]

    def check(self, reply: Reply, target: Target, compacts: int) -> None:
        """Raises InputError if it cannot be known which request `reply` answers; `compacts` as in `Request`."""
        if is_alone(reply):
            self._pending(target, compacts)

    def counted(self, target: Target, compacts: int) -> Count | None:
        """The size of the request for a compaction that is answered, if this process made it."""
        asked = self._pending(target, compacts)
        if asked is None or asked.sent is None:
            return None
        sizing = self._context.sizing(counter_for(target.provider, target.model))
        return Count(asked.sent.view.tokens, sizing.counter.id, sizing.certainty)

    def decided(self, reply: Reply, target: Target, compacts: int, n: int) -> list[Body]:
        """The records that tell what became of the compaction in an answer whose own records begin with record `n`;
        `compacts` as in `Request`. The caller holds the lock of the context."""
        asked = self._pending(target, compacts) if is_alone(reply) else None
        sent = asked.sent if asked is not None and asked.sent is not None else self._context.sent_to(target)
        last = sent.last if asked is None else asked.last
        changed = next(self._changes(last), None)
        decision: Decision | None = None
        if reply.compacted is not None and changed is None:
            decision = self._decision(reply, reply.compacted, target, last, n)
        if decision is not None and asked is not None and asked.sent is not None and reply.compacted is not None:
            if sent.plan.rules.reasoning_bound:
                prefix = _compacted(sent, reply.compacted)[0]
                bound = [prefix.before, prefix.all, prefix.role]
                decision = msgspec.structs.replace(decision, detail={**decision.detail, BOUND: bound})
        failed = "" if decision is not None else f"{_LATE}: decision {changed}" if changed is not None else _FAILED
        if asked is not None:
            self._asked = [other for other in self._asked if other.key != asked.key]
            ended = SummaryRecord(asked.key, "failed" if failed else "made", reason=failed, summarizer=str(target))
            return [ended] if decision is None else [decision, ended]
        return [Note(COMPACTION, failed)] if decision is None else [decision]

    def _changes(self, last: int) -> Iterator[int]:
        """The decisions after record `last` that changed the conversation up to that record: parts of what was sent
        were taken back, or are shown again."""
        since = [*self._store.of_kinds(self._id, ("decision",), first=last + 1)]
        new = {record.n for record in since}
        for record in since:
            body = record.body
            if not isinstance(body, Decision):
                continue
            if body.supersedes and body.supersedes not in new and self._left_out(body.supersedes):
                yield record.n
            elif body.action in HIDING and body.first <= last and (body.last > last or body.action not in SHRINKING):
                yield record.n

    def _left_out(self, n: int) -> bool:
        """Whether the decision in record `n` left out or changed anything."""
        bodies = (record.body for record in self._store.read(self._id, first=n, last=n))
        return any(isinstance(body, Decision) and body.action != "pin" for body in bodies)

    def _decision(self, reply: Reply, compacted: Compacted, target: Target, last: int, n: int) -> Decision | None:
        """The decision that replaces the records up to `last` by what the provider made of them; None if no message is
        among them."""
        context = self._context
        before = context.tokens(target).tokens  # first, as it has the view of this target loaded
        pinned = frozenset(d.first for d in context.decisions.values() if d.action == "pin")
        covered = [block for block in blocks_of(context.items, pinned, context.gap) if block.first <= last]
        head = {shown.records[0] for shown in context.head}
        going = [item for block in covered for item in block.items if item.n not in head and item.n <= last]
        if not going:
            return None
        first = min(item.n for item in going)
        kept_numbers = {*head, *_numbers(covered, "pinned messages")}
        late = range(last + 1, n) if _splits(reply, compacted) else ()
        through = n if _splits(reply, compacted) else last
        sizing = context.sizing(counter_for(target.provider, target.model))
        tokens = [sizing.message(message) for message in compacted.window]
        gone = sum(item.tokens for item in going if item.n not in kept_numbers)
        detail: dict[str, Any] = {
            PROVIDER: target.provider,
            "system_too": True,
            "kept": ranges_of([*(number for number in kept_numbers if first <= number <= last), *late]),
            "replacement": [msgspec.to_builtins(message) for message in compacted.window],
            "at": first,
            "summarizer": reply.model or target.model,
            "before": before,
            "after": max(0, before - gone) + sum(tokens),
            "tokens": tokens,
            "counter": sizing.counter.id,
            "changes_from": first,
        }
        if compacted.summary:
            detail[ELSEWHERE] = self._elsewhere(covered, compacted.summary, first, last)
        return Decision("compact", first, through, "compacted by the provider", detail)

    def _elsewhere(self, covered: Sequence[Block], summary: str, first: int, last: int) -> dict[str, Any]:
        """What all other providers are shown: the summary as a text, beside the task and what the user pinned."""
        before = [self._context.decisions[n].detail for n in _summaries(covered) if n in self._context.decisions]
        earlier = [detail[ELSEWHERE] for detail in before if ELSEWHERE in detail]
        kept_numbers = {*_numbers(covered, "pinned messages")}
        if earlier:  # the task is among what these kept
            kept_numbers |= {n for detail in earlier for start, end in detail["kept"] for n in range(start, end + 1)}
        else:
            kept_numbers |= {*_numbers(covered, "the task")}
        heading = f"[Summary of records {first} to {last} of this conversation, which are left out here.]"
        message = Message("user", (Text(f"{heading}\n{summary}"),))
        position = max(
            (detail["at"] for detail in earlier), default=max(_numbers(covered, "the task"), default=first - 1) + 1
        )
        return {
            "kept": ranges_of(n for n in kept_numbers if first <= n <= last),
            "replacement": [msgspec.to_builtins(message)],
            "at": position,
        }


def is_alone(reply: Reply) -> bool:
    """Whether an answer is nothing but a compaction, made or failed."""
    return bool(reply.message.parts) and all(map(is_compaction, reply.message.parts))


def split(reply: Reply) -> tuple[Message, ...]:
    """The messages of an answer as they are recorded: if it contains a compaction that covers its own beginning, this
    beginning becomes a separate message."""
    message, compacted = reply.message, reply.compacted
    if compacted is None or not _splits(reply, compacted):
        return (message,)
    parts = message.parts[: compacted.through + 1], message.parts[compacted.through + 1 :]
    return tuple(msgspec.structs.replace(message, parts=some, form=None) for some in parts if some)


def _splits(reply: Reply, compacted: Compacted) -> bool:
    return compacted.through > 0 and not _stays(reply, compacted)


def _stays(reply: Reply, compacted: Compacted) -> bool:
    """Whether the beginning of an answer is shown although a compaction stands for it too: its calls have no result
    yet."""
    return any(isinstance(part, ToolCall) for part in reply.message.parts[: compacted.through])


def _compacted(sent: LastRequest, made: Compacted) -> tuple[Prefix, Binding]:
    return compacted(sent.view.closed.view, sent.view.tools, sent.plan.target.model, made.window)


def _numbers(blocks: Iterable[Block], reason: str) -> list[int]:
    return [item.n for block in blocks if block.stays == reason for item in block.items if not item.is_summary]


def _summaries(blocks: Iterable[Block]) -> set[int]:
    """The numbers of the decisions whose summaries are among these blocks."""
    return {item.shown.records[0] for block in blocks for item in block.items if item.is_summary}


def _key(target: Target) -> str:
    """The beginning of the keys of requests for a compaction; the number of the last record that was sent follows."""
    return f"{COMPACTION} {target} "
