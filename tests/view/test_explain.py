"""What is said to have become of each message is what a view shows of it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Body, Decision, MessageRecord, Note, Record
from turnlog.view.decisions import active_decisions
from turnlog.view.explain import Account, explain
from turnlog.view.fold import select

SUMMARY = msgspec.to_builtins(Message("user", (Text("in short: it went well"),)))


def log(*bodies: Body) -> list[Record]:
    """Records of these bodies."""
    return [Record(n, f"2026-01-01T00:00:{n:02}.000Z", body) for n, body in enumerate(bodies, start=1)]


def size(message: Message) -> int:
    """Characters, as tokens."""
    return len(msgspec.json.encode(message))


def said(role: Any, *texts: str) -> MessageRecord:
    """A message of these texts."""
    return MessageRecord(Message(role, tuple(map(Text, texts))))


def result(text: str) -> MessageRecord:
    """A result of the call `c`."""
    return MessageRecord(Message("user", (ToolResult("c", "look", (Text(text),)),)))


@st.composite
def logs(draw: st.DrawFn) -> list[Record]:
    """Logs with messages, notes and decisions of every kind in any order, taken back or not."""
    bodies: list[Body] = []
    for n in range(1, draw(st.integers(1, 14)) + 1):
        kind = draw(st.sampled_from(("user", "assistant", "system", "result", "note", "decision", "decision")))
        if kind == "result":
            bodies.append(result(f"found {n} " + "x" * 300))
        elif kind == "note":
            bodies.append(Note("n"))
        elif kind == "decision" and n > 1:
            bodies.append(draw(decisions(n)))
        else:
            bodies.append(said("user" if kind == "decision" else kind, f"words {n}"))
    return log(*bodies)


@st.composite
def decisions(draw: st.DrawFn, n: int) -> Decision:
    """A decision that stands as record `n`."""
    first = draw(st.integers(1, n - 1))
    last = draw(st.integers(first, n - 1))
    action = draw(st.sampled_from(("clear", "compact", "slide", "rewind", "mask", "cap", "pin", "undo")))
    detail: dict[str, Any] = {}
    if action in ("compact", "slide") and draw(st.booleans()):
        detail["kept"] = [[first, first]]
    if action in ("compact", "slide") and draw(st.booleans()):
        detail["standing"] = draw(st.lists(st.integers(1, n - 1), max_size=3))
    if action == "compact":
        detail |= {"replacement": [SUMMARY], "at": draw(st.sampled_from((first, n)))}
    if action == "mask":
        detail["texts"] = [[first, [0], "[gone]"]]
    if action == "cap":
        detail["cuts"] = [[first, [0, 0], 2, 1]]
    if action == "undo":
        return Decision("undo", supersedes=first)
    return Decision(action, first, last, "because", detail)


@given(records=logs())
def test_an_account_says_what_the_view_shows(records: list[Record]) -> None:
    """A message said to be kept that is not shown so, or one said to be gone that is, would mislead who asks."""
    found = explain(records, size)
    view = {shown.records[0]: shown for shown in select(records)[0] if shown.treatment != "summarised"}
    for record in records:
        if record.message is None:
            assert record.n not in found.accounts
            continue
        account = found.accounts[record.n]
        shown = view.get(record.n)
        assert (account.fate in ("summarised", "left out", "rewound")) == (shown is None)
        rewinds = [
            n for n, d in active_decisions(records).items() if d.action == "rewind" and d.first <= record.n <= d.last
        ]
        assert (account.fate == "rewound") == bool(rewinds)
        assert account.fate != "rewound" or account.by == (max(rewinds),)
        assert (account.fate == "kept") == (shown is not None and shown.message == record.message)
        assert account.shown == (size(shown.message) if shown else 0)
        assert bool(account.by) or account.fate == "kept"


@given(records=logs())
def test_sums_agree_with_the_view(records: list[Record]) -> None:
    """Tokens that nobody accounts for, summaries included, would make the sum saved a wrong figure."""
    found = explain(records, size)
    assert found.shown == sum(size(shown.message) for shown in select(records)[0])
    rewound = {n for n, account in found.accounts.items() if account.fate == "rewound"}
    standing = [record.message for record in records if record.message and record.n not in rewound]
    assert found.saved == sum(map(size, standing)) - found.shown


@given(records=logs())
def test_decisions_in_force_are_those_that_views_follow(records: list[Record]) -> None:
    """A decision listed as in force that was taken back, or one that is missing, would be the wrong reason."""
    found = explain(records, size)
    held = {one.n: one.decision for one in found.rulings if not one.ended_by and one.decision.action != "undo"}
    assert held == active_decisions(records)
    assert [one.n for one in found.rulings] == [r.n for r in records if isinstance(r.body, Decision)]
    for account in found.accounts.values():
        assert set(account.by) <= set(held)


@given(records=logs())
def test_two_decisions_say_why_a_message_is_not_shown(records: list[Record]) -> None:
    """The decision named first would not be the one that took the message out, the one named last not the one whose
    summary is shown; or all decisions would be named, which is records times decisions in a long log."""
    messages = [record for record in records if not isinstance(record.body, Decision)]
    held = active_decisions(records)
    steps = [explain(messages, size, dict([*held.items()][:n])).accounts for n in range(len(held) + 1)]
    for n, account in explain(messages, size, held).accounts.items():
        assert len(account.by) <= 2
        if account.fate not in ("summarised", "left out"):
            continue
        gone = [steps[i + 1][n] for i in range(len(held)) if steps[i][n].shown and not steps[i + 1][n].shown]
        assert account.by[0] == gone[-1].by[0]
        covered = {shown.records[0] for shown in select(records)[0] if shown.treatment == "summarised"}
        assert (account.fate == "summarised") == (account.by[-1] in covered)
        before = steps[[*held].index(account.by[-1])][n]  # as the last of them found the message
        assert before != account


def test_a_summary_that_left_takes_what_it_told_with_it() -> None:
    """Messages whose summary was merged are told in the later one; where that was left out, they are gone."""
    compact = {"replacement": [SUMMARY], "at": 1}
    bodies = [said("user", "one"), said("assistant", "two"), Decision("compact", 1, 2, detail=compact)]
    merged = Decision("compact", 1, 4, detail=compact)
    dropped = Decision("slide", 1, 5)
    later = [said("user", "three"), merged]
    assert explain(log(*bodies), size).accounts[1] == Account(
        1, "summarised", (3,), size(said("user", "one").message), 0
    )
    assert explain(log(*bodies, *later), size).accounts[1].by == (3, 5)
    gone = explain(log(*bodies, *later, dropped), size)
    assert [(a.fate, a.by) for a in gone.accounts.values()] == [
        ("left out", (3, 6)),
        ("left out", (3, 6)),
        ("left out", (5, 6)),
    ]
    assert gone.summaries == {}


def test_decisions_that_are_not_on_record_can_be_tried() -> None:
    """A dry run could not say what would go."""
    call = MessageRecord(Message("assistant", (ToolCall("c", "look", {}),)))
    records = log(said("user", "look"), call, result("x" * 100))
    tried = {4: Decision("mask", 3, 3, "old", {"texts": [[3, [0], "[gone]"]], "before": 90, "after": 50})}
    assert {n: a.fate for n, a in explain(records, size, tried).accounts.items()} == {1: "kept", 2: "kept", 3: "masked"}
    assert explain(records, size).accounts[3].fate == "kept"
