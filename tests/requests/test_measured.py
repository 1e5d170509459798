"""The size of a view is that of what is built of it: what repair adds or leaves out is counted with it."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings

import turnlog
from budget_triples import AIMS
from counted_apart import beyond
from draws import examples
from judging import numbered
from turnlog.log.messages import Message, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration, MessageRecord
from turnlog.log.store import Draft
from turnlog.models.target import Target
from turnlog.requests.build import Builder, build
from turnlog.requests.pieces import Conversation
from turnlog.requests.size import Sizing
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.session.state import Context
from turnlog.stores import MemoryStore
from turnlog.testing import sound_history
from turnlog.testing.histories import History
from turnlog.testing.strategies import damaged_histories
from turnlog.tokens.counters import counter_for
from turnlog.view.compaction.situation import Item
from turnlog.view.types import Shown


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
    if what a request takes beside its messages were left out of the count: what repair puts in, declarations of
    tools that nobody gave, results of calls made at once, free text that is sent as JSON."""
    chance = random.Random(seed)
    history = sound_history(chance)
    messages = list(history.messages)[: chance.randint(1, len(history.messages))]
    session = session_of(messages, aim, history.blobs)
    body = session.request().body
    sent = turnlog.count(body, model=aim.model, provider=aim.provider).tokens
    if aim in (AIMS[0], AIMS[2]):
        assert sent <= session.window.tokens <= sent + beyond(body, aim)
    else:  # some messages that are counted apart are joined when they are rendered
        assert sent <= session.window.tokens


@pytest.mark.slow
@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@given(history=damaged_histories())
@settings(max_examples=examples(15, 1_000))
def test_what_was_built_before_measures_as_what_is_built_anew(aim: Target, history: History) -> None:
    """A size that was kept for something else would make an open session decide otherwise than one that is opened
    anew; and tokens that no message has would be freed by no cut. Of any damage: the same, and all of them."""
    store = MemoryStore()
    store.create("s")
    for data in history.blobs.values():
        store.put_blob(data)
    Session(store, store.info("s")).switch(aim)  # without a target, each context would be read twice
    kept = Context(store, "s")
    for message in history.messages:
        kept.take(store.append("s", [Draft(MessageRecord(message))]))
        anew = Context(store, "s")
        assert kept.tokens(aim) == anew.tokens(aim)
        counter = counter_for(aim.provider, aim.model)
        ways, sizing = plan(kept.configuration, aim), Sizing(counter, store.get_blob)
        items = [Item(shown, sizing.message(shown.message), shown, shown.records[0]) for shown in anew.newest()][::-1]
        builder, conversation = Builder(ways, store.get_blob, sizing), Conversation.of(items)
        view, measured = builder.repaired(conversation, {}), builder.measured(conversation, {})
        assert view.tokens == kept.tokens(aim).tokens == view.fixed + sum(item.size for item in measured)


@pytest.mark.slow
@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@given(history=damaged_histories())
@settings(max_examples=examples(15, 1_000))
def test_a_request_says_how_large_it_is(aim: Target, history: History) -> None:
    """Whoever sends it wants to know what it takes of the window, from a session or from a plain body alike."""
    session = session_of(list(history.messages), aim, history.blobs)
    made = session.request()
    alone = build(plan(session.configuration, aim), numbered(history.messages), session._store.get_blob)
    assert made.tokens == session.window.tokens == alone.tokens


def test_a_tool_is_declared_as_long_as_a_call_of_it_is_shown() -> None:
    """What declares a tool has to count with the newest of its calls: counted with an older one, a view would be cut
    and still not fit."""
    aim = AIMS[2]
    sizing = Sizing(counter_for(aim.provider, aim.model), {}.__getitem__)
    calls = [Message("assistant", (ToolCall(f"c{n}", name, {}),)) for n, name in enumerate(("a", "b", "a"), start=1)]
    ways = plan(Configuration(), aim)
    builder = Builder(ways, {}.__getitem__, sizing)

    def sizes(*shown: int) -> list[int]:
        view = [Shown(Message("user", (Text("Go on."),)), (9,))]
        for n in shown:
            view += [Shown(calls[n - 1], (n,)), Shown(Message("user", (ToolResult(f"c{n}"),)), (10 + n,))]
        items = [Item(one, sizing.message(one.message), one, one.records[0]) for one in view]
        return [item.size for item in builder.measured(Conversation.of(items), {})]

    middle, _, newest, _ = sizes(1, 2, 3)[-4:]
    assert sizes(2, 3)[1::2] == [middle, newest]
    assert sizes(3)[1] == newest > middle  # the first to be declared brings along what any declaration does


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


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
def test_system_text_that_comes_late_counts_at_once(aim: Target) -> None:
    """Chat puts declared tools into a message of their own where no system text takes them in: remembered from before,
    an open session would count otherwise than one that is opened anew."""
    said = [Message("user", (Text("Look around."),)), Message("assistant", (ToolCall("c1", "list_files", {}),))]
    session = session_of(said, aim, {})
    session.tool_result("c1", "a.py")
    session.request()
    session.add(Message("system", (Text("Be brief."),)))
    again = Session(session._store, session._store.info("s"))
    assert session.window.tokens == again.window.tokens == session.window.breakdown().tokens
    sent = turnlog.count(session.request().body, model=aim.model, provider=aim.provider).tokens
    assert sent <= session.window.tokens  # a user's word behind a result is one message with it for some


def test_a_new_tool_moves_the_whole_request() -> None:
    """Tools stand ahead of the conversation: where none are given, the first call of another one costs the cache of
    everything behind, which no report may pass over."""
    aim = AIMS[2]
    session = session_of([Message("user", (Text("Look around. " * 50),))], aim, {})
    session.request()
    session.add(Message("assistant", (ToolCall("c1", "list_files", {"path": "."}),)))
    session.tool_result("c1", "a.py")
    use = session.request().cache
    assert use is not None
    assert (use.shared, use.why) == (0, "no tools are given, and the tools declared from the calls changed")


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@pytest.mark.parametrize("seed", range(12))
def test_a_body_that_was_made_to_fit_fits_as_it_is_counted(aim: Target, seed: int) -> None:
    """`fit` adds what repair adds, declarations of tools too: what it says of the size has to be what `count` says of
    the request, or a caller who trusts it sends one that is too large."""
    history = sound_history(random.Random(seed))
    body = session_of(list(history.messages), aim, history.blobs).request().body
    if seed % 2:
        body.pop("tools", None)
    size = turnlog.count(body, model=aim.model, provider=aim.provider).tokens
    for limit in (size * 4 // 10, size * 7 // 10, 2 * size):
        try:
            fitted = turnlog.fit(body, max_tokens=max(60, limit), model=aim.model, provider=aim.provider)
        except turnlog.BudgetError:
            continue
        counted = turnlog.count(fitted.body, model=aim.model, provider=aim.provider).tokens
        assert counted == fitted.tokens <= max(60, limit)
