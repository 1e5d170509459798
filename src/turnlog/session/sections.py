"""The system prompt in sections as a log has it: the newest record of its sections, and the messages that show them.

A late block stays where it was sent. One that a newer block of its section replaced leaves at the next decision that
makes requests smaller, which names it (`late` in its `detail`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ..log.messages import Message, text_of
from ..log.prompt import PromptRecord
from ..log.records import Decision, MessageRecord, Record
from ..log.store import RecordStore
from ..prompt.late import block_that_ends
from ..view.decisions import LATE, Effects, Rewinds

_SYSTEM = Message("system")


class Sections:
    """The sections of one session. `record` is the newest record of them, None if there is none; `of` is the section of
    each message that shows one, by record number. `out` are the late blocks that are left out while it is being decided
    what leaves."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self.record: PromptRecord | None = None
        self.of: dict[int, str] = {}
        self.out: frozenset[int] = frozenset()
        self._ends: set[int] = set()  # those that say that the ones before them no longer apply
        self._others: set[int] = set()  # all other system messages
        self._store = store
        self._id = session_id
        self._read = 0
        self._effects, self._rewinds = Effects(), Rewinds()

    def load(self, records: Iterable[Record], last: int, effects: Effects, rewinds: Rewinds) -> None:
        """Take in a log of `last` records, of which these are at hand, and what its decisions do."""
        newer = self._store.of_kinds(self._id, ("prompt",), first=self._read + 1, reverse=True)
        for record in newer:
            if isinstance(record.body, PromptRecord):
                self.record = record.body
                break
        self._read, self.of, self._ends, self._others = last, {}, set(), set()
        self._effects, self._rewinds = effects, rewinds
        for record in records:
            self.take(record)

    def take(self, record: Record) -> None:
        """Take in a record."""
        if isinstance(record.body, MessageRecord) and record.body.message.role == "system":
            if record.body.section:
                self.of[record.n] = record.body.section
                if text_of(record.body.message) == block_that_ends(record.body.section):
                    self._ends.add(record.n)
            else:
                self._others.add(record.n)
        elif isinstance(record.body, PromptRecord):
            self.record = record.body

    @property
    def moving(self) -> list[int]:
        """The blocks that would leave at a decision now and are shown."""
        return [n for n in self._replaced() if not self._effects.hides(n, _SYSTEM)]

    def fold(self, *, folded: bool) -> bool:
        """Leave out what would leave at a decision, if `folded`. Returns whether that changes what is shown."""
        before, self.out = self.out, frozenset(self.moving) if folded and self.of else frozenset()
        return before != self.out

    def named(self, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions, of which the last one names the blocks that leave with it."""
        leaving = self._replaced()
        if not (decisions and leaving):
            return list(decisions)
        ranges: list[list[int]] = []
        joined = False
        for n in sorted((*self.of, *self._others)):
            if n not in leaving:
                joined = False
            elif joined:
                ranges[-1][1] = n
            else:
                ranges.append([n, n])
                joined = True
        *ahead, last = decisions
        return [*ahead, replace(last, detail={**last.detail, LATE: ranges})]

    def _replaced(self) -> set[int]:
        """The blocks that newer ones of their section replaced."""
        newest: set[str] = set()
        found: set[int] = set()
        for n in sorted(self.of, reverse=True):
            if self._rewinds.by(n):
                continue
            if self.of[n] in newest or n in self._ends:
                found.add(n)
            newest.add(self.of[n])
        return found
