"""Decisions that a later one does away with."""

from __future__ import annotations

import pytest

from turnlog.log.messages import Message, Text
from turnlog.summarize.digest import Digest
from turnlog.summarize.instructions import standing
from turnlog.summarize.protocol import Material
from turnlog.tokens.counters import counter_for
from turnlog.view.types import Shown

FIRST = "I decided to use Redis for the job queue, because it is there."


@pytest.mark.parametrize(
    "later",
    (
        "I decided to use Postgres for the job queue instead of Redis, because Redis lost jobs.",
        "For the job queue I'm going with Postgres, not Redis.",
        "We'll use Postgres for the job queue and drop Redis.",
        "We'll replace Redis with Postgres in the job queue.",
    ),
)
def test_a_decision_that_is_taken_back_is_left_out(later: str) -> None:
    """A successor would build on what was given up, as both are told as decisions."""
    assert standing([FIRST, later]) == [1]
    assert standing([FIRST, later], frozenset((1,))) == []


@pytest.mark.parametrize(
    "later",
    (
        "I decided to use Postgres for accounts instead of Redis.",  # something else
        "I decided to use a set for the job queue instead of lists.",
        "For the job queue, I chose batches of ten.",
        "My decision on batches: in the job queue, and not in the way.",
    ),
)
def test_a_decision_about_something_else_replaces_nothing(later: str) -> None:
    """A decision that holds would be lost."""
    assert standing([FIRST, later]) == [0, 1]


def test_the_order_counts() -> None:
    """What was given up first and chosen later is what holds."""
    back = "I decided to use Redis for the job queue instead of Postgres."
    away = "I decided to use Postgres for the job queue instead of Redis."
    assert standing([FIRST, away, back]) == [2]


def test_the_user_takes_a_decision_back() -> None:
    """The digest would say that the agent decided what the user has refused since."""
    texts = [
        ("user", "Build it."),
        ("assistant", FIRST),
        ("user", "For the job queue, take Postgres instead of Redis."),
        ("assistant", "I went on with it. " * 30),
    ]
    messages = tuple(Shown(Message(role, (Text(text),)), (n,)) for n, (role, text) in enumerate(texts, start=1))
    count = counter_for("openai-chat", "gpt-4o").text
    digest = Digest().summarize(Material(messages=messages, target=300, count=count))
    assert "## Decided" not in digest
    assert "take Postgres instead of Redis" in digest
