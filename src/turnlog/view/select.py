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

__all__ = ["INTERRUPTED", "active_decisions", "select"]

INTERRUPTED = "[This answer was interrupted here.]"
"""Stands at the end of an answer that did not come to its end, so that a model does not take half
a sentence for a whole one."""

_HIDING = frozenset({"clear", "compact", "rewind"})
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
        if decision.action in _HIDING:
            went = tuple(record.n for record in records if _is_hidden(record, decision))
            hidden.update(went)
            edits.append(Edit(decision.action, f"left out by decision {n}: {decision.why}".rstrip(": "), went))
    view: list[Shown] = []
    for record in records:
        if record.n in hidden:
            continue
        if record.n in decisions:
            view.extend(_replacement(record.n, decisions[record.n]))
        else:
            view.extend(_shown(record))
    return view, edits


def _is_hidden(record: Record, decision: Decision) -> bool:
    if not decision.first <= record.n <= decision.last:
        return False
    if isinstance(record.body, Decision):
        return True  # what stood in for older messages goes with them
    message = record.message
    return message is not None and (message.role != "system" or decision.action in _HIDES_SYSTEM)


def _shown(record: Record) -> list[Shown]:
    match record.body:
        case MessageRecord(message=message):
            return [Shown(message, (record.n,))]
        case PartialAnswer(message=message) if message.parts:
            marked = msgspec.structs.replace(message, parts=(*message.parts, Text(INTERRUPTED)))
            return [Shown(marked, (record.n,), "cut")]
        case _:
            return []


def _replacement(number: int, decision: Decision) -> list[Shown]:
    """The messages that stand in for what a compaction hid."""
    messages = decision.detail.get("replacement") or []
    return [Shown(msgspec.convert(message, Message), (number,), "summarised") for message in messages]
