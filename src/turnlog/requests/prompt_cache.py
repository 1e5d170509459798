"""Prompt caches: how much of a request may be in the cache, and where cache marks are best placed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress, count
from operator import is_not
from typing import Any

from msgspec import Struct

from ..log.messages import ToolResult, unchanged
from ..log.records import Decision
from ..models.catalog import model_facts
from ..providers.protocol import BlobReader
from ..view.compaction.situation import CachePrices
from ..view.types import Shown
from .pieces import messages_of, wire_messages
from .repaired import RepairedView
from .request import CacheUse, Request
from .translate import Plan

_SMALLEST = 1_024
"""The fewest tokens of a prefix that is cached, for models whose own minimum is not known."""


class Sent(Struct, frozen=True, eq=False):
    """A request that was made: its `plan`, its `view`, and the number of the `last` record of the log at that time."""

    plan: Plan
    view: RepairedView
    last: int

    @property
    def declared(self) -> tuple[str, ...]:
        """The tools that were declared because they were called."""
        return () if self.plan.local.tools else tuple(tool.name for tool in self.view.tools)


def use_of(now: Sent, before: Sent, decisions: Mapping[int, Decision]) -> CacheUse:
    """How much of the request `before` the request `now` repeats at its beginning."""
    tokens, previous = now.view.tokens, before.view.tokens
    if now.plan is not before.plan and _front(now.plan) != _front(before.plan):
        return CacheUse(tokens, previous, 0, why="the tools or settings changed")
    if now.declared != before.declared:
        return CacheUse(tokens, previous, 0, why="no tools are given, and the tools declared from the calls changed")
    if now.view.closed.thinking_off != before.view.closed.thinking_off:
        return CacheUse(tokens, previous, 0, why="thinking is switched off while a tool loop is open")
    shared, gave_way = _shared(now.view, before.view)
    if shared >= previous:
        return CacheUse(tokens, previous, previous)
    later = {n: decision for n, decision in decisions.items() if n > before.last}
    if not later:
        return CacheUse(tokens, previous, shared, why=gave_way or "a decision was taken back")
    moved_by = min(later, key=lambda n: (later[n].detail.get("changes_from", later[n].first), n))
    return CacheUse(tokens, previous, shared, moved_by, later[moved_by].why)


def _front(plan: Plan) -> tuple[object, ...]:
    """The parts of a plan's configuration that a request contains before the conversation. Its other parts differ
    whenever a session changes to another model and back, but no request contains them."""
    return plan.local.settings, plan.local.tools, plan.local.form


def _shared(now: RepairedView, before: RepairedView) -> tuple[int, str]:
    """The tokens that both views begin with, and the reason for their first difference, if repair caused it; else
    ""."""
    old, new = before.closed.view, now.closed.view
    same = next(compress(count(), map(is_not, old, new)), min(len(old), len(new)))
    while same < min(len(old), len(new)) and old[same] == new[same]:  # equal, although built again
        same += 1
    if same == len(old):
        return before.tokens, ""
    shared = now.around + sum(now.sizes[:same])
    parted = [view[same] for view in (old, new) if same < len(view)]
    if any(isinstance(part, ToolResult) and part.synthetic for shown in parted for part in shown.message.parts):
        return shared, "a call has its result now"
    if any(one.treatment == "synthetic" for one in parted):
        return shared, "a user message was added at an end"
    return shared, "answers are sent as one message now" if any(one.treatment == "joined" for one in parted) else ""


def marked(made: Request, plan: Plan, tokens: int, places: MarkPlaces) -> Request:
    """The request with prompt-cache marks, if its provider uses them and its `tokens` are enough to be cached."""
    mark = plan.provider.mark_cache
    if mark is None:
        return made
    facts = model_facts(plan.target.model)
    if tokens < ((facts.cache.minimum if facts else None) or _SMALLEST):
        return made
    return made.changed(lambda request: mark(request, places.of(made.view, request)))


def cache_prices(model: str) -> CachePrices | None:
    """The prices of reading from and writing to the cache, relative to the price of an input token; None if unknown."""
    facts = model_facts(model)
    prices = facts.prices if facts else None
    if prices is None or not prices.input or prices.cached is None:
        return None
    write = prices.cache_write if prices.cache_write is not None else prices.input
    return CachePrices(float(prices.cached / prices.input), float(write / prices.input))


class MarkPlaces:
    """The best places for prompt-cache marks in the requests of a conversation."""

    def __init__(self, plan: Plan, blob: BlobReader) -> None:
        self._plan = plan
        self._blob = blob
        self._ahead: tuple[Sequence[Shown], int] = (), 0

    def of(self, view: Sequence[Shown], request: Mapping[str, Any]) -> tuple[int, ...]:
        """The indices of at most 3 wire messages after which marks are best placed: the last one before the summary,
        which stays beyond the next decision; the end of the previous request (before the newest answer); and the
        end."""
        wire = len(messages_of(request, self._plan))
        if not wire:
            return ()
        marks = {wire - 1}
        newest = _newest_answer(view)
        # An answer after another role's message is rendered by itself, so the messages before it need not be rendered.
        ahead = wire - len(wire_messages(view[newest:], self._plan, self._blob)) if newest else 0
        for before in (self._ahead_of_summary(view), ahead):
            if before > 0:
                marks.add(before - 1)
        return tuple(sorted(marks))

    def _ahead_of_summary(self, view: Sequence[Shown]) -> int:
        """How many wire messages come before the summary, 0 if there is none. Counted once while they do not change."""
        end = next((i for i, shown in enumerate(view) if shown.treatment == "summarised"), 0)
        if end and not unchanged(self._ahead[0], view[:end]):
            self._ahead = view[:end], len(wire_messages(view[:end], self._plan, self._blob))
        return self._ahead[1] if end else 0


def _newest_answer(view: Sequence[Shown]) -> int:
    """The index at which the newest answer begins, 0 if there is none."""
    for i in range(len(view) - 1, 0, -1):
        if view[i].message.role == "assistant" and view[i - 1].message.role != "assistant":
            return i
    return 0
