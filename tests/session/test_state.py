"""A session's context: the same request whether put together from kept pieces or made at once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import turnlog
from budget_triples import AIMS, longer_history
from draws import draws, examples
from judging import TARGETS
from turnlog.errors import BudgetError
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, Outcome, Text, ToolCall, ToolResult, text_of
from turnlog.log.records import (
    Approval,
    Body,
    Configuration,
    Decision,
    MessageRecord,
    Note,
    Record,
    ToolFinished,
    ToolStarted,
)
from turnlog.log.store import Draft
from turnlog.models.target import Target, target
from turnlog.requests import pieces
from turnlog.requests.build import build
from turnlog.requests.request import Request
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.session.state import Context
from turnlog.stores import MemoryStore
from turnlog.testing import sound_history
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories, sound_histories
from turnlog.view.repair.repair import Repaired, repair
from turnlog.view.types import Shown

CHAT = target("openai-chat", "gpt-4o")


def opened(history: History, *, decisions: dict[int, Decision] | None = None) -> MemoryStore:
    """A store with one session, `s`, that holds a history; decisions follow the message of their number."""
    store = MemoryStore()
    store.create("s")
    for data in history.blobs.values():
        store.put_blob(data)
    for n, message in enumerate(history.messages, start=1):
        store.append("s", [Draft(MessageRecord(message))])
        if decisions and n in decisions:
            store.append("s", [Draft(decisions[n])])
    return store


def gist(made: Request) -> tuple[object, Counter[object], Counter[object]]:
    """A request with its edits and losses, whatever the order of the latter."""
    return made.body, Counter(map(repr, made.edits)), Counter(map(repr, made.losses))


@pytest.mark.slow
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@given(history=st.one_of(damaged_histories(), sound_histories()))
@settings(max_examples=examples(15, 1_000))
def test_pieces_make_the_same_request_as_the_whole(aim: Target, history: History) -> None:
    """A kept piece that depends on its neighbours would be sent wrongly for as long as it is kept."""
    store = opened(History((), history.blobs, frozenset()))
    context = Context(store, "s")
    for message in history.messages:
        context.take(store.append("s", [Draft(MessageRecord(message))]))
        made = context.request(aim)
        shown = [shown for record in store.read("s") for shown in _shown(record.n, record.message)]
        assert gist(made) == gist(build(plan(Configuration(), aim), shown, store.get_blob))
        assert json.loads(made.json()) == json.loads(msgspec.json.encode(made.body))


@pytest.mark.parametrize("damage", ["late", "twice", "orphan", "none"])
@pytest.mark.parametrize("aim", TARGETS[:6], ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_one_stray_result_does_not_make_every_later_request_a_whole_one(
    aim: Target, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a single late, second or foreign result each request was made of the whole conversation again: 100 ms a
    turn at 1,500 messages in place of a fifth of one."""
    mended = [0]

    def counted(view: Sequence[Shown], *rest: Any, **named: Any) -> Repaired:
        mended[0] += len(view)
        return repair(view, *rest, **named)

    monkeypatch.setattr(pieces, "repair", counted)
    store = opened(History((Message("user", (Text("Begin."),)),), {}, frozenset()))
    context, costs = Context(store, "s"), []
    for n in range(25):
        call = ToolCall(f"c{n}", "look", {})
        said = [Message("assistant", (call,)), Message("user", (ToolResult(f"c{n}", "look", (Text("seen"),)),))]
        if n == 7 and damage != "none":
            word = Message("user", (Text("And this."),))
            other = ToolResult("x" if damage == "orphan" else "c7", "look", (Text("more"),))
            said = [said[0], word, said[1]] if damage == "late" else [*said, word, Message("user", (other,))]
        mended[0] = 0
        for message in said:
            context.take(store.append("s", [Draft(MessageRecord(message))]))
            made = context.request(aim)
        costs.append(mended[0])
        shown = [shown for record in store.read("s") for shown in _shown(record.n, record.message)]
        whole = build(plan(Configuration(), aim), shown, store.get_blob)
        assert gist(made) == gist(whole)
        assert json.loads(made.json()) == whole.body
    assert max(costs[10:]) <= 12


@pytest.mark.parametrize("first_id", ["", "a"])
@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_a_late_result_without_an_id_is_that_of_the_same_call_in_pieces(aim: Target, first_id: str) -> None:
    """By its name it may answer a call of its own piece, or one long before: a session that was opened again paired it
    with the one, the session that made it with the other."""
    calls = [ToolCall(first_id, "search", {}), ToolCall("b", "read", {})]
    messages = (
        Message("user", (Text("Look."),)),
        Message("assistant", tuple(calls)),
        Message("user", (ToolResult("b", "read", (Text("read"),)),)),
        Message("assistant", (ToolCall("c", "search", {}),)),
        Message("user", (ToolResult("", "search", (Text("found"),)),)),
    )
    store = opened(History(messages, {}, frozenset()))
    shown = [Shown(message, (n,)) for n, message in enumerate(messages, start=1)]
    made = Context(store, "s").request(aim)
    assert gist(made) == gist(build(plan(Configuration(), aim), shown, store.get_blob))


def _shown(n: int, message: Message | None) -> list[Shown]:
    return [] if message is None else [Shown(message, (n,))]


@pytest.mark.slow
@given(history=damaged_histories(), limit=st.integers(100, 1_500), aim=st.sampled_from(TARGETS), data=st.data())
def test_resuming_makes_the_same_request(history: History, limit: int, aim: Target, data: st.DataObject) -> None:
    """A session opened again after a crash must go on where it was: same bytes, same edits, and no decision
    that the session would not have made by itself."""
    store = opened(History((), history.blobs, frozenset()))
    session = Session(store, store.info("s"))
    session.switch(aim)
    session.configure(budget=limit, strategy=data.draw(st.sampled_from(sorted(PRESETS))))
    for message in history.messages:
        session.add(message)
        made = _attempt(session.request)
        records = store.info("s").records
        assert _attempt(Session(store, store.info("s")).request) == made
        assert store.info("s").records == records


@pytest.mark.slow
@given(seed=st.integers(0, 1 << 32), strategy=st.sampled_from(sorted(PRESETS)), aim=st.sampled_from(AIMS))
@example(seed=50966, strategy="auto", aim=AIMS[2])  # a result of which the call was not at hand
@example(seed=305, strategy="priority", aim=TARGETS[3])  # what the user had said last, before what came next
@example(seed=10063, strategy="spec", aim=TARGETS[4])  # a stray result ahead of the system text
@example(seed=513, strategy="cap", aim=AIMS[3])  # a gap in which there is only a result without a call
@settings(max_examples=examples(15, 1_000))
def test_budgets_that_change_leave_nothing_out(seed: int, strategy: str, aim: Target) -> None:
    """What no view could hold is not at hand: as budgets grow and shrink, a part of the conversation, sound or damaged,
    would be missing from requests or looks at them, until the session is opened again."""
    chance = random.Random(seed)
    history = longer_history(chance)
    store = opened(History((), history.blobs, frozenset()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("turnlog.session.loader._LEAST_REACH", 150)  # so that short conversations are not all at hand
        session = Session(store, store.info("s"))
        session.switch(aim)
        for message in history.messages:
            session.add(message)
            if chance.random() < 0.3:
                session.configure(budget=chance.choice((300, 600, 1_200, 2_500, 20_000)), strategy=strategy)
            if chance.random() < 0.5:
                looked_at = _attempt(session.preview)
                assert _attempt(Session(store, store.info("s")).preview) == looked_at == _attempt(session.request)
                again = Session(store, store.info("s"))
                assert again.window.tokens == session.window.tokens
                assert _attempt(again.request) == looked_at


def _attempt(make: Callable[[], Request]) -> object:
    try:
        made = make()
    except BudgetError as error:
        return error.floor
    return *gist(made), made.json()


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
@given(history=sound_histories())
@settings(max_examples=examples(20, 1_000))
def test_a_longer_conversation_starts_with_the_shorter_one(aim: Target, history: History) -> None:
    """Everything before the newest turn is in the provider's prompt cache: a changed byte bills it again."""
    store = opened(History((), history.blobs, frozenset()))
    context = Context(store, "s")
    key = plan(Configuration(), aim).provider.conversation
    before: list[object] = []
    for message in history.messages:
        context.take(store.append("s", [Draft(MessageRecord(message))]))
        made = context.request(aim)
        sent = made.body[key]
        assert sent[: len(before)] == before
        closed = message.role == "assistant" and not any(isinstance(part, ToolCall) for part in message.parts)
        if closed:  # what was put behind the last answer only to end on a user's word is no part of it
            before = sent[:-1] if made.view[-1].treatment == "synthetic" else sent


@pytest.mark.slow
def test_the_pieces_are_really_kept() -> None:
    """If every request fell back to the whole, nothing would be wrong and everything slow."""
    kept = total = 0
    for seed in range(draws(15, 60)):
        history = sound_history(random.Random(seed))
        store = opened(history)
        for aim in TARGETS:
            context = Context(store, "s")
            made = context.request(aim)
            total += 1
            kept += bool(made._fragments)
    assert kept > total * 0.8


def test_clearing_and_undoing_are_followed() -> None:
    """A cleared message that came back into a request would be a leak; system text stays."""
    said = [Message("system", (Text("be brief"),)), *(Message("user", (Text(f"word {n}"),)) for n in range(4))]
    store = opened(History(tuple(said), {}, frozenset()))
    context = Context(store, "s")
    context.take(store.append("s", [Draft(Decision("clear", first=1, last=5))]))
    context.take(store.append("s", [Draft(MessageRecord(Message("user", (Text("afresh"),))))]))
    texts = [m["content"] for m in context.request(TARGETS[0]).body["messages"]]
    assert texts == ["be brief", "afresh"]
    context.take(store.append("s", [Draft(Decision("undo", supersedes=6))]))
    texts = [m["content"] for m in context.request(TARGETS[0]).body["messages"]]
    assert texts == ["be brief", "word 0", "word 1", "word 2", "word 3", "afresh"]


def test_the_task_and_what_is_pinned_stay_when_older_messages_leave() -> None:
    """The first user message is the task: without it the model does not know what it works on."""
    said = [Message("user", (Text(f"word {n} " + "so " * 90),)) for n in range(10)]
    store = opened(History(tuple(said), {}, frozenset()))
    session = Session(store, store.info("s"))
    session.switch(TARGETS[0])
    session.configure(budget=500, strategy="sliding")
    session.pin(4)
    made = session.request()
    assert [m["content"][:6] for m in made.body["messages"]] == ["word 0", "word 3", "word 9"]
    assert [(edit.kind, edit.records, edit.through) for edit in made.edits] == [("slide", (2,), 9)]


def test_a_turn_that_does_not_fit_is_an_error_that_itemises() -> None:
    """Sending it would be refused by the provider; nothing of it can be left out."""
    said = [Message("system", (Text("so " * 90),)), Message("user", (Text("so " * 900),))]
    store = opened(History(tuple(said), {}, frozenset()))
    session = Session(store, store.info("s"))
    session.switch(TARGETS[0])
    session.configure(budget=900)
    with pytest.raises(BudgetError) as raised:
        session.request()
    assert raised.value.floor == {
        "tools and framing": 3,
        "system text": 95,
        "the task": 905,
        "pinned messages": 0,
        "the open turn": 0,
    }
    assert str(raised.value) == (
        "the request cannot fit: 1,003 tokens cannot be left out (tools and framing 3, system text 95, the task 905), "
        "the limit is 900, 103 too many; what would help: a larger budget (or window)"
    )


def test_a_refusal_says_what_it_comes_from_and_what_would_help() -> None:
    """Who gave 6,000 tokens and reads of a limit of 5,454 looks for a mistake; who pinned nothing, for pins."""
    said = [Message("user", (Text("the task " * 4_000),))]
    store = opened(History(tuple(said), {}, frozenset()))
    session = Session(store, store.info("s"))
    session.switch(target("anthropic", "claude-sonnet-4-5"))
    session.configure(budget=6_000, strategy="sliding")
    with pytest.raises(BudgetError) as raised:
        session.request()
    assert (raised.value.limit, raised.value.given) == (5_454, 6_000)
    assert raised.value.floor["pinned messages"] == 0 < raised.value.floor["the task"]
    told = str(raised.value)
    assert "the limit is 5,454 (6,000 minus a margin, as providers may bill more tokens than were counted), " in told
    assert "would help: a larger budget (or window)" in told
    session.configure(tools=[{"name": f"tool{n}", "description": "of use " * 50} for n in range(60)])
    with pytest.raises(BudgetError, match="fewer tools"):
        session.request()
    session.configure(tools=[], budget=20_000)
    assert session.request().body


@pytest.mark.slow
def test_decisions_that_later_ones_hide_wholly_are_no_edits_of_a_request() -> None:
    """A summary that was merged into a newer one shows nothing any more: to name all of them would tell of hundreds of
    changes where there is one. Of what is on record, and of what a look at the next request decides for once."""
    store = MemoryStore()
    session = Session(store, store.create("s"))
    session.switch(TARGETS[0])
    session.configure(budget=900, strategy="auto")
    for n in range(60):
        session.user(f"Step {n}. " * 20)
        session.assistant("Done. " * 40)
        made = session.request()
    compactions = [one for one in session.explain().rulings if one.decision.action == "compact"]
    assert len(compactions) > 3
    assert [edit.detail for edit in made.edits] == [
        f"left out by decision {compactions[-1].n}: older turns summarised to fit the budget"
    ]
    for n in range(8):
        session.user(f"Question {n}. " * 20)
        session.assistant("Answered. " * 40)
    looked_at = session.preview()
    assert [edit.kind for edit in looked_at.edits] == ["compact"] and looked_at.edits != made.edits


def test_an_open_turn_larger_than_what_is_kept_in_memory_stays_whole() -> None:
    """Results of calls made at once were left out, and their calls with them, where they took more than is kept in
    memory; so was what the user said last."""
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"))
    session.switch(CHAT)
    session.configure(budget=9_000)
    for _ in range(6):
        session.user("before " * 200)
        session.assistant("so " * 300)
    session.user("Compare them.")
    calls = tuple(ToolCall(f"c{n}", "read", {}) for n in range(3))
    session.add(Message("assistant", calls))
    for call in calls:
        session.tool_result(call, "a line of text\n" * 15_000)
    view = [shown.message for shown in session.request().view]
    said = [message for message in view if message.role == "user" and text_of(message) == "Compare them."]
    results = [part.call_id for message in view for part in message.parts if isinstance(part, ToolResult)]
    assert (len(said), results) == (1, ["c0", "c1", "c2"])


@pytest.mark.parametrize("outcome", ["canceled", "timeout", None])
def test_what_became_of_a_call_is_known_where_decisions_hide_it(outcome: Outcome | None) -> None:
    """A session opened again said of a call that was canceled that it may have run."""
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"))
    session.switch(CHAT)
    session.user("go")
    call = ToolCall("c1", "rm", {})
    made = session.add(Message("assistant", (call,)))
    session.tool_started(call)
    if outcome is not None:
        session.tool_finished(call, outcome)
    session.pin(made.n)
    for _ in range(4):
        session.user("and?")
        session.assistant("so")
    session.compact(keep=1)
    assert Session(store, store.info("s")).request().json() == session.request().json()


def test_what_was_taken_back_is_not_known_of_a_call() -> None:
    """A live session, one that is opened again, and a fork that ends there say the same of a call."""
    store = MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"))
    session.switch(CHAT)
    session.user("go")
    call = ToolCall("c1", "rm", {})
    session.add(Message("assistant", (call,)))
    last = session.user("and?").n
    session.tool_started(call)
    session.tool_finished(call, "ok")
    session.request()
    session.rewind(to=last)
    body = session.request().json()
    assert Session(store, store.info("s")).request().json() == body == session.fork("t", at=last).request().json()


@pytest.mark.parametrize("entry", [ToolStarted("c1", 5), ToolFinished("c1", 5, "timeout"), Approval("c1", "denied", 5)])
def test_what_stands_before_its_call_says_nothing_of_it(entry: Body) -> None:
    """A session that followed such a log, as only a damaged one is, and one that opens it must say the same of the
    call: what is known of calls is looked up from the first open one on."""
    bodies = set()
    for name, body in (("s", entry), ("t", Note("nothing"))):
        store = MemoryStore()
        store.create(name)
        session = Session(store, store.info(name))
        session.switch(CHAT)
        session.pin(session.user("go").n)
        store.append(name, [Draft(body)])
        session.request()
        assert session.add(Message("assistant", (ToolCall("c1", "rm", {}),))).n == 5
        bodies |= {session.request().json(), Session(store, store.info(name)).request().json()}
    assert len(bodies) == 1


@pytest.mark.parametrize("aim", TARGETS, ids=lambda aim: f"{aim.provider}-{aim.model}")
def test_the_task_is_at_hand_behind_a_call_that_nobody_answered(aim: Target) -> None:
    """The beginning that is read was cut where no call waits: ahead of the task, where a transcript begins in the
    midst of an answer. Another message was then taken for the task, and the task left out."""
    store = opened(History((), {}, frozenset()))
    session = Session(store, store.info("s"))
    session.switch(aim)
    session.configure(budget=2_000, strategy="sliding")
    session.add(Message("assistant", (ToolCall("c", "read", {"path": "a"}),)))
    session.user("The task.")
    for n in range(20):
        session.assistant("data " * 1_500)
        session.user(f"Question {n}.")
    assert "The task." in str(session.request().body)
    assert "The task." in str(Session(store, store.info("s")).request().body)


@pytest.mark.parametrize("strategy", ["auto", "sliding"])
def test_what_is_pinned_in_a_gap_takes_nothing_along(strategy: str) -> None:
    """The block behind the gap was taken for a part of the pinned answer in it: requests that fit were refused."""
    store = opened(History((), {}, frozenset()))
    session = Session(store, store.info("s"))
    session.switch(CHAT)
    session.configure(budget=100_000, strategy=strategy)
    session.user("The task.")
    pinned = session.assistant("The key is 42.")
    for n in range(60):
        session.add(Message("assistant", (ToolCall(f"c{n}", "read", {"path": str(n)}),)))
        session.add(Message("user", (ToolResult(f"c{n}", "read", (Text("data " * 1_500),)),)))
        if n == 20:
            session.user("Say the key.")
            pinned = session.assistant("The key is 42.")
            session.user("Go on.")
    session.pin(pinned.n)
    session.user("And now?")
    session.configure(budget=500)
    assert "The key is 42." in str(session.request().body)
    assert session.window.tokens < 200 or strategy == "auto"


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
def test_a_result_whose_call_was_cleared_counts_for_nothing(aim: Target) -> None:
    """Somebody clears a conversation while a tool runs: the result is on record and in no request. A giant one would
    have every request refused until somebody speaks, and cut after that for nothing."""
    with turnlog.open(
        "s", store=MemoryStore(), target=aim, budget=2_000, settings=turnlog.Settings(strategy="sliding")
    ) as session:
        session.user("Read it all.")
        call = ToolCall("c1", "read", {"path": "a.py"})
        session.add(Message("assistant", (call,)))
        session.clear()
        before = session.window.tokens
        session.tool_result(call, "a line of many\n" * 2_000)
        assert [edit.kind for edit in session.request().edits] == ["clear", "orphan", "empty"]
        assert session.window.tokens == before
        session.user("Now something else.")
        made = session.request()
        assert session.window.tokens == turnlog.count(made.body, model=aim.model, provider=aim.provider).tokens
        assert not any(
            isinstance(record.body, Decision) and record.body.action != "clear" for record in session.history()
        )


def test_a_result_that_comes_late_behind_a_rewind_is_sent() -> None:
    """An open session would say that a call has no result which is on record, and one opened anew would not."""
    store = MemoryStore()
    session = turnlog.open("s", store=store, target=turnlog.target("anthropic", "claude-sonnet-4-5", max_tokens=100))
    call = ToolCall("toolu_1", "read", {})
    session.user("Read it.")
    session.add(Message("assistant", (call,)))
    session.user("Well?")
    session.assistant("No result so far.")
    session.user("Never mind.")
    session.request()
    session.rewind(turns=1)
    session.tool_result(call, "three lines")
    session.user("And now?")
    request = session.request().json()
    assert b"three lines" in request
    assert turnlog.Session(store, store.info("s")).request().json() == request


class Counted(MemoryStore):
    """Counts the records that are read."""

    records_read = 0

    def read(
        self, session_id: str, *, first: int = 1, last: int | None = None, reverse: bool = False
    ) -> Iterator[Record]:
        """See `RecordStore.read`."""
        for record in super().read(session_id, first=first, last=last, reverse=reverse):
            self.records_read += 1
            yield record


def test_recording_does_not_read_the_log_again_at_each_turn() -> None:
    """A program that records a long conversation ahead of its first request would take time with the square of its
    length: what was in memory was read anew at every word of the user."""
    store = Counted()
    with turnlog.open("s", store=store, target=turnlog.target("openai-chat", "gpt-4o"), budget=4_000) as session:
        for n in range(400):
            session.user(f"question {n} " + "word " * 60)
            session.assistant(f"answer {n} " + "word " * 60)
        assert store.records_read < 20 * store.info("s").records
