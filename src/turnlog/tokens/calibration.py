"""Counts corrected by what was billed: the last bill, plus what came since times a learned ratio.

A pure fold over a log's usage records; every step costs the same, however long the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from ..log.records import Count, Record, UsageRecord
from .counted import Certainty

_REMEMBERED = 20
"""Requests that the ratio is learned from."""

_PRIOR = 3_000
"""Tokens that the ratio 1 weighs: the counter's own factor stands until more than that was billed."""

_LEAST, _MOST = 0.5, 3.0
"""Bounds of the ratio. A bill outside them is for more than the text that was counted."""

_VOID = 0.9
"""An anchor of which less than this is left (compacted, cleared) says nothing of the rest."""

MARGINS: dict[Certainty, float] = {"exact": 1.0, "calibrated": 1.03, "estimated": 1.1}
"""Tokens that may be billed for one that is counted, by how far a count is to be trusted."""

_OFF = 0.05
_STRIKES = 3


class Prediction(Struct, frozen=True):
    """What a request is going to be billed, and how much more it may turn out to be, in tokens."""

    tokens: int
    certainty: Certainty
    margin: int


class Drift(Struct, frozen=True):
    """Predictions were off by more than 5 % three times in a row: the counter does not fit the model.

    `off` is by how much the last one was too low (or too high, if negative), as a share of the bill.
    """

    provider: str
    counter: str
    model: str
    off: float

    def __str__(self) -> str:
        return (
            f"counts for {self.model} were off by more than {_OFF:.0%} three times in a row, the last by "
            f"{self.off:+.0%}: counter {self.counter} may be out of date for it"
        )


class _Learned(Struct, frozen=True):
    """What the bills of one provider and counter taught.

    `billed` and `counted` are the anchor: the same content, the last answer included, as billed and
    as counted. `samples` are billed and counted growth of the last requests. `strikes` are predictions
    in a row that were off.
    """

    billed: int = 0
    counted: int = 0
    samples: tuple[tuple[int, int], ...] = ()
    strikes: int = 0
    off: float = 0.0
    model: str = ""

    @property
    def ratio(self) -> float:
        """Billed tokens a counted one."""
        billed, counted = (sum(sample[i] for sample in self.samples) for i in (0, 1))
        return min(_MOST, max(_LEAST, (billed + _PRIOR) / (counted + _PRIOR)))

    def expected(self, counted: int) -> int:
        """The bill of a request that the counter sees `counted` tokens in."""
        if counted < self.counted * _VOID:
            return ceil(self.ratio * counted)
        return max(0, self.billed + ceil(self.ratio * (counted - self.counted)))


class Calibration(Struct, frozen=True):
    """What bills have taught so far. Start with an empty one; `observe` gives the next.

    Bills are kept apart by provider and counter: within one the tokens are of one vocabulary, so that
    a dated model's bill serves its undated name.
    """

    learned: dict[tuple[str, str], _Learned] = {}

    def predict(self, provider: str, counted: Count) -> Prediction:
        """What a request of `counted` tokens (all of it: messages, tools, framing) will be billed.

        Messages that were counted already keep their counts: only what is new has to be added up.
        """
        tokens = counted.tokens
        known = self.learned.get((provider, counted.counter))
        if known is None:
            share = 0.05 if counted.certainty == "exact" else 0.3
            return Prediction(tokens, counted.certainty, ceil(tokens * share))
        expected = known.expected(tokens)
        new = tokens if tokens < known.counted * _VOID else abs(tokens - known.counted)
        share = 0.05 if counted.certainty == "exact" else 0.15
        return Prediction(expected, "calibrated", ceil((expected - min(new, expected)) * 0.02 + new * share))

    def scale(self, provider: str, counter: str, certainty: Certainty) -> float:
        """How many tokens may be billed for one that is counted, with a margin for what is not known: that of the
        counter at first, less the more was billed."""
        known = self.learned.get((provider, counter))
        if known is None or not known.samples:
            return MARGINS[certainty]
        untaught = _PRIOR / (_PRIOR + sum(counted for _, counted in known.samples))
        taught = MARGINS["exact" if certainty == "exact" else "calibrated"]
        return max(1.0, known.ratio) * (taught + (MARGINS[certainty] - taught) * untaught)

    def observe(self, record: UsageRecord) -> Calibration:
        """After a bill. A record without a count of its request, or without input, teaches nothing."""
        counted = record.counted
        if counted is None or not counted.tokens or record.usage.input <= 0:
            return self
        key = (record.provider, counted.counter)
        before = self.learned.get(key)
        after = _after(before or _Learned(), record, counted.tokens, anchored=before is not None)
        return Calibration({**self.learned, key: after})

    def drift(self, provider: str, counter: str) -> Drift | None:
        """The warning that counts and bills have gone apart, if they have."""
        known = self.learned.get((provider, counter))
        if known is None or known.strikes < _STRIKES:
            return None
        return Drift(provider, counter, known.model, known.off)


def _after(known: _Learned, record: UsageRecord, counted: int, *, anchored: bool) -> _Learned:
    billed = record.usage.input
    samples = known.samples
    off = (billed - known.expected(counted)) / billed
    if anchored and counted > known.counted:
        growth = (billed - known.billed, counted - known.counted)
        if _LEAST <= growth[0] / growth[1] <= _MOST:
            samples = (*samples, growth)[-_REMEMBERED:]
    kept = max(0, record.usage.output - record.usage.reasoning) if record.answer else 0
    return replace(
        known,
        billed=billed + kept,
        counted=counted + record.answer,
        samples=samples,
        strikes=known.strikes + 1 if abs(off) > _OFF else 0,
        off=off,
        model=record.model,
    )


def calibrated(records: Iterable[Record]) -> Calibration:
    """What the bills in a log have taught, oldest first."""
    state = Calibration()
    for record in records:
        if isinstance(record.body, UsageRecord):
            state = state.observe(record.body)
    return state
