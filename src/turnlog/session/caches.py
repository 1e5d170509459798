"""What the prompt caches of providers hold of a session, as far as its log and its requests tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..log.actions import SHOWN_BY
from ..log.budget import Strategy
from ..log.records import Decision, Record, UsageRecord
from ..log.store import Store
from ..log.usage import CacheRead, Count
from ..models.catalog import model_name
from ..models.target import Target
from ..providers.protocol import CacheMiss
from ..requests.prompt_cache import (
    SMALLEST,
    Bill,
    Bills,
    LastRequest,
    MarksWanted,
    cache_prices,
    cache_rules,
    entry_at,
    has_breakpoints,
    has_expired,
    keeps_long,
    lifetime_of,
    marked_ends,
    read_of,
    same_messages,
    tokens_until,
    use_of,
)
from ..requests.request import Request

# -- cache report ----------------------------------------------------------------------------------
#
# What the requests of a session were expected to read from prompt caches, and what they read.


class CacheOutcome(Struct, frozen=True, repr_omit_defaults=True):
    """One request: `expected` is what it was expected to read from the cache (None: not on record), `read` and
    `written` what the provider billed, `input` its size, all in billed tokens.

    `n` is the number of the usage record. `changed`, `why` and `reason` are those of the record's `cache`: what turnlog
    knows to have changed since the request before, and what the provider says.
    """

    n: int
    provider: str
    model: str
    input: int
    read: int
    written: int
    expected: int | None = None
    changed: str = ""
    why: str = ""
    reason: str | None = None


class CacheReport:
    """The requests of a session that were billed, oldest first: `Session.cache`."""

    def __init__(self, store: Store, session_id: str) -> None:
        self._store = store
        self._id = session_id

    def __repr__(self) -> str:
        return f"CacheReport({self._id!r})"

    def __iter__(self) -> Iterator[CacheOutcome]:
        return map(outcome_of, self._store.of_kinds(self._id, ("usage",)))

    @property
    def last(self) -> CacheOutcome | None:
        """The request that was billed last; None if none was."""
        return next(map(outcome_of, self._store.of_kinds(self._id, ("usage",), reverse=True)), None)


def outcome_of(record: Record) -> CacheOutcome:
    """What a usage record says of the cache."""
    bill = record.body
    assert isinstance(bill, UsageRecord)
    size, cache_read = bill.usage.window or bill.usage.input, bill.cache or CacheRead()
    return CacheOutcome(
        n=record.n,
        provider=bill.provider,
        model=bill.model,
        input=size,
        read=bill.usage.cached,
        written=bill.usage.cache_write,
        expected=None if bill.cache is None else cache_read.expected,
        changed=cache_read.changed,
        why=cache_read.why,
        reason=cache_read.reason,
    )


LIFETIME = "cache_lifetime"
"""The action of decisions on how long the cache of a model is kept."""

_REMEMBERED = 3
"""The number of targets whose last request is remembered."""


class _Held(Struct, frozen=True):
    """The last request to a model, and the entries that its cache holds of it: their tokens, by the number of messages
    in them."""

    sent: LastRequest
    entries: Mapping[int, int]


class Caches:
    """The last request to each of the last few targets, and the bills of the session."""

    def __init__(self) -> None:
        self._asked: tuple[Target, Count, CacheRead] | None = None
        self._bills = Bills()
        self._seen = 0
        self._held: dict[tuple[str, str], _Held] = {}

    def take(self, records: Iterable[Record]) -> None:
        """Take in the records not seen before. Bills count even if a rewind took their records back since."""
        for record in records:
            if record.n > self._seen:
                rules = cache_rules(record.body.model) if isinstance(record.body, UsageRecord) else None
                self._bills, self._seen = self._bills.observe(record, rules), record.n

    def last(self, target: Target) -> LastRequest | None:
        """The last request to the model of a target."""
        held = self._held.get((target.provider, target.model))
        return None if held is None else held.sent

    def lifetime(self, target: Target, decisions: Mapping[int, Decision], strategy: Strategy) -> Decision | None:
        """The decision to keep new cache entries of a model longer from now on, or no longer; None if nothing has to
        change."""
        bill, prices = self._bills.of(target.provider, target.model), cache_prices(target.model)
        if bill is None or prices is None or not strategy.cache_marks or strategy.cache_ttl != "auto":
            return None
        since, is_long = lifetime_in_force(target, decisions)
        rules = cache_rules(target.model)
        long = keeps_long(rules, self._bills, bill, prices, since, long=is_long)
        if long == is_long:
            return None
        seconds = lifetime_of(rules, long=long) or 0
        why = f"by the pauses between requests, keeping the prompt cache for {seconds // 60} minutes costs less"
        detail = {"provider": target.provider, "model": model_name(target.model), "long": long}
        return Decision(LIFETIME, why=why, detail=detail)

    def judge(self, made: Request, now: LastRequest, decisions: Mapping[int, Decision], size: Count | None) -> None:
        """Set in a request how much it repeats of the last request to its model, and what it should read from the
        cache. With its `size`, it is remembered as the last request, because it is going to be sent."""
        target = now.plan.target
        held = self._held.get((target.provider, target.model))
        if held is not None:
            made.cache = use_of(now, held.sent, decisions)
        expected = self._expected(made, now, held, decisions)
        made.expected_cache_read = expected.expected
        if size is not None:
            self._asked = target, size, expected
            entries = _entries(now, held)
            others = [item for item in self._held.items() if item[0] != (target.provider, target.model)]
            self._held = {(target.provider, target.model): _Held(now, entries), **dict(others[: _REMEMBERED - 1])}

    def answered(self, target: Target) -> tuple[Count | None, CacheRead | None]:
        """The size of the request that was sent last, and what it should read from the cache if it was for this target;
        None for both if it was answered already."""
        asked, self._asked = self._asked, None
        if asked is None:
            return None, None
        same = (asked[0].provider, asked[0].model) == (target.provider, target.model)
        return asked[1], asked[2] if same else None

    def _expected(
        self, made: Request, now: LastRequest, held: _Held | None, decisions: Mapping[int, Decision]
    ) -> CacheRead:
        target = now.plan.target
        bill, rules = self._bills.of(target.provider, target.model), cache_rules(target.model)
        use = made.cache
        cause = CacheRead(0, use.changed, use.why) if use is not None else CacheRead()
        if bill is None:
            return replace(cause, why=cause.why or "no request to this model was billed before")
        age = self._bills.age(bill)
        if has_expired(rules, bill, age):
            assert age is not None
            return replace(cause, why=cause.why or f"the request before was {age:,.0f} seconds ago")
        if rules.mode is None and not bill.kept:
            return replace(cause, why=cause.why or "this model is not known to have a cache")
        if held is None:
            share, cause = _share_on_record(now, bill, decisions)
        elif use is not None and use.shared < use.previous:
            cached = _entry(now, held) if rules.mode == "marked" or rules.breakpoints else use.shared
            share = cached / max(1, use.previous)
        else:
            share = 1.0
        read = read_of(rules, bill, share, rules.minimum or SMALLEST)
        return replace(cause, expected=min(read, max(bill.input, now.view.tokens)))


def lifetime_in_force(target: Target, decisions: Mapping[int, Decision]) -> tuple[int, bool]:
    """The number of the newest decision on how long the cache of a model is kept, and whether that is long; 0 and False
    if there is none."""
    name = target.provider, model_name(target.model)
    for n, decision in reversed([*decisions.items()]):
        if decision.action == LIFETIME and (decision.detail.get("provider"), decision.detail.get("model")) == name:
            return n, decision.detail.get("long") is True
    return 0, False


def marks_wanted(session_id: str, target: Target, strategy: Strategy, decisions: Mapping[int, Decision]) -> MarksWanted:
    """Which prompt-cache marks the requests of a session get."""
    chosen = strategy.cache_ttl
    long = chosen == "1h" if chosen != "auto" else lifetime_in_force(target, decisions)[1]
    return MarksWanted(session_id, strategy.cache_marks, long)


def doubt(cache: CacheRead | None, miss: CacheMiss | None) -> str:
    """A warning if what a provider reports about its cache contradicts what turnlog knows; "" if not."""
    if cache is None or miss is None or not miss.changed or cache.changed in miss.changed:
        return ""
    told = f"says {miss.reason!r}" if miss.reason else "found no change"
    change = f"{cache.changed}: {cache.why}" if cache.changed else "nothing that it sent"
    return f"of the request's prompt cache, the provider {told}; turnlog changed {change}"


def _ends(now: LastRequest) -> list[int]:
    return marked_ends(now.view.closed.view, breakpoints=has_breakpoints(now.plan.target))


def _entry(now: LastRequest, held: _Held) -> int:
    """The tokens of the longest entry of the cache that a request finds."""
    same, lookback = same_messages(now, held.sent), cache_rules(now.plan.target.model).lookback
    return entry_at(now.view.closed.view, held.entries, same, _ends(now), lookback)


def _entries(now: LastRequest, held: _Held | None) -> dict[int, int]:
    """The entries that the cache holds after a request: those that it may have found, and those at its own marks."""
    same = 0 if held is None else same_messages(now, held.sent)
    before = {} if held is None else {end: tokens for end, tokens in held.entries.items() if end <= same}
    return before | {end: tokens_until(now.view, end) for end in _ends(now)}


def _share_on_record(now: LastRequest, bill: Bill, decisions: Mapping[int, Decision]) -> tuple[float, CacheRead]:
    """The share of the last billed request with which this request begins, and what has changed since then, if only the
    log can tell."""
    if bill.configured:
        return 0.0, CacheRead(0, "settings", "the configuration changed")
    later = [decision for n, decision in decisions.items() if n > bill.n and decision.action in SHOWN_BY]
    if not later or not bill.counted:
        return 1.0, CacheRead()
    moved = min(later, key=lambda decision: int(decision.detail.get("changes_from", decision.first)))
    first = moved.detail.get("changes_from", moved.first)
    view = now.view.closed.view
    same = next((i for i, shown in enumerate(view) if max(shown.records, default=0) >= first), len(view))
    share = min(1.0, tokens_until(now.view, same) / bill.counted)
    return share, CacheRead(0, "messages", moved.why)
