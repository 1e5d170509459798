"""Condensations: the messages that OpenHands' model still sees, and the replacements of the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...log.messages import Message, Text
from ..drafting import Drafting


class _Seen(Struct, frozen=True):
    """A message that the model sees: its record, and the events that it was made of."""

    number: int
    events: frozenset[str]
    message: Message


class Sight:
    """The messages that the model sees, updated as messages are added and events are forgotten.

    A condensation leaves out events in the middle and puts a summary in their place. Its decision covers everything
    from the first of these events on, and replaces it with the summary and the messages that are kept.
    """

    def __init__(self, log: Drafting) -> None:
        self.log = log
        self._seen: list[_Seen] = []
        self._decided = 0

    def show(self, number: int, message: Message, *events: str) -> None:
        """Add a recorded message that was made of `events`."""
        self._seen.append(_Seen(number, frozenset(events), message))

    def join(self, number: int, event: str) -> None:
        """Add an event that the message of a record was made of."""
        for place, one in enumerate(self._seen):
            if one.number == number:
                self._seen[place] = replace(one, events=one.events | {event})

    def events(self) -> set[str]:
        """The events that visible messages were made of."""
        return {event for one in self._seen for event in one.events}

    def forget(self, forgotten: Iterable[str], summary: Any, own: str, detail: Mapping[str, Any]) -> bool:
        """Record that events were forgotten; returns whether any of their messages was visible. `own` is the id by
        which later condensations forget the summary."""
        gone = frozenset(forgotten)
        leaving = [one for one in self._seen if one.message.role != "system" and one.events and one.events <= gone]
        if not leaving:
            return False
        # It also covers the decision before, whose summary it replaces.
        first = min(leaving[0].number, self._decided or leaving[0].number)
        kept = [one for one in self._seen if one not in leaving]
        unmoved = [one for one in kept if one.number < first or one.message.role == "system"]
        moved = [one for one in kept if one not in unmoved]
        said = [Message("user", (Text(summary),))] if isinstance(summary, str) and summary else []
        shown = [*said, *(one.message for one in moved)]
        detail = {**detail, "replacement": []}
        number = self.log.compacted(first, self.log.last, "OpenHands condensed", detail, shown)
        self._decided = first
        summaries = [_Seen(number, frozenset({own}), message) for message in said]
        self._seen = [*unmoved, *summaries, *moved]
        return True
