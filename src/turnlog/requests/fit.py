"""Make plain request bodies fit a budget: a single one (`fit`), or those of a growing history (`Fitter`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from threading import RLock
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from .._platform.given import text_given
from .._platform.units import counted
from ..errors import BudgetError
from ..log.budget import Budget, Strategy, read_budget, read_strategy
from ..log.messages import Media, Message, Text, images_in
from ..log.records import Binding, Decision
from ..models.target import Target
from ..providers import provider as provider_named
from ..providers.protocol import BlobReader
from ..providers.recognise import provider_of
from ..summarize import Digest, Material, MemoryLedger, Summarizer, attempt
from ..summarize.model import Complete, as_ladder
from ..summarize.notes import NoteCache
from ..summarize.orders import orders_of
from ..tokens.calibration import MARGINS
from ..tokens.counters import WORD, checked_counter, count_message, counter_for
from ..tokens.protocol import Counter, tokens_said
from ..view.compaction.decide import decide, situation_of
from ..view.compaction.situation import CompactionInput, Curation, Item, Ports, Summary, SummaryRequest
from ..view.curate.conversation import Rule
from ..view.decisions import failures_of, lasting
from ..view.fold import as_decided
from ..view.repair.media_room import held, longest_side, media_of, room_for
from ..view.rules import Rules
from ..view.types import Edit, Loss, Shown
from .build import Builder, conversation_of
from .carried import found_tools, tools_in_prompt
from .count import as_turns, tally_of
from .pieces import messages_of, wire_messages
from .prompt_cache import MarkPlaces, cache_prices, has_breakpoints
from .repaired import tools_for
from .request import Request
from .size import Sizing, as_declared, choice_of, settings_tally, spelled_as
from .standalone import aimed, as_json, given_bindings
from .translate import RequestPlan, plan

# -- fit history -----------------------------------------------------------------------------------
#
# A history that is fitted again and again: its messages, and the decisions about them.


class FitCounter(Protocol):
    """A counter of messages; `id` is its name."""

    @property
    def id(self) -> str:
        """The name of the counter."""

    def message(self, message: Message) -> int:
        """The tokens of a message."""


class FitHistory(Struct, eq=False):
    """Messages, their sizes by one counter, and the decisions about them. `spare` tokens are left free, because whole
    requests counted that many more than their messages. `bindings` are the bindings of answers among the first `bound`
    messages; `last_binding` is the binding of an answer to the last request. `curation` caches how tool outputs were
    curated."""

    seen: list[Message] = []
    sizes: list[int] = []
    counter: str = ""
    decisions: dict[int, Decision] = {}
    spare: int = 0
    bindings: dict[int, Binding] = {}
    bound: int = 0
    last_binding: Binding | None = None
    curation: Curation | None = None

    def bind(self, ways: RequestPlan) -> None:
        """Add the bindings of new answers: to the last request, or, the first time, to the history as it was given."""
        if not self.bound:
            view = [Shown(message, (n,)) for n, message in enumerate(self.seen, start=1)]
            self.bindings = given_bindings(view, ways)
        elif self.last_binding is not None:
            later = range(self.bound + 1, len(self.seen) + 1)
            answer = next((n for n in later if self.seen[n - 1].role == "assistant"), 0)
            self.bindings |= {answer: self.last_binding} if answer else {}
        self.bound = len(self.seen)

    def common(self, messages: Sequence[Message]) -> int:
        """How many messages of the history `messages` begins with. System text in the same place counts as equal even
        if it differs, unless a decision shortened it: no other decision depends on system text."""
        for i, (seen, message) in enumerate(zip(self.seen, messages, strict=False)):
            if seen != message and not (seen.role == message.role == "system" and i + 1 not in self._shortened()):
                return i
        return min(len(self.seen), len(messages))

    def _shortened(self) -> set[int]:
        details = [decision.detail for decision in self.decisions.values()]
        return {entry[0] for detail in details for key in ("texts", "cuts") for entry in detail.get(key, ())}

    def until(self, same: int) -> FitHistory:
        """A new history with the first `same` messages and the decisions that concern only these."""
        decisions = takewhile(
            lambda numbered: max(numbered[1].last, numbered[1].detail.get("at", 0) - 1) <= same, self.decisions.items()
        )
        bindings = {n: binding for n, binding in self.bindings.items() if n <= same}
        bound = min(self.bound, same)
        return FitHistory(
            self.seen[:same], self.sizes[:same], self.counter, dict(decisions), self.spare, bindings, bound
        )

    def take(self, messages: Sequence[Message], counting: FitCounter) -> None:
        """Replace the messages with the current ones. Sizes of unchanged messages are kept."""
        sized = len(self.seen) if self.counter == counting.id else 0
        for i, seen in enumerate(self.seen[:sized]):
            if seen.role == "system" and seen != messages[i]:  # the others are the same
                self.sizes[i] = counting.message(messages[i])
        self.sizes[sized:] = [counting.message(message) for message in messages[sized:]]
        self.seen, self.counter = list(messages), counting.id

    def forget(self, made: int) -> None:
        """Keep only the first `made` decisions, so that a request that failed changes nothing."""
        self.spare = 0
        while len(self.decisions) > made:
            self.decisions.popitem()

    def size(self, shown: Shown, raw: Shown, counting: FitCounter) -> int:
        """The tokens of a message as shown."""
        if shown is raw and shown.treatment == "verbatim":
            return self.sizes[raw.records[0] - 1]
        return counting.message(shown.message)


CountBody = Callable[[list[Any]], int]
"""A function that takes a list of a provider's messages and returns their tokens."""

_DECISIONS = 1_000_000_000
"""The numbers of a fitter's decisions are greater than this, so that they differ from the numbers of messages."""

_ATTEMPTS = 8

_HISTORIES = 4
"""How many histories are remembered, for repeated tries of a turn and for conversations that alternate."""

_COUNTER = (
    "counter: give a counter of turnlog.tokens, or a function that takes a list of the provider's messages and returns "
    "their tokens"
)


class Fitted(Struct, frozen=True, kw_only=True):
    """A request within its budget.

    `edits` are all changes: what was left out, masked, cut or summarised, and what the provider would have refused.
    `tokens` is the size of the whole request. `marks` are the indices of at most 4 messages in `body` after which
    prompt-cache marks are best put: everything up to them stays the same in later requests. `decisions` are the
    decisions of this and of earlier calls.
    """

    body: dict[str, Any]
    edits: tuple[Edit, ...]
    losses: tuple[Loss, ...]
    tokens: int
    marks: tuple[int, ...]
    decisions: tuple[Decision, ...]
    view: tuple[Shown, ...]

    def __repr__(self) -> str:
        sizes = (
            (len(self.view), "message"),
            (self.tokens, "token"),
            (len(self.edits), "edit"),
            (len(self.losses), "loss"),
        )
        return f"Fitted({', '.join(counted(*size) for size in sizes)})"

    @property
    def failures(self) -> tuple[str, ...]:
        """One line for each summarizer that failed, so that the next one was used."""
        return failures_of(self.decisions)


def fit(
    body: Mapping[str, Any],
    provider: str = "",
    *,
    max_tokens: int | Budget = 0,
    model: str = "",
    strategy: Strategy | str = "auto",
    counter: Counter | CountBody | None = None,
    summarizer: Summarizer | Complete | None = None,
) -> Fitted:
    """A valid request body of at most `max_tokens` tokens (0: what the model takes).

    Stateless and deterministic: the same arguments give the same request. The arguments are those of `Fitter`. Raises
    BudgetError if the parts that cannot be left out are larger, FormatError if `body` is not a request of its provider,
    InputError if no provider is given and none can be detected from the body.
    """
    fitter = Fitter(
        provider,
        max_tokens=max_tokens,
        model=model,
        strategy=strategy,
        counter=counter,
        summarizer=summarizer,
    )
    return fitter.fit(body)


class Fitter:
    """Fits a conversation that you pass in full each time and that grows between calls. Earlier decisions are kept, so
    each request begins with the previous one until a new decision is needed.

    `provider` is detected from the body if not given, and `model` defaults to the body's own. `max_tokens` is the most
    tokens of a whole request, or a Budget; 0 is what the model takes. `counter` replaces the built-in counter: a
    `Counter`, or a function that takes a list of the provider's messages and returns their tokens. `summarizer` writes
    summaries; the default needs no model.

    If a history differs from all earlier ones, it is treated as a new conversation from the first different message on:
    a turn that is tried again, a message that was changed, another conversation. Decisions about the messages before
    the difference stay in force; system text may change. Only the last few histories are remembered: for more
    conversations at a time, make a Fitter for each. Threads that share a Fitter wait for each other.
    """

    def __init__(
        self,
        provider: str = "",
        *,
        max_tokens: int | Budget = 0,
        model: str = "",
        strategy: Strategy | str = "auto",
        counter: Counter | CountBody | None = None,
        summarizer: Summarizer | Complete | None = None,
    ) -> None:
        self._budget = read_budget(max_tokens)
        self._strategy = read_strategy(strategy)
        self._model = "" if model is None else text_given("model", model)
        self._provider = provider_named(provider).name if provider not in (None, "") else ""
        self._counter = _checked(counter)
        self._models = as_ladder(summarizer)
        self._ledger = MemoryLedger()
        self._offline = Digest(NoteCache())
        self._histories: list[FitHistory] = []  # the one used last is at the end
        self._lock = RLock()  # one thread at a time: a history must not change while it is in use

    def __repr__(self) -> str:
        seen = counted(len(self._histories[-1].seen), "message") if self._histories else "nothing seen"
        return f"Fitter({self._budget.max_tokens or 'the window'}, {self._strategy.name or 'its own strategy'}, {seen})"

    def fit(self, body: Mapping[str, Any]) -> Fitted:
        """The request for this history. Raises the errors of `turnlog.fit`."""
        with self._lock, as_json(body) as plain:
            return self._fit(plain)

    def _fit(self, body: Mapping[str, Any]) -> Fitted:
        speaker = provider_named(self._provider or provider_of(body))
        parsed = speaker.parse(body)
        target = aimed(parsed, speaker.name, self._model)
        ways = plan(parsed.configuration, target, complete=False)
        counter = self._counter if self._counter is not None else counter_for(target.provider, target.model)
        counting: _Counting
        if callable(counter):
            counting = _ByFunction(counter, ways, parsed.blob)
        else:
            counting = _ByCounter(counter, ways, parsed.blob)
        history = self._history(parsed.messages, counting)
        history.bind(ways)
        decisions_before = len(history.decisions)
        for spare in dict.fromkeys((history.spare, 0)):  # the spare of another request must not make this one fail
            history.spare = spare
            try:
                return self._within(history, counting, target, ways)
            except BudgetError as error:
                refusal = error
                history.forget(decisions_before)
        raise refusal

    def _within(self, history: FitHistory, counting: _Counting, target: Target, ways: RequestPlan) -> Fitted:
        """The request for a history, within the limit. If a built request is too large, more is left out."""
        for _ in range(_ATTEMPTS):
            situation = self._decided(history, counting, target, ways.rules)
            shown = [item.shown for block in situation.blocks for item in block.items]
            builder = Builder(ways, counting.blob, bindings=history.bindings)
            conversation = conversation_of(shown)
            request = builder.request(conversation, {})
            tokens = counting.request(request)
            limit = situation.marks.limit
            if tokens <= limit:
                history.last_binding = builder.binding(builder.repaired(conversation, {}))
                return _fitted(history, request, tokens, ways, counting)
            # A whole request may count more than its messages one by one. Leave out so much that the rest fits.
            history.spare += limit - situation.size + 1
        advice = ("a larger max_tokens", "less in the newest turn")
        raise BudgetError(limit, {"the request": tokens}, given=situation.given, advice=advice)

    def _history(self, messages: Sequence[Message], counting: _Counting) -> FitHistory:
        """The remembered history that these messages continue, with the new messages added."""
        history, same = FitHistory(), 0
        for remembered in reversed(self._histories):
            begins = remembered.common(messages)
            if begins == len(remembered.seen):
                history, same = remembered, begins
                self._histories.remove(remembered)
                break
            if begins > same:
                history, same = remembered, begins
        if same < len(history.seen):
            history = history.until(same)
        self._histories = [*self._histories[1 - _HISTORIES :], history]
        history.take(messages, counting)
        return history

    def _decided(self, history: FitHistory, counting: _Counting, target: Target, rules: Rules) -> CompactionInput:
        """The situation of a history after new decisions, which are added to the history."""
        originals = [Shown(message, (n,)) for n, message in enumerate(history.seen, start=1)]
        curation = history.curation = history.curation or Curation(Rule.of(self._strategy), named=False)
        items = curation.items(
            [
                Item(shown, (size := history.size(shown, raw, counting)), raw, place, size)
                for place, shown, raw in as_decided(originals, history.decisions)
            ],
            counting,
        )

        def side(media: Media) -> int:
            return longest_side(media, counting.blob)

        situation = situation_of(
            items,
            self._budget,
            self._strategy,
            self._ports(history, counting, originals, curation, reflective=target.abilities.reflective),
            window=target.input_limit,
            fixed=counting.fixed + history.spare,
            number=_DECISIONS + len(history.decisions) + 1,
            scale=counting.scale,
            known=target.known,
            prices=cache_prices(target.model),
            room=room_for(held(media_of(item.shown for item in items), rules, side), rules),
        )
        decisions, situation = decide(situation, list(history.decisions.values()))
        for decision in decisions:
            history.decisions[_DECISIONS + len(history.decisions) + 1] = decision
        return situation

    def _ports(
        self,
        history: FitHistory,
        counting: _Counting,
        originals: Sequence[Shown],
        curation: Curation,
        *,
        reflective: bool,
    ) -> Ports:
        def summarise(wanted: SummaryRequest) -> Summary:
            material = Material.of(wanted, counting.text, reflective=reflective)
            outcome = attempt(material, self._models, offline=self._offline, ledger=self._ledger)
            return Summary(outcome.text, outcome.summarizer, tuple(map(str, outcome.failures)))

        def read(first: int, last: int) -> Iterable[Shown]:
            return reversed(originals[first - 1 : last])

        def words(first: int, last: int) -> Iterable[Shown]:
            return (shown for shown in originals[first - 1 : last] if shown.message.role == "user")

        def images_before(n: int) -> int:
            return sum(images_in(shown.message) for shown in originals[: n - 1])

        def curated(items: Sequence[Item], also: frozenset[int], whole_reads: bool) -> Sequence[Item]:
            return curation.items(items, counting, also, whole_reads=whole_reads)

        ports = Ports(counting.message, counting.text, read, summarise, images_before, decisions=history.decisions)
        return msgspec.structs.replace(ports, curated=curated, orders=orders_of, words=words)


def _fitted(history: FitHistory, made: Request, tokens: int, ways: RequestPlan, counting: _Counting) -> Fitted:
    system = {n for n, message in enumerate(history.seen, start=1) if message.role == "system"}
    changes = tuple(
        Edit(decision.action, decision.why, (decision.first,), through=decision.last)
        for decision in lasting(history.decisions, system).values()
    )
    return Fitted(
        body=made.body,
        edits=(*changes, *made.edits),
        losses=made.losses,
        tokens=tokens,
        marks=MarkPlaces(ways, counting.blob).of(made.view, made.body, breakpoints=has_breakpoints(ways.target)),
        decisions=tuple(history.decisions.values()),
        view=made.view,
    )


class _ByCounter:
    """Sizes as a `Counter` counts them."""

    def __init__(self, counter: Counter, ways: RequestPlan, blob: BlobReader) -> None:
        self.id = counter.id
        self.blob = blob
        self._counter = counter
        self._ways = ways
        self.fixed = Sizing(counter, blob).around(ways, ways.local.tools, system=True)
        self.scale = MARGINS[counter.messages((WORD,)).certainty]

    def message(self, message: Message) -> int:
        """Tokens of a message as part of a request."""
        return count_message(spelled_as(message, self._ways.rules), self._counter, self.blob).tokens

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return _number(self._counter.text(text))

    def request(self, made: Request) -> int:
        """Tokens of a whole request."""
        rules, local = self._ways.rules, self._ways.local
        spelled = [spelled_as(shown.message, rules) for shown in made.view]
        turns = as_turns(spelled, self._ways.provider)
        declared = as_declared(tools_for(self._ways, made.view)[0], rules)
        tools = tools_in_prompt(declared, self._ways.provider, found_tools(turns))
        choice = choice_of(local.settings, self._ways.provider)
        tally = tally_of(self._counter, turns, tools, choice, self.blob)
        return (tally + settings_tally(local.settings, self._counter, self._ways.provider)).tokens


class _ByFunction:
    """Sizes as a function of the caller counts wire messages; everything else in a request counts as 0 tokens."""

    id = "the caller's"
    fixed = 0
    scale = 1.0

    def __init__(self, count: CountBody, ways: RequestPlan, blob: BlobReader) -> None:
        self.blob = blob
        self._count = count
        self._ways = ways

    def message(self, message: Message) -> int:
        """Tokens of a message as part of a request."""
        return _number(self._count(wire_messages([Shown(message, (1,))], self._ways, self.blob)))

    def text(self, text: str) -> int:
        """Tokens of a text."""
        return self.message(Message("user", (Text(text),)))

    def request(self, made: Request) -> int:
        """Tokens of a whole request."""
        return _number(self._count(messages_of(made.body, self._ways)))


_Counting = _ByCounter | _ByFunction


def _checked(counter: Counter | CountBody | None) -> Counter | CountBody | None:
    """The counter, tested with one word. A function is not tested here, as it takes messages of a provider. Raises
    InputError."""
    if counter is None or (callable(counter) and not isinstance(counter, type)):
        return counter
    return checked_counter(counter, _COUNTER)


def _number(said: Any) -> int:
    """The value that a counter returned, if it is a number of tokens. Raises InputError."""
    return tokens_said(said, "counter()")
