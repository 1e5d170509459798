"""Prompt caches: how much of a request may be in the cache, and where cache marks are best placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import compress, count
from operator import is_not
from typing import Any

from msgspec import Struct

from ..log.actions import SHOWN_BY
from ..log.messages import ToolResult, unchanged
from ..log.records import Configuration, Decision, MessageRecord, Record, UsageRecord
from ..models.catalog import CacheRules, model_facts, model_name
from ..models.target import Target
from ..providers.protocol import BlobReader, CacheMarks
from ..view.compaction.situation import CachePrices
from ..view.types import Shown
from .pieces import messages_of, wire_messages
from .repaired import RepairedView
from .request import CacheUse, Request
from .translate import RequestPlan

# -- cache reads -----------------------------------------------------------------------------------
#
# What a request will read from its provider's prompt cache, by the bills before it and the times on record.
#
# Learns from one record of a log at a time, so the time for each does not depend on the length of the log.

_REMEMBERED = 50
"""The number of latest requests whose pauses are remembered."""


_FEWEST = 5
"""The fewest pauses to judge by, and the fewest requests between two changes of the cache's lifetime."""

_SAVES = 0.9
"""The lifetime of a cache changes only if the other lifetime would have cost less than this share."""


class Pause(Struct, frozen=True, gc=False):
    """The time between a request and the one before it, in seconds, and the tokens billed for both. `n` is the number
    of the usage record."""

    n: int
    seconds: float
    before: int
    tokens: int

    def cost(self, lifetime: int, read: float, write: float) -> float:
        """The cost of the request's input, in uncached input tokens, if caches live for `lifetime` seconds."""
        if self.seconds > lifetime:
            return write * self.tokens
        return read * min(self.before, self.tokens) + write * max(0, self.tokens - self.before)


class Bill(Struct, frozen=True, gc=False):
    """The last bill of a model.

    `n` is its record number, `asked` the time of its request (seconds since 1970, None if unknown), `input` the tokens
    of the request, `kept` those that were read from the cache or written to it, `counted` the tokens that were counted
    before it was sent (0: unknown). `step` is how many billed tokens a step of the cache has (0: unknown); `long`: what
    is in the cache was written for an hour. `pauses` are the pauses before the last requests. `configured`: the
    configuration has changed since.
    """

    n: int
    asked: float | None
    input: int
    kept: int
    counted: int
    step: float = 0.0
    long: bool = False
    pauses: tuple[Pause, ...] = ()
    configured: bool = False


class Bills(Struct, frozen=True):
    """The last bill of each model, and the time of the next request, which is the time of the newest message that is
    not an answer. Start with `Bills()`; `observe` returns the next value."""

    last: Mapping[tuple[str, str], Bill] = {}
    asked: float | None = None

    def of(self, provider: str, model: str) -> Bill | None:
        """The last bill of a model; None if there is none."""
        return self.last.get((provider, model_name(model)))

    def age(self, bill: Bill) -> float | None:
        """The seconds between the request of a bill and the next request; None if unknown."""
        return None if self.asked is None or bill.asked is None else self.asked - bill.asked

    def observe(self, record: Record, rules: CacheRules | None = None) -> Bills:
        """The bills after one more record. `rules` are those of the model that a usage record names."""
        match record.body:
            case MessageRecord(message=message) if message.role != "assistant":
                return Bills(self.last, seconds_of(record.time))
            case Configuration():
                changed = {key: _configured(bill) for key, bill in self.last.items()}
                return Bills(changed, self.asked)
            case UsageRecord() as body if body.usage.input > 0:
                key = body.provider, model_name(body.model)
                return Bills(
                    {**self.last, key: _after(self.last.get(key), record.n, body, rules, self.asked)}, self.asked
                )
        return self


def seconds_of(time: str) -> float | None:
    """The time of a record in seconds since 1970; None if it cannot be read."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):  # a log that another program wrote
        return None


def _configured(bill: Bill) -> Bill:
    return Bill(
        bill.n, bill.asked, bill.input, bill.kept, bill.counted, bill.step, bill.long, bill.pauses, configured=True
    )


def _after(before: Bill | None, n: int, body: UsageRecord, rules: CacheRules | None, asked: float | None) -> Bill:
    usage, step = body.usage, rules.step if rules else 1
    size = usage.window or usage.input
    learned = before.step if before else 0.0
    if step > 1 and usage.cached:
        # A provider may count steps by another tokenizer than it bills by: each has a little less or more.
        learned = usage.cached / max(1, round(usage.cached / step))
    long = usage.cache_write_1h > 0 if usage.cache_write else before is not None and before.long
    pauses = before.pauses if before else ()
    if before is not None and asked is not None and before.asked is not None:
        pauses = (*pauses, Pause(n, asked - before.asked, before.input, size))[-_REMEMBERED:]
    counted = body.counted.tokens if body.counted is not None else 0
    return Bill(n, asked, size, min(size, usage.cached + usage.cache_write), counted, learned, long, pauses)


def lifetime_of(rules: CacheRules, *, long: bool) -> int | None:
    """How many seconds an entry of a cache is kept without being used; None if unknown."""
    return rules.long_lifetime if long and rules.long_lifetime else rules.lifetime


def has_expired(rules: CacheRules, bill: Bill, age: float | None) -> bool:
    """Whether the cache entries of a bill's request are too old to be found."""
    lifetime = lifetime_of(rules, long=bill.long)
    return age is not None and lifetime is not None and age > lifetime


def read_of(rules: CacheRules, bill: Bill, share: float, least: int) -> int:
    """The billed tokens that a request reads from the cache entries of a bill's request. `share` is the share of that
    earlier request that is cached and that both requests begin with; `least` is the smallest prefix that is cached."""
    if rules.mode == "marked" or (rules.breakpoints and bill.kept):
        left = bill.kept
    else:
        left = bill.input
    tokens_read = left if share >= 1 else min(left, int(bill.input * share))
    step = bill.step or rules.step
    if step > 1:
        tokens_read = int(int(tokens_read / step + _ROUNDING) * step)
    return tokens_read if tokens_read >= least else 0


_ROUNDING = 0.005
"""The share of a step that may be missing, because sizes of steps are not known to the token."""


def entry_at(view: Sequence[Shown], entries: Mapping[int, int], same: int, marks: Sequence[int], lookback: int) -> int:
    """The tokens of the longest cache entry that a request finds. `entries` are the tokens of each entry by the number
    of messages in it, `same` the messages that the request has in common with the last one, `marks` the numbers of
    messages before its marks. A mark finds an entry that is fewer than `lookback` blocks before it (0: any)."""
    for end in sorted((end for end in entries if end <= same), reverse=True):
        mark = min((mark for mark in marks if mark >= end), default=None)
        if mark is not None:
            between = sum(max(1, len(shown.message.parts)) for shown in view[end:mark])
            if not lookback or between < lookback:
                return entries[end]
    return 0


def keeps_long(rules: CacheRules, bills: Bills, bill: Bill, prices: CachePrices, since: int, *, long: bool) -> bool:
    """Whether cache entries should be kept for long, judged by the pauses before the last requests and the next one.
    `long` tells whether they are now, `since` is the record that changed this (0: none did). The answer changes only if
    that clearly pays, and not again for some requests."""
    usual, longer, age = rules.lifetime, rules.long_lifetime, bills.age(bill)
    if usual is None or longer is None or prices.write_long is None:
        return False
    pauses = [*bill.pauses, *([] if age is None else [Pause(0, age, bill.input, bill.input)])]
    if len(pauses) < _FEWEST or (since and sum(pause.n > since for pause in bill.pauses) < _FEWEST):
        return long
    short_cost = sum(pause.cost(usual, prices.read, prices.write) for pause in pauses)
    long_cost = sum(pause.cost(longer, prices.read, prices.write_long) for pause in pauses)
    return short_cost >= _SAVES * long_cost if long else long_cost < _SAVES * short_cost


SMALLEST = 1_024
"""The fewest tokens of a prefix that is cached, for models whose own minimum is not known."""


class LastRequest(Struct, frozen=True, eq=False):
    """A request that was made: its `plan`, its `view`, and the number of the `last` record of the log at that time."""

    plan: RequestPlan
    view: RepairedView
    last: int

    @property
    def declared(self) -> tuple[str, ...]:
        """The tools that were declared because they were called."""
        return () if self.plan.local.tools else tuple(tool.name for tool in self.view.tools)


def use_of(now: LastRequest, before: LastRequest, decisions: Mapping[int, Decision]) -> CacheUse:
    """How much of the beginning of the request `before` the request `now` repeats."""
    tokens, previous = now.view.tokens, before.view.tokens
    later = {n: decision for n, decision in decisions.items() if n > before.last and decision.action in SHOWN_BY}
    changed, why = _front_changed(now, before)
    if changed == "tools" and later and any(shown.treatment == "appended" for shown in before.view.closed.view):
        return CacheUse(tokens, previous, 0, max(later), "changes of tools moved to the beginning", changed)
    if changed:
        return CacheUse(tokens, previous, 0, why=why, changed=changed)
    same = same_messages(now, before)
    shared = tokens_until(now.view, same)
    if same == len(before.view.closed.view) or shared >= previous:
        return CacheUse(tokens, previous, previous)
    parted = [view[same] for view in (before.view.closed.view, now.view.closed.view) if same < len(view)]
    changed = "system" if all(shown.message.role == "system" for shown in parted) else "messages"
    if not later:
        why = _gave_way(parted) or "a decision was taken back"
        return CacheUse(tokens, previous, shared, why=why, changed=changed)
    moved_by = min(later, key=lambda n: (later[n].detail.get("changes_from", later[n].first), n))
    return CacheUse(tokens, previous, shared, moved_by, later[moved_by].why, changed)


def same_messages(now: LastRequest, before: LastRequest) -> int:
    """How many messages two requests have in common at their beginning."""
    if _front_changed(now, before)[0]:
        return 0
    old, new = before.view.closed.view, now.view.closed.view
    same = next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))
    while same < min(len(old), len(new)) and old[same] == new[same]:  # equal, although built again
        same += 1
    return same


def tokens_until(view: RepairedView, end: int) -> int:
    """The tokens of a request up to this message, tools included."""
    return view.around + sum(view.sizes[:end])


def _front_changed(now: LastRequest, before: LastRequest) -> tuple[str, str]:
    """What differs in the part of two requests before the conversation, and how; empty if nothing does."""
    if now.plan is not before.plan:
        # Other parts of the configuration differ whenever a session changes to another model and back, but no request
        # contains them.
        if now.plan.local.tools != before.plan.local.tools:
            return "tools", "the tools changed"
        if _read_settings(now.plan) != _read_settings(before.plan):
            return "settings", "the settings changed"
    if now.declared != before.declared:
        return "tools", "no tools are given, and the tools declared from the calls changed"
    if now.view.closed.thinking_off != before.view.closed.thinking_off:
        return "settings", "thinking is switched off while a tool loop is open"
    return "", ""


def _read_settings(plan: RequestPlan) -> tuple[object, ...]:
    """The settings that a cache depends on."""
    settings = {key: value for key, value in plan.local.settings.items() if key not in plan.provider.not_cached}
    return settings, plan.local.form


def _gave_way(parted: Sequence[Shown]) -> str:
    """The reason for the first difference between two views, if repair caused that difference; else ""."""
    if any(isinstance(part, ToolResult) and part.synthetic for shown in parted for part in shown.message.parts):
        return "a call has its result now"
    if any(shown.treatment == "synthetic" for shown in parted):
        return "a user message was added at an end"
    return "answers are sent as one message now" if any(shown.treatment == "joined" for shown in parted) else ""


def marked(made: Request, plan: RequestPlan, tokens: int, places: MarkPlaces, wanted: MarksWanted) -> Request:
    """The request with prompt-cache marks, if they are wanted, its model uses them, and its `tokens` are enough to be
    cached."""
    mark, breakpoints = plan.provider.mark_cache, has_breakpoints(plan.target)
    if not wanted.marks or mark is None or not (plan.provider.marks_every_model or breakpoints):
        return made
    if tokens < (cache_rules(plan.target.model).minimum or SMALLEST):
        return made

    def change(request: dict[str, Any]) -> dict[str, Any]:
        messages = places.of(made.view, request, breakpoints=breakpoints)
        return mark(request, CacheMarks(messages, cache_key(wanted.session), wanted.long))

    return made.changed(change)


def cache_rules(model: str) -> CacheRules:
    """How a model's prompt cache works, as far as this is known."""
    facts = model_facts(model)
    return facts.cache if facts else CacheRules()


def has_breakpoints(target: Target) -> bool:
    """Whether requests for a target may set breakpoints, at which the entries of its cache end. Another server with the
    provider's API may refuse them."""
    return cache_rules(target.model).breakpoints and not target.base_url


class MarksWanted(Struct, frozen=True):
    """How the session with the id `session` uses prompt-cache marks: whether it wants `marks`, and whether these keep a
    prefix for `long`."""

    session: str
    marks: bool
    long: bool = False


def cache_key(session_id: str) -> str:
    """The key by which a provider recognises the requests of a session: a hash, as the id may name a person."""
    return sha256(f"turnlog session {session_id}".encode()).hexdigest()[:32]


def cache_prices(model: str) -> CachePrices | None:
    """The prices of reading from and writing to the cache, relative to the price of an input token; None if unknown."""
    facts = model_facts(model)
    prices = facts.prices if facts else None
    if prices is None or not prices.input or prices.cached is None:
        return None
    write = prices.cache_write if prices.cache_write is not None else prices.input
    long = None if prices.cache_write_1h is None else float(prices.cache_write_1h / prices.input)
    return CachePrices(float(prices.cached / prices.input), float(write / prices.input), long)


class MarkPlaces:
    """The best places for prompt-cache marks in the requests of a conversation."""

    def __init__(self, plan: RequestPlan, blob: BlobReader) -> None:
        self._plan = plan
        self._blob = blob
        self._counted: dict[int, tuple[Sequence[Shown], int]] = {}

    def of(self, view: Sequence[Shown], request: Mapping[str, Any], *, breakpoints: bool = False) -> tuple[int, ...]:
        """The indices of the wire messages after which marks are best placed, in order: where `marked_ends` says."""
        wire = len(messages_of(request, self._plan))
        if not wire:
            return ()
        newest = 0 if breakpoints else _newest_answer(view)
        ends = {wire}
        # An answer after another role's message is rendered by itself: the messages before it need not be rendered.
        ends.add(wire - len(wire_messages(view[newest:], self._plan, self._blob)) if newest else 0)
        inner_ends = [end for end in marked_ends(view, breakpoints=breakpoints) if end not in (newest, len(view))]
        ends.update(self._wire_end(place, view[:end]) for place, end in enumerate(inner_ends))
        return tuple(sorted(end - 1 for end in ends if 0 < end <= wire))

    def _wire_end(self, place: int, view: Sequence[Shown]) -> int:
        """The number of wire messages that this beginning of a view becomes, counted once for the same beginning."""
        counted = self._counted.get(place)
        if counted is None or not unchanged(counted[0], view):
            counted = self._counted[place] = view, len(wire_messages(view, self._plan, self._blob)) if view else 0
        return counted[1]


def marked_ends(view: Sequence[Shown], *, breakpoints: bool) -> list[int]:
    """The numbers of messages of a view after which marks are best placed, at most 4, in order.

    Marks go after the system text; after everything before the summary, which outlasts the next decision; after the
    previous request (before the newest answer); and after the whole. If cache entries end at `breakpoints`, one is
    already at the end of the previous request: the mark there moves to the end of the summary or, without one, of the
    first user message, which every decision keeps.
    """
    system = next((i for i, shown in enumerate(view) if shown.message.role != "system"), len(view))
    summary = next((i for i, shown in enumerate(view) if shown.stands_in), 0)
    third = min((summary or system) + 1, len(view)) if breakpoints else _newest_answer(view)
    return sorted({system, summary, third, len(view)} - {0})


def _newest_answer(view: Sequence[Shown]) -> int:
    """The index at which the newest answer begins, 0 if there is none."""
    for i in range(len(view) - 1, 0, -1):
        if view[i].message.role == "assistant" and view[i - 1].message.role != "assistant":
            return i
    return 0
