"""Others append while a session is kept within its budget: no request goes over it, and nothing is paid for in vain."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

import turnlog
from agents import CHAT
from turnlog.errors import Conflict
from turnlog.log.messages import Message, Text
from turnlog.log.records import Body, Decision, MessageRecord, Record, SummaryRecord
from turnlog.log.store import Draft
from turnlog.stores import MemoryStore

BUDGET = 5_000
TEXT = "Task: things (#1)"


def user(text: str) -> Draft:
    """What somebody else says."""
    return Draft(MessageRecord(Message("user", (Text(text),))))


class Shared(MemoryStore):
    """Another process appends `others` once, just behind a claim of a summary."""

    def __init__(self, *others: Draft) -> None:
        super().__init__()
        self.others = others

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`."""
        records = super().append(session_id, drafts, expected=expected)
        if any(_is_claim(draft.body) for draft in drafts):
            others, self.others = self.others, ()
            super().append(session_id, others)
        return records


class Busy(MemoryStore):
    """Another process appends just before each decision."""

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`."""
        if any(isinstance(draft.body, Decision) for draft in drafts):
            super().append(session_id, [user("and this")])
        return super().append(session_id, drafts, expected=expected)


def _is_claim(body: Body) -> bool:
    return isinstance(body, SummaryRecord) and body.state == "claimed"


def test_what_others_say_while_a_summary_is_begun_ahead_is_within_the_budget() -> None:
    """What came between the look at the size and the request was shown and not counted: the provider refuses it."""
    store = Shared(user("word " * 2_000))
    with turnlog.open(
        "s", store=store, target=CHAT, budget=BUDGET, settings=turnlog.Settings(summarizer=lambda prompt: TEXT)
    ) as session:
        for n in range(60):
            session.user(f"Q{n} " + "word " * 90)
            made = session.request()
            assert turnlog.count(made.body).tokens <= BUDGET
            session.assistant(f"A{n} " + "blah " * 90)
            if not store.others:
                break
    assert not store.others, "no summary was begun ahead"
    assert sum("word " * 2_000 in str(message) for message in made.body["messages"]) == 1


def conversation(store: MemoryStore, asked: list[str]) -> turnlog.Session:
    """Thirty turns, and a summarizer during whose work another process says something each time."""

    def slow(prompt: str) -> str:
        asked.append(prompt)
        store.append("s", [user(f"more {len(asked)}")])
        return TEXT

    session = turnlog.open("s", store=store, target=CHAT, settings=turnlog.Settings(summarizer=slow))
    for n in range(30):
        session.user(f"Q{n} " + "word " * 60)
        session.assistant("blah " * 60)
    return session


def test_a_compaction_that_others_overtake_pays_for_two_summaries_at_most() -> None:
    """Each try asked a model again, each was paid for, and after eight of them nothing had been compacted."""
    asked: list[str] = []
    with conversation(MemoryStore(), asked) as session:
        done = session.compact(keep=3)
        assert len(asked) == 2
        [(number, decision)] = done.decisions.items()
        kept = session.history()[number - 1].body
        assert isinstance(kept, Decision)
        assert (kept.action, kept.first, kept.last) == ("compact", decision.first, decision.last)
        assert kept.detail["failures"] == ["no model was asked: others append faster than it writes"]
        assert done.after < done.before / 2
        said = [message["content"] for message in session.request().body["messages"]]
        assert said[-2:] == ["more 1", "more 2"]


class Late(MemoryStore):
    """The summary that nobody waited for any longer comes just behind the record which says so."""

    def __init__(self) -> None:
        super().__init__()
        self.let = threading.Event()

    def append(self, session_id: str, drafts: Sequence[Draft], *, expected: int | None = None) -> tuple[Record, ...]:
        """See `RecordStore.append`."""
        records = super().append(session_id, drafts, expected=expected)
        if any(isinstance(draft.body, SummaryRecord) and draft.body.state == "failed" for draft in drafts):
            self.let.set()
            for thread in threading.enumerate():
                if thread.name == "turnlog-summary":
                    thread.join()
        return records


def test_a_summary_that_comes_late_is_no_race_with_others() -> None:
    """A digest in place of a summary that is paid for and on record, with the word that no model was asked and that
    others had appended something, where nobody had."""
    store = Late()

    def slow(prompt: str) -> str:
        store.let.wait()
        return TEXT

    with turnlog.open(
        "s", store=store, target=CHAT, settings=turnlog.Settings(summarizer=slow, summary_timeout=0.01)
    ) as session:
        for n in range(30):
            session.user(f"Q{n} " + "word " * 60)
            session.assistant("blah " * 60)
        done = session.compact(keep=3)
        assert done.failures == ()
        [decision] = done.decisions.values()
        assert TEXT in str(decision.detail["replacement"])


def test_who_is_always_overtaken_is_told_by_whom() -> None:
    """An error that says that nothing was appended, or the ninth summary of which none is used."""
    asked: list[str] = []
    with conversation(Busy(), asked) as session:
        with pytest.raises(Conflict) as raised:
            session.compact(keep=3)
        assert raised.value.expected < raised.value.actual == len(session.history())
        assert len(asked) == 2
