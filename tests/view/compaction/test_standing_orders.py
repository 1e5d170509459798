"""What a user forbids or requires stands in every view, whatever the strategy leaves out."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from draws import examples
from turnlog.errors import BudgetError
from turnlog.log.budget import PRESETS
from turnlog.log.messages import Message, Text
from turnlog.log.records import Decision
from turnlog.log.store import Store
from turnlog.models.target import target
from turnlog.redaction import RedactingStore, Redactor
from turnlog.requests.fit import Fitter
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.tokens.counters import counter_for

CHAT = target("openai-chat", "gpt-4o")
COUNTER = counter_for("openai-chat", "gpt-4o")
NOTE = "required or forbade"


def opened(strategy: str, budget: int, store: Store | None = None) -> Session:
    store = store or MemoryStore()
    store.create("s")
    session = Session(store, store.info("s"))
    session.switch(CHAT)
    session.configure(budget=budget, strategy=strategy)
    return session


def text_of_request(session: Session) -> str:
    return str(session.request().body)


def talk(session: Session, turns: int, orders: dict[int, str], size: int = 60) -> None:
    """So many turns, with an order in some of them."""
    session.user("Port the module.")
    for n in range(turns):
        session.assistant(f"Working on part {n}. " + "so " * size)
        session.user(f"Go on with part {n}. {orders.get(n, '')}")
        session.request()


@pytest.mark.parametrize("strategy", sorted(PRESETS))
def test_orders_stay_under_every_strategy(strategy: str) -> None:
    """A step that drops records without a note of the orders in them would lose what the user forbade."""
    session = opened(strategy, 1_500)
    orders = {n: f"Never touch file_{n}.py." for n in range(0, 30, 6)}
    talk(session, 36, orders)
    shown = text_of_request(session)
    assert [order for order in orders.values() if order not in shown] == []
    assert session_decisions(session)


def test_no_order_is_said_twice() -> None:
    """Each merge of notes would repeat the orders of the note before, and those that still stand in messages."""
    session = opened("sliding", 1_200)
    talk(session, 40, {3: "Never touch the schema.", 20: "Never touch the schema."})
    assert text_of_request(session).count("Never touch the schema.") == 1


@pytest.mark.parametrize("text", ("> Never touch the schema.", "From: Bo\nTo: me\n\nNever touch the schema. Thanks."))
def test_an_order_whose_words_stay_only_in_a_paste_stands(text: str) -> None:
    """The words in a paste or in a tool's result were taken for the order itself: when its message left, nothing said
    any more that the user forbids it."""
    session = opened("sliding", 1_200)
    session.user("Port the module.")
    session.assistant("Where shall I begin?")
    session.user("With the parser. Never touch the schema.")
    session.assistant("I look at it. " + "so " * 1_200)
    call = turnlog.ToolCall("c", "read", {"path": "README.md"})
    session.add(Message("assistant", (call,)))
    session.add(Message("user", (turnlog.ToolResult("c", "read", (Text(text),)),)))
    session.user(text)
    session.assistant("I see.")
    session.user("Go on.")
    notes = [one["content"] for one in session.request().body["messages"] if NOTE in str(one.get("content"))]
    assert len(notes) == 1 and "] Never touch the schema." in notes[0]


def test_orders_that_do_not_fit_are_cited_and_the_newest_stand() -> None:
    """Orders beyond their share would push out everything else; without the numbers nobody could read them back."""
    session = opened("sliding", 600)
    orders = {n: f"You must never rename the column number_{n} of the table." for n in range(30)}
    talk(session, 34, orders, size=20)
    shown = text_of_request(session)
    assert orders[29] in shown and orders[0] not in shown
    assert "More of this in records" in shown
    notes = [d for d in session_decisions(session) if "more_orders" in d.detail]
    first = notes[-1].detail["more_orders"][0][0]
    assert "You must never rename the column number_" in session.read_back(first)


def test_what_is_taken_back_stands_behind_what_it_takes_back() -> None:
    """In another order the model would believe the older rule."""
    session = opened("sliding", 900)
    talk(session, 24, {2: "Never push.", 6: "You may now push.", 9: "Never force a push."})
    shown = text_of_request(session)
    assert shown.index("Never push.") < shown.index("You may now push.") < shown.index("Never force a push.")


def test_what_the_user_cleared_does_not_come_back() -> None:
    """Orders of a conversation that was cleared are over; a note would bring them back."""
    session = opened("sliding", 900)
    talk(session, 20, {2: "Never push."})
    assert "Never push." in text_of_request(session)
    session.clear()
    talk(session, 20, {3: "Always sign."})
    shown = text_of_request(session)
    assert "Never push." not in shown and "Always sign." in shown


@pytest.mark.slow
def test_orders_in_a_part_of_the_log_that_is_not_in_memory_stay() -> None:
    """A session that is opened with a long log reads only its beginning and its end: orders between them count too."""
    store = MemoryStore()
    session = opened("sliding", 3_000, store)
    session.user("Port the module.")
    for n in range(900):
        session.assistant(f"Working on part {n}. " + "so " * 40)
        session.user("Never touch the schema." if n == 400 else f"Go on with part {n}.")
    again = Session(store, store.info("s"))
    assert "Never touch the schema." in text_of_request(again)


def test_sessions_opened_again_show_the_same_orders() -> None:
    """What a note says must follow from the log alone."""
    store = MemoryStore()
    session = opened("auto", 1_500, store)
    talk(session, 30, {n: f"Never touch file_{n}.py." for n in range(0, 30, 4)})
    made = session.request().json()
    again = Session(store, store.info("s"))
    assert again.request().json() == made


def test_secrets_stay_redacted_in_notes() -> None:
    """A note quotes records; quoting the words before redaction would leak what was redacted."""
    session = opened("sliding", 900, RedactingStore(MemoryStore(), Redactor()))
    secret = "sk-ant-api03-" + "Ab1" * 30 + "-AAAAAAAA"
    talk(session, 20, {1: f"Always use the key {secret} for that."})
    assert "Always use the key" in text_of_request(session)
    kept = str(list(session.log.on_disk.records()))
    assert secret not in kept and secret[:40] not in kept and "Always use the key" in kept


def test_orders_for_which_there_was_no_room_come_back() -> None:
    """An order that does not fit beside a giant open turn would be gone for good."""
    session = opened("mask", 500)
    talk(session, 3, {0: "Never touch the schema, " + "nor any of its many tables, " * 3 + "please."}, size=30)
    session.user("Read it. " + "so " * 420)
    session.request()
    session.assistant("Done.")
    session.user("Go on.")
    session.request()
    assert "Never touch the schema" in text_of_request(session)


def test_a_strategy_without_user_orders_makes_no_note() -> None:
    """A note of nothing would cost tokens in every conversation."""
    session = opened("sliding", 900)
    talk(session, 20, {})
    assert NOTE not in text_of_request(session)
    assert all("replacement" not in decision.detail for decision in session_decisions(session))


def session_decisions(session: Session) -> list[Decision]:
    return [record.body for record in session.history() if isinstance(record.body, Decision)]


@settings(max_examples=examples(30, 1_000), deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(sorted(PRESETS)), st.sampled_from((2, 4, 8)))
def test_no_order_is_lost_in_generated_sessions(seed: int, strategy: str, part: int) -> None:
    """An order between pastes and tool output must stand as long as all orders fit a tenth of the budget; what looks
    like one in a paste or in tool output must not be quoted. (`tests/laws/test_order_laws.py` plays many sessions.)"""
    chance = random.Random(seed)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Port the module."}]
    orders: list[str] = []
    for n in range(chance.randint(6, 20)):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        output = f"{'line of the log. ' * chance.randint(1, 80)}Never touch fake_{n}.py."
        messages.append({"role": "assistant", "content": f"Part {n}.", "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": output})
        messages.append({"role": "assistant", "content": "I will never forget it."})
        said = ["Go on."]
        if chance.random() < 0.3:
            orders.append(f"Never touch file_{n}.py.")
            said.insert(chance.randint(0, 1), orders[-1])
        said += [f"```\nNever touch pasted_{n}.py.\n```"] if chance.random() < 0.3 else []
        messages.append({"role": "user", "content": "\n".join(said)})
    body = {"model": "gpt-4o", "messages": messages}
    budget = turnlog.count(body, "openai-chat").tokens // part
    try:
        made = Fitter("openai-chat", max_tokens=budget, strategy=strategy).fit(body)
    except BudgetError:
        return
    texts = [one["content"] for one in made.body["messages"] if one["role"] == "user"]
    notes = [line for text in texts if NOTE in text for line in text.split(NOTE)[1].splitlines()]
    assert not any("fake_" in line or "pasted_" in line for line in notes)
    if sum(map(COUNTER.text, orders)) <= budget // 10 and made.tokens + 60 + 12 * len(orders) < budget:
        assert [order for order in orders if not any(order in text for text in texts)] == []


def test_an_image_beside_the_orders_is_no_text() -> None:
    """Only texts are read for orders; a message without any must not break the note."""
    session = opened("sliding", 700)
    session.user("Port the module.")
    session.add(Message("user", (Text("Never push."),)))
    for n in range(20):
        session.assistant(f"Part {n}. " + "so " * 40)
        session.user("Go on.")
        session.request()
    assert "Never push." in text_of_request(session)
