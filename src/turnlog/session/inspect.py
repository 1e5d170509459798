"""Looks into a session: what became of its messages, and what takes how much of the window."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..errors import InputError
from ..log.budget import Marks, Terms
from ..log.messages import Message
from ..log.records import Decision
from ..log.store import Store
from ..models.target import Target
from ..requests.size import Sizing, as_declared, given_choice, schemas_of
from ..requests.translate import plan
from ..tokens.counters import count_message, counter_for
from ..view.added import added_to
from ..view.breakdown import Breakdown, shares_of
from ..view.explain import Explanation, explain
from ..view.fold import select
from ..view.repair.repair import declare_tools
from ..view.sent import as_sent
from ..view.tool_calls import fate_of
from .state import Context


def explained(store: Store, session_id: str, aim: Target | None, also: Mapping[int, Decision] | None) -> Explanation:
    """As `Session.explain`, counted for a target; without one, as for a model that nobody knows."""
    if also is not None and not isinstance(also, Mapping):
        raise InputError(f"also is a dict from record number to decision, not {type(also).__name__}")
    counter = counter_for(aim.provider, aim.model) if aim else counter_for("")

    def count(message: Message) -> int:
        return count_message(message, counter, store.get_blob).tokens

    return explain(list(store.read(session_id)), count, also)


def broken_down(
    store: Store, session_id: str, context: Context, aim: Target, marks: Marks, terms: Terms | None
) -> Breakdown:
    """As `Session.breakdown`, beside these marks."""
    ways = plan(context.configuration, aim)
    counter, rules = counter_for(aim.provider, aim.model), ways.rules
    records = list(store.read(session_id))
    sizing = Sizing(counter, store.get_blob)
    known = sizing.known(ways)
    kept = ((shown, as_sent(shown, rules, known=known)) for shown in select(records)[0])
    view = [msgspec.structs.replace(shown, message=sent) for shown, sent in kept if sent is not None]
    tools, _ = declare_tools(view, ways.local.tools, rules)
    beside = added_to(view, rules, fate_of(records), sizing.gauge(ways, declares=False, system=True))
    declared = counter.tools(as_declared(tools, rules), given_choice(ways))
    around = counter.frame(system=any(shown.message.role == "system" for shown in view), tools=bool(tools))
    around += schemas_of(ways.local.settings, counter)
    shares, certainty = shares_of(view, declared, around, counter, store.get_blob, beside)
    terms = terms or Terms(context.budget, context.strategy)
    return Breakdown(aim.provider, aim.model, terms.strategy.name, terms.budget, marks, shares, certainty, counter.id)
