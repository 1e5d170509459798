"""Decisions as text and as JSON, and the records that a turn or a rewind has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._platform.units import counted
from ..display.request_words import saving, span
from ..errors import InputError
from ..log.store import Store
from ..view.decisions import Rewinds
from ..view.explain import Explanation, Ruling
from ..view.turns import turn_spans
from .tables import folded


def rewinds_of(store: Store, session_id: str) -> Rewinds:
    """The rewinds of a session."""
    return Rewinds.of(store.of_kinds(session_id, ("decision",)))


def turn_span(store: Store, session_id: str, turn: int, last: int) -> tuple[int, int]:
    """The first and last record of a turn. Raises InputError if the session has no turn of that number."""
    spans = turn_spans(store.of_kinds(session_id, ("message", "turn_opened", "turn_closed", "turn_resumed")), last)
    if abs(turn) > len(spans):
        raise InputError(f"--turn: session {session_id!r} has {counted(len(spans), 'turn')}, none with number {turn}")
    return spans[turn - 1 if turn > 0 else turn]


def decision_lines(rulings: Sequence[Ruling], explanation: Explanation) -> Iterator[str]:
    """A line for each decision: number, action, records, sizes, reason, and the tokens of its summary if it is
    shown."""
    summaries = explanation.summaries
    for ruling in rulings:
        decision = ruling.decision
        figures = saving(*ruling.figures) if ruling.figures else ""
        about = f"takes back decision {decision.supersedes}" if decision.supersedes else ""
        gone = f"(taken back by {ruling.ended_by})" if ruling.ended_by else ""
        summary = f"(summary: {summaries[ruling.n]:,} tokens)" if ruling.n in summaries else ""
        words = [span(ruling, [*explanation.rulings, *rulings]), figures, about, decision.why, summary, gone]
        yield from folded(f"{ruling.n:>5}  {decision.action:<9} {'  '.join(word for word in words if word)}", 17)


def decision_json(ruling: Ruling) -> dict[str, Any]:
    """A decision as JSON; `before` and `after` are tokens of a request, None if the decision was not made for size."""
    before, after = ruling.figures or (None, None)
    return {
        "decision": ruling.n,
        "time": ruling.time,
        "action": ruling.decision.action,
        "first": ruling.decision.first,
        "last": ruling.decision.last,
        "why": ruling.decision.why,
        "before": before,
        "after": after,
        "supersedes": ruling.decision.supersedes,
        "ended_by": ruling.ended_by,
    }
