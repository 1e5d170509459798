"""Summaries computed ahead: used for the very same content only, never in the way, never loud."""

from __future__ import annotations

import threading

import pytest

from scripted import PATIENCE, Blocked, Scripted, a_run, material, said, states
from turnlog.summarize import Background, MemoryLedger, attempt
from turnlog.summarize.attempts import Attempt
from turnlog.summarize.ledger import key_of
from turnlog.summarize.verdict import SummaryFailure

OFFLINE = Scripted("Task: make the tests pass (#1).", "digest/1")
TEXT = "Task: tests (#1)."


def wait(ahead: Background, key: str) -> None:
    """Until the call for a key has ended."""
    run = ahead.running(key)
    assert run is not None and run.wait(PATIENCE)


def test_what_was_computed_ahead_is_swapped_in() -> None:
    """A summary made while the conversation went on that is not used, or paid for again, when its time comes."""
    ahead, ledger, model, given = Background(), MemoryLedger(), Scripted(TEXT), material()
    key = key_of("model/1", given)
    assert ahead.start(given, model, ledger) is None
    wait(ahead, key)
    assert ahead.collect(ledger) is None
    assert states(ledger, key) == [("claimed", ""), ("made", TEXT)]
    made = attempt(given, [model], offline=OFFLINE, ledger=ledger, ahead=ahead, timeout=0)
    assert made == Attempt(TEXT, "model/1", remembered=True)
    assert ahead.start(given, model, ledger) is None and ahead.running(key) is None
    assert len(model.asked) == 1


def test_what_is_under_way_is_waited_for() -> None:
    """A trigger that comes while the same is being computed, and pays for it again or gives it up."""
    ahead, ledger, model, given = Background(), MemoryLedger(), Blocked(TEXT), material()
    ahead.start(given, model, ledger)
    threading.Timer(0, model.let.set).start()
    made = attempt(given, [model], offline=OFFLINE, ledger=ledger, ahead=ahead, timeout=PATIENCE)
    assert made == Attempt(TEXT, "model/1")
    key = key_of("model/1", given)
    assert (states(ledger, key), ahead.running(key)) == ([("claimed", ""), ("made", TEXT)], None)
    assert len(model.asked) == 1


def test_what_covers_other_content_is_not_used() -> None:
    """A log that moved on while a slow background summarised: its text must not stand for what it does not cover."""
    ahead, ledger, slow = Background(), MemoryLedger(), Blocked("Task: old.")
    ahead.start(material(), slow, ledger)
    newer = material((*a_run(), said(5, "user", "Now the invoices of 2025 too.")))
    quick = Scripted("Task: tests, and the invoices of 2025 (#5).")
    made = attempt(newer, [quick], offline=OFFLINE, ledger=ledger, ahead=ahead, timeout=PATIENCE)
    assert made == Attempt("Task: tests, and the invoices of 2025 (#5).", "model/1")
    slow.let.set()
    wait(ahead, key_of("model/1", material()))
    ahead.collect(ledger)
    assert attempt(newer, [quick], offline=OFFLINE, ledger=ledger, ahead=ahead).text == made.text
    assert (len(slow.asked), len(quick.asked)) == (1, 1)


def test_one_worker_at_a_time() -> None:
    """A session that starts a thread with each message."""
    ahead, ledger, slow, other = Background(), MemoryLedger(), Blocked(TEXT), Scripted(TEXT)
    before = threading.active_count()
    ahead.start(material(), slow, ledger)
    for target in range(10, 20):
        assert ahead.start(material(target=target), other, ledger) is None
    assert (threading.active_count(), other.asked) == (before + 1, [])
    assert ledger.find(key_of("model/1", material(target=10))) == ()
    slow.let.set()
    wait(ahead, key_of("model/1", material()))


def test_nobody_else_is_overtaken() -> None:
    """Work ahead on what another process has claimed."""
    first, second, ledger, model = Background(), Background(), MemoryLedger(), Scripted(TEXT)
    first.start(material(), model, ledger)
    wait(first, key_of("model/1", material()))
    second.start(material(), model, ledger)
    assert second.running(key_of("model/1", material())) is None
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (RuntimeError("503"), SummaryFailure("model/1", "exception", "RuntimeError: 503")),
        ("", SummaryFailure("model/1", "empty", "it returned nothing")),
    ],
)
def test_failures_are_recorded_and_not_printed(
    answer: str | BaseException, failure: SummaryFailure, capfd: pytest.CaptureFixture[str]
) -> None:
    """A traceback in somebody's terminal, or a failure that nobody learns of."""
    ahead, ledger, given = Background(), MemoryLedger(), material()
    key = key_of("model/1", given)
    ahead.start(given, Scripted(answer), ledger)
    wait(ahead, key)
    assert ahead.collect(ledger) == failure
    assert states(ledger, key) == [("claimed", ""), ("failed", f"{failure.fault}: {failure.detail}")]
    assert (ahead.collect(ledger), ahead.running(key)) == (None, None)
    assert capfd.readouterr() == ("", "")


def test_closing_waits_for_nobody() -> None:
    """A session that cannot be closed because a model does not answer, or leaves a claim without an end."""
    ahead, ledger, slow, given = Background(), MemoryLedger(), Blocked(TEXT), material()
    key = key_of("model/1", given)
    ahead.start(given, slow, ledger)
    gone = SummaryFailure("model/1", "timeout", "the session was closed before it came")
    try:
        assert ahead.close(ledger) == gone
    finally:
        slow.let.set()
    assert states(ledger, key) == [("claimed", ""), ("failed", f"timeout: {gone.detail}")]
    assert ahead.close(ledger) is None


def test_closing_keeps_what_has_come() -> None:
    """A text that was paid for and is lost because the session was closed before anybody asked for it."""
    ahead, ledger, given = Background(), MemoryLedger(), material()
    key = key_of("model/1", given)
    ahead.start(given, Scripted(TEXT), ledger)
    wait(ahead, key)
    assert ahead.close(ledger) is None
    assert states(ledger, key) == [("claimed", ""), ("made", TEXT)]
