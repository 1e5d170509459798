"""Results that were recorded ahead of their call, as parallel tools and merged logs do it."""

from __future__ import annotations

from types import ModuleType

import pytest

import turnlog
from judging import TARGETS, errors_of
from turnlog.log.messages import Message, Part, Text, ToolCall, ToolResult
from turnlog.models.target import Target
from turnlog.stores import MemoryStore

CALL = ToolCall("c1", "read", {})


def result(text: str, name: str = "read") -> Message:
    return Message("user", (ToolResult("c1", name, (Text(text),)),))


def answer(*parts: Part) -> Message:
    return Message("assistant", parts)


def requests_of(aim: Target, *messages: Message | str) -> list[turnlog.Request]:
    """A session's request after each message, each the same as that of a session opened anew."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=aim)
    made = []
    for message in messages:
        session.user(message) if isinstance(message, str) else session.add(message)
        made.append(session.request())
        assert turnlog.Session(store, store.info("s")).request().json() == made[-1].json()
    return made


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.model)
def test_a_result_ahead_of_its_call_answers_it(aim: Target, oracle: ModuleType) -> None:
    """The model would be told that a call has no result which is on record, and run it again."""
    *_, last = requests_of(aim, "Read it.", result("three lines"), answer(CALL), "So?")
    assert errors_of(oracle, aim, last.body) == []
    assert b"three lines" in last.json()
    assert [edit.kind for edit in last.edits if edit.kind in ("moved", "orphan", "unanswered")] == ["moved"]


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.model)
def test_two_ahead_of_two_calls(aim: Target, oracle: ModuleType) -> None:
    """One of them would be lost, or told as that of the other."""
    other = Message("user", (ToolResult("c2", "look", (Text("two birds"),)),))
    *_, last = requests_of(aim, "Do both.", other, result("three lines"), answer(CALL, ToolCall("c2", "look", {})))
    assert errors_of(oracle, aim, last.body) == []
    assert b"three lines" in last.json()
    assert b"two birds" in last.json()


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: aim.model)
def test_a_result_behind_the_call_comes_before_one_ahead_of_it(aim: Target, oracle: ModuleType) -> None:
    """What another call of the same id gave would stand where the true result is."""
    *_, last = requests_of(aim, "Read it.", result("of old"), answer(CALL), result("three lines"), "So?")
    assert errors_of(oracle, aim, last.body) == []
    assert b"three lines" in last.json()
    assert b"of old" not in last.json()


@pytest.mark.parametrize(
    "between", [["And now?"], [answer(Text("Done.")), "And now?"]], ids=["a user's word", "an answer and a word"]
)
def test_a_call_of_a_later_turn_is_not_answered(between: list[Message | str]) -> None:
    """Ids come again in real logs: a call would be taken for answered that may never have run."""
    aim = turnlog.target("anthropic", "claude-sonnet-4-5")
    *_, last = requests_of(aim, "Read it.", result("of old"), *between, answer(CALL), "So?")
    assert b"of old" not in last.json()
    assert b"No result of this call is on record" in last.json()


def test_a_call_of_another_tool_is_not_answered() -> None:
    """The id alone would make the result of one tool that of another."""
    aim = turnlog.target("anthropic", "claude-sonnet-4-5")
    *_, last = requests_of(aim, "Read it.", result("of old", "look"), answer(CALL), "So?")
    assert b"of old" not in last.json()


def test_both_leave_a_view_together() -> None:
    """A call would be told as one without a result, since a budget left out what stood ahead of it."""
    session = turnlog.open("s", store=":memory:", target=turnlog.target("openai-chat", "gpt-4o"))
    session.user("Begin.")
    session.user("Read it. " + "please " * 300)
    session.add(result("three lines " * 100))
    session.add(answer(CALL))
    for n in range(6):
        session.user(f"Word {n}. " + "please " * 100)
        session.assistant(f"Answer {n}.")
    session.configure(strategy="sliding")
    for budget in range(300, 1_500, 50):
        request = session.preview(budget=budget)
        assert (b"three lines" in request.json()) == (b'"c1"' in request.json())
        assert [edit.kind for edit in request.edits if edit.kind in ("orphan", "unanswered")] == []
