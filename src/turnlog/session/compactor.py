"""Keeps a session within its budget: asks `view.compaction.decide`, puts its decisions on record, takes them back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from itertools import takewhile
from math import ceil
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from msgspec import Struct

from .._platform.exceptions import described
from ..config.settings import Settings
from ..errors import Conflict, InputError, TurnlogError
from ..log.actions import HIDING, SHRINKING
from ..log.budget import Strategy, Terms, Thresholds
from ..log.records import Body, Decision, Record, SummaryRecord
from ..log.store import Draft, Store
from ..models.target import Target
from ..requests.request import Request
from ..summarize import Background, Digest, LogLedger, Material, ProviderSummarizer, attempt
from ..summarize.notes import NoteCache
from ..summarize.protocol import beside
from ..summarize.provider import Summarizing, ladder_of
from ..view.compaction.decide import compact, decide, is_stalled
from ..view.compaction.situation import CompactionInput, PendingSummary, Summary, SummaryRequest, has_open_call
from ..view.compaction.steps.summarise import summary_ahead
from ..view.decisions import EARLIER, failures_of, still_needed, told
from ..view.types import Edit
from .memory import DigestFiles
from .provider_compaction import ProviderCompactions
from .recorder import Journal
from .state import Context, Summarise

# -- provider summaries ----------------------------------------------------------------------------
#
# Summaries by the provider of a session's model: asked for ahead of need, in a thread, while the conversation goes
# on.
#
# A program may send the requests itself: then each request carries the one for a compaction until it is answered.

_NEWEST = 100
"""How many of the newest messages are searched for calls without a result."""


class ProviderSummaries:
    """The compactions that one session asks its provider for by itself; at most one at a time."""

    def __init__(self, summarizer: Summarizing, context: Context, journal: Journal) -> None:
        self._send = summarizer.send if isinstance(summarizer, ProviderSummarizer) else None
        self.wanted = self._send is not None or isinstance(summarizer, str)
        self._context = context
        self._journal = journal
        self._compactions: ProviderCompactions = journal.compactions
        self._tried: tuple[int, ...] | None = None  # the decisions in force when it was last tried
        self._offered: Request | None = None
        self._run: _Run | None = None

    def prepare(self, aim: Target, record: Callable[[Body], object]) -> None:
        """Ask for a compaction, unless that was done since the last decision. `record` appends a record. The caller
        holds the lock of the context."""
        decision_numbers = tuple(self._context.decisions)
        if not self.wanted or self._run is not None or self._tried == decision_numbers:
            return
        if has_open_call(self._context.items[-_NEWEST:]):
            return  # its result would come behind a summary that has the call
        self._tried = decision_numbers
        try:
            request = self._compactions.request(aim, record)
        except InputError:  # its model cannot be asked
            return
        if self._send is None:
            self._offered = request
            return
        try:
            self._run = _Run(self._send, request)
        except RuntimeError as error:  # no thread can be started
            self._compactions.give_up(request, str(error), record)

    def offer(self, request: Request) -> Request:
        """`request`, with the request for a compaction attached if the program sends such requests itself."""
        offered = self._offered
        if offered is not None and self._compactions.is_open(offered):
            request.compaction = offered
        return request

    def awaited(self, aim: Target, record: Callable[[Body], object]) -> bool:
        """Whether a compaction is under way now that room is needed. If none was asked for before, it is asked for
        now."""
        if self._send is not None:
            self.prepare(aim, record)
        return self._run is not None

    def collect(self, seconds: float) -> None:
        """Record the answer if it comes within so many seconds. The caller must not hold the lock."""
        run = self._run
        if run is None or not run.wait(seconds):
            return
        self._run = None
        try:
            if run.error:
                raise InputError(run.error)
            self._journal.receive(run.answer, run.request)
        except TurnlogError as error:
            self._compactions.give_up(run.request, str(error), self._journal.append)

    def close(self) -> None:
        """Let go of an answer that is under way."""
        run, self._run = self._run, None
        if run is not None:
            self._compactions.give_up(run.request, "the session was closed before it came", self._journal.append)


class _Run:
    """A request that is sent in a thread. The thread touches nothing of the session."""

    def __init__(self, send: Callable[[Request], Any], request: Request) -> None:
        self.request = request
        self.answer: Any = None
        self.error = ""
        self._send = send
        self._done = threading.Event()
        threading.Thread(target=self._work, name="turnlog-compaction", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Whether the answer has come, or failed to come, within so many seconds."""
        return self._done.wait(seconds)

    def _work(self) -> None:
        try:
            self.answer = self._send(self.request)
        except BaseException as error:  # noqa: BLE001 - whatever the caller's function raises becomes a value
            self.error = described(error)
        finally:
            self._done.set()


_P = ParamSpec("_P")
_T = TypeVar("_T")

_SOON = 0.85
"""Share of the trigger from which on a summary is made ahead of need."""

_VERY_SOON, _AHEAD = 0.97, 24
"""Up to this share of the trigger, notes for the next digest are made ahead of need, at each request from `_SOON` on
for as large a part of the messages as the view has filled since, at most for so many. So no request does much of it,
and most do nothing."""

_RACES = 8
"""How often another process may append first while a decision is being made."""

_PAID_TRIES = 2
"""How often a model is asked for a summary if each one comes too late."""

_IN_VAIN = "no model was asked: the summary that one had made ahead gained nothing"
_RACED = "no model was asked: others append faster than it writes"
"""The reason given if a digest is used instead of a model's summary."""


def _locked(method: Callable[Concatenate[Compactor, _P], _T]) -> Callable[Concatenate[Compactor, _P], _T]:
    """The method, run while the thread holds the lock of the session's context. Listeners are told about the new
    records after the lock is released: a listener may wait for another thread, which may wait for the lock."""

    @wraps(method)
    def guarded(compactor: Compactor, /, *values: _P.args, **named: _P.kwargs) -> _T:
        untold: list[Sequence[Record]] = []
        try:
            with compactor._context.lock:
                try:
                    return method(compactor, *values, **named)
                finally:
                    untold, compactor._untold = compactor._untold, untold
        finally:
            for records in untold:
                compactor._tell(records)

    return guarded


class Compaction(Struct, frozen=True):
    """What a compaction did.

    `before` and `after`: tokens of a request. `edits`: what was left out or shortened, one for each decision.
    `decisions`: by record number. `marks`: limit, trigger and goal in tokens.
    """

    before: int
    after: int
    edits: tuple[Edit, ...]
    decisions: dict[int, Decision]
    marks: Thresholds

    @property
    def failures(self) -> tuple[str, ...]:
        """One line for each summarizer that failed, so that the next one was used."""
        return failures_of(self.decisions.values())

    def __repr__(self) -> str:
        return f"Compaction({self!s:.300})"

    def __str__(self) -> str:
        if not self.decisions:
            return f"nothing to compact: {self.before:,} tokens"
        went = "; ".join(edit.detail for edit in self.edits)
        return f"{self.before:,} tokens became {self.after:,}: {went}"


class Compactor:
    """Keeps the requests of one session within its budget."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        context: Context,
        journal: Journal,
        settings: Settings,
        tell: Callable[[Sequence[Record]], None],
    ) -> None:
        self._store = store
        self._tell = tell
        self._id = session_id
        self._context = context
        self._models = ladder_of(settings.summarizer)
        self._timeout = settings.summary_timeout
        self._provided = ProviderSummaries(settings.summarizer, context, journal)
        self._ledger = LogLedger(store, session_id)
        self._background = Background()
        self._files = DigestFiles(store, session_id)
        self._offline = Digest(NoteCache(), self._files.states)
        self._read = 0  # the last record that it has notes of
        self._noted = _SOON  # how full the view was when it made the last notes
        self._ahead: tuple[PendingSummary, tuple[int, ...]] | None = None
        self._untold: list[Sequence[Record]] = []  # what was put on record while the lock is held

    def close(self) -> None:
        """Let go of a summary that is under way."""
        self._background.close(self._ledger)
        self._provided.close()

    def request(self, aim: Target, own: Target | None) -> Request:
        """The next request for a target, within its budget, from the records that the context has read. Decisions that
        it needs are recorded, unless the target differs from `own`, the session's. Raises BudgetError, and Conflict if
        others keep appending."""
        on_record = own is not None and (aim.provider, aim.model) == (own.provider, own.model)
        self._provided.collect(0)
        if on_record:
            self._settle_cache(aim)
        request = self._request(aim, on_record=on_record, waits=on_record)
        if request is None:
            self._provided.collect(self._timeout)
            request = self._request(aim, on_record=on_record, waits=False)
        assert request is not None
        return self._provided.offer(request) if on_record else request

    @_locked
    def _request(self, aim: Target, *, on_record: bool, waits: bool) -> Request | None:
        """As `request`. With `waits`, None if room is needed and the provider's own summary is under way."""
        lost = 0
        for _ in range(_RACES):
            last = self._context.last
            if self._context.is_at_rest(aim):
                if on_record:
                    self._prepare(aim)
                if self._context.last != last and not self._context.is_at_rest(aim):
                    continue  # somebody else said something meanwhile
                return self._context.request(aim, marks=self._context.strategy)
            if waits and "summarise" in self._context.strategy.steps and self._provided.awaited(aim, self._put):
                return None
            situation = self._situation(aim, lost)
            decisions, after = self._decided(aim, situation)
            if not decisions:
                return self._context.request(aim, marks=self._context.strategy)
            if not on_record:
                return self._context.aside(aim, after, decisions)
            # And look again: what is at rest now is so for whoever opens the log next, too.
            lost += not self._record(self._telling_earlier(decisions)) and self._overtaken(last)
        raise Conflict(self._id, expected=last, actual=self._context.last)

    @_locked
    def preview(self, aim: Target, terms: Terms | None = None) -> Request:
        """The request as it would be, under other terms if any are given: nothing is put on record, and no model is
        asked for a summary. Raises BudgetError."""
        self._context.refresh()
        if terms is None and self._context.is_at_rest(aim):  # as in `request`
            return self._context.request(aim, sent=False, marks=self._context.strategy)
        situation = self._context.situation(aim, self._digest, terms)
        decisions, after = self._decided(aim, situation)
        if decisions:
            return self._context.aside(aim, after, decisions)
        return self._context.request(aim, sent=False, marks=situation.strategy)

    @_locked
    def marks(self, aim: Target, terms: Terms | None = None) -> Thresholds:
        """The limit, trigger and goal in tokens now."""
        return self._context.situation(aim, self._summariser(aim), terms).marks

    @_locked
    def compact(
        self, aim: Target, keep: int | None = None, terms: Terms | None = None, *, dry_run: bool = False
    ) -> Compaction:
        """Make requests smaller now. With `keep`, everything before the newest `keep` turns is summarised; without it,
        the strategy's steps are applied until requests are half as large. With `dry_run`, nothing is recorded. Raises
        Conflict if others keep appending."""
        if keep is not None and (not isinstance(keep, int) or keep < 1):
            raise InputError(f"compact(keep=...) takes the number of newest turns to keep, at least 1, not {keep!r}")
        self._context.refresh()
        lost = 0
        for _ in range(_RACES):
            last = self._context.last
            summarise = self._digest if dry_run else self._summariser(aim, lost)
            situation = _pressed(self._context.situation(aim, summarise, terms), keep)
            decisions, after = compact(situation)
            numbered = self._telling_earlier(self._context.sections.named(decisions))
            if dry_run or not numbered or self._record(numbered):
                return Compaction(situation.size, after.size, told(numbered), numbered, situation.marks)
            lost += self._overtaken(last)
        raise Conflict(self._id, expected=last, actual=self._context.last)

    @_locked
    def undo(self) -> Record:
        """Undo the last decision that made requests smaller. Raises InputError if none is in force."""
        self._context.refresh()
        numbers = [n for n, decision in self._context.decisions.items() if decision.action in SHRINKING]
        if not numbers:
            raise InputError(f"session {self._id!r} has no compaction that could be taken back")
        shown_again = {"after": self._context.decisions[numbers[-1]].detail.get("before", 0)}
        decision = Decision("undo", why="taken back", detail=shown_again, supersedes=numbers[-1])
        record = self._store.append(self._id, [Draft(decision)])
        self._context.take(record)
        self._untold.append(record)
        return record[0]

    # -- inside ----------------------------------------------------------------------------------

    def _situation(self, aim: Target, lost: int) -> CompactionInput:
        situation = self._context.situation(aim, self._summariser(aim, lost))
        if self._ahead is not None and self._ahead[1] == tuple(self._context.decisions):
            return msgspec.structs.replace(situation, ahead=self._ahead[0])
        return situation

    def _decided(self, aim: Target, situation: CompactionInput) -> tuple[Sequence[Decision], CompactionInput]:
        """The decisions that a situation calls for, and the situation after them."""
        decisions, after = decide(situation, self._context.past)
        fold = None if decisions else self._context.folding(aim)
        return self._context.sections.named(decisions if fold is None else (fold,)), after

    @_locked
    def _settle_cache(self, aim: Target) -> None:
        """Record how long the prompt cache is kept from now on, if that changes. If others append at the same time, it
        is left to the next request."""
        context = self._context
        decision = context.caches.lifetime(aim, context.decisions, context.strategy)
        if decision is not None:
            self._record({context.last + 1: decision})

    def _prepare(self, aim: Target) -> None:
        """Have a summary made in the background, and notes for a digest, once the view is nearly full."""
        strategy = self._context.strategy
        if "summarise" not in strategy.steps or (fill := self._context.fill(aim)) < _SOON:
            return
        self._provided.prepare(aim, self._put)
        self._read_ahead(fill)
        if not self._models:
            return
        self._background.collect(self._ledger)
        if self._ahead is not None and self._ahead[1] == tuple(self._context.decisions):
            return
        situation = self._context.situation(aim, self._summariser(aim))
        if is_stalled(self._context.past, situation.marks.limit - situation.system):
            return  # no summary is going to be asked for
        planned = summary_ahead(situation)
        if planned is not None:
            ahead, wanted = planned
            material = Material.of(wanted, self._context.counter.text, reflective=aim.abilities.reflective)
            model = beside(self._models[0], lambda: self._context.request(aim, sent=False, marks=strategy))
            self._background.start(material, model, self._ledger)
            self._ahead = (ahead, tuple(self._context.decisions))
            self._context.refresh()

    def _read_ahead(self, fill: float) -> None:
        """Have some messages curated and noted ahead of need, which a decision is going to shorten or a digest to
        summarise: all of them by the time that the view is nearly full."""
        before = self._noted if self._noted <= fill else _SOON
        self._noted = fill
        part = (fill - before) / max(_VERY_SOON - before, fill - before, 1e-9)
        messages = (shown for shown in self._context.newest() if not shown.stands_in)
        unread = [*takewhile(lambda shown: shown.records[0] > self._read, messages)]
        most = min(_AHEAD, ceil(len(unread) * part))
        if most:
            oldest = unread[-most:]
            self._read = oldest[0].records[0]
            self._context.curate_ahead(oldest)
            self._offline.read_ahead(oldest[::-1])
            self._files.read_ahead(most)

    def _record(self, decisions: Mapping[int, Decision]) -> bool:
        """Record the decisions, unless somebody else appended first. Returns whether they are recorded."""
        drafts = [Draft(decision) for decision in decisions.values()]
        try:
            records = self._store.append(self._id, drafts, expected=self._context.last)
        except Conflict:
            self._context.refresh()
            return False
        self._context.take(records)
        self._untold.append(records)
        return True

    def _put(self, body: Body) -> None:
        """Append a record while the lock is held."""
        records = self._store.append(self._id, [Draft(body)])
        self._context.take(records)
        self._untold.append(records)

    def _telling_earlier(self, decisions: Sequence[Decision]) -> dict[int, Decision]:
        """The next decisions by record number. A decision that leaves out records also lists the earlier decisions that
        are still in force, so that a session can be opened without reading every decision ever made."""
        by_number: dict[int, Decision] = {}
        taken_back = any(decision.action == "undo" for decision in self._context.past)
        for n, decision in enumerate(decisions, self._context.last + 1):
            by_number[n] = decision
            if decision.action in HIDING and not (taken_back and "rule" in decision.detail):
                needed = still_needed({**self._context.decisions, **by_number}, n, self._context.system)
                by_number[n] = msgspec.structs.replace(decision, detail={**decision.detail, EARLIER: needed})
        return by_number

    def _overtaken(self, last: int) -> bool:
        """Whether other processes appended records after record `last`. Records about summaries do not count: the
        session itself writes them, and a summary that comes late is used at the next request."""
        added = self._store.read(self._id, first=last + 1)
        return any(not isinstance(record.body, SummaryRecord) for record in added)

    def _summariser(self, aim: Target, lost: int = 0) -> Summarise:
        """The summarizers to use for this target after `lost` races: no model if others append faster than it writes.
        Each of its summaries would be paid for and would not cover the newest messages."""
        if lost >= _PAID_TRIES:
            return self._digest
        return partial(self._summarise, reflective=aim.abilities.reflective)

    def _digest(self, wanted: SummaryRequest) -> Summary:
        material = Material.of(wanted, self._context.counter.text)
        outcome = attempt(material, (), offline=self._offline)
        unasked = (_IN_VAIN if wanted.unpaid else _RACED,) if self._models else ()
        return Summary(outcome.text, outcome.summarizer, (*unasked, *map(str, outcome.failures)), self._files.detail())

    def _summarise(self, wanted: SummaryRequest, *, reflective: bool) -> Summary:
        if wanted.unpaid:
            return self._digest(wanted)
        material = Material.of(wanted, self._context.counter.text, reflective=reflective)
        outcome = attempt(
            material,
            self._models,
            offline=self._offline,
            timeout=self._timeout,
            ledger=self._ledger,
            ahead=self._background,
        )
        return Summary(outcome.text, outcome.summarizer, tuple(map(str, outcome.failures)), self._files.detail())


def _pressed(situation: CompactionInput, keep: int | None) -> CompactionInput:
    """The situation for a compaction that was asked for: the limit is at most the present size, so that shares of it
    leave something to take out."""
    marks = situation.marks
    strategy: Strategy = situation.strategy
    if keep is not None:
        strategy = msgspec.structs.replace(
            strategy, steps=("summarise",), keep_turns=keep, head=0.0, tail=0.0, recent=0.0, user_tokens=0, grades=()
        )
    size = situation.size
    pressed = Thresholds(min(marks.limit, size), min(marks.trigger, size), min(marks.goal, size // 2))
    promised = keep is not None and size <= marks.limit
    return msgspec.structs.replace(situation, strategy=strategy, marks=pressed, promised=promised)
