"""How requests of a session tell changes of its tools and system text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..log.messages import Tool
from ..log.records import Configuration, Decision
from ..log.store import RecordStore
from ..requests.appended import FOLD, ChangeDelivery, InlineChanges, appended, folded_until, system_texts
from ..requests.pieces import Conversation
from ..view.decisions import Effects
from ..view.types import Shown

_WHY = "changes of tools and system text moved to the beginning, to make room"


def folding(first: int, last: int, changes_from: int) -> Decision:
    """The decision that moves the changes in records `first` to `last` to the beginning. Requests differ from record
    `changes_from` on."""
    return Decision(FOLD, first, last, _WHY, {"changes_from": changes_from})


class Changes:
    """The changes of one session as its requests tell them now. `first_answer` is the record of the first answer that
    is shown, 0 if none is."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self.first_answer = 0
        self._store = store
        self._id = session_id
        self._ways = ChangeDelivery()
        self._now = InlineChanges(())

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that requests declare at their beginning."""
        return self._now.tools

    @property
    def messages(self) -> Sequence[Shown]:
        """The messages that tell the changes since."""
        return self._now.messages

    @property
    def tools_told(self) -> bool:
        """Whether some of the messages tell a change of tools."""
        return len(self._now.messages) > len(self._now.decisions)

    def configured(self, configuration: Configuration) -> None:
        """Take in a configuration."""
        if not self._ways.tools:
            self._now = msgspec.structs.replace(self._now, tools=configuration.tools)

    def depend_on(self, before: Configuration, now: Configuration) -> bool:
        """Whether the change from one configuration to another is told by a message."""
        return self._ways.tools and before.tools != now.tools

    def read(self, configuration: Configuration, decisions: Mapping[int, Decision], last: int) -> None:
        """Read the changes from the log up to record `last`. `configuration` and `decisions` are those in force."""
        self._now = self._read(self._ways, configuration, decisions, last)

    def turn(
        self, ways: ChangeDelivery, configuration: Configuration, decisions: Mapping[int, Decision], last: int
    ) -> bool:
        """Tell changes in these ways from now on. Returns whether that changes what is told; arguments as in `read`."""
        if ways == self._ways:
            return False
        self._ways, before = ways, self._now
        self.read(configuration, decisions, last)
        return self._now != before

    def untold(self, decisions: Mapping[int, Decision]) -> dict[int, Decision]:
        """The decisions without those that a message tells."""
        return {n: decision for n, decision in decisions.items() if n not in self._now.decisions}

    def head(
        self, shown: Conversation, decisions: Mapping[int, Decision], lasts: Mapping[int, Decision]
    ) -> tuple[Shown, ...]:
        """The system messages that a conversation begins with, as decisions replaced them. If it began without any:
        those that a decision made its system text later. `lasts` are the decisions that still change views."""
        given = {decision.first for decision in decisions.values() if decision.action == "system"}
        later_items = (item for item in shown.items if item.n in given and item.raw.treatment == "verbatim")
        effects = Effects.of(lasts)
        return tuple(effects.treat(item.raw) for item in (shown.head or (later_items if given else ())))

    def _read(
        self, ways: ChangeDelivery, configuration: Configuration, decisions: Mapping[int, Decision], last: int
    ) -> InlineChanges:
        since = folded_until(decisions, self.first_answer or last)
        configured = self._configured(since) if ways.tools else []
        return appended(configuration, ways, since, system_texts(decisions), configured)

    def _configured(self, since: int) -> list[tuple[int, tuple[Tool, ...]]]:
        """The tools of each configuration from the one in force at record `since` on, by record number, oldest
        first."""
        tool_lists: list[tuple[int, tuple[Tool, ...]]] = []
        for record in self._store.of_kinds(self._id, ("configuration",), reverse=True):
            if isinstance(record.body, Configuration):
                tool_lists.append((record.n, record.body.tools))
            if record.n <= since:
                break
        return tool_lists[::-1]
