"""Decisions as text and as JSON, and the records that a turn or a rewind has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, get_args

from .._platform.units import counted
from ..errors import InputError
from ..log.actions import HIDING
from ..log.records import Decision
from ..log.store import Store
from ..view.decisions import Rewinds
from ..view.explain import Account, Explanation, Fate, Ruling
from ..view.turns import turn_spans
from .tables import folded


def fates(accounts: Iterable[Account]) -> str:
    """The number of messages, and how many were kept, masked, left out and so on."""
    counts = Counter(account.fate for account in accounts)
    parts = ", ".join(f"{counts[fate]:,} {fate}" for fate in get_args(Fate) if counts[fate])
    return f"{counted(counts.total(), 'message')}: {parts}" if parts else "no messages"


def newest_of(numbers: Sequence[int]) -> str:
    """The decision that says how a message is shown now, and the one that changed it first (`Account.by`)."""
    return f"{numbers[-1]}, first {numbers[0]}" if len(numbers) > 1 else str(numbers[0])


def rewinds_of(store: Store, session_id: str) -> Rewinds:
    """The rewinds of a session."""
    return Rewinds.of(store.of_kinds(session_id, ("decision",)))


def turn_span(store: Store, session_id: str, turn: int, last: int) -> tuple[int, int]:
    """The first and last record of a turn. Raises InputError if the session has no turn of that number."""
    spans = turn_spans(store.of_kinds(session_id, ("message", "turn_opened", "turn_closed", "turn_resumed")), last)
    if abs(turn) > len(spans):
        raise InputError(f"--turn: session {session_id!r} has {counted(len(spans), 'turn')}, none with number {turn}")
    return spans[turn - 1 if turn > 0 else turn]


def saving(before: int, after: int) -> str:
    """The size of a request before and after a decision, in tokens."""
    return f"{before:,} -> {after:,} tokens"


def span(ruling: Ruling, rulings: Iterable[Ruling]) -> str:
    """The records that a decision covers, as text; `rulings` are all decisions of the session."""
    decision = ruling.decision
    if not decision.last:
        return ""
    if decision.first != decision.last:
        return f"records {decision.first} to {decision.last}"
    summary = _summary_that_leaves(ruling, rulings) if decision.action in HIDING else None
    # A summary is shown at the position of one of the records that it covers.
    return f"summary of records {summary.first} to {summary.last}" if summary else f"record {decision.first}"


def _summary_that_leaves(ruling: Ruling, rulings: Iterable[Ruling]) -> Decision | None:
    """The earlier decision whose summary this one leaves out, if this one covers only the position of that summary."""
    standing = ruling.decision.detail.get("standing", ())
    for earlier in sorted(rulings, key=attrgetter("n"), reverse=True):
        in_force = (
            earlier.n < ruling.n and (not earlier.ended_by or earlier.ended_by > ruling.n) and earlier.n not in standing
        )
        detail = earlier.decision.detail
        if in_force and detail.get("replacement") and detail.get("at", earlier.n) == ruling.decision.first:
            return earlier.decision
    return None


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
