"""What repair adds to a request is counted with it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given

import turnlog
from budget_triples import AIMS
from turnlog.content import Message, Text, ToolCall
from turnlog.models import Target
from turnlog.records import Configuration
from turnlog.request import plan
from turnlog.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing import History, sound_history
from turnlog.testing.strategies import damaged_histories
from turnlog.tokens.counters import count_frame, count_message, counter_for
from turnlog.view.added import Added, with_added
from turnlog.view.blocks import Item
from turnlog.view.repair import repair
from turnlog.view.shown import Shown


def session_of(messages: list[Message], aim: Target, blobs: dict[str, bytes]) -> Session:
    store = MemoryStore()
    store.create("s")
    for data in blobs.values():
        store.put_blob(data)
    session = Session(store, store.info("s"))
    session.switch(aim)
    session.configure(strategy=turnlog.Strategy(steps=()))
    session.extend(messages)
    return session


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@pytest.mark.parametrize("seed", range(30))
def test_a_request_is_as_large_as_it_was_counted(aim: Target, seed: int) -> None:
    """A conversation that stops anywhere, calls without results included, would be sent larger than its budget allows
    if what repair puts in were left out of the count."""
    chance = random.Random(seed)
    history = sound_history(chance)
    messages = list(history.messages)[: chance.randint(1, len(history.messages))]
    session = session_of(messages, aim, history.blobs)
    counter, blob = counter_for(aim.provider, aim.model), session._store.get_blob
    made = session.request()
    frame = count_frame(counter, system=True, tools=bool(session.configuration.tools)).tokens
    sent = frame + sum(count_message(shown.message, counter, blob).tokens for shown in made.view)
    # What repair leaves out (another provider's reasoning) makes a request smaller than counted, never larger.
    assert sent <= session.token_count
    if all(edit.kind not in ("reasoning", "empty") for edit in made.edits) and not made.losses:
        assert sent == session.token_count


def test_a_cache_report_says_that_a_call_was_answered() -> None:
    """The stand-in of a result gives way to the result: the cache is lost from there on, by no decision."""
    aim = AIMS[0]
    call = ToolCall("c1", "read_file", {"path": "a.py"})
    session = session_of([Message("user", (Text("Read a.py."),)), Message("assistant", (call,))], aim, {})
    before = session.request()
    session.tool_result(call, "x = 1")
    use = session.request().cache
    assert before.cache is None and use is not None
    assert (use.why, use.moved_by) == ("a call has its result now", 0)
    assert use.shared < use.previous


def counted(message: Message) -> int:
    """A size that tells messages apart, and what a signature adds."""
    signed = sum(len(part.signature) for part in message.parts if isinstance(part, ToolCall))
    return len(repr(message)) + signed


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@given(history=damaged_histories())
def test_what_is_remembered_is_what_is_found_anew(aim: Target, history: History) -> None:
    """A size that was remembered for something else would make an open session decide otherwise than one that is
    opened anew. Told message by message or all at once, of any damage: the same."""
    rules = plan(Configuration(), aim).rules
    kept, seen = Added(), list[Item]()
    for n, message in enumerate(history.messages, start=1):
        shown = Shown(message, (n,))
        seen.append(Item(shown, 0, shown, n))
        kept.see(shown)
        beside = kept.beside(rules, {}, counted, n)
        anew = with_added(seen, rules, {}, counted)
        assert {i: item.beside for i, item in enumerate(anew) if item.beside} == {i: t for i, t in beside.items() if t}


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@given(history=damaged_histories())
def test_nothing_is_added_to_what_is_repaired(aim: Target, history: History) -> None:
    """Else a budget would pay for what nobody sends: repairing twice changes nothing more."""
    rules = plan(Configuration(), aim).rules
    view = repair([Shown(message, (n,)) for n, message in enumerate(history.messages, start=1)], rules).view
    items = [Item(shown, 0, shown, i) for i, shown in enumerate(view)]
    assert [item.beside for item in with_added(items, rules, {}, counted)] == [0] * len(items)
