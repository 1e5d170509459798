"""What the next request needs of a log, and no more: kept in memory while a session is open.

Records are read backwards from the end until the window is full. Of what lies before it only what
always stays is held: system text, the first user message, pinned messages, and the decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .content import Message, Outcome
from .errors import BudgetError
from .log import Store
from .models import Target
from .pieces import Piece, assemble, starts_piece
from .records import Configuration, Count, Decision, MessageRecord, PartialAnswer, Record, UsageRecord
from .request import Plan, Prepared, plan
from .tokens.calibration import Calibration, calibrated
from .tokens.counted import Counter
from .tokens.counters import count_frame, count_message, count_tools, counter_for
from .view.ledger import fate_of
from .view.select import HIDING, active_decisions, as_shown, hiding, is_hidden, replacement
from .view.shown import Edit, Shown, starts_turn

__all__ = ["Context"]

_SLACK = 64
"""So many pieces may lie before the window until they are let go together."""


class _Keeper(NamedTuple):
    """A message that stays in every view, and its size in tokens."""

    n: int
    shown: Shown
    tokens: int


class Context:
    """The end of one session's log, ready to make requests of."""

    def __init__(self, store: Store, session_id: str, reach: int) -> None:
        """Reads until more than `reach` tokens of conversation are at hand."""
        self._store = store
        self._id = session_id
        self._plans: list[Plan] = []
        self.last = 0
        """Number of the last record taken in."""
        self.configuration = Configuration()
        """The tools and settings in force."""
        self.calibration = Calibration()
        """What the bills at hand have taught of counts."""
        self.asked: Count | None = None
        """The size of the last request."""
        self._reach = reach
        self._load(reach)

    # -- following the log -----------------------------------------------------------------------

    def refresh(self) -> None:
        """Take in what others appended."""
        self.take(self._store.read(self._id, first=self.last + 1))

    def take(self, records: Iterable[Record]) -> None:
        """Take in records that were appended to the log."""
        for record in records:
            if isinstance(record.body, Decision) or record.n != self.last + 1:
                self._load(self._reach, self._counter)  # decisions reach back; a gap is for the store to fill
                return
            self.last = record.n
            self._take(record)

    def _take(self, record: Record) -> None:
        if isinstance(record.body, Configuration):
            self._configure(record.body)
            if record.body.model:
                self._count_by(counter_for(record.body.provider, record.body.model))
            return
        if isinstance(record.body, UsageRecord):
            self.calibration = self.calibration.observe(record.body)
            return
        for (n, call_id), outcome in fate_of([record]).items():
            self._fate[n, call_id] = outcome
            concerned = next((piece for piece in reversed(self._pieces) if piece.start <= n), None)
            if concerned is not None:
                concerned.plan = None
        for shown in as_shown(record):
            self._add(shown, self._size(record))

    def _load(self, reach: int, counter: Counter | None = None) -> None:
        marks = list(self._store.landmarks(self._id))
        self.last = self._store.info(self._id).records
        self.configuration = Configuration()
        found = [mark.body for mark in marks if isinstance(mark.body, Configuration)]
        now = found[-1] if found else Configuration()
        self._counter = counter or counter_for(now.provider, now.model)
        self._configure(now)
        self._decisions = active_decisions(marks)
        self._hiding = {n: d for n, d in self._decisions.items() if d.action in HIDING}
        self._keepers = self._find_keepers(marks)
        self._pieces: list[Piece] = []
        self._reach = reach
        self._from_start = True
        size = 0
        newest: list[tuple[Record, list[tuple[Shown, int]]]] = []
        for record in self._store.read(self._id, last=self.last, reverse=True):
            if size > reach:
                self._from_start = False
                break
            if not self._hidden(record):
                found_there = self._shown(record)
                newest.append((record, found_there))
                size += sum(tokens for _, tokens in found_there)
        newest.reverse()
        self._fate: dict[tuple[int, str], Outcome] = fate_of(record for record, _ in newest)
        self.calibration = calibrated(record for record, _ in newest)
        for _, found_there in newest:
            for shown, tokens in found_there:
                self._add(shown, tokens)

    def _configure(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self._measure_tools()
        self._plans.clear()

    def _measure_tools(self) -> None:
        tools = self.configuration.tools
        frame = count_frame(self._counter, system=True, tools=bool(tools)).tokens
        self._tools_size = frame + (count_tools(tools, self._counter).tokens if tools else 0)

    def _hidden(self, record: Record) -> bool:
        return any(is_hidden(record, decision) for decision in self._hiding.values())

    def _shown(self, record: Record) -> list[tuple[Shown, int]]:
        """What a record adds to the conversation, with sizes in tokens."""
        if record.n in self._decisions:
            stand_ins = replacement(record.n, self._decisions[record.n])
            return [(shown, self._count(shown.message)) for shown in stand_ins]
        return [(shown, self._size(record)) for shown in as_shown(record)]

    def _find_keepers(self, marks: list[Record]) -> list[_Keeper]:
        keep = {mark.n: mark for mark in marks if mark.message is not None}
        for decision in self._decisions.values():
            if decision.action == "pin":
                keep.update({r.n: r for r in self._store.read(self._id, first=decision.first, last=decision.first)})
        first = self._first_user()
        if first is not None:
            keep[first.n] = first
        return [
            _Keeper(n, *self._shown(record)[0])
            for n, record in sorted(keep.items())
            if not self._hidden(record) and self._shown(record)
        ]

    def _first_user(self) -> Record | None:
        """The record of the first user message of the conversation as it stands: the task."""
        start = 1
        while start <= self.last:
            behind = max((d.last + 1 for d in self._hiding.values() if d.first <= start <= d.last), default=start)
            for record in self._store.read(self._id, first=behind):
                if self._hidden(record):
                    start = record.n
                    break
                if any(starts_turn(shown) for shown, _ in self._shown(record)):
                    return record
            else:
                return None
            if start == behind:
                start += 1
        return None

    def _add(self, shown: Shown, tokens: int) -> None:
        n = shown.records[0]
        system = shown.message.role == "system"
        is_task = starts_turn(shown) and not any(starts_turn(keeper.shown) for keeper in self._keepers)
        if (system or is_task) and n > max((keeper.n for keeper in self._keepers), default=0):
            self._keepers.append(_Keeper(n, shown, tokens))
        if system and not self._pieces:
            return  # leading system text stands in the head
        before = self._pieces[-1].items[-1] if self._pieces else None
        if starts_piece(shown, before):
            self._pieces.append(Piece([shown], n, tokens, starts_turn(shown)))
        else:
            piece = self._pieces[-1]
            piece.items.append(shown)
            piece.tokens += tokens

    def _size(self, record: Record) -> int:
        """Tokens of a message record: as counted when it was recorded, if this counter did."""
        body = record.body
        if not isinstance(body, (MessageRecord, PartialAnswer)):
            return 0
        if body.count is not None and body.count.counter == self._counter.id:
            return body.count.tokens
        return self._count(body.message)

    def _count(self, message: Message) -> int:
        return count_message(message, self._counter, self._store.get_blob).tokens

    # -- making requests -------------------------------------------------------------------------

    def request(self, aim: Target, limit: int) -> Prepared:
        """The request for a target inside `limit` tokens. Raises BudgetError."""
        self._count_for(aim)
        cut = self._cut(limit)
        self.asked = self._shown_size(cut)
        made = assemble(self._head(cut), self._pieces[cut:], self._plan(aim), self._store.get_blob, self._fate)
        edits = [hiding(n, decision) for n, decision in self._hiding.items()]
        if cut or not self._from_start:
            start = self._pieces[cut].start
            edits.append(Edit("window", f"older messages left out to fit {limit:,} tokens", (1,), through=start - 1))
        if cut > _SLACK:
            del self._pieces[:cut]
            self._from_start = False
        return made.after(tuple(edits)) if edits else made

    def tokens(self, aim: Target, limit: int) -> Count:
        """The size of what the next request for a target shows, tools included."""
        self._count_for(aim)
        return self._shown_size(self._cut(limit))

    def _shown_size(self, cut: int) -> Count:
        tokens = self._fixed(cut) + sum(piece.tokens for piece in self._pieces[cut:])
        certainty = count_frame(self._counter, system=False, tools=False).certainty
        return Count(tokens, self._counter.id, certainty)

    def _count_for(self, aim: Target) -> None:
        """See to it that sizes are those of the target's own counter."""
        self._count_by(counter_for(aim.provider, aim.model))

    def _count_by(self, counter: Counter) -> None:
        if counter.id != self._counter.id:
            self._load(self._reach, counter)

    def find(self, n: int) -> Message | None:
        """The message of record `n`, if the window holds it."""
        for piece in self._pieces:
            for shown in piece.items:
                if n in shown.records:
                    return shown.message
        return None

    def newest(self) -> Iterable[Shown]:
        """The messages at hand, newest first."""
        return (shown for piece in reversed(self._pieces) for shown in reversed(piece.items))

    def _plan(self, aim: Target) -> Plan:
        for made in self._plans:
            if made.target == aim:
                return made
        self._plans = [plan(self.configuration, aim), *self._plans[:2]]
        return self._plans[0]

    def _head(self, cut: int) -> list[Shown]:
        start = self._pieces[cut].start if cut < len(self._pieces) else self.last + 1
        return [keeper.shown for keeper in self._keepers if keeper.n < start]

    def _fixed(self, cut: int) -> int:
        """Tokens of tools and of what stays ahead of piece `cut`."""
        return self._tools_size + sum(keeper.tokens for keeper in self._keepers) - self._late(cut)

    def _late(self, cut: int) -> int:
        """Tokens of what always stays and stands in piece `cut` or behind it anyway."""
        start = self._pieces[cut].start if cut < len(self._pieces) else self.last + 1
        late = 0
        for keeper in reversed(self._keepers):
            if keeper.n < start:
                break
            late += keeper.tokens
        return late

    def _cut(self, limit: int) -> int:
        """The first piece to show: the oldest start of a turn from which all fits."""
        if limit > self._reach and not self._from_start:
            self._load(limit, self._counter)
        best: int | None = None
        size = 0
        fixed = self._tools_size + sum(keeper.tokens for keeper in self._keepers)
        for i in range(len(self._pieces) - 1, -1, -1):
            size += self._pieces[i].tokens
            if size > limit:
                break
            if self._pieces[i].opens_turn or (i == 0 and self._from_start):
                if fixed - self._late(i) + size > limit:
                    break
                best = i
        if best is None and self._pieces:
            raise BudgetError(limit, self._floor())
        if best is None:
            fixed = self._fixed(0)
            if fixed > limit:
                raise BudgetError(limit, self._floor())
        return best or 0

    def _floor(self) -> dict[str, int]:
        """What cannot be left out, in tokens."""
        newest = len(self._pieces) - 1
        while newest > 0 and not self._pieces[newest].opens_turn:
            newest -= 1
        start = self._pieces[newest].start if self._pieces else self.last + 1
        ahead = [keeper for keeper in self._keepers if keeper.n < start]
        system = sum(keeper.tokens for keeper in ahead if keeper.shown.message.role == "system")
        return {
            "tools and framing": self._tools_size,
            "system text": system,
            "pinned messages": sum(keeper.tokens for keeper in ahead) - system,
            "the newest turn": sum(piece.tokens for piece in self._pieces[newest:]),
        }
