"""Counts corrected by bills: the last bill, plus the count of the content since then times a learned ratio.

Learns from one usage record of a log at a time; the time for each does not depend on the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from ..log.records import Record, UsageRecord
from ..log.usage import Count
from .protocol import Certainty

_REMEMBERED = 20
"""Number of latest requests that the ratio is learned from."""

_PRIOR = 3_000
"""Weight of the initial ratio, 1, in tokens: once more than this was counted, the bills weigh more than it."""

_LEAST, _MOST = 0.5, 3.0
"""Bounds of the ratio. A bill outside them covers something other than the counted text."""

_VOID = 0.9
"""If less than this share of the last billed request is left (after compaction or clearing), its bill is not used."""

MARGINS: dict[Certainty, float] = {"exact": 1.0, "calibrated": 1.03, "estimated": 1.1}
"""Tokens that may be billed per counted token, by certainty of the count."""

_OFF = 0.05
_STRIKES = 3


class Prediction(Struct, frozen=True):
    """The expected bill of a request, and how much higher it may be (`margin`), in tokens."""

    tokens: int
    certainty: Certainty
    margin: int


class Drift(Struct, frozen=True):
    """A warning: three predictions in a row were off by more than 5 %, so the counter may not fit the model.

    `off` is the error of the last one as a share of the bill, positive if the prediction was too low.
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
    """What was learned from the bills of one provider and counter.

    `billed` and `counted` are the size of the last request and its answer, as billed and as counted. `samples` are the
    billed and counted growth of the last requests. `strikes` is the number of predictions in a row that were off.
    `cleared` are billed tokens of the last request that the provider left out by itself; `billed` includes them.
    """

    billed: int = 0
    counted: int = 0
    samples: tuple[tuple[int, int], ...] = ()
    strikes: int = 0
    off: float = 0.0
    model: str = ""
    cleared: int = 0

    @property
    def ratio(self) -> float:
        """Billed tokens per counted token."""
        billed, counted = (sum(sample[i] for sample in self.samples) for i in (0, 1))
        return min(_MOST, max(_LEAST, (billed + _PRIOR) / (counted + _PRIOR)))

    def expected(self, counted: int) -> int:
        """The expected bill of a request of `counted` tokens."""
        if counted < self.counted * _VOID:
            return ceil(self.ratio * counted)
        return max(0, self.billed + ceil(self.ratio * (counted - self.counted)))


class Calibration(Struct, frozen=True):
    """What was learned from bills so far. Start with an empty one; `observe` returns the next.

    Bills are grouped by provider and counter, not by model: the bills of a dated model also calibrate counts for its
    undated name.
    """

    learned: dict[tuple[str, str], _Learned] = {}

    def predict(self, provider: str, counted: Count, *, clears: bool = False) -> Prediction:
        """The expected bill of a request of `counted` tokens (messages, tools and framing). `clears`: the provider
        leaves out a part of it by itself, as much as of the last one."""
        tokens = counted.tokens
        learned = self.learned.get((provider, counted.counter))
        if learned is None:
            share = 0.05 if counted.certainty == "exact" else 0.3
            return Prediction(tokens, counted.certainty, ceil(tokens * share))
        expected = learned.expected(tokens)
        expected = max(0, expected - self._left_out(learned, tokens)) if clears else expected
        new = tokens if tokens < learned.counted * _VOID else abs(tokens - learned.counted)
        share = 0.05 if counted.certainty == "exact" else 0.15
        return Prediction(expected, "calibrated", ceil((expected - min(new, expected)) * 0.02 + new * share))

    def cleared(self, provider: str, counted: Count) -> int:
        """The tokens, by the same counter, that the provider is expected to leave out of a request of `counted` tokens:
        as many as of the last one."""
        learned = self.learned.get((provider, counted.counter))
        return 0 if learned is None else int(self._left_out(learned, counted.tokens) / learned.ratio)

    @staticmethod
    def _left_out(known: _Learned, tokens: int) -> int:
        return known.cleared if tokens >= known.counted * _VOID else 0

    def scale(self, provider: str, counter: str, certainty: Certainty) -> float:
        """Tokens that may be billed per counted token, margin included. The margin is at first that of `certainty`, and
        shrinks as more is billed."""
        learned = self.learned.get((provider, counter))
        if learned is None or not learned.samples:
            return MARGINS[certainty]
        unlearned = _PRIOR / (_PRIOR + sum(counted for _, counted in learned.samples))
        learned_margin = MARGINS["exact" if certainty == "exact" else "calibrated"]
        return max(1.0, learned.ratio) * (learned_margin + (MARGINS[certainty] - learned_margin) * unlearned)

    def observe(self, record: UsageRecord) -> Calibration:
        """The calibration after one more bill. Records without a count of the request or without input are ignored."""
        counted = record.counted
        if counted is None or not counted.tokens or record.usage.input <= 0:
            return self
        key = (record.provider, counted.counter)
        before = self.learned.get(key)
        after = _after(before or _Learned(), record, counted.tokens, anchored=before is not None)
        return Calibration({**self.learned, key: after})

    def drift(self, provider: str, counter: str) -> Drift | None:
        """A warning if the last predictions were off, else None."""
        learned = self.learned.get((provider, counter))
        if learned is None or learned.strikes < _STRIKES:
            return None
        return Drift(provider, counter, learned.model, learned.off)


def _after(known: _Learned, record: UsageRecord, counted: int, *, anchored: bool) -> _Learned:
    billed = (record.usage.window or record.usage.input) + record.usage.cleared
    samples = known.samples
    off = (billed - known.expected(counted)) / billed
    if anchored and counted > known.counted:
        growth = (billed - known.billed, counted - known.counted)
        if _LEAST <= growth[0] / growth[1] <= _MOST:
            samples = (*samples, growth)[-_REMEMBERED:]
    answer = max(0, record.usage.output - record.usage.reasoning) if record.answer else 0
    return replace(
        known,
        billed=billed + answer,
        counted=counted + record.answer,
        samples=samples,
        strikes=known.strikes + 1 if abs(off) > _OFF else 0,
        off=off,
        model=record.model,
        cleared=record.usage.cleared,
    )


def calibrated(records: Iterable[Record]) -> Calibration:
    """The calibration learned from the bills in a log, oldest first."""
    state = Calibration()
    for record in records:
        if isinstance(record.body, UsageRecord):
            state = state.observe(record.body)
    return state
