"""Prompt-cache marks against the best that could have been placed, with all requests known in advance.

Prices and rules are those of the shared context bench (cost.py). For GPT-5.6: a request reads the longest prefix that
an earlier request wrote and that ends at a block, and pays for writing the rest up to its last mark.

Short sessions are the recorded ones of the bench, cut after 12 requests, and its airline conversations of at most 12;
at a 20 % budget and whole. Turnlog's marks are compared with two plans, both found by dynamic programming over the ends
of blocks: `best`, which also leaves the provider's own mark at the newest message, and `free`, which does without that
mark wherever this is cheaper, as only somebody can who knows that a request is the last one. Whole sessions are
compared with keeping everything, and with marks after every message. Bars: 1.05 of `best`, no more marks than the
provider writes, the shares in `BARS`, 1.02 of marks everywhere; and for how long Anthropic's cache
is kept, 1.05 of the better of both choices for each session, known only afterwards.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any, NamedTuple

from harness import Report, bench, module, shared
from quality import context
from turnlog.errors import BudgetError
from turnlog.log.messages import Message
from turnlog.log.records import MessageRecord, Record, UsageRecord
from turnlog.log.usage import Usage
from turnlog.requests.prompt_cache import Bills, Pause, cache_prices, cache_rules, keeps_long

BAR, REQUESTS, SHARE = 1.05, 12, 0.2
BARS = {"gpt-5.6 (own marks)": 0.55, "anthropic 5m (own marks)": 0.501, "openai prefix (gpt-5.2)": 0.475}
"""The most that sessions within a 20 % budget may cost, of keeping everything."""

OF_BOUND, OF_BETTER = 1.02, 1.05
READ, WRITE = 0.1, 1.25
MINIMUM, LIFETIME, EXPLICIT = 1_024, 1_800.0, 3


class Sent(NamedTuple):
    """A request: the running hashes and sizes of its messages, those that may be marked, its time, turnlog's marks."""

    keys: list[int]
    sizes: list[int]
    eligible: list[int]
    time: float
    marks: tuple[int, ...]


Alive = frozenset[tuple[int, float]]
"""The entries of a cache: the hash of a prefix and the time of its last use."""


def reads(sent: Sent, alive: Alive, upto: int) -> int:
    """The index of the last message of the longest prefix that is in the cache, up to message `upto`; else -1."""
    known = {key for key, time in alive if sent.time - time <= LIFETIME}
    return next((i for i in range(upto, -1, -1) if sent.keys[i] in known), -1)


def price(sent: Sent, alive: Alive, marks: Sequence[int]) -> tuple[float, Alive]:
    """What a request costs, in uncached input tokens, and the cache after it."""
    total = sent.sizes[-1]
    if not marks:
        return float(total), alive
    hit = reads(sent, alive, max(marks))
    read = sent.sizes[hit] if hit >= 0 else 0
    written = max(0, sent.sizes[max(marks)] - read) if sent.sizes[max(marks)] >= MINIMUM else 0
    new = {sent.keys[mark] for mark in marks if sent.sizes[mark] >= MINIMUM} | ({sent.keys[hit]} if hit >= 0 else set())
    rest = frozenset((key, time) for key, time in alive if key not in new and sent.time - time <= LIFETIME)
    cost = READ * read + WRITE * written + (total - read - written)
    return cost, rest | {(key, sent.time) for key in new}


def useful(requests: Sequence[Sent], at: int) -> list[int]:
    """The messages of a request after which a later request differs: nothing is gained by marks anywhere else."""
    now, found = requests[at], set[int]()
    for later in requests[at + 1 :]:
        same = next(
            (i for i, (a, b) in enumerate(zip(now.keys, later.keys, strict=False)) if a != b),
            min(len(now.keys), len(later.keys)),
        )
        ends = [i for i in now.eligible if i < same]
        found.update(ends[-1:])
    return sorted(found)


def best(requests: Sequence[Sent], *, own: bool) -> float:
    """The least that the requests can cost. With `own`, the provider marks the newest message of each."""
    states: dict[Alive, float] = {frozenset(): 0.0}
    for at, sent in enumerate(requests):
        wanted = useful(requests, at)
        last = sent.eligible[-1]
        plans: Iterable[tuple[int, ...]]
        if own:
            few = below(wanted, last)
            plans = [(*some, last) for some in combinations(few, min(len(few), EXPLICIT))]
        else:
            ends = sorted({*wanted, *reachable(sent, states), last})
            plans = [(), *((*below(wanted, end), end) for end in ends)]
        after: dict[Alive, float] = {}
        readers = readers_of(requests[at + 1 :])
        for alive, spent in states.items():
            for marks in plans:
                cost, now = price(sent, alive, marks)
                now = worth_keeping(now, readers)
                after[now] = min(after.get(now, float("inf")), spent + cost)
        states = pruned(after)
    return min(states.values())


def below(places: Sequence[int], end: int) -> list[int]:
    """The places before this one."""
    return [place for place in places if place < end]


def reachable(sent: Sent, states: Iterable[Alive]) -> set[int]:
    """The messages at which an entry of the cache ends: to read one, a request needs a mark there or behind it."""
    hits = (reads(sent, alive, len(sent.keys) - 1) for alive in states)
    return {hit for hit in hits if hit >= 0}


def readers_of(requests: Sequence[Sent]) -> dict[int, tuple[frozenset[int], int]]:
    """For each prefix, the requests that begin with it, and its place in them."""
    found: dict[int, tuple[set[int], int]] = {}
    for i, sent in enumerate(requests):
        for place, key in enumerate(sent.keys):
            found.setdefault(key, (set(), place))[0].add(i)
    return {key: (frozenset(some), place) for key, (some, place) in found.items()}


def worth_keeping(alive: Alive, readers: dict[int, tuple[frozenset[int], int]]) -> Alive:
    """The entries that a later request may read because no longer one serves it as well."""
    entries = [(*readers[key], key, time) for key, time in alive if key in readers]
    return frozenset(
        (key, time)
        for who, place, key, time in entries
        if not any(who <= others and place < further and time <= later for others, further, _, later in entries)
    )


def pruned(states: dict[Alive, float]) -> dict[Alive, float]:
    """Without caches that cost more than another one that holds the same and more."""
    kept: dict[Alive, float] = {}
    for alive, spent in sorted(states.items(), key=lambda item: (item[1], -len(item[0]))):
        if not any(serves(other, alive) for other in kept):
            kept[alive] = spent
    return kept


def serves(one: Alive, other: Alive) -> bool:
    """Whether a cache holds everything that another one holds, for as long or longer."""
    times = dict(one)
    return all(times.get(key, -1.0) >= time for key, time in other)


def requests_of(session: Any, view: Callable[[Any], Any], costs: Any) -> list[Sent]:
    """The requests of a recorded session, as a policy of the bench makes them."""
    found: list[Sent] = []
    now = 0.0
    for at in session.calls()[:REQUESTS]:
        history = session.messages[:at]
        gap = costs.gaps_real(session, at)
        now += costs.gaps_default(history, at) if gap is None else gap
        try:
            messages = view(history)
        except BudgetError:  # no request is made
            continue
        keys, sizes, key, size = [], [], 0, 0
        for message in messages:
            key, size = hash((key, costs.key_of(message))), size + costs.ntok(message)
            keys.append(key)
            sizes.append(size)
        eligible = [i for i, message in enumerate(messages) if message["role"] != "assistant"]
        marks = {max((i for i in eligible if i <= mark), default=-1) for mark in view.marks or ()} - {-1}
        found.append(Sent(keys, sizes, eligible, now, tuple(sorted(marks))))
    return found


def cost_of(requests: Sequence[Sent], marks_of: Callable[[Sent], Iterable[int]]) -> float:
    """What the requests cost with these marks, and the provider's own at the newest message."""
    alive: Alive = frozenset()
    spent = 0.0
    for sent in requests:
        cost, alive = price(sent, alive, sorted({*marks_of(sent), sent.eligible[-1]}))
        spent += cost
    return spent


def short_sessions(report: Report, costs: Any, data: str, sessions: Sequence[Any], share: float, worst: int) -> None:
    """Report what the marks of short sessions cost."""
    rows: list[tuple[float, float, float, float, str]] = []
    most = 0
    for session in sessions:
        calls = session.calls()
        if data == "tau" and len(calls) > REQUESTS:
            continue
        end = calls[min(REQUESTS, len(calls)) - 1] + 1
        cut = costs.Session(session.id, "", session.messages[:end], session.meta)
        made = requests_of(cut, context.make_breakpoints(cut.budget(share)), costs)
        if made:
            most = max(most, *(len({*sent.marks} - {sent.eligible[-1]}) for sent in made))
            plans = cost_of(made, lambda sent: sent.marks), cost_of(made, lambda sent: ())
            rows.append((*plans, best(made, own=True), best(made, own=False), session.id))
    ours, none, least, free = (sum(row[i] for row in rows) for i in range(4))
    kind = "20 % budget" if share < 1 else "whole"
    figures = {
        "sessions": len(rows),
        "of best": ours / least,
        "of best, worst session": max(row[0] / row[2] for row in rows),
        "of best without marks": none / least,
        "of free": ours / free,
        "marks beside the provider's own": most,
    }
    report.row(f"{data}, {kind}", figures, at_most={"of best": BAR, "marks beside the provider's own": EXPLICIT})
    for row in sorted(rows, key=lambda row: -row[0] / row[2])[:worst]:
        report.say(f"    {row[0] / row[2]:.3f} of best, {row[0] / row[3]:.3f} of free: {row[4]}")


def whole_sessions(report: Report, costs: Any, sessions: Sequence[Any]) -> None:
    """Report what a 20 % budget costs, of keeping everything, by the prices of several models."""
    rows = costs.PROVIDERS
    anthropic, bound, older = (
        rows[name]
        for name in (
            "anthropic 5m (own marks)",
            "anthropic 5m bound (marks everywhere)",
            "openai prefix (gpt-5.2)",
        )
    )
    newer = dataclasses.replace(rows["openai marks (gpt-5.6, implicit)"], name="gpt-5.6 (own marks)", plan="own")
    spent: dict[str, float] = {}
    for make, providers in ((context.make, (anthropic, bound, older)), (context.make_breakpoints, (newer,))):
        plans = {"keep-all": costs.POLICIES["keep-all"], "turnlog": make}
        made = costs.run(sessions, plans, SHARE, {one.name: one for one in providers}, real=True)
        for one in providers:
            everything, ours = (made[plan][1][one.name]["usd"] for plan in plans)
            spent[one.name] = ours
            most = BARS.get(one.name)
            bars = {} if most is None else {"of keeping everything": most}
            report.row(one.name, {"of keeping everything": round(ours / everything, 3)}, at_most=bars)
    of_bound = {"of marks everywhere": spent[anthropic.name] / spent[bound.name]}
    report.row(f"{anthropic.name}, of bound", of_bound, at_most={"of marks everywhere": OF_BOUND})


def lifetimes(report: Report, costs: Any, sessions: Sequence[Any]) -> None:
    """Report what whole sessions cost with Anthropic if the cache is kept for five minutes, for an hour, and for as
    long as turnlog chooses by the pauses on record."""
    model = "claude-sonnet-4-5"
    prices, rules = cache_prices(model), cache_rules(model)
    assert prices is not None and prices.write_long is not None
    sums, least, changes = [0.0, 0.0, 0.0], 0.0, 0
    for session in sessions:
        spent = [0.0, 0.0, 0.0]
        bills, now, size, long, kept_long, since = Bills(), 0.0, 0, False, False, 0
        for n, at in enumerate(session.calls(), start=1):
            history = session.messages[:at]
            gap = costs.gaps_real(session, at)
            gap = costs.gaps_default(history, at) if gap is None else gap
            now, before, size = now + gap, size, costs.total(history)
            pause = Pause(n, gap, before, size)
            spent[0] += pause.cost(300, prices.read, prices.write)
            spent[1] += pause.cost(3_600, prices.read, prices.write_long)
            time = (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=now)).isoformat()
            bills = bills.observe(Record(3 * n, time, MessageRecord(Message("user", ()))))
            bill = bills.of("anthropic", model)
            if bill is not None and keeps_long(rules, bills, bill, prices, since, long=long) != long:
                long, since, changes = not long, 3 * n, changes + 1
            write = prices.write_long if long else prices.write
            spent[2] += pause.cost(3_600 if kept_long else 300, prices.read, write)
            kept_long = long if size > before or gap > (3_600 if kept_long else 300) else kept_long
            usage = UsageRecord("anthropic", model, Usage(input=size, cache_write=size))
            bills = bills.observe(Record(3 * n + 1, time, usage), rules)
        sums = [total + one for total, one in zip(sums, spent, strict=True)]
        least += min(spent[:2])
    short, long_sum, chosen = sums
    figures = {
        "of five minutes, for an hour": long_sum / short,
        "of five minutes, as chosen": chosen / short,
        "of the better of both": chosen / least,
        "changes": changes,
        "sessions": len(sessions),
    }
    bars = {"of five minutes, as chosen": 1, "of the better of both": OF_BETTER}
    report.row("anthropic, how long the cache is kept", figures, at_most=bars)


@bench()
def cache_marks(report: Report, *, worst: int = 0) -> None:
    """Prompt-cache marks against the best that could have been placed, with all requests known in advance."""
    folder = shared("bench", "context")
    costs, recall = module("cost", folder), module("recall", folder)
    for data in ("dev", "tau"):
        for share in (SHARE, 2.0):
            short_sessions(report, costs, data, recall.get_data(data), share, worst)
    whole_sessions(report, costs, recall.get_data("dev"))
    lifetimes(report, costs, recall.get_data("dev"))
