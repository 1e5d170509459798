"""What repair adds to a request is counted with it."""

from __future__ import annotations

import random

import pytest

import turnlog
from budget_triples import AIMS
from turnlog.content import Message, Text, ToolCall
from turnlog.models import Target
from turnlog.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing import sound_history
from turnlog.tokens.counters import count_frame, count_message, counter_for


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
