"""How full a session's window is, and how requests show its messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from ..errors import InputError, TurnlogError
from ..log.budget import Budget, Strategy, Terms, Thresholds
from ..log.messages import Message
from ..log.records import Decision
from ..log.store import Store
from ..models.target import Target
from ..requests.build import Builder
from ..requests.carried import found_tools, tools_in_prompt
from ..requests.pieces import Conversation
from ..requests.repaired import RepairedView
from ..requests.size import Sizing, as_declared, given_choice, settings_tally, spelled_as
from ..requests.translate import RequestPlan, plan
from ..tokens.calibration import Drift, Prediction
from ..tokens.counters import count_message, counter_for
from ..tokens.protocol import Certainty
from ..view.bound_reasoning import Bound, bindings_of
from ..view.breakdown import Breakdown, Share, Splitter, shares_of
from ..view.compaction.situation import Item
from ..view.decisions import active_decisions
from ..view.explain import Explanation, explain
from ..view.fold import Viewed, viewed
from ..view.provider_compaction import prefixes_of, shown_to
from ..view.tool_calls import fate_of
from .compactor import Compactor
from .state import Context


class WindowUse:
    """How full the model's window is: `Session.window`. All its members raise InputError in a session without a
    target."""

    def __init__(
        self,
        store: Store,
        session_id: str,
        context: Context,
        compactor: Compactor,
        target_or: Callable[[Target | None], Target],
    ) -> None:
        self._store = store
        self._id = session_id
        self._context = context
        self._compactor = compactor
        self._target_or = target_or

    def __repr__(self) -> str:
        try:
            tokens, marks = self.tokens, self._compactor.marks(self._target_or(None))
            available = self.available
        except TurnlogError:  # no target, or the session is closed: there are no figures
            return f"WindowUse({self._id!r})"
        return f"WindowUse({self._id!r}, {tokens:,} of {marks.limit:,} tokens, {available:,} available)"

    @property
    def tokens(self) -> int:
        """The tokens of the conversation now, including system text and tools, without what the provider is expected to
        leave out by itself (context editing)."""
        with self._context.lock:
            self._context.refresh()
            target = self._target_or(None)
            return self._context.tokens(target).tokens - self._context.cleared(target)

    @property
    def available(self) -> int:
        """The tokens left before older messages are left out."""
        self._context.refresh()
        target = self._target_or(None)
        return self._compactor.marks(target).trigger - self._context.tokens(target).tokens

    @property
    def prediction(self) -> Prediction:
        """The tokens that the next request will be billed for, estimated from counts and past bills."""
        with self._context.lock:
            self._context.refresh()
            target = self._target_or(None)
            counted = self._context.tokens(target)
            clears = self._context.cleared(target) > 0
            return self._context.calibration.predict(target.provider, counted, clears=clears)

    @property
    def drift(self) -> Drift | None:
        """A warning if counts for the target's model no longer fit its bills; else None."""
        target = self._target_or(None)
        with self._context.lock:
            return self._context.calibration.drift(target.provider, self._context.tokens(target).counter)

    def breakdown(
        self,
        target: Target | None = None,
        *,
        budget: Budget | int | None = None,
        strategy: Strategy | str | None = None,
    ) -> Breakdown:
        """The tokens of the conversation by kind (system, tools, user, ...), and the budget. `target`, `budget` and
        `strategy` are used instead of the session's own."""
        with self._context.lock:
            terms, wanted_target = (
                self._context.terms(budget, strategy),
                self._target_or(target),
            )  # in this order, as in `preview`
            marks, window = self._compactor.marks(wanted_target, terms), wanted_target.input_limit
            if (terms.budget if terms is not None else self._context.budget).unlimited:
                marks = Thresholds(window, window, window)
            return self._broken_down(wanted_target, marks, terms)

    def _broken_down(self, target: Target, marks: Thresholds, terms: Terms | None) -> Breakdown:
        context, blob = self._context, self._store.get_blob
        changes = context.aim_at(target)
        ways = plan(replace(context.configuration, tools=changes.tools), target)
        counter, records = counter_for(target.provider, target.model), list(self._store.read(self._id))
        sizing = Sizing(counter, blob)
        followed = shown_to(active_decisions(records), target.provider)
        shown = [*viewed(records, changes.untold(followed), changes.messages)]
        items = [Item(entry.shown, sizing.message(entry.shown.message), entry.shown, 0) for entry in shown]
        curated = _saved(shown, items, sizing)
        bindings: dict[int, Bound] = {**dict(bindings_of(records)), **dict(prefixes_of(followed))}
        builder = Builder(ways, blob, sizing, bindings)
        sent = builder.repaired(Conversation.of(items), fate_of(records))
        shares, certainty = _shares(ways, sent, Splitter(counter, blob))
        terms = terms or Terms(context.budget, context.strategy)
        named = target.provider, target.model, terms.strategy.name, terms.budget
        return Breakdown(*named, marks, shares, certainty, counter.id, curated)


def _shares(ways: RequestPlan, sent: RepairedView, splitter: Splitter) -> tuple[tuple[Share, ...], Certainty]:
    """The tokens of a request by kind, and how far to trust them."""
    view = [replace(shown, message=spelled_as(shown.message, ways.rules)) for shown in sent.closed.view]
    loaded, counter = found_tools(shown.message for shown in sent.closed.view), splitter.counter
    shown_tools = tools_in_prompt(as_declared(sent.tools, ways.rules), ways.provider, loaded)
    declared = counter.tools(shown_tools, given_choice(ways))
    settings = settings_tally(ways.local.settings, counter, ways.provider)
    around = counter.frame(system=sent.system, tools=bool(sent.tools)) + settings
    splitter.keep(view)
    return shares_of(view, sent.sizes, declared, around, splitter)


class WindowOverTime:
    """What fills the window as a log grows: the shares of `WindowUse.breakdown`, each message counted once."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._context = Context(store, session_id)
        self._blob = store.get_blob
        self._splitter: Splitter | None = None

    def now(self, target: Target) -> tuple[Share, ...]:
        """The shares of the log as it is now; none if it is so far beyond its budget that not all of it is at hand."""
        context = self._context
        context.refresh()
        context.aim_at(target)
        if context.gap is not None:
            return ()
        counter = counter_for(target.provider, target.model)
        if self._splitter is None or self._splitter.counter.id != counter.id:
            self._splitter = Splitter(counter, self._blob)
        return _shares(context.builder(target).plan, context.repaired(target), self._splitter)[0]


def _saved(view: Sequence[Viewed], items: Sequence[Item], sizing: Sizing) -> tuple[tuple[str, int], ...]:
    """The tokens that curation saved, by what the outputs are, the largest first."""
    saved: dict[str, int] = {}
    for entry, item in zip(view, items, strict=True):
        if entry.curator:
            saved[entry.curator] = saved.get(entry.curator, 0) + sizing.message(entry.decided.message) - item.tokens
    return tuple(sorted(saved.items(), key=lambda pair: (-pair[1], pair[0])))


def explained(store: Store, session_id: str, target: Target | None, also: Mapping[int, Decision] | None) -> Explanation:
    """As `Session.explain`, with tokens counted for a target; without a target, as for an unknown model."""
    if also is not None and not isinstance(also, Mapping):
        raise InputError(f"explain(also=...) must be a dict from record number to Decision, not {type(also).__name__}")
    counter = counter_for(target.provider, target.model) if target else counter_for("")

    def count(message: Message) -> int:
        return count_message(message, counter, store.get_blob).tokens

    return explain(list(store.read(session_id)), count, also, target.provider if target else "")
