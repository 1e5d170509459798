"""The system prompt in sections as a log has it: the newest record of its sections, and the messages that show them.

A late block stays where it was sent. A block that a newer one of its section replaced leaves at the next decision that
makes requests smaller; that decision names it (`late` in its `detail`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..log.messages import Message, Tool, ToolCall, text_of, tool_called
from ..log.prompt import PromptRecord
from ..log.records import Configuration, Decision, MessageRecord, Record
from ..log.store import RecordStore
from ..prompt.sections import block_that_ends, length_within, tokens_in
from ..requests.carried import found_tools
from ..skills.catalogue import schema_text
from ..view.compaction.situation import Item
from ..view.decisions import CUTS, LATE, LOADED, Effects, Rewinds

_SYSTEM = Message("system")
_SKILL, _TOOL = "skill:", "tool:"

_BODY, _BODIES = 5_000, 25_000
"""The most tokens of one skill and of all that stay after a decision, as in Claude Code (read in November 2026)."""

_SCHEMAS = 25_000
"""The most tokens of tools on demand that are declared in full after a decision."""

_SHARE = 4
"""Each of these limits is at most the limit of a request divided by this number."""


class Sections:
    """The sections of one session. `record` is the newest record of them, None if there is none; `of` is the section of
    each message that shows one, by record number. `out` are the late blocks that are left out while it is being decided
    what leaves."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self.record: PromptRecord | None = None
        self._newest = 0  # the number of that record
        self.of: dict[int, str] = {}
        self.out: frozenset[int] = frozenset()
        self._ends: set[int] = set()  # those that say that the ones before them no longer apply
        self._others: set[int] = set()  # all other system messages
        self._sizes: dict[int, int] = {}  # of the blocks, in tokens
        self._long: dict[int, str] = {}  # the texts of skills that are cut at the next decision
        self._share = _BODIES  # of the most tokens of a request
        self._folded = False  # whether it is shown as after a decision
        self._full: frozenset[str] = frozenset()  # the tools on demand that are declared in full
        self._next: frozenset[str] = frozenset()  # the same after the next decision
        self._declared: tuple[tuple[Tool, ...], frozenset[str], tuple[Tool, ...]] | None = None
        self._store = store
        self._id = session_id
        self._read = 0
        self._effects, self._rewinds = Effects(), Rewinds()

    def load(self, records: Iterable[Record], last: int, decisions: Mapping[int, Decision], rewinds: Rewinds) -> None:
        """Take in a log of `last` records, of which these are at hand, and the decisions that still change views."""
        newer = self._store.of_kinds(self._id, ("prompt",), first=self._read + 1, reverse=True)
        for record in newer:
            self._take_newest(record)
            break
        self._read, self.of, self._ends, self._others = last, {}, set(), set()
        self._sizes, self._long = {}, {}
        self._effects, self._rewinds = Effects.of(decisions), rewinds
        self._full = self._full if self._folded else self._effects.late.loaded
        for record in records:
            self.take(record)

    def is_taken_back(self, n: int) -> bool:
        """Whether a rewind took record `n` back."""
        return bool(self._rewinds.by(n))

    def take(self, record: Record) -> None:
        """Take in a record."""
        if isinstance(record.body, MessageRecord) and record.body.message.role == "system":
            if record.body.section:
                self.of[record.n] = record.body.section
                self._sizes[record.n] = record.body.count.tokens if record.body.count is not None else 0
                if self._sizes[record.n] > _BODY and record.body.section.startswith(_SKILL):
                    self._long[record.n] = text_of(record.body.message)
                if text_of(record.body.message) == block_that_ends(record.body.section):
                    self._ends.add(record.n)
            else:
                self._others.add(record.n)
        else:
            self._take_newest(record)

    def _take_newest(self, record: Record) -> None:
        """Take in a record of the sections, unless a newer one is known: a rewind takes back no sections, though a log
        without what it took back is loaded anew."""
        if isinstance(record.body, PromptRecord) and record.n > self._newest:
            self.record, self._newest = record.body, record.n

    # -- what is shown ---------------------------------------------------------------------------

    def newest(self, items: Sequence[Item], section: str) -> Item | None:
        """The newest message of a section among those that are shown; None if none is."""
        return next((item for item in reversed(items) if self.of.get(item.n) == section), None)

    def loaded_tools(self, items: Sequence[Item]) -> set[str]:
        """The names of the tools on demand that the model has in full: declared, told by a block, or found."""
        return {*self._effects.late.loaded, *self.loaded_since(items)}

    def loaded_since(self, items: Sequence[Item]) -> set[str]:
        """The tools that a block told, or that were found, since the last decision."""
        shown = (n for n in self.of if not (self._effects.hides(n, _SYSTEM) or self._rewinds.by(n)))
        names = {self.of[n].removeprefix(_TOOL) for n in shown if self.of[n].startswith(_TOOL)}
        found_names = found_tools(item.shown.message for item in items)
        return {*names, *found_names} - self._effects.late.loaded

    def declared(self, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
        """The tools as requests declare them. A tool on demand that a decision declared in full is declared like any
        other."""
        in_full = self._full
        if self._declared is None or self._declared[0] is not tools or self._declared[1] != in_full:
            full = (
                replace(tool, on_demand=False) if tool.on_demand and tool.name in in_full else tool for tool in tools
            )
            self._declared = tools, in_full, tuple(full) if in_full else tools
        return self._declared[2]

    # -- what leaves -----------------------------------------------------------------------------

    @property
    def moving(self) -> list[int]:
        """The blocks that are shown and would leave at a decision now."""
        return [n for n in self._leaving() if not self._effects.hides(n, _SYSTEM)]

    def fold(self, items: Sequence[Item], now: Configuration, window: int, *, folded: bool) -> bool:
        """With `folded`, show what would be shown after a decision: leave out the blocks that would leave, and declare
        in full the tools that would be declared so. `now` is the configuration, `window` the model's window. Returns
        whether that changes the messages that are shown."""
        self._folded = folded
        self._share = ((now.budget.max_tokens if now.budget else 0) or window) // _SHARE
        if not folded:
            self._full = self._effects.late.loaded
        elif any(tool.on_demand for tool in now.tools):
            self._full = self._next = self._kept_in_full(items, now.tools)
        before, self.out = self.out, frozenset(self.moving) if folded and self.of else frozenset()
        return before != self.out

    def named(self, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions. The last one also records which late blocks leave and which tools on demand stay loaded."""
        leaving, cuts = self._leaving(), self._cuts()
        if not decisions or not (leaving or cuts or self._next):
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
        entries: dict[str, Any] = {LATE: ranges}
        if cuts:
            entries[CUTS] = cuts
        if self._next:
            entries[LOADED] = sorted(self._next)
        *ahead, last = decisions
        return [*ahead, replace(last, detail={**last.detail, **entries})]

    def _leaving(self) -> set[int]:
        """The blocks that leave: those replaced by newer ones of their section; those of tools, which are declared from
        then on; and the oldest blocks of skills for which there is no room."""
        newest: set[str] = set()
        leaving: set[int] = set()
        room = min(_BODIES, self._share)
        for n in sorted(self.of, reverse=True):
            section = self.of[n]
            if self._rewinds.by(n):
                continue
            if section in newest or n in self._ends or section.startswith(_TOOL):
                leaving.add(n)
            elif section.startswith(_SKILL):
                room -= min(_BODY, self._sizes.get(n, 0))
                leaving.update([n] if room < 0 else [])
            newest.add(section)
        return leaving

    def _cuts(self) -> list[list[int]]:
        """The bodies of skills that are cut from a decision on: record and characters that stay."""
        left = self._leaving()
        return [[n, length_within(text, _BODY)] for n, text in sorted(self._long.items()) if n not in left]

    def _kept_in_full(self, items: Sequence[Item], tools: Sequence[Tool]) -> frozenset[str]:
        """The tools on demand that are declared in full after a decision: those loaded, without those that were unused
        longest and for which there is no room."""
        on_demand = {tool.name: tool for tool in tools if tool.on_demand}
        loaded = self.loaded_tools(items) & on_demand.keys()
        used = dict.fromkeys(sorted(loaded), 0)
        used.update((name, n) for n, section in self.of.items() if (name := section.removeprefix(_TOOL)) in loaded)
        for item in items:
            called = (tool_called(part) for part in item.shown.message.parts if isinstance(part, ToolCall))
            used.update((name, max(used[name], item.n)) for name in called if name in loaded)
        room = min(_SCHEMAS, self._share)
        kept_names: list[str] = []
        for name in sorted(used, key=lambda name: (-used[name], name)):
            room -= tokens_in(schema_text(on_demand[name]))
            if room < 0:
                break
            kept_names.append(name)
        return frozenset(kept_names)
