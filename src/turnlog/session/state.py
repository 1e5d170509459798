"""What the next request needs of a log, in memory while a session is open. `Context.situation` is what compaction
decides on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from threading import RLock

import msgspec

from ..log.actions import HIDING
from ..log.budget import USUAL_STRATEGY, Budget, Strategy, Terms, Thresholds
from ..log.messages import Media, Tool, images_in, media_parts
from ..log.records import Configuration, Decision, Record, UsageRecord
from ..log.store import RecordStore, Store
from ..log.usage import Count
from ..models.target import Target
from ..providers.protocol import BlobReader
from ..requests.appended import ChangeDelivery
from ..requests.build import Builder, build
from ..requests.carried import are_carried
from ..requests.pieces import Conversation
from ..requests.prompt_cache import LastRequest, cache_prices
from ..requests.repaired import RepairedView
from ..requests.request import Request
from ..requests.size import Sizing, Sizings
from ..requests.translate import plan
from ..summarize.orders import orders_of
from ..tokens.calibration import Calibration, calibrated
from ..tokens.counters import counter_for
from ..tokens.protocol import Counter
from ..view.bound_reasoning import Bound, bindings_of
from ..view.compaction.decide import situation_of
from ..view.compaction.orders import has_untold
from ..view.compaction.situation import CompactionInput, Curation, Item, Ports, Summary, SummaryRequest
from ..view.curate.conversation import CurationRules, outputs_of
from ..view.decisions import lasting, stand_in_sizes, told
from ..view.fold import as_decided, as_shown, viewed, with_appended
from ..view.provider_compaction import is_for_one_provider, prefixes_of
from ..view.repair.pairing import Pairing
from ..view.tool_calls import Standing, fate_after
from ..view.types import Shown, starts_turn
from .caches import Caches, marks_wanted
from .changes import Changes, folding
from .loader import (
    ImageNumbers,
    Originals,
    gap_tokens,
    known_fate,
    newest_bills,
    reach_for,
    read_landmarks,
    read_window,
    usual_reach,
)
from .marks import mark_edits, marked
from .sections import Sections
from .versions import version_decision

# -- tally -----------------------------------------------------------------------------------------
#
# The messages that are in memory of a session, with their sizes, and what they add up to.


class MessagesInMemory:
    """The tokens, turns, images and media of the messages added, and their calls without results.

    `tokens` is the size before the curation of tool output, so what is kept in memory does not depend on that.
    """

    def __init__(self) -> None:
        self.tokens = self.turns = self.images = 0
        self.media: list[Media] = []
        self.pairing = Pairing()

    def add(self, item: Item) -> None:
        """Add a message as it is before curation."""
        message = item.shown.message
        self.tokens += item.tokens
        self.turns += starts_turn(item.shown)
        self.images += images_in(message)
        self.media += media_parts(message)
        self.pairing.see(item.shown)

    def is_over_caps(self, strategy: Strategy) -> bool:
        """Whether there are more turns or images than a strategy shows."""
        turns, images = strategy.max_history_turns, strategy.max_history_images
        return (turns is not None and self.turns > turns) or (images is not None and self.images > images)


def items_of(
    shown: Iterable[tuple[int, Shown, Shown]],
    records: Mapping[int, Record],
    stand_ins: Mapping[int, Iterable[int]],
    sizing: Sizing,
) -> Iterator[Item]:
    """Messages with their sizes. `shown`: for each message the number of the record where it stands, the message as it
    is shown, and the message as it is on record. `stand_ins`: by record number of a decision, the recorded token counts
    of the messages that it put there."""
    sizes = {n: iter(counts) for n, counts in stand_ins.items()}
    for place, message, raw in shown:
        if message is raw and not message.stands_in and message.treatment != "appended":
            yield sizing.item(message, records[place])
            continue
        size = next(sizes[message.records[0]], None) if message.stands_in else None
        yield Item(message, size or sizing.message(message.message), raw, place)


# -- curation --------------------------------------------------------------------------------------
#
# Curates the tool outputs of a session on their way into its view.


class SessionCuration(Curation):
    """The curator of one session's views, which follows its configurations."""

    def __init__(self, store: RecordStore, session_id: str) -> None:
        self._rules = CurationRules()
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


# -- builders --------------------------------------------------------------------------------------
#
# The builders of a session's requests, one for each way in which requests are made.

_KEPT = 3
"""How many builders are kept; each remembers what it built last."""


class Builders:
    """The last builders of a session; `bindings` are those of its answers and compactions, by record."""

    def __init__(
        self, blob: BlobReader, sizing: Callable[[Counter], Sizing], records: Callable[[], Iterable[Record]]
    ) -> None:
        self.bindings: dict[int, Bound] = {}
        self._records = records
        self._blob = blob
        self._sizing = sizing
        self._made: list[tuple[Target, tuple[Tool, ...], Builder]] = []

    def of(self, configuration: Configuration, aim: Target, tools: tuple[Tool, ...]) -> Builder:
        """The builder of requests for a target that declare these tools at their beginning."""
        for target, declared, builder in self._made:
            if target == aim and declared == tools:
                return builder
        sizing = self._sizing(counter_for(aim.provider, aim.model))
        carried = (record.message for record in (self._records() if are_carried(tools, aim.provider) else ()))
        messages = (message for message in carried if message is not None)
        ways = plan(msgspec.structs.replace(configuration, tools=tools), aim, messages=messages)
        new_builder = Builder(ways, self._blob, sizing, self.bindings)
        self._made = [(aim, tools, new_builder), *self._made[: _KEPT - 1]]
        return new_builder

    def clear(self) -> None:
        """Drop all of them: the configuration changed."""
        self._made.clear()


Summarise = Callable[[SummaryRequest], Summary]
"""Writes a summary."""

_MATERIAL, _LEAST_MATERIAL = 1.25, 100_000
"""What a summarizer is given to read: so many times a request's limit, and at least so many tokens."""


class Context:
    """The conversation of one session as its next request shows it."""

    def __init__(self, store: Store, session_id: str) -> None:
        self.lock = RLock()  # of a session's threads one at a time looks at what another may change
        self._store = store
        self._id = session_id
        self.sizing = Sizings(store.get_blob)  # what counts by a counter
        self._builders = Builders(store.get_blob, self.sizing, lambda: store.read(session_id))
        self.last = 0  # number of the last record taken in
        self._time = ""  # of that record, or a later one of a record before it
        self.configuration = Configuration()  # the tools, settings, budget and strategy in force
        self.calibration = Calibration()  # what the bills at hand have taught of counts
        self.caches = Caches()
        self._curation = SessionCuration(store, session_id)
        self._fate: dict[tuple[int, str], Standing] = {}  # of calls without a result
        self._shown = Conversation()
        self._images = ImageNumbers(store, session_id)
        self.gap: tuple[int, int] | None = None  # the records in the midst that are not at hand: first and last
        self._reach = 0  # tokens kept in memory
        self._torn = False  # whether something was taken in in part
        self._originals: dict[int, Record] = {}  # records that were read for the last summary
        self._built: tuple[Builder, RepairedView] | None = None
        self._looked_at = Conversation()  # what was measured last to decide something
        self._changes = Changes(store, session_id)
        self.sections = Sections(store, session_id)
        self._reader = ""  # the provider whose requests show the conversation as it is in memory
        self._load(None)

    # -- following the log -----------------------------------------------------------------------

    def refresh(self) -> None:
        """Take in what others appended."""
        with self.lock:
            self.take(self._store.read(self._id, first=self.last + 1))

    def take(self, records: Iterable[Record]) -> None:
        """Take in records that were appended to the log. The caller holds the lock."""
        if self._torn:  # Ctrl-C came in between, or a store that failed: what is in memory is not what the log says
            self._shown = Conversation()
            self._load(None)
            return
        for record in records:
            if isinstance(record.body, Decision) or record.n != self.last + 1:
                self._load(self.counter)  # decisions reach back; a gap is for the store to fill
                return
            self._torn, self.last, self._time = True, record.n, max(self._time, record.time)
            self._take(record)
            self._torn = False
        if self._tally.tokens > 2 * self._reach:
            self._load(self.counter)  # lets go of what no view could hold

    def _take(self, record: Record) -> None:
        self._built = None
        self.caches.take((record,))
        self.sections.take(record)
        if isinstance(record.body, Configuration):
            moved = self._changes.depend_on(self.configuration, record.body)
            self._configure(record.body)
            self._curation.take(record)
            before, self._reach = self._reach, usual_reach(record.body)
            if record.body.model:
                self._read_for(record.body.provider, record.body.model)
            if moved or (self.gap is not None and self._reach != before):
                self._load(self.counter)  # what no view could hold may be held by one now
            return
        if isinstance(record.body, UsageRecord):
            self.calibration = self.calibration.observe(record.body)
            return
        self._builders.bindings.update(bindings_of([record]))
        for (n, call_id), standing in fate_after(record, self._fate).items():
            self._fate[n, call_id] = standing
            concerned = next((piece for piece in reversed(self._shown.pieces) if piece.start <= n), None)
            if concerned is not None:
                concerned.forget()
        words = self._tally.turns
        for shown in as_shown(record):
            self._add(self._sizing.item(shown, record))
        if record.live:  # of another process
            self.marks |= marked((record,))
            self._told += mark_edits(marked((record,)), (record.n,))
        # Its call may be in the gap, and stays with it. What the user said last is at hand wherever it stands, and need
        # not be any more once the user says something else.
        if self.gap is not None and (self._tally.pairing.orphaned or (self._within and self._tally.turns > words)):
            self._load(self.counter)

    def _load(self, counter: Counter | None, reach: int = 0) -> None:
        self._torn, self._built = True, None
        marks = read_landmarks(self._store, self._id, self._reader)
        info = self._store.info(self._id)
        self.last, self._time = info.records, info.updated
        configuration = marks.configuration
        self.counter = counter or counter_for(configuration.provider, configuration.model)
        self._sizing = self.sizing(self.counter)
        self._sizing.trim()
        self._configure(configuration)
        self._reader, self._followed = marks.provider, marks.followed
        self.decisions = marks.decisions  # the decisions in force, by record number
        self.past = marks.past  # the same in order, and those that took others back, for the next decision
        self._lasting, self._rewinds = marks.lasting, marks.rewinds
        self._reach = reach or usual_reach(configuration)
        window = read_window(self._store, self._id, self.last, marks.system, self._lasting, self._sizing, self._reach)
        self.gap, self._within = window.gap, window.within
        bills = newest_bills(self._store, self._id, window, self.last)
        self.calibration = calibrated(bills)
        self.caches.take(sorted((*window.records, *bills), key=lambda record: record.n))
        self.sections.load(window.records, self.last, self._lasting, self._rewinds)
        self._fill(window.records)
        before = self._fate
        waiting = [(self._shown.items[i].shown.records[0], call.id) for (i, _), call in self._tally.pairing.open]
        first = min((n for n, _ in waiting), default=0)
        self._fate = known_fate(self._store, self._id, window, first, self.last, self._rewinds) if waiting else {}
        if any(before.get(call) != self._fate.get(call) for call in waiting):
            for piece in self._shown.pieces:
                piece.forget()  # it may have been built while something else was known of these calls
        self._torn = False

    def _fill(self, records: Sequence[Record]) -> None:
        by_number = {record.n: record for record in records}
        self._builders.bindings.clear()
        self._builders.bindings.update(bindings_of(records))
        self._builders.bindings.update(prefixes_of(self._lasting))
        before = [*self._shown.pieces, *self._looked_at.pieces]
        self._shown, self._looked_at = Conversation(), Conversation()
        self._curation.load(self.decisions)
        self._tally = MessagesInMemory()
        out = self.sections.out
        originals = [shown for record in records if record.n not in out for shown in as_shown(record)]
        stand_ins = {n: stand_in_sizes(decision, self.counter.id) for n, decision in self._lasting.items()}
        answers = (n for n, shown, _ in as_decided(originals, self._lasting) if shown.message.role == "assistant")
        self._changes.first_answer = next(answers, 0)
        self._changes.read(self.configuration, self._followed, self.last)
        decisions = self._changes.untold(self._lasting)
        self.marks = marked(records)
        shown_now = with_appended(as_decided(originals, decisions), self._changes.messages)
        for item in items_of(shown_now, by_number, stand_ins, self._sizing):
            self._add(item)
        self._told = (*told(decisions), *mark_edits(self.marks, (item.n for item in self._shown.items)))
        self._shown.keep(before)

    def _configure(self, configuration: Configuration) -> None:
        if configuration != self.configuration:
            self._builders.clear()
        self.configuration = configuration
        self._changes.configured(configuration)

    def _add(self, item: Item) -> None:
        self._shown.add(self._curation.item(item, self._sizing))
        self._tally.add(item)
        if item.shown.message.role == "assistant":
            self._changes.first_answer = self._changes.first_answer or item.n

    def repaired(self, aim: Target) -> RepairedView:
        """What a request for a target shows, and how large it is: the same until something is taken in."""
        builder, built = self.builder(aim), self._built
        if built is None or built[0] is not builder:  # pieces are kept as one builder made them
            built = self._built = builder, builder.repaired(self._shown, self._fate)
        return built[1]

    def aim_at(self, aim: Target, *, folded: bool = False) -> Changes:
        """Show the conversation as a target takes it: counted as it is billed, with changes of tools and system text
        told where they were made. With `folded`, they are told at the beginning. Returns these changes."""
        self._read_for(aim.provider, aim.model)
        ways = ChangeDelivery() if folded else ChangeDelivery.of(aim, self.builder(aim).plan.rules)
        turned = self._changes.turn(ways, self.configuration, self._followed, self.last)
        if self.sections.fold(self.items, self.configuration, aim.input_limit, folded=folded) or turned:
            self._load(self.counter)
        return self._changes

    def _read_for(self, provider: str, model: str) -> None:
        """Load what requests to a model show, in that model's counts."""
        counter, before = counter_for(provider, model), self._reader
        self._reader = provider
        if counter.id != self.counter.id or (provider != before and is_for_one_provider(self.decisions)):
            self._load(counter)

    # -- what has to be decided ------------------------------------------------------------------

    @property
    def asks(self) -> bool:
        """Whether a call without a result, among those at hand, waits for approval."""
        places = ((self._shown.items[i].shown.records[0], call.id) for (i, _), call in self._tally.pairing.open)
        return any(self._fate.get(place) == "asked" for place in places)

    @property
    def budget(self) -> Budget:
        """The budget in force."""
        return self.configuration.budget or Budget()

    @property
    def strategy(self) -> Strategy:
        """The strategy in force."""
        return self.configuration.strategy or USUAL_STRATEGY

    def fill(self, aim: Target) -> float:
        """The size of the view as a share of the size at which something has to be decided."""
        self.aim_at(aim)
        return self.repaired(aim).tokens / max(1, self._marks(aim).trigger)

    def is_at_rest(self, aim: Target) -> bool:
        """Whether nothing has to be decided: the view is small, under the caps, and shows all orders."""
        self.aim_at(aim)
        if self.gap is not None or self._tally.is_over_caps(self.strategy) or has_untold(self.decisions.values()):
            return False
        few = self._sizing.has_room(self._tally.media, self.builder(aim).plan.rules)
        return few and self._tally.tokens <= self._reach and self.repaired(aim).tokens <= self._marks(aim).trigger

    def _marks(self, aim: Target) -> Thresholds:
        budget, view = self.strategy.applied_to(self.budget), self.repaired(aim)
        marks = budget.marks(aim.input_limit, view.fixed, 0, scale=self._scale(aim), known=aim.known)
        return marks.with_room(self.cleared(aim))

    def _scale(self, aim: Target) -> float:
        return self.calibration.scale(aim.provider, self.counter.id, self._sizing.certainty)

    def cleared(self, aim: Target) -> int:
        """The tokens of a request that the provider is expected to leave out by itself."""
        size = Count(self.repaired(aim).tokens, self.counter.id)
        return self.calibration.cleared(aim.provider, size) if self.builder(aim).plan.taken_out else 0

    def folding(self, aim: Target) -> Decision | None:
        """The decision that moves changes to the beginning, where they are told once; None if there are none, or if
        there is room for them."""
        self.aim_at(aim)
        told, late = [shown.records[0] for shown in self._changes.messages], self.sections.moving
        if not (told or late) or self.repaired(aim).tokens <= self._marks(aim).trigger:
            return None
        return folding(min((*told, *late)), max((*told, *late)), 1 if told else min(late))

    def situation(self, aim: Target, summarise: Summarise, terms: Terms | None = None) -> CompactionInput:
        """The conversation beside its budget, for a target: the same for the same log, however it came to be
        in memory. `terms` take the place of the budget and the strategy in force."""
        self.aim_at(aim, folded=True)
        usual = terms is None and (aim.provider, aim.model) == (self.configuration.provider, self.configuration.model)
        terms = terms or Terms(self.budget, self.strategy)
        situation = self._situation(aim, summarise, terms)
        reach = usual_reach(self.configuration) if usual else reach_for(situation.marks.limit)
        if self._tally.tokens > reach or (self.gap is not None and reach != self._reach):
            self._load(self.counter, reach)
            situation = self._situation(aim, summarise, terms)
        return situation

    def _situation(self, aim: Target, summarise: Summarise, terms: Terms) -> CompactionInput:
        limit, sizing, builder = 0, self._sizing, self.builder(aim)
        past = Originals(
            self._store,
            self._id,
            self._shown.items,
            self._lasting,
            self.gap,
            self._rewinds,
            self._sizing,
            self._originals,
        )

        def originals(first: int, last: int) -> Iterator[Shown]:
            return past.newest_first(first, last, max(_MATERIAL * limit, _LEAST_MATERIAL))

        def measured(items: Sequence[Item]) -> Sequence[Item]:
            self._looked_at = Conversation.of(items, [*self._shown.pieces, *self._looked_at.pieces])
            return builder.measured(self._looked_at, self._fate)

        def curated(items: Sequence[Item], also: frozenset[int], whole_reads: bool) -> Sequence[Item]:
            return self._curation.items(items, sizing, also, whole_reads=whole_reads)

        ports = Ports(
            count=sizing.message,
            count_at_once=sizing.at_once,
            count_text=self.counter.text,
            counter=self.counter.id,
            originals=originals,
            summarise=summarise,
            images_before=self._images.before,
            gap_tokens=cache(self._gap_size()),
            measured=measured,
            curated=curated,
            decisions=self._followed,
            orders=orders_of,
            words=past.words,
        )
        situation = situation_of(
            builder.measured(self._shown, self._fate),
            terms.budget,
            terms.strategy,
            ports,
            window=aim.input_limit,
            fixed=self.repaired(aim).fixed,
            number=self.last + 1,
            pinned=self._curation.pinned,
            gap=self.gap,
            scale=self._scale(aim),
            known=aim.known,
            prices=cache_prices(aim.model),
            room=sizing.room(self._tally.media, builder.plan.rules),
            cleared=self.cleared(aim),
            provided=builder.plan.taken_out,
        )
        limit = situation.marks.limit
        return situation

    def _gap_size(self) -> Callable[[], int]:
        """A function that counts the tokens of the present gap when it is called."""
        return partial(gap_tokens, self._store, self._id, self.gap, self._within, self._lasting, self._sizing)

    def terms(self, budget: Budget | int | None, strategy: Strategy | str | None) -> Terms | None:
        """The terms in force with this budget and strategy in place of their own; None if neither is given."""
        self.refresh()
        return Terms(self.budget, self.strategy).changed(budget, strategy)

    # -- making requests -------------------------------------------------------------------------

    def request(self, aim: Target, *, sent: bool = True, marks: Strategy | None = None) -> Request:
        """The request that shows the conversation as it stands, with the prompt-cache marks of a strategy. With
        `sent=False`, the request is a preview: later cache comparisons and bills ignore it."""
        size = self.tokens(aim)
        builder = self.builder(aim)
        request = builder.request(self._shown, self._fate, self._time)
        request = request.after(self._told) if self._told else request
        last_request = LastRequest(builder.plan, self.repaired(aim), self.last)
        if marks is not None:
            request = builder.marked(
                request, last_request.view.tokens, marks_wanted(self._id, aim, marks, self.decisions)
            )
        self.caches.judge(request, last_request, self.decisions, size if sent else None)
        return request

    def sent_to(self, aim: Target) -> LastRequest:
        """The request that was made last for a target; if none was, the one that would be made now."""
        return self.caches.last(aim) or LastRequest(self.builder(aim).plan, self.repaired(aim), self.last)

    def compaction(self, aim: Target) -> tuple[Request, LastRequest]:
        """The request with the conversation to be compacted, which may end with an answer; and what was sent."""
        self.aim_at(aim)
        builder, shown = self.builder(aim).unanswered(), Conversation.of(self._shown.items)
        sent = LastRequest(builder.plan, builder.repaired(shown, self._fate), self.last)
        return builder.request(shown, self._fate, self._time).after(self._told), sent

    def aside(self, aim: Target, situation: CompactionInput, decisions: Sequence[Decision]) -> Request:
        """The request after decisions that are made for this request alone and not recorded."""
        self.aim_at(aim, folded=True)
        decided = {**self._lasting, **dict(enumerate(decisions, start=self.last + 1))}
        view = [item.shown for block in situation.blocks for item in block.items]
        if situation.gap is not None:  # what is not at hand is small enough to be shown after all
            view = [entry.shown for entry in viewed(list(self._store.read(self._id)), decided)]
        plan, blob = self.builder(aim).plan, self._store.get_blob
        request = build(plan, view, blob, self._fate, self._builders.bindings, self._time).after(
            told(lasting(decided, self.system))
        )
        wanted = marks_wanted(self._id, aim, situation.strategy, self.decisions)
        return Builder(plan, blob).marked(request, situation.size, wanted)

    def tokens(self, aim: Target) -> Count:
        """The size of the conversation as it stands, system text and tools included."""
        self.aim_at(aim)
        if self.gap is not None and self._reach != (reach := usual_reach(self.configuration)):
            self._load(self.counter, reach)  # what was tried within a smaller budget had less at hand
        return Count(self.repaired(aim).tokens + self._gap_size()(), self.counter.id, self.builder(aim).certainty)

    @property
    def head(self) -> tuple[Shown, ...]:
        """The system messages that the conversation begins with, as they are now (see `Changes.head`)."""
        return self._changes.head(self._shown, self._followed, self._lasting)

    @property
    def system(self) -> set[int]:
        """The numbers of the system messages that are shown."""
        system_items = (item for item in self._shown.items if item.shown.message.role == "system")
        return {item.n for item in system_items if item.shown.treatment != "appended"}

    @property
    def items(self) -> Sequence[Item]:
        """The messages in memory as they are shown."""
        return self._shown.items

    def version_decision(self) -> Decision | None:
        """The decision that this version of turnlog shows some records otherwise than the one that made the
        configuration in force; None if it is not needed."""
        return version_decision(self.configuration, self.decisions, self.items, self._curation.is_curated)

    def hides_after(self, n: int) -> bool:
        """Whether records after record `n` may be on record and not in memory: hidden by decisions, or in the gap."""
        hidden = any(decision.action in HIDING and decision.last > n for decision in self.decisions.values())
        return hidden or (self.gap is not None and self.gap[1] > n)

    def curate_ahead(self, messages: Iterable[Shown]) -> None:
        """Shorten the outputs of these messages before a decision needs it, as they are on record."""
        self._curation.see_ahead(messages)

    def newest(self) -> Iterable[Shown]:
        """The messages at hand as they are on record, newest first."""
        return (item.raw for item in reversed(self._shown.items) if item.raw.treatment != "appended")

    def builder(self, aim: Target) -> Builder:
        """The builder of requests for a target."""
        return self._builders.of(self.configuration, aim, self.sections.declared(self._changes.tools))
