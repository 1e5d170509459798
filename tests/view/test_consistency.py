"""What does not go together in a log is listed; what does is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from turnlog.log.messages import Message, Part, Text, ToolCall, ToolResult, Unknown
from turnlog.log.records import (
    Approval,
    Body,
    Decision,
    MessageRecord,
    Record,
    ToolFinished,
    ToolStarted,
    TurnClosed,
    TurnOpened,
    UnknownRecord,
)
from turnlog.testing.histories import History
from turnlog.testing.strategies import sound_histories
from turnlog.view.consistency import inconsistencies

Found = tuple[str, tuple[int, ...]]


def log(*bodies: Body) -> list[Record]:
    """Records of these bodies, a second apart."""
    return [Record(n, f"2026-03-01T09:00:{n:02}.000Z", body) for n, body in enumerate(bodies, 1)]


def user(*parts: Part) -> MessageRecord:
    """What a user says."""
    return MessageRecord(Message("user", parts or (Text("go"),)))


CALL = MessageRecord(Message("assistant", (ToolCall("c1", "ls"),)))
RESULT = user(ToolResult("c1", "ls", (Text("x"),)))
MADE_UP = user(ToolResult("c1", "ls", (Text("x"),), "lost", synthetic=True))
START, END = ToolStarted("c1", 1), ToolFinished("c1", 1, "ok")


def test_transcripts_leave_ends_out() -> None:
    """Hundreds of findings about files of programs that write no ends would hide the one that matters."""
    prompt, asked = (replace(one, source="line 1") for one in (user(), CALL))
    bodies = [TurnClosed("unknown", "cancelled"), TurnOpened("1"), prompt, asked, TurnOpened("2"), prompt]
    assert inconsistencies(log(*bodies)) == []
    found = [(one.kind, one.records) for one in inconsistencies(log(*bodies), strict=True)]
    assert found == [("turn", (1,)), ("turn", (2, 5)), ("unanswered", (4,)), ("turn", (5,))]
    ours = [TurnOpened("1"), user(), CALL, TurnOpened("2"), prompt]
    assert [one.kind for one in inconsistencies(log(*ours))] == ["turn", "unanswered"]


@pytest.mark.parametrize(
    "bodies, expected, strict_only",
    [
        ((user(), RESULT), [("orphan", (2,))], []),
        ((CALL, RESULT, RESULT), [("duplicate", (3,))], []),
        ((CALL, MADE_UP, RESULT), [], []),
        ((CALL, RESULT, MADE_UP), [], []),
        ((CALL, user()), [("unanswered", (1,))], []),
        ((CALL,), [], [("unanswered", (1,))]),
        ((CALL, START, END, RESULT), [], []),
        ((CALL, ToolStarted("c2", 1), RESULT), [("ledger", (2,))], []),
        ((CALL, Approval("c1", "asked", 2), RESULT), [("ledger", (2,))], []),
        ((CALL, Approval("c1", "given"), START, END, RESULT), [], []),
        ((CALL, END, RESULT), [], [("ledger", (2,))]),
        ((CALL, Approval("c1", "denied", 1), START, RESULT), [], [("approval", (3,))]),
        ((CALL, START, ToolFinished("c1", 1, "failed"), RESULT), [], [("outcome", (3, 4))]),
        ((TurnOpened("1"), TurnClosed("1", "completed")), [], []),
        ((TurnOpened("1"),), [], [("turn", (1,))]),
        ((TurnOpened("1"), TurnOpened("1")), [("turn", (1, 2)), ("turn", (1, 2))], [("turn", (2,))]),
        ((TurnClosed("1", "completed"),), [("turn", (1,))], []),
        ((TurnOpened("1"), TurnClosed("1", "failed"), TurnClosed("1", "completed")), [("turn", (2, 3))], []),
        ((user(), Decision("clear", first=1, last=1)), [], []),
        ((user(), Decision("clear", first=1, last=9)), [("decision", (2,))], []),
        ((user(), Decision("clear", first=2, last=1)), [("decision", (2,))], []),
        ((user(), Decision("undo", supersedes=1)), [("decision", (2,))], []),
        ((user(), Decision("mask", detail={"texts": [[3, [0], "x"]]})), [("decision", (2,))], []),
        ((user(), Decision("compact", detail={"replacement": [{"role": "nobody"}]})), [("decision", (2,))], []),
        ((UnknownRecord("hologram"), user(Unknown("smell"))), [("unknown", (1,)), ("unknown", (2,))], []),
    ],
)
def test_what_does_not_go_together_is_listed(
    bodies: tuple[Body, ...], expected: list[Found], strict_only: list[Found]
) -> None:
    """One of each kind, with the records that it is about; and what is in order beside it."""
    records = log(*bodies)
    assert [(one.kind, one.records) for one in inconsistencies(records)] == expected
    strict = [(one.kind, one.records) for one in inconsistencies(records, strict=True)]
    assert sorted(strict) == sorted([*expected, *strict_only])


def test_a_clock_that_went_back_is_harmless() -> None:
    """Records of two machines come in the order of the log, not of their clocks."""
    records = [Record(1, "2026-01-02", user()), Record(2, "2026-01-01", user())]
    assert inconsistencies(records) == []
    assert [one.kind for one in inconsistencies(records, strict=True)] == ["time"]


@given(history=sound_histories())
def test_a_sound_history_has_none(history: History) -> None:
    """A false alarm teaches people not to look."""
    assert inconsistencies(log(*map(MessageRecord, history.messages))) == []
