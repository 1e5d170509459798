"""What a prompt cache makes of requests: how much of one it may still hold, and where marks are best set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ..log.messages import unchanged
from ..log.records import Decision
from ..models.catalog import model_facts
from ..providers.protocol import BlobReader
from ..view.added import ENDS, Passing
from ..view.compaction.blocks import Item
from ..view.compaction.situation import CachePrices
from ..view.types import Shown
from .pieces import messages_of, wire_messages
from .request import CacheUse, Request
from .translate import Plan

_SMALLEST = 1_024
"""Tokens of a prefix below which no provider caches, where a model's own minimum is not known."""


class Sent(Struct, frozen=True, eq=False):
    """A request that was made: by which `plan`, of the first `length` of these `items`, up to record number `last`.

    `tokens` is its size, `fixed` that of what stands around the items. `lasting` and `passing` are the tokens that
    items took beside their own, by their index: what stays as the conversation goes on, and what may not. `declared`
    are the tools that were declared because they were called. `thinking_off`: it went without the thinking asked for.
    """

    plan: Plan
    items: Sequence[Item]
    length: int
    tokens: int
    fixed: int
    last: int
    lasting: Mapping[int, int]
    passing: Passing
    declared: tuple[str, ...]
    thinking_off: bool = False


def use_of(now: Sent, before: Sent, decisions: Mapping[int, Decision]) -> CacheUse:
    """How `now` begins, beside `before`."""
    if now.plan is not before.plan and _front(now.plan) != _front(before.plan):
        return CacheUse(now.tokens, before.tokens, 0, why="the tools or settings are others")
    if now.declared != before.declared:
        return CacheUse(now.tokens, before.tokens, 0, why="no tools are given, and others are declared from the calls")
    if now.thinking_off != before.thinking_off:
        return CacheUse(now.tokens, before.tokens, 0, why="thinking is switched off while a tool loop is open")
    shared, gave_way = _shared(now, before)
    if shared >= before.tokens:
        return CacheUse(now.tokens, before.tokens, before.tokens)
    later = {n: decision for n, decision in decisions.items() if n > before.last}
    if not later:
        return CacheUse(now.tokens, before.tokens, shared, why=gave_way or "a decision was taken back")
    moved_by = min(later, key=lambda n: (later[n].detail.get("changes_from", later[n].first), n))
    return CacheUse(now.tokens, before.tokens, shared, moved_by, later[moved_by].why)


def _front(plan: Plan) -> tuple[object, ...]:
    """What a plan puts ahead of a conversation. A budget, or why and where its configuration was made, is in no
    request: it differs whenever a session went to another model and came back."""
    return plan.local.settings, plan.local.tools, plan.local.form


def _shared(now: Sent, before: Sent) -> tuple[int, str]:
    """The tokens that both begin with, and what gave way where they part, if it is something that was put in."""
    if now.items is before.items:  # they part where something else is added: near the end, as calls are soon answered
        at = min((i for i, _ in now.passing.items() ^ before.passing.items()), default=None)
        if at is None:
            return before.tokens, ""
        behind = sum(before.items[i].tokens + before.lasting.get(i, 0) for i in range(max(at, 0), before.length))
        behind += sum(tokens for i, (tokens, _) in before.passing.items() if i >= at)
        return before.tokens - behind, _gave_way(now, before, at)
    shared = now.fixed
    both = zip(before.items[: before.length], now.items[: now.length], strict=False)
    for i, (old, new) in enumerate(both):
        if old.shown is not new.shown and old.shown != new.shown:
            break
        there = now.passing.get(i)
        if there != before.passing.get(i):  # it may stand ahead of the message or behind it
            return shared, _gave_way(now, before, i)
        shared += new.tokens + now.lasting.get(i, 0) + (there[0] if there else 0)
    return shared, ""


def _gave_way(now: Sent, before: Sent, at: int) -> str:
    """What is put in there no more, or otherwise than before: a stand-in for a result, or a user's word at an end."""
    nothing: tuple[int, tuple[object, ...]] = (0, ())
    what = {*now.passing.get(at, nothing)[1]} ^ {*before.passing.get(at, nothing)[1]}
    return "a user's word was put in at an end" if what & ENDS else "a call has its result now"


def marked(made: Request, plan: Plan, tokens: int, places: MarkPlaces) -> Request:
    """The request with prompt-cache marks, where its provider wants them and its `tokens` are enough to be cached."""
    mark = plan.provider.mark_cache
    if mark is None:
        return made
    facts = model_facts(plan.target.model)
    if tokens < ((facts.cache.minimum if facts else None) or _SMALLEST):
        return made
    return made.changed(lambda request: mark(request, places.of(made.view, request)))


def cache_prices(model: str) -> CachePrices | None:
    """What reading from the cache and writing to it cost, in prices of an input token; None if that is not known."""
    facts = model_facts(model)
    prices = facts.prices if facts else None
    if prices is None or not prices.input or prices.cached is None:
        return None
    write = prices.cache_write if prices.cache_write is not None else prices.input
    return CachePrices(float(prices.cached / prices.input), float(write / prices.input))


class MarkPlaces:
    """Where the requests of a conversation by a plan are best marked for a prompt cache."""

    def __init__(self, plan: Plan, blob: BlobReader) -> None:
        self._plan = plan
        self._blob = blob
        self._ahead: tuple[Sequence[Shown], int] = (), 0

    def of(self, view: Sequence[Shown], request: Mapping[str, Any]) -> tuple[int, ...]:
        """The wire messages of a request behind which a mark is best set, by index, at most 3: where what lasts beyond
        the next decision ends, where the request before ended (ahead of the newest answer), and the end."""
        wire = len(messages_of(request, self._plan))
        if not wire:
            return ()
        marks = {wire - 1}
        newest = _newest_answer(view)
        # An answer behind another's word is spelled by itself: what stands ahead of it need not be, to be counted.
        ahead = wire - len(wire_messages(view[newest:], self._plan, self._blob)) if newest else 0
        for before in (self._ahead_of_summary(view), ahead):
            if before > 0:
                marks.add(before - 1)
        return tuple(sorted(marks))

    def _ahead_of_summary(self, view: Sequence[Shown]) -> int:
        """How many wire messages stand ahead of the summary; the same as for the last request as long as these do."""
        end = next((i for i, shown in enumerate(view) if shown.treatment == "summarised"), 0)
        if end and not unchanged(self._ahead[0], view[:end]):
            self._ahead = view[:end], len(wire_messages(view[:end], self._plan, self._blob))
        return self._ahead[1] if end else 0


def _newest_answer(view: Sequence[Shown]) -> int:
    """Where the newest answer begins, 0 if there is none."""
    for i in range(len(view) - 1, 0, -1):
        if view[i].message.role == "assistant" and view[i - 1].message.role != "assistant":
            return i
    return 0
