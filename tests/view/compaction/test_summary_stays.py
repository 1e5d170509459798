"""A summary tells of all that it covers: it leaves a view only where nothing else would fit beside what must stay."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.budget import PRESETS, Budget
from turnlog.log.messages import Message, Text, text_of
from turnlog.view.compaction.decide import decide, situation_of
from turnlog.view.compaction.situation import (
    CompactionInput,
    Item,
    PendingSummary,
    Ports,
    Summary,
    SummaryRequest,
    applied,
)
from turnlog.view.compaction.steps.priority import priority
from turnlog.view.compaction.steps.slide import slide
from turnlog.view.compaction.steps.summarise import shortened, summarise
from turnlog.view.types import Shown

LIMIT = 1_000


def words(text: str) -> int:
    return len(text.split())


def count(message: Message) -> int:
    return words(text_of(message))


def said(role: str, n: int, size: int, *, summary: bool = False) -> Item:
    message = Message(role, (Text("word " * size),))  # type: ignore[arg-type]
    shown = Shown(message, (n,), "summarised" if summary else "verbatim")
    return Item(shown, size, shown, n, size)


def situation(items: Sequence[Item], strategy: str, summary: str = "", more: int = 0) -> CompactionInput:
    """A view under a limit of `LIMIT` words; with an answer, what stands beside a summary is `more` words larger."""

    def measured(given: Sequence[Item]) -> Sequence[Item]:
        told = any(item.shown.treatment == "summarised" for item in given)
        return [
            msgspec.structs.replace(item, size=item.tokens + (more if told and i == 0 else 0))
            for i, item in enumerate(given)
        ]

    ports = Ports(
        count,
        words,
        lambda first, last: (item.shown for item in reversed(items) if first <= item.n <= last),
        lambda wanted: Summary("".join(re.findall(r"\S+\s*", summary)[: wanted.target]).strip(), "test"),
        lambda n: 0,
        measured=measured,
    )
    return situation_of(
        items, Budget(max_tokens=LIMIT), PRESETS[strategy], ports, window=100_000, fixed=0, number=100, known=True
    )


@given(
    sizes=st.lists(st.integers(1, 200), min_size=1, max_size=8),
    summary=st.integers(1, 500),
    task=st.integers(1, 200),
    newest=st.integers(1, 500),
    step=st.sampled_from((slide, priority)),
)
def test_a_summary_leaves_only_for_what_must_stay(
    sizes: list[int], summary: int, task: int, newest: int, step: object
) -> None:
    """To come down to its goal, a view that was one token too large let go of the summary of a whole session, and a
    model that was told nothing."""
    old = [said("user" if i % 2 else "assistant", 10 + i, size) for i, size in enumerate(sizes)]
    items = [said("user", 1, task), said("user", 2, summary, summary=True), *old, said("user", 50, newest)]
    before = situation(items, "sliding" if step is slide else "priority")
    decision = step(before)  # type: ignore[operator]
    if decision is None:
        return
    after = applied(before, decision)
    left = [item for block in after.blocks for item in block.items]
    if summary <= before.marks.limit // 2 and not any(item.shown.treatment == "summarised" for item in left):
        # Nor would half of it fit.
        assert sum(item.tokens for item in left) + summary - summary // 2 > before.marks.limit


@pytest.mark.parametrize("lines", ["\n", " "], ids=["lines", "one paragraph"])
@pytest.mark.parametrize("more", range(0, 120, 7))
def test_a_summary_that_is_a_little_too_long_is_cut(more: int, lines: str) -> None:
    """What was counted apart takes more together. Where the summary just did not fit for that, it went, wholly. Cut
    to the last token it would be cut at the next request again."""
    telling = lines.join(f"line {n} of what was done and found" for n in range(400))
    old = [said("assistant" if i % 2 else "user", 2 + i, 90) for i in range(12)]
    items = [said("user", 1, 40), *old, said("user", 50, 500)]
    made, after = decide(situation(items, "auto", telling, more))
    assert after.size <= LIMIT
    assert [decision.action for decision in made] == ["compact"]
    text = made[0].detail["replacement"][0]["parts"][0]["text"]
    _, whole = decide(situation(items, "auto", telling))
    is_cut = whole.size + more > LIMIT
    assert ("no more of it fits" in text) is is_cut
    if is_cut:
        assert LIMIT - after.size >= 0.04 * LIMIT
        assert words(text) > 200


@pytest.mark.parametrize("strategy", ["sliding", "priority"])
def test_a_summary_that_fills_the_view_goes(strategy: str) -> None:
    """Kept at any price it would leave room for a word or two, and every request would leave them out again."""
    items = [said("user", 1, 10), said("user", 2, 700, summary=True), said("user", 10, 200), said("user", 50, 200)]
    (decision,), after = decide(situation(items, strategy))
    assert decision.action == {"sliding": "slide"}.get(strategy, strategy)
    assert after.size <= after.marks.goal + 200


@given(summary=st.integers(60, 500), task=st.integers(1, 300), newest=st.integers(1, 600), lines=st.sampled_from("\n "))
def test_a_summary_is_cut_before_it_goes(summary: int, task: int, newest: int, lines: str) -> None:
    """A limit that shrinks by a few tokens, as bills are learned from or tools are added, took the summary of a whole
    session out of the very request that it was made for."""
    told = Message("user", (Text("the heading\n" + lines.join(["word"] * (summary - 2))),))
    standing = Item(Shown(told, (2,), "summarised"), summary, Shown(told, (2,), "summarised"), 2, summary)
    before = situation([said("user", 1, task), standing, said("user", 50, newest)], "auto")
    limit, beside = before.marks.limit, task + newest
    if not (limit - beside < summary <= limit // 2 and beside + summary // 2 + 20 < limit):
        return
    made, after = decide(before)
    assert [decision.action for decision in made] == ["compact"] and after.size <= limit
    (left,) = [item.shown.message for block in after.blocks if block.is_summary for item in block.items]
    assert re.fullmatch(r"the heading\n(word\s)*\[The summary ends here: no more of it fits.]", text_of(left))
    assert words(text_of(left)) >= summary // 2 - 12 or words(text_of(left)) + beside > 0.9 * limit
    # Cut again, it says once that it ends.
    smaller = msgspec.structs.replace(after, marks=msgspec.structs.replace(after.marks, limit=after.size - 5, goal=0))
    again = shortened(smaller)
    assert again is None or text_of(msgspec.convert(again.detail["replacement"][0], Message)).count("ends here") == 1


def test_a_summary_made_ahead_that_gains_nothing_keeps_no_other_from_being_made() -> None:
    """It was taken again at each request, and thrown away as it made nothing smaller: no summary was made any more, and
    the oldest turns went untold. The same log opened again decided otherwise."""
    items = [said("user", 1, 50), said("assistant", 2, 20), said("user", 3, 20)]
    items += [said("assistant" if n % 2 else "user", n, 200) for n in range(5, 10)]
    reopened = situation(items, "summarise", "told " * 60)
    unpaid: list[bool] = []

    def asked(wanted: SummaryRequest) -> Summary:
        unpaid.append(wanted.unpaid)
        return reopened.ports.summarise(wanted)

    ports = msgspec.structs.replace(reopened.ports, summarise=asked)
    live = msgspec.structs.replace(reopened, ahead=PendingSummary(2, 3, (), 60), ports=ports)
    decision = summarise(live)
    assert decision is not None and decision == summarise(reopened)
    assert applied(live, decision).size < live.size
    assert unpaid == [False, True]
