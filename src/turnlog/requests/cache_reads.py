"""What a request will read from its provider's prompt cache, by the bills before it and the times on record.

Learns from one record of a log at a time, so the time for each does not depend on the length of the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from ..log.records import Configuration, MessageRecord, Record, UsageRecord
from ..models.catalog import CacheRules, model_name
from ..view.compaction.situation import CachePrices
from ..view.types import Shown

_REMEMBERED = 50
"""The number of latest requests whose pauses are remembered."""


_FEWEST = 5
"""The number of pauses to judge by, and of requests between two changes of how long a cache is kept."""

_SAVES = 0.9
"""How long a cache is kept changes only if that would have cost less than this share."""


class Pause(Struct, frozen=True, gc=False):
    """The time between a request and the one before it, in seconds, and the tokens billed for both. `n` is the number
    of the usage record."""

    n: int
    seconds: float
    before: int
    tokens: int

    def cost(self, lifetime: int, read: float, write: float) -> float:
        """What the input of the request costs if a cache is kept for so many seconds, in uncached input tokens."""
        if self.seconds > lifetime:
            return write * self.tokens
        return read * min(self.before, self.tokens) + write * max(0, self.tokens - self.before)


class Bill(Struct, frozen=True, gc=False):
    """The last bill of a model.

    `n` is its record number, `asked` the time of its request (seconds since 1970, None if unknown), `input` the tokens
    of the request, `kept` those that were read from the cache or written to it, `counted` the tokens that were counted
    before it was sent (0: unknown). `step` is how many billed tokens a step of the cache has (0: unknown); `long`: what
    is in the cache was written for an hour. `pauses` are those before the last requests. `configured`: the
    configuration was changed since.
    """

    n: int
    asked: float | None
    input: int
    kept: int
    counted: int
    step: float = 0.0
    long: bool = False
    pauses: tuple[Pause, ...] = ()
    configured: bool = False


class Bills(Struct, frozen=True):
    """The last bill of each model, and the time at which the next request is made: that of the newest message that is
    no answer. Start with an empty one; `observe` returns the next."""

    last: Mapping[tuple[str, str], Bill] = {}
    asked: float | None = None

    def of(self, provider: str, model: str) -> Bill | None:
        """The last bill of a model; None if there is none."""
        return self.last.get((provider, model_name(model)))

    def age(self, bill: Bill) -> float | None:
        """The seconds between the request of a bill and the next request; None if unknown."""
        return None if self.asked is None or bill.asked is None else self.asked - bill.asked

    def observe(self, record: Record, rules: CacheRules | None = None) -> Bills:
        """What is known after one more record. `rules` are those of the model that a usage record names."""
        match record.body:
            case MessageRecord(message=message) if message.role != "assistant":
                return Bills(self.last, seconds_of(record.time))
            case Configuration():
                changed = {key: _configured(bill) for key, bill in self.last.items()}
                return Bills(changed, self.asked)
            case UsageRecord() as body if body.usage.input > 0:
                key = body.provider, model_name(body.model)
                return Bills(
                    {**self.last, key: _after(self.last.get(key), record.n, body, rules, self.asked)}, self.asked
                )
        return self


def seconds_of(time: str) -> float | None:
    """The time of a record in seconds since 1970; None if it cannot be read."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, OverflowError):  # a log that another program wrote
        return None


def _configured(bill: Bill) -> Bill:
    return Bill(
        bill.n, bill.asked, bill.input, bill.kept, bill.counted, bill.step, bill.long, bill.pauses, configured=True
    )


def _after(before: Bill | None, n: int, body: UsageRecord, rules: CacheRules | None, asked: float | None) -> Bill:
    usage, step = body.usage, rules.step if rules else 1
    size = usage.window or usage.input
    learned = before.step if before else 0.0
    if step > 1 and usage.cached:
        # A provider may count steps by another tokenizer than it bills by: each has a little less or more.
        learned = usage.cached / max(1, round(usage.cached / step))
    long = usage.cache_write_1h > 0 if usage.cache_write else before is not None and before.long
    pauses = before.pauses if before else ()
    if before is not None and asked is not None and before.asked is not None:
        pauses = (*pauses, Pause(n, asked - before.asked, before.input, size))[-_REMEMBERED:]
    counted = body.counted.tokens if body.counted is not None else 0
    return Bill(n, asked, size, min(size, usage.cached + usage.cache_write), counted, learned, long, pauses)


def lifetime_of(rules: CacheRules, *, long: bool) -> int | None:
    """How many seconds an entry of a cache is kept without being used; None if unknown."""
    return rules.long_lifetime if long and rules.long_lifetime else rules.lifetime


def has_expired(rules: CacheRules, bill: Bill, age: float | None) -> bool:
    """Whether what the request of a bill left in the cache is too old to be found."""
    lifetime = lifetime_of(rules, long=bill.long)
    return age is not None and lifetime is not None and age > lifetime


def read_of(rules: CacheRules, bill: Bill, share: float, least: int) -> int:
    """The billed tokens that a request reads from the cache as the request of a bill left it. `share` is the share of
    that request's tokens that are in the cache and at the beginning of both; `least` is the smallest prefix that is
    cached."""
    if rules.mode == "marked" or (rules.breakpoints and bill.kept):
        left = bill.kept
    else:
        left = bill.input
    tokens_read = left if share >= 1 else min(left, int(bill.input * share))
    step = bill.step or rules.step
    if step > 1:
        tokens_read = int(int(tokens_read / step + _ROUNDING) * step)
    return tokens_read if tokens_read >= least else 0


_ROUNDING = 0.005
"""The part of a step that may be missing: steps are not known to the token."""


def entry_at(view: Sequence[Shown], entries: Mapping[int, int], same: int, marks: Sequence[int], lookback: int) -> int:
    """The tokens of the longest entry of a cache that a request finds. `entries` are the tokens of each entry by the
    number of messages in it, `same` the messages that the request has in common with the last one, `marks` the numbers
    of messages before its marks. A mark finds an entry that is fewer than `lookback` blocks before it (0: any)."""
    for end in sorted((end for end in entries if end <= same), reverse=True):
        mark = min((mark for mark in marks if mark >= end), default=None)
        if mark is not None:
            between = sum(max(1, len(shown.message.parts)) for shown in view[end:mark])
            if not lookback or between < lookback:
                return entries[end]
    return 0


def keeps_long(rules: CacheRules, bills: Bills, bill: Bill, prices: CachePrices, since: int, *, long: bool) -> bool:
    """Whether what is written to a cache should be kept for long, judged by the pauses before the last requests and the
    next one. `long` is how it is now, `since` the record with which that began, 0 if it always was so. The answer
    changes only if that clearly pays, and not for some requests after a change."""
    usual, longer, age = rules.lifetime, rules.long_lifetime, bills.age(bill)
    if usual is None or longer is None or prices.write_long is None:
        return False
    pauses = [*bill.pauses, *([] if age is None else [Pause(0, age, bill.input, bill.input)])]
    if len(pauses) < _FEWEST or (since and sum(pause.n > since for pause in bill.pauses) < _FEWEST):
        return long
    short_cost = sum(pause.cost(usual, prices.read, prices.write) for pause in pauses)
    long_cost = sum(pause.cost(longer, prices.read, prices.write_long) for pause in pauses)
    return short_cost >= _SAVES * long_cost if long else long_cost < _SAVES * short_cost
