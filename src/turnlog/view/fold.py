"""Turn records into the conversation that the decisions in force show.

A pure fold. Messages and interrupted answers are part of the conversation; notes, usage and all other kinds of records
stay in the log and are never shown to a model. Tool outputs are curated by the rules in force when they were recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct

from ..log.messages import Message, Text, is_compaction
from ..log.records import Decision, MessageRecord, PartialAnswer, Record
from .curate.conversation import CurationRules, Curator, outputs_of
from .decisions import Effects, active_decisions, lasting, stand_ins, told
from .provider_compaction import shown_to
from .types import Edit, Shown

INTERRUPTED = "[This answer was interrupted here.]"
"""Put at the end of an interrupted answer, so that a model does not take half a sentence for a whole one."""

_BY_THE_USER = frozenset({"clear", "rewind"})
"""Decisions that change the conversation itself. All others only save space."""


class Viewed(Struct, frozen=True, gc=False):
    """A message of a view: its place (see `as_decided`), and its forms `shown`, `decided` (before it was curated) and
    `raw` (as recorded). `curator`: the kind of its outputs, if they were curated."""

    place: int
    shown: Shown
    decided: Shown
    raw: Shown
    curator: str = ""


def select(records: Sequence[Record], provider: str = "") -> tuple[list[Shown], list[Edit]]:
    """The conversation, oldest first, and an edit for each decision that changes it. `provider` is the provider that it
    is shown to."""
    decisions = shown_to(active_decisions(records), provider)
    originals = [shown for record in records for shown in as_shown(record)]
    system = {shown.records[0] for shown in originals if shown.message.role == "system"}
    return [item.shown for item in viewed(records, decisions)], [*told(lasting(decisions, system))]


def viewed(
    records: Sequence[Record], decisions: Mapping[int, Decision], appended: Iterable[Shown] = ()
) -> Iterator[Viewed]:
    """The conversation of a whole log as these decisions show it, with its tool outputs curated, and with `appended`
    messages (see `with_appended`)."""
    pinned = frozenset(decision.first for decision in decisions.values() if decision.action == "pin")
    curator = Curator(CurationRules(records), pinned, also=outputs_of(decisions.values()))
    originals = (shown for record in records for shown in as_shown(record))
    for place, decided, raw in with_appended(as_decided(originals, decisions), appended):
        shown = curator.see(decided, raw)
        yield Viewed(place, shown, decided, raw, curator.kinds[place] if shown is not decided else "")


def as_left(records: Sequence[Record]) -> list[Shown]:
    """The conversation as the user left it: without content that was cleared or taken back, but with all content that
    decisions left out to save space."""
    decisions = {n: decision for n, decision in active_decisions(records).items() if decision.action in _BY_THE_USER}
    originals = (shown for record in records for shown in as_shown(record))
    return [shown for _, shown, _ in as_decided(originals, decisions)]


def as_decided(originals: Iterable[Shown], decisions: Mapping[int, Decision]) -> Iterator[tuple[int, Shown, Shown]]:
    """The conversation as decisions show it: the place of each message, the message as shown and as recorded.

    `originals` are the messages as recorded, oldest first; hidden ones may be missing. The place of a message is the
    number of its record; that of a replacement for older messages is the number of the record after it.
    """
    effects = Effects.of(decisions)
    replacements = ((place, n, shown) for n, decision in decisions.items() for place, shown in [stand_ins(n, decision)])
    waiting = sorted((entry for entry in replacements if entry[2]), key=lambda entry: entry[:2])
    waiting = [(place, n, shown) for place, n, shown in waiting if not effects.hides_stand_in(n, place)]
    for original in originals:
        number = original.records[0]
        while waiting and waiting[0][0] <= number:
            place, _, standing = waiting.pop(0)
            yield from ((place, shown, shown) for shown in standing)
        if not effects.hides(number, original.message):
            yield number, effects.treat(original), original
    for place, _, standing in waiting:
        yield from ((place, shown, shown) for shown in standing)


def with_appended(
    conversation: Iterable[tuple[int, Shown, Shown]], messages: Iterable[Shown]
) -> Iterator[tuple[int, Shown, Shown]]:
    """The conversation with further messages, given in order; the place of each is the number of its record."""
    waiting = deque(messages)
    for place, shown, original in conversation:
        while waiting and waiting[0].records[0] < place:
            yield waiting[0].records[0], waiting[0], waiting.popleft()
        yield place, shown, original
    yield from ((message.records[0], message, message) for message in waiting)


def as_shown(record: Record) -> list[Shown]:
    """The message that a record adds to the conversation, as a list with one item; [] if it adds none."""
    match record.body:
        case MessageRecord(message=message) as body:
            # One that the caller gave is no answer to a request of the session, and no decision shows it.
            given = not (body.stop or body.response_id) and not record.redacted
            plain = message if given else without_compaction(message)
            return [] if plain is None else [Shown(plain, (record.n,))]
        case PartialAnswer(message=message) if message.parts and (plain := without_compaction(message)) is not None:
            marked = msgspec.structs.replace(plain, parts=(*plain.parts, Text(INTERRUPTED)))
            return [Shown(marked, (record.n,), "cut")]
        case _:
            return []


def is_answer(record: Record) -> bool:
    """Whether a record is a model's answer, interrupted or whole, that is not just a provider's compaction."""
    message = record.message
    if message is None or message.role != "assistant":
        return False
    return isinstance(record.body, PartialAnswer) or without_compaction(message) is not None


def without_compaction(message: Message) -> Message | None:
    """The message without a provider's compactions, which decisions show: the same object if it has none, None if it
    has nothing else."""
    if not any(map(is_compaction, message.parts)):
        return message
    parts = tuple(part for part in message.parts if not is_compaction(part))
    return msgspec.structs.replace(message, parts=parts) if parts else None
