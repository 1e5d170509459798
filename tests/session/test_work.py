"""What a turn costs, counted: pieces built, texts counted, records read. A drift of time alone goes unnoticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import pytest

import turnlog
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Decision
from turnlog.requests import pieces, repaired
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.stores.records import of_any
from turnlog.summarize import notes
from turnlog.tokens.openai import OpenAICounter
from turnlog.view.curate import conversation

TARGET = turnlog.target("openai-chat", "gpt-4o")


class CountingStore(MemoryStore):
    """A store that counts the records that are read from it."""

    def __init__(self, work: Counter[str]) -> None:
        super().__init__()
        self.work = work

    def read(self, session_id: str, **places: Any) -> Iterator[Any]:
        """As any store; each record that is taken counts."""
        for record in super().read(session_id, **places):
            self.work["records read"] += 1
            yield record

    def of_kinds(self, session_id: str, kinds: Collection[str], **places: Any) -> Iterator[Any]:
        """As a store with an index of kinds: each record that is taken counts."""
        for record in filter(of_any(kinds), super().read(session_id, **places)):
            self.work["records read"] += 1
            yield record


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The work that was done: counted where it is done."""
    counted: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str) -> None:
        whole = getattr(owner, name)

        def counting(*given: Any, **named: Any) -> Any:
            counted[what] += 1
            return whole(*given, **named)

        monkeypatch.setattr(owner, name, counting)

    for module in (pieces, repaired):
        if hasattr(module, "repair_piece"):
            count(module, "repair_piece", "pieces built")
    count(OpenAICounter, "messages", "messages counted")
    count(notes, "laid_out", "texts noted")
    count(conversation, "curated", "outputs curated")
    return counted


def turn(session: Session, n: int, result: str = "found {} ") -> None:
    """A turn of four messages and two requests."""
    session.user(f"Turn {n}: please go on with part {n} of the work. " * 5)
    session.request().json()
    session.add(Message("assistant", (ToolCall(f"c{n}", "look", {"at": n}),)))
    session.add(Message("user", (ToolResult(f"c{n}", "look", (Text(result.format(n) * 20),)),)))
    session.request().json()
    session.assistant(f"Part {n} is done.")


def decisions_in(session: Session) -> int:
    return sum(isinstance(record.body, Decision) for record in session.history())


def test_a_turn_does_the_work_of_its_own_messages(work: Counter[str]) -> None:
    """Work that grows with the conversation: a hundred turns would take a hundred times as long for each request."""
    session = turnlog.open("s", store=CountingStore(work), target=TARGET)
    each = []
    for n in range(60):
        work.clear()
        turn(session, n)
        each.append(dict(work))
    assert each[5:] == [each[5]] * 55
    assert each[5]["pieces built"] <= 4 and each[5]["messages counted"] <= 8
    assert "records read" not in each[5]


@pytest.mark.slow
def test_a_decision_does_not_read_the_log_again(work: Counter[str]) -> None:
    """Later decisions of a long session would take longer than its first ones, by the length of the log."""
    session = turnlog.open("s", store=CountingStore(work), target=TARGET, budget=4_000)
    reads = []
    for n in range(200):
        work.clear()
        turn(session, n)
        if work["records read"]:
            reads.append(work["records read"])
    assert len(reads) > 20
    assert max(reads[10:]) <= 1.25 * max(reads[:10])


@pytest.mark.slow
def test_a_decision_finds_most_of_its_work_done(work: Counter[str]) -> None:
    """The one turn with a decision would read all that leaves, and so take as long as a hundred others."""
    session = turnlog.open("s", store=CountingStore(work), target=TARGET, budget=30_000)
    at_decisions, at_others = Counter[str](), Counter[str]()
    for n in range(300):
        before = decisions_in(session)
        work.clear()
        turn(session, n, "a line that says {} and little else\n")
        (at_decisions if decisions_in(session) > before else at_others).update(work)
    for what in ("texts noted", "outputs curated"):
        assert 0 < 10 * at_decisions[what] < at_others[what]
