"""A compaction that somebody asks for: what it keeps is what was asked to be kept."""

from __future__ import annotations

import pytest

import turnlog
from agents import CHAT
from turnlog.log.budget import PRESETS
from turnlog.stores import MemoryStore

TURNS = 8


def conversation(strategy: str, answer: int = 80) -> turnlog.Session:
    """Eight turns, of which the first has an answer of so many words, of a session that has room for many more."""
    session = turnlog.open("s", target=CHAT, store=MemoryStore(), settings=turnlog.Settings(strategy=strategy))
    for n in range(TURNS):
        session.user(f"Q{n} " + "word " * 100)
        session.assistant(f"A{n} " + "blah " * (80 if n else answer))
    return session


def shown(session: turnlog.Session) -> list[str]:
    """The first word of each message."""
    return [message["content"].split()[0] for message in session.request().body["messages"]]


@pytest.mark.parametrize("strategy", PRESETS)
@pytest.mark.parametrize("keep", range(1, TURNS + 2))
def test_turns_that_are_to_stay_do(keep: int, strategy: str) -> None:
    """Of seven turns that a user asked for, two that stayed: where the newest turns took most of the view, a
    summary took their place although everything had room."""
    with conversation(strategy) as session:
        before = session.window.tokens
        done = session.compact(keep=keep)
        assert done.after <= before == done.before
        newest = [f"{who}{n}" for n in range(max(0, TURNS - keep), TURNS) for who in "QA"]
        assert shown(session)[-len(newest) :] == newest


def test_the_answer_to_the_task_is_no_part_of_the_turns_that_stay() -> None:
    """A giant first answer of which a user asked that it go, and nothing went."""
    with conversation("auto", answer=3_000) as session:
        assert session.compact(keep=TURNS - 1).decisions
        assert shown(session)[:3] == ["Q0", "[Summary", "Q1"]
    with conversation("auto", answer=3_000) as session:
        assert not session.compact(keep=TURNS).decisions
