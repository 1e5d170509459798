"""Calibration: what bills teach, and that it is the same whenever it is learned."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.records import Record, UsageRecord
from turnlog.log.usage import Count, Usage
from turnlog.tokens import Calibration, calibrated
from turnlog.tokens.calibration import Prediction

GROWTH = st.lists(st.tuples(st.integers(200, 5_000), st.integers(0, 800)), min_size=8, max_size=40)


def bill(billed: int, counted: int, output: int = 0, answer: int = 0, **other: object) -> UsageRecord:
    """A bill of a request that was counted."""
    usage = Usage(input=billed, output=output, reasoning=int(str(other.get("reasoning", 0))))
    return UsageRecord("anthropic", "claude-x", usage, counted=Count(counted, "c:1"), answer=answer)


def session(growth: list[tuple[int, int]], ratio: float, hidden: int) -> list[UsageRecord]:
    """Bills of a session that only grows: `ratio` billed tokens a counted one, and `hidden` on top."""
    counted, billed, records = 0, float(hidden), []
    for new, answer in growth:
        counted += new
        billed += new * ratio
        records.append(bill(round(billed), counted, round(answer * ratio), answer))
        counted += answer
        billed += round(answer * ratio)
    return records


@given(GROWTH, st.floats(0.55, 2.9), st.integers(0, 20_000))
def test_predictions_come_near_whatever_the_tokenizer(growth: list[tuple[int, int]], ratio: float, hidden: int) -> None:
    """What is off is off on new content alone, and by no more than 3,000 tokens of prior still weigh: a
    ratio learned wrongly, or an anchor that forgets the answer or what is hidden, fails here."""
    records = session([*growth, (3_000, 0)], ratio, hidden)
    state = Calibration()
    for record in records[:-1]:
        state = state.observe(record)
    last = records[-1]
    assert last.counted is not None
    predicted = state.predict("anthropic", last.counted)
    learned = sum(new for new, _ in growth[1:][-20:])
    assert abs(predicted.tokens - last.usage.input) <= 3_000 * abs(ratio - 1) * 3_000 / (3_000 + learned) + 50
    assert predicted.certainty == "calibrated"


@given(GROWTH, st.floats(0.6, 2.5))
def test_nothing_new_costs_what_was_billed(growth: list[tuple[int, int]], ratio: float) -> None:
    """Right after a bill the same conversation is predicted at the bill and the answer kept: exactly."""
    records = session(growth, ratio, 100)
    state = Calibration()
    for record in records:
        state = state.observe(record)
    last = records[-1]
    assert last.counted is not None
    now = Count(last.counted.tokens + last.answer, "c:1")
    assert state.predict("anthropic", now).tokens == last.usage.input + last.usage.output


@given(GROWTH, st.floats(0.6, 2.5))
def test_a_log_opened_again_knows_the_same(growth: list[tuple[int, int]], ratio: float) -> None:
    """The fold over a log's records is what was learned step by step, and never holds more than 20 bills."""
    records = session([*growth, *growth], ratio, 0)
    state = Calibration()
    for record in records:
        state = state.observe(record)
    log = [Record(n, "2026-01-01T00:00:00.000Z", body) for n, body in enumerate(records, 1)]
    assert calibrated(log) == state
    assert all(len(known.samples) <= 20 for known in state.learned.values())


def test_without_a_bill_the_count_stands() -> None:
    """The first prediction is the counter's own, with a margin by its certainty."""
    state = Calibration().observe(UsageRecord("anthropic", "m", Usage(input=500)))
    assert state == Calibration()
    assert state.predict("anthropic", Count(1_000, "c:1")) == Prediction(1_000, "estimated", 300)
    assert state.predict("openai-chat", Count(1_000, "o:1", "exact")) == Prediction(1_000, "exact", 50)


def test_another_counter_is_not_corrected() -> None:
    """Bills of one vocabulary say nothing of another's, nor of another provider's framing."""
    state = Calibration().observe(bill(3_000, 1_000))
    assert state.predict("anthropic", Count(1_000, "c:2")).tokens == 1_000
    assert state.predict("google", Count(1_000, "c:1")).tokens == 1_000
    assert state.predict("anthropic", Count(1_000, "c:1")).tokens == 3_000


def test_reasoning_is_not_kept() -> None:
    """Reasoning is billed as output and not sent again; an answer that is not kept adds nothing."""
    kept = Calibration().observe(bill(1_000, 1_000, output=500, answer=100, reasoning=400))
    dropped = Calibration().observe(bill(1_000, 1_000, output=500))
    assert kept.predict("anthropic", Count(1_100, "c:1")).tokens == 1_100
    assert dropped.predict("anthropic", Count(1_000, "c:1")).tokens == 1_000


def test_a_compacted_conversation_forgets_its_anchor() -> None:
    """After much was cut the bill before says nothing; the ratio stays."""
    state = Calibration()
    for record in session([(10_000, 0)] * 10, 2.0, 0):
        state = state.observe(record)
    assert abs(state.predict("anthropic", Count(20_000, "c:1")).tokens - 40_000) < 2_000


def test_what_is_no_text_is_not_learned() -> None:
    """A jump that no ratio explains (hidden tools, a reminder) does not bend what is predicted later."""
    calm = session([(2_000, 0)] * 6, 1.0, 0)
    state = Calibration()
    for record in calm:
        state = state.observe(record)
    jumped = state.observe(bill(60_000, 14_000))
    assert jumped.predict("anthropic", Count(24_000, "c:1")).tokens == 70_000


def test_three_misses_in_a_row_are_a_warning() -> None:
    """Drift is a value that names the model; a hit in between takes it back."""
    state = Calibration()
    for billed, counted in ((2_000, 1_000), (4_000, 2_000), (8_000, 3_000)):
        assert state.drift("anthropic", "c:1") is None
        state = state.observe(bill(billed, counted))
    drift = state.drift("anthropic", "c:1")
    assert drift is not None
    assert (drift.model, drift.counter) == ("claude-x", "c:1")
    assert "claude-x" in str(drift)
    assert state.observe(bill(8_000, 3_000)).drift("anthropic", "c:1") is None


@given(GROWTH, st.floats(1.0, 1.1))
def test_a_few_bills_leave_the_margin_that_they_do_not_speak_for(growth: list[tuple[int, int]], ratio: float) -> None:
    """Two small bills made the margin of an estimate that of a measure: the limit grew, and a request within it was
    billed above the budget."""
    state = Calibration()
    for record in session(growth, ratio, 0):
        state = state.observe(record)
        assert state.scale("anthropic", "c:1", "estimated") >= ratio * 0.999  # bills are whole tokens
    assert state.scale("anthropic", "c:1", "estimated") <= 1.15
