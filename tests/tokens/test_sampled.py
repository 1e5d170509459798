"""Texts of more than a million characters are counted by samples, and their count says that it is an estimate."""

from __future__ import annotations

import random

import pytest

import turnlog
from turnlog.log.messages import Message, Text
from turnlog.tokens import counter_for
from turnlog.tokens.approximate import FactoredCounter
from turnlog.tokens.families import unknown_family
from turnlog.tokens.vocabulary import SAMPLED, cut


def prose(size: int) -> str:
    """A text of words, numbers and lines, about so long."""
    draw = random.Random(7)
    words = [f"word{draw.randrange(10_000)}" if draw.random() < 0.1 else draw.choice(("some", "text", "über", "行"))]
    words += (draw.choice(("alpha ", "beta\n", "1234 ", "x=", "行 ", "/usr/lib ")) for _ in range(size // 5))
    return "".join(words)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_samples_give_nearly_the_count(model: str) -> None:
    """A long text whose count is far from that of its pieces, or differs from call to call."""
    text = prose(1_300_000)
    assert len(text) > SAMPLED
    counter = counter_for("anthropic" if "claude" in model else "openai-chat", model)
    whole = sum(counter.text(piece) for piece in cut(text))
    assert counter.text(text) == counter.text(text) == pytest.approx(whole, rel=0.03)


def test_a_sampled_count_is_called_an_estimate() -> None:
    """An estimate that passes for the exact count of a text."""
    counter = counter_for("openai-chat", "gpt-4o")
    for size, certainty in ((SAMPLED, "exact"), (SAMPLED + 1, "estimated")):
        assert (
            counter.messages((Message("user", (Text("a " * (size // 2) + "a" * (size % 2)),)),)).certainty == certainty
        )
    with turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o")) as session:
        record = session.user("word " * 250_000)
        assert record.body.count.certainty == "estimated"  # type: ignore[union-attr]


def test_a_counter_of_ones_own_is_sampled_too() -> None:
    """A tokenizer of the user's own that is given a text of many megabytes."""
    longest = 0

    def texts(text: str) -> int:
        nonlocal longest
        longest = max(longest, len(text))
        return len(text)

    assert FactoredCounter(unknown_family(), texts).text("y" * 3_000_000) == 3_000_000
    assert longest < 10_000
