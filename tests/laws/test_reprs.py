"""What public values say of themselves: what a person at a prompt, or in front of a traceback, wants to know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import turnlog
from agents import CHAT, chunks, says
from turnlog.session import Session
from turnlog.stores import MemoryStore

LONG = "word " * 5_000
SHELL = {"name": "shell", "description": LONG, "parameters": {"type": "object"}}


@pytest.fixture
def session() -> Session:
    """A session in which everything is long: what is said, a tool, an error, what was left open."""
    made = turnlog.open("long", store=MemoryStore(), target=CHAT, tools=[SHELL], budget=60_000)
    for n in range(40):
        with made.turn(f"{n} {LONG}") as turn:
            answer = turn.receive(says("", f"call_{n}"))
            turn.tool_result(answer.tool_calls[0], LONG)
            turn.receive(chunks(LONG))
            made.request()
    return made


def values_of(session: Session) -> dict[str, Any]:
    """A value of each public type that a long session gives."""
    request, explanation = session.request(), session.explain()
    return {
        "session": session,
        "log": session.log,
        "window": session.window,
        "request": request,
        "edit": request.edits[0],
        "cache": request.cache,
        "prediction": session.window.prediction,
        "breakdown": session.window.breakdown(),
        "explanation": explanation,
        "account": next(iter(explanation.accounts.values())),
        "turn": session.log.turns()[-1],
        "call": session.log.calls()[-1],
        "tool use": session.log.tools_used()[0],
        "usage": session.usage,
        "cost": session.cost,
        "record": session.history()[-2],
        "configuration record": session.history()[1],
        "compaction": session.compact(dry_run=True),
        "rewind": session.rewind(turns=30, dry_run=True),
        "answer": session.receive(says(LONG)),
        "events": session.events(),
        "files": session.files(),
        "target": session.target,
        "strategy": turnlog.Strategy(name="mine", steps=("mask",)),
        "settings": turnlog.Settings(system="Be brief.", key=b"k" * 32),
        "limits": turnlog.Limits(max_age="30d"),
        "redactor": turnlog.Redactor({"staff": "EMP-[0-9]+"}),
        "fitted": turnlog.fit(request.body),
        "violations": turnlog.check({**request.body, "messages": request.body["messages"][2:]})[:1],
        "count": turnlog.count(request.body),
        "collected": turnlog.collect(session._store, turnlog.Limits(max_sessions=1)),
    }


def test_each_says_what_it_is_in_a_line(session: Session) -> None:
    """A screen full of text in the place of an answer, or `object at 0x7f...`, which says nothing."""
    said = {name: repr(value) for name, value in values_of(session).items()}
    assert {name: text for name, text in said.items() if len(text) > 400 or "\n" in text or " at 0x" in text} == {}


def test_a_session_says_where_it_stands(session: Session) -> None:
    """Its id, what it makes requests for, how long and how large it is, and whether a turn is open."""
    records, tokens = len(session.history()), session.window.tokens
    assert repr(session) == f"Session('long', openai-chat gpt-4o, {records:,} records, {tokens:,} tokens)"
    with session.turn("go on") as turn:
        assert repr(turn) == f"Turn({turn.id}, processing)"
        assert repr(session).endswith(f" tokens, turn {turn.id} open)")
    assert repr(turn) == f"Turn({turn.id}, completed)"
    session.close()
    assert repr(turnlog.open("other", store=":memory:")) == "Session('other', 0 records)"


def test_no_secret_is_shown_by_settings(tmp_path: Path) -> None:
    """The key of a store, in a log file that prints what a program was started with."""
    assert repr(turnlog.Settings(key=b"k" * 32, title="x")) == "Settings(key=..., title='x')"
    assert repr(turnlog.Settings(key=f"file:{tmp_path}/k")) == f"Settings(key='file:{tmp_path}/k')"
