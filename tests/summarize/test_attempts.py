"""Attempts at a summary: whatever a summarizer does, there is a text, the failure shows, and nothing is paid twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scripted import PATIENCE, Blocked, Scripted, material, said, states
from turnlog.errors import StoreError
from turnlog.log.records import SummaryRecord
from turnlog.summarize import Background, Material, MemoryLedger, attempt
from turnlog.summarize.attempts import Attempt
from turnlog.summarize.ledger import key_of
from turnlog.summarize.running import RunningCall
from turnlog.summarize.verdict import SummaryFailure

OFFLINE = "Task: make the tests pass (#1)."
GOOD = "Task: tests of invoice.py (#1). Open: rounding (#4)."


def offline() -> Scripted:
    """The one that needs nobody."""
    return Scripted(OFFLINE, "digest/1")


class MuteError(Exception):
    """An error that fails when it is asked what it says."""

    def __str__(self) -> str:
        raise ValueError


BAD: list[tuple[str, str | BaseException | Callable[[Material], str], str, str]] = [
    ("exception", RuntimeError("503"), "exception", "RuntimeError: 503"),
    ("exit", SystemExit(1), "exception", "SystemExit: 1"),
    ("mute", MuteError(), "exception", "MuteError"),
    ("empty", " \n", "empty", "it returned nothing"),
    ("none", lambda given: None, "not text", "it returned NoneType, not text"),  # type: ignore[arg-type, return-value]
    ("long", "word " * 21, "inflated", "21 tokens, 20 were asked for"),
    (
        "refusal",
        "I\u2019m sorry, but I can\u2019t help with that.",
        "refusal",
        "it declined: I'm sorry, but I can't help with that.",
    ),
    ("echo", lambda given: "word " * 500, "inflated", "500 tokens, 20 were asked for"),
]


@pytest.mark.parametrize(("answer", "fault", "detail"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_failure_falls_to_the_next_and_is_remembered(answer: str | BaseException, fault: str, detail: str) -> None:
    """A bad answer that is used, raises, is not said, or is paid for again when the same is asked again."""
    bad, ledger = Scripted(answer), MemoryLedger()
    given = material()
    failed = SummaryFailure("model/1", fault, detail)  # type: ignore[arg-type]
    assert attempt(given, [bad], offline=offline(), ledger=ledger, timeout=PATIENCE) == Attempt(
        OFFLINE, "digest/1", (failed,)
    )
    reason = f"{fault}: {detail}"
    assert states(ledger, key_of("model/1", given)) == [("claimed", ""), ("failed", reason)]
    again = SummaryFailure("model/1", "remembered", f"record 2: {reason}")
    assert attempt(given, [bad], offline=offline(), ledger=ledger, timeout=PATIENCE) == Attempt(
        OFFLINE, "digest/1", (again,)
    )
    assert len(bad.asked) == 1


def test_what_was_made_is_kept() -> None:
    """A summary that is paid for twice, or given to somebody else's content, target or summarizer."""
    good, ledger = Scripted(GOOD + "\n"), MemoryLedger()
    given = material()
    made = Attempt(GOOD, "model/1")
    assert attempt(given, [good], offline=offline(), ledger=ledger, timeout=PATIENCE) == made
    remembered = Attempt(GOOD, "model/1", remembered=True)
    assert attempt(material(), [good], offline=offline(), ledger=ledger, timeout=PATIENCE) == remembered
    assert len(good.asked) == 1
    others = [
        material(target=19),
        material(previous="x"),
        material(given.messages[1:]),
        material((said(2, "user", "x" + " y" * 30),)),
    ]
    for count, other in enumerate(others, 2):
        assert attempt(other, [good], offline=offline(), ledger=ledger, timeout=PATIENCE) == made
        assert len(good.asked) == count
    second = Scripted(GOOD, "model/2")
    assert attempt(given, [second], offline=offline(), ledger=ledger, timeout=PATIENCE) == Attempt(GOOD, "model/2")


def test_what_stays_in_view_is_no_part_of_the_content() -> None:
    """A log that moved on behind what is summarised, and so loses what was paid for."""
    before, after = (
        material(),
        Material(messages=material().messages, target=20, count=len, kept=(said(5, "user", "More."),)),
    )
    assert key_of("m", before) == key_of("m", after)


def test_the_ladder_goes_on_from_rung_to_rung() -> None:
    """A second model that is not asked, or asked although the first one answered."""
    first, second, third = Scripted(TimeoutError("slow")), Scripted(GOOD, "model/2"), Scripted(GOOD, "model/3")
    failed = SummaryFailure("model/1", "exception", "TimeoutError: slow")
    made = attempt(material(), [first, second, third], offline=offline(), timeout=PATIENCE)
    assert made == Attempt(GOOD, "model/2", (failed,))
    assert [len(one.asked) for one in (first, second, third)] == [1, 1, 0]


@pytest.mark.parametrize("answer", [ValueError("bug"), "", "word " * 21, "I can't help with that."])
def test_without_any_summary_there_is_none_and_it_says_so(answer: str | BaseException) -> None:
    """An offline summarizer's own failure that is raised, or a useless text that is used."""
    none = attempt(material(), [Scripted(RuntimeError("503"))], offline=Scripted(answer, "mine/1"), timeout=PATIENCE)
    assert (none.text, none.summarizer) == ("", "")
    assert [failure.summarizer for failure in none.failures] == ["model/1", "mine/1"]


def test_a_text_as_long_as_its_source_is_no_summary() -> None:
    """A summary within its target that saves nothing."""
    short = (said(1, "user", "Fix it now."),)
    for answer, fault in (("one two three", "inflated"), ("one two", None)):
        made = attempt(material(short), [Scripted(answer)], offline=offline(), timeout=PATIENCE)
        assert [failure.fault for failure in made.failures][:1] == ([fault] if fault else [])


@pytest.mark.parametrize(
    "text",
    [
        "Sorry, I cannot do this.",
        "I cannot assist with that request.",
        "Unfortunately, I can't continue this conversation.",
        "I'm unable to summarize this content.",
        "As an AI language model, I do not have memory.",
        "*I won't help with this.*",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "申し訳ありませんが、お手伝いできません。",
        "大変申し訳ございませんが、対応できません。",
        "很抱歉，我无法提供这方面的帮助。",
        "非常抱歉，我不能协助。",
        "我无法协助处理此请求。",
        "죄송합니다. 도와드릴 수 없습니다.",
        "عذراً، لا أستطيع المساعدة.",
        "Извините, я не могу помочь.",
        "Leider kann ich dabei nicht helfen.",
        "Lo siento, no puedo ayudar con eso.",
        "No puedo ayudar con eso.",
        "Désolé, je ne peux pas vous aider.",
    ],
)
def test_refusals_are_known(text: str) -> None:
    """A refusal that would stand in the view as all that is known of the conversation."""
    made = attempt(material(), [Scripted(text)], offline=offline(), timeout=PATIENCE)
    assert [failure.fault for failure in made.failures] == ["refusal"]


@pytest.mark.parametrize(
    "text",
    [
        "Task: refund. The agent said: I'm sorry, I can't.",
        "I ran the tests; 3 fail.",
        "Unfortunately the build cannot finish.",
        "任务：退款。客服说：很抱歉，无法处理。",
        "Leider kann der Bau nicht enden.",
        "Ich kann melden: drei Tests schlagen fehl.",
    ],
)
def test_what_tells_of_a_refusal_is_none(text: str) -> None:
    """A summary that is thrown away for quoting an apology."""
    assert attempt(material(), [Scripted(text)], offline=offline(), timeout=PATIENCE) == Attempt(text, "model/1")


def test_a_slow_one_is_not_waited_for_and_its_late_text_is_kept() -> None:
    """A request that waits for a model that does not answer; a late text that is lost, or paid for again."""
    slow, ledger, ahead, given = Blocked(GOOD), MemoryLedger(), Background(), material()
    key = key_of("model/1", given)
    late = SummaryFailure("model/1", "timeout", "no answer in 0 s")
    for _ in range(2):  # the second finds the call still under way
        assert attempt(given, [slow], offline=offline(), ledger=ledger, ahead=ahead, timeout=0) == Attempt(
            OFFLINE, "digest/1", (late,)
        )
    assert states(ledger, key) == [("claimed", ""), ("failed", "timeout: no answer in 0 s")]
    slow.let.set()
    run = ahead.running(key)
    assert run is not None and run.wait(PATIENCE)
    assert ahead.collect(ledger) is None
    assert states(ledger, key)[2:] == [("made", GOOD)]
    assert attempt(given, [slow], offline=offline(), ledger=ledger, ahead=ahead, timeout=0) == Attempt(
        GOOD, "model/1", remembered=True
    )
    assert len(slow.asked) == 1


def test_a_slow_one_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that waits again, for as long, when it decides the same once more; also for what was begun ahead."""
    waits: list[float] = []

    def wait(run: RunningCall, seconds: float) -> bool:
        waits.append(seconds)
        return False

    monkeypatch.setattr(RunningCall, "wait", wait)
    slow, ledger, ahead, given = Blocked(GOOD), MemoryLedger(), Background(), material()
    ahead.start(given, slow, ledger)
    try:
        for _ in range(3):
            attempt(given, [slow], offline=offline(), ledger=ledger, ahead=ahead, timeout=5)
    finally:
        slow.let.set()
    assert waits == [5, 0, 0]


def test_what_is_interrupted_while_it_is_waited_for_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a request waits for its summary: the model was paid, its text let go, and its claim kept every later
    request from asking for it, so that a digest stood in for a model that had answered."""

    def interrupted(run: RunningCall, seconds: float) -> bool:
        raise KeyboardInterrupt

    slow, ledger, ahead, given = Blocked(GOOD), MemoryLedger(), Background(), material()
    with monkeypatch.context() as patched:
        patched.setattr(RunningCall, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            attempt(given, [slow], offline=offline(), ledger=ledger, ahead=ahead, timeout=PATIENCE)
    slow.let.set()
    made = attempt(given, [slow], offline=offline(), ledger=ledger, ahead=ahead, timeout=PATIENCE)
    assert made == Attempt(GOOD, "model/1")
    assert states(ledger, key_of("model/1", given)) == [("claimed", ""), ("made", GOOD)]
    assert len(slow.asked) == 1


def test_a_slow_one_without_a_background_is_let_go() -> None:
    """A timeout that needs more than the ledger to be survived."""
    slow, ledger, given = Blocked(GOOD), MemoryLedger(), material()
    try:
        made = attempt(given, [slow], offline=offline(), ledger=ledger, timeout=0)
    finally:
        slow.let.set()
    assert made == Attempt(OFFLINE, "digest/1", (SummaryFailure("model/1", "timeout", "no answer in 0 s"),))


class Broken(MemoryLedger):
    """A ledger that takes so many records and no more."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def append(self, body: SummaryRecord) -> int:
        """Raises StoreError once it is full."""
        if not self.room:
            raise StoreError("disk full")
        self.room -= 1
        return super().append(body)


def test_what_cannot_be_claimed_is_not_paid_for() -> None:
    """A summarizer that is called though nobody will know, or a full disk that fails a request here."""
    good = Scripted(GOOD)
    unclaimed = SummaryFailure("model/1", "ledger", "disk full")
    assert attempt(material(), [good], offline=offline(), ledger=Broken(0), timeout=PATIENCE) == Attempt(
        OFFLINE, "digest/1", (unclaimed,)
    )
    assert good.asked == []


def test_what_was_paid_for_is_used_though_it_cannot_be_kept() -> None:
    """A text that is thrown away because the disk filled up meanwhile; or that this is not said."""
    unkept = SummaryFailure("model/1", "ledger", "disk full")
    assert attempt(material(), [Scripted(GOOD)], offline=offline(), ledger=Broken(1), timeout=PATIENCE) == Attempt(
        GOOD, "model/1", (unkept,)
    )
    failed = SummaryFailure("model/1", "empty", "it returned nothing; model/1: ledger: disk full")
    assert attempt(material(), [Scripted("")], offline=offline(), ledger=Broken(1), timeout=PATIENCE).failures == (
        failed,
    )


def test_no_thread_is_a_failure_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine out of threads that fails a request."""

    def refuse(self: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("turnlog.summarize.running.threading.Thread.start", refuse)
    ledger, failed = MemoryLedger(), SummaryFailure("model/1", "exception", "can't start new thread")
    assert attempt(material(), [Scripted(GOOD)], offline=offline(), ledger=ledger).failures == (failed,)
    assert Background().start(material(target=9), Scripted(GOOD), ledger) == failed
