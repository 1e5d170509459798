"""How long Anthropic's prompt cache is kept: chosen by the pauses on record, and on record itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from judging import errors_of
from sessions_in_time import Clock
from turnlog import target
from turnlog.log.budget import PRESETS, Strategy
from turnlog.log.records import Decision, UsageRecord
from turnlog.log.usage import Usage
from turnlog.models.target import Target
from turnlog.session.session import Session

CLAUDE = target("anthropic", "claude-sonnet-4-5", max_tokens=500)
DATED = "claude-sonnet-4-5-20250929"
SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


def paused(aim: Target, pauses: list[float], strategy: Strategy | str = "auto") -> Clock:
    """A session with these pauses between its requests."""
    clock = Clock(aim)
    clock.session.configure(strategy=strategy)
    clock.say("Rules. " * 2_000, role="system")
    size = 0
    for pause in pauses:
        clock.say("Go on. " * 20, pause)
        clock.session.request()
        clock.say("It is so.", 2.0, "assistant")
        written = 9_000 if not size else 100
        clock.put(UsageRecord(aim.provider, DATED, Usage(input=size + written, cached=size, cache_write=written)))
        size += written
    clock.say("And now?", 20.0)
    return clock


def marks(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The cache marks of a request to Claude."""
    said = [
        block for message in body["messages"] if isinstance(message["content"], list) for block in message["content"]
    ]
    return [block["cache_control"] for block in (*body["system"], *said) if "cache_control" in block]


def lifetimes(session: Session) -> list[bool]:
    """What was decided on how long the cache is kept, in order."""
    made = (record.body for record in session.history())
    return [one.detail["long"] for one in made if isinstance(one, Decision) and one.action == "cache_lifetime"]


BUSY = [10.0] * 12
SLOW = [10.0, 10.0, 900.0, 10.0, 1_200.0, 10.0, 900.0]


@pytest.mark.parametrize(("pauses", "long"), [(BUSY, False), (SLOW, True), ([4_000.0] * 8, False)])
def test_the_pauses_decide(pauses: list[float], long: bool, oracle: Any) -> None:
    """A person who thinks for ten minutes pays for the whole conversation again each time; a program that never waits
    would pay double for every write; and after an hour neither helps."""
    session = paused(CLAUDE, pauses).session
    body = session.request().body
    assert set(map(str, marks(body))) == {str(LONG if long else SHORT)}
    assert errors_of(oracle, CLAUDE, body) == []
    assert lifetimes(session) == [True] * long


def test_the_same_log_gives_the_same_bytes() -> None:
    """Another process, which knows of no request before, must not write all of it with other marks."""
    clock = paused(CLAUDE, SLOW)
    first = clock.session.request().json()
    again = Session(clock.store, clock.store.info("s"))
    assert again.preview().json() == first == again.request().json() == clock.session.request().json()
    assert len(lifetimes(clock.session)) == 1


def test_a_preview_decides_nothing() -> None:
    """It puts nothing on record, and shows what is in force."""
    clock = paused(CLAUDE, SLOW[:-1])
    records = clock.store.info("s").records
    before = marks(clock.session.preview().body)
    clock.session.request(target("anthropic", "claude-opus-4-5", max_tokens=500))
    assert clock.store.info("s").records == records and before


@given(st.lists(st.sampled_from([5.0, 60.0, 290.0, 400.0, 1_000.0, 3_000.0, 5_000.0]), max_size=40))
def test_it_changes_seldom(pauses: list[float]) -> None:
    """Each change writes the cache anew: whatever the pauses are, a change needs five requests, and a reason."""
    session = paused(CLAUDE, pauses).session
    session.request()
    found = lifetimes(session)
    assert len(found) <= len(pauses) // 5
    assert found == [n % 2 == 0 for n in range(len(found))]  # each says something new, and the first is `long`


@pytest.mark.parametrize(("ttl", "mark"), [("5m", SHORT), ("1h", LONG)])
@pytest.mark.parametrize("pauses", [BUSY, SLOW])
def test_the_users_choice_wins(ttl: Any, mark: dict[str, Any], pauses: list[float]) -> None:
    """Somebody who knows that the next question comes tomorrow, or in a minute."""
    session = paused(CLAUDE, pauses, replace(PRESETS["auto"], cache_ttl=ttl)).session
    assert set(map(str, marks(session.request().body))) == {str(mark)}
    assert lifetimes(session) == []


def test_marks_of_ones_own_keep_their_lifetime() -> None:
    """They say what their author wants."""
    session = paused(CLAUDE, SLOW).session
    body = session.request(CLAUDE.with_settings(cache_control=SHORT)).body
    assert body["cache_control"] == SHORT and "1h" not in str(body)


@pytest.mark.parametrize("strategy", [PRESETS["auto"], replace(PRESETS["auto"], cache_marks=False)])
def test_where_there_is_no_choice_nothing_is_decided(strategy: Strategy) -> None:
    """Other providers offer none, and without marks nothing is written."""
    aim = target("openai-responses", "gpt-5.6-sol") if strategy.cache_marks else CLAUDE
    session = paused(aim, SLOW, strategy).session
    assert "1h" not in str(session.request().body) and lifetimes(session) == []


def test_a_rewind_takes_the_decision_back() -> None:
    """What was decided after that point was decided by pauses that are no longer there."""
    clock = paused(CLAUDE, SLOW)
    clock.session.request()
    assert lifetimes(clock.session) == [True]
    clock.session.rewind(turns=len(SLOW) - 1)
    clock.say("Another way.")
    assert set(map(str, marks(clock.session.preview().body))) == {str(SHORT)}
