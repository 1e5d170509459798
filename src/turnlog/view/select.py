"""From records to the conversation as it stands: what earlier decisions left of it.

A pure fold. Messages and interrupted answers are conversation; notes, usage and all other kinds are
kept in the log and never shown to a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ..content import Message, Text
from ..records import Decision, MessageRecord, PartialAnswer, Record
from .shown import Edit, Shown

__all__ = ["HIDING", "INTERRUPTED", "active_decisions", "as_shown", "hiding", "is_hidden", "replacement", "select"]

INTERRUPTED = "[This answer was interrupted here.]"
"""Stands at the end of an answer that did not come to its end, so that a model does not take half
a sentence for a whole one."""

HIDING = frozenset({"clear", "compact", "rewind"})
"""Actions of decisions that leave records out of the conversation."""

_HIDES_SYSTEM = frozenset({"rewind"})


def active_decisions(records: Iterable[Record]) -> dict[int, Decision]:
    """The decisions that hold, by record number: those that no later one takes back or rewinds."""
    made = [(record.n, record.body) for record in records if isinstance(record.body, Decision)]
    held: dict[int, Decision] = {}
    gone: set[int] = set()
    for n, decision in reversed(made):
        if n in gone:
            continue
        if decision.supersedes:
            gone.add(decision.supersedes)
        if decision.action == "rewind":
            gone.update(range(decision.first, decision.last + 1))
        if decision.action != "undo":
            held[n] = decision
    return dict(sorted(held.items()))


def select(records: Sequence[Record]) -> tuple[list[Shown], list[Edit]]:
    """The conversation, oldest first, and an edit for each decision that hides some of it."""
    decisions = active_decisions(records)
    hidden: set[int] = set()
    edits: list[Edit] = []
    for n, decision in decisions.items():
        if decision.action in HIDING:
            hidden.update(record.n for record in records if is_hidden(record, decision))
            edits.append(hiding(n, decision))
    view: list[Shown] = []
    for record in records:
        if record.n in hidden:
            continue
        if record.n in decisions:
            view.extend(replacement(record.n, decisions[record.n]))
        else:
            view.extend(as_shown(record))
    return view, edits


def hiding(number: int, decision: Decision) -> Edit:
    """The edit that says what a decision hides."""
    detail = f"left out by decision {number}: {decision.why}".rstrip(": ")
    return Edit(decision.action, detail, (decision.first,), through=decision.last)


def is_hidden(record: Record, decision: Decision) -> bool:
    """Whether a decision leaves a record out of the conversation."""
    if not decision.first <= record.n <= decision.last:
        return False
    if isinstance(record.body, Decision):
        return True  # what stood in for older messages goes with them
    message = record.message
    return message is not None and (message.role != "system" or decision.action in _HIDES_SYSTEM)


def as_shown(record: Record) -> list[Shown]:
    """What a record adds to the conversation by itself: a message, or nothing."""
    match record.body:
        case MessageRecord(message=message):
            return [Shown(message, (record.n,))]
        case PartialAnswer(message=message) if message.parts:
            marked = msgspec.structs.replace(message, parts=(*message.parts, Text(INTERRUPTED)))
            return [Shown(marked, (record.n,), "cut")]
        case _:
            return []


def replacement(number: int, decision: Decision) -> list[Shown]:
    """The messages that stand in for what a compaction hid."""
    messages = decision.detail.get("replacement") or []
    return [Shown(msgspec.convert(message, Message), (number,), "summarised") for message in messages]
