"""From records to the conversation as it stands: what earlier decisions left of it.

A pure fold. Messages and interrupted answers are conversation; notes, usage and all other kinds are
kept in the log and never shown to a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ..log.messages import Text
from ..log.records import Decision, MessageRecord, PartialAnswer, Record
from .decisions import Effects, active_decisions, lasting, stand_ins, told
from .types import Edit, Shown

INTERRUPTED = "[This answer was interrupted here.]"
"""Stands at the end of an answer that did not come to its end, so that a model does not take half
a sentence for a whole one."""


def select(records: Sequence[Record]) -> tuple[list[Shown], list[Edit]]:
    """The conversation, oldest first, and an edit for each decision that leaves its mark on it."""
    decisions = active_decisions(records)
    originals = [shown for record in records for shown in as_shown(record)]
    system = {shown.records[0] for shown in originals if shown.message.role == "system"}
    return [shown for _, shown, _ in as_decided(originals, decisions)], [*told(lasting(decisions, system))]


def as_decided(originals: Iterable[Shown], decisions: Mapping[int, Decision]) -> Iterator[tuple[int, Shown, Shown]]:
    """The conversation as decisions leave it: place, message as it is shown, and as it is on record.

    `originals` are messages as they are on record, oldest first; what is hidden may be missing among
    them. The place of what stands in for older messages is the record that it stands before.
    """
    effects = Effects.of(decisions)
    found = ((at, n, shown) for n, decision in decisions.items() for at, shown in [stand_ins(n, decision)])
    waiting = sorted((one for one in found if one[2]), key=lambda one: one[:2])
    waiting = [(at, n, shown) for at, n, shown in waiting if not effects.hides_stand_in(n, at)]
    for original in originals:
        number = original.records[0]
        while waiting and waiting[0][0] <= number:
            at, _, standing = waiting.pop(0)
            yield from ((at, shown, shown) for shown in standing)
        if not effects.hides(number, original.message):
            yield number, effects.treat(original), original
    for at, _, standing in waiting:
        yield from ((at, shown, shown) for shown in standing)


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
