"""Curates the tool outputs of a session on their way into its view."""

from __future__ import annotations

from collections.abc import Mapping

from ..log.records import Decision, Record
from ..log.store import RecordStore
from ..view.compaction.curation import Curation
from ..view.curate.conversation import Rules, outputs_of


class SessionCuration(Curation):
    """The curator of one session's views, which follows its configurations."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._rules = Rules()
        super().__init__(self._rules)
        self._store = store
        self._id = session_id
        self._read = 0  # the last record whose rule is known
        self.pinned: frozenset[int] = frozenset()
        """The numbers of the records that a user pinned: their messages are not curated."""
        self._also: frozenset[int] = frozenset()

    def load(self, decisions: Mapping[int, Decision]) -> None:
        """Begin a view anew. `decisions` are those in force."""
        for record in self._store.of_kinds(self._id, ("configuration",), first=self._read + 1):
            self.take(record)
        self.pinned = frozenset(decision.first for decision in decisions.values() if decision.action == "pin")
        self._also = outputs_of(decisions.values())
        self.begin(self.pinned, self._also)

    def is_curated(self, n: int) -> bool:
        """Whether the outputs of a record are curated, by the rule in force when it was recorded or by a decision."""
        return self._rules.at(n).on or n in self._also

    def take(self, record: Record) -> None:
        """Take in a configuration."""
        if record.n > self._read:
            self._rules.take(record)
            self._read = record.n
