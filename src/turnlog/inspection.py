"""Looks into a session: what became of its messages, and what takes how much of the window."""

from __future__ import annotations

from collections.abc import Mapping

from .content import Message
from .context import Context
from .log import Store
from .models import Target
from .policy import Marks, Terms
from .records import Decision
from .tokens.counters import count_message, counter_for
from .view.breakdown import Breakdown, shares_of
from .view.explain import Explanation, explain
from .view.select import select

__all__ = ["broken_down", "explained"]


def explained(store: Store, session_id: str, aim: Target | None, also: Mapping[int, Decision] | None) -> Explanation:
    """As `Session.explain`, counted for a target; without one, as for a model that nobody knows."""
    counter = counter_for(aim.provider, aim.model) if aim else counter_for("")

    def count(message: Message) -> int:
        return count_message(message, counter, store.get_blob).tokens

    return explain(list(store.read(session_id)), count, also)


def broken_down(
    store: Store, session_id: str, context: Context, aim: Target, marks: Marks, terms: Terms | None
) -> Breakdown:
    """As `Session.breakdown`, beside these marks."""
    counter = counter_for(aim.provider, aim.model)
    view = select(list(store.read(session_id)))[0]
    shares, certainty = shares_of(view, context.configuration.tools, counter, store.get_blob)
    terms = terms or Terms(context.budget, context.strategy)
    return Breakdown(aim.provider, aim.model, terms.strategy.name, terms.budget, marks, shares, certainty, counter.id)
