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
        for place, seen in enumerate(self._seen):
            if seen.number == number:
                self._seen[place] = replace(seen, events=seen.events | {event})

    def events(self) -> set[str]:
        """The events that visible messages were made of."""
        return {event for seen in self._seen for event in seen.events}

    def forget(self, forgotten: Iterable[str], summary: Any, summary_id: str, detail: Mapping[str, Any]) -> bool:
        """Record that events were forgotten; returns whether any of their messages was visible. Later condensations
        forget the summary by `summary_id`."""
        gone = frozenset(forgotten)
        leaving = [seen for seen in self._seen if seen.message.role != "system" and seen.events and seen.events <= gone]
        if not leaving:
            return False
        # It also covers the decision before, whose summary it replaces.
        first = min(leaving[0].number, self._decided or leaving[0].number)
        staying = [seen for seen in self._seen if seen not in leaving]
        unmoved = [seen for seen in staying if seen.number < first or seen.message.role == "system"]
        moved = [seen for seen in staying if seen not in unmoved]
        summary_messages = [Message("user", (Text(summary),))] if isinstance(summary, str) and summary else []
        shown = [*summary_messages, *(seen.message for seen in moved)]
        detail = {**detail, "replacement": []}
        number = self.log.compacted(first, self.log.last, "OpenHands condensed", detail, shown)
        self._decided = first
        summaries = [_Seen(number, frozenset({summary_id}), message) for message in summary_messages]
        self._seen = [*unmoved, *summaries, *moved]
        return True
