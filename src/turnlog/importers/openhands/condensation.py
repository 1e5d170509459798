"""Condensations: which messages OpenHands' model still saw, and what stood in for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...log.messages import Message, Text
from ..drafting import Drafting


class _Seen(Struct, frozen=True):
    """A message that the model sees: its record, and the events it came from."""

    number: int
    events: frozenset[str]
    message: Message


class Sight:
    """What the model sees, kept up as messages come and events are forgotten.

    A condensation leaves out events in the middle and puts a summary in their place, ahead of what
    is kept of the rest. As a decision: from the first of them on, this stands for what was there.
    """

    def __init__(self, log: Drafting) -> None:
        self.log = log
        self._seen: list[_Seen] = []
        self._decided = 0

    def show(self, number: int, message: Message, *events: str) -> None:
        """Take note of a recorded message that came of `events`."""
        self._seen.append(_Seen(number, frozenset(events), message))

    def join(self, number: int, event: str) -> None:
        """Another event that the message of a record came of."""
        for place, one in enumerate(self._seen):
            if one.number == number:
                self._seen[place] = replace(one, events=one.events | {event})

    def events(self) -> set[str]:
        """The events that the messages in sight came of."""
        return {event for one in self._seen for event in one.events}

    def forget(self, forgotten: Iterable[str], summary: Any, own: str, detail: Mapping[str, Any]) -> bool:
        """Record that events left the model's sight; whether any message of theirs was in it.

        `own` is the id that later condensations forget the summary by.
        """
        gone = frozenset(forgotten)
        leaving = [one for one in self._seen if one.message.role != "system" and one.events and one.events <= gone]
        if not leaving:
            return False
        # What stood in for older messages goes with the decision that it stands in, so it begins there.
        first = min(leaving[0].number, self._decided or leaving[0].number)
        kept = [one for one in self._seen if one not in leaving]
        standing = [one for one in kept if one.number < first or one.message.role == "system"]
        moved = [one for one in kept if one not in standing]
        said = [Message("user", (Text(summary),))] if isinstance(summary, str) and summary else []
        shown = [*said, *(one.message for one in moved)]
        detail = {**detail, "replacement": []}
        number = self.log.compacted(first, self.log.last, "OpenHands condensed", detail, shown)
        self._decided = first
        summaries = [_Seen(number, frozenset({own}), message) for message in said]
        self._seen = [*standing, *summaries, *moved]
        return True
