"""What repair adds to a request is counted with it."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given

import turnlog
from budget_triples import AIMS
from repairing import repair
from turnlog.log.messages import Message, Reasoning, Text, ToolCall, ToolResult
from turnlog.log.records import Configuration
from turnlog.models.target import Target
from turnlog.requests.translate import plan
from turnlog.session.session import Session
from turnlog.stores import MemoryStore
from turnlog.testing import History, sound_history
from turnlog.testing.strategies import damaged_histories
from turnlog.tokens.counters import count_message, counter_for
from turnlog.view.added import Added, Gauge, with_added
from turnlog.view.compaction.blocks import Item
from turnlog.view.sent import as_sent, is_plain
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
    made = session.request()
    sent = turnlog.count(made.body, model=aim.model, provider=aim.provider).tokens
    assert sent <= session.window.tokens
    # Counted as sent one by one: results of calls made at once by their brackets too much, and what is told apart only
    # by the turn that it stands in, signatures and encrypted reasoning, as if the turn lasted.
    beside = sum(len(part.encrypted) + 40 for m in messages for part in m.parts if isinstance(part, Reasoning))
    signed = sum(40 for m in messages for part in m.parts if isinstance(part, ToolCall)) if aim is AIMS[3] else 0
    results = sum(2 for m in messages for part in m.parts if isinstance(part, ToolResult))
    assert session.window.tokens - sent <= beside + signed + results


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


def gauge() -> Gauge:
    """Counts that tell everything apart."""
    return Gauge(counted, lambda message: counted(message) + 7, lambda tools: sum(len(repr(tool)) for tool in tools))


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@given(history=damaged_histories())
def test_what_is_remembered_is_what_is_found_anew(aim: Target, history: History) -> None:
    """A size that was remembered for something else would make an open session decide otherwise than one that is
    opened anew. Told message by message or all at once, of any damage: the same."""
    rules = plan(Configuration(), aim).rules
    kept, seen, remembering = Added(), list[Item](), gauge()
    for n, message in enumerate(history.messages, start=1):
        shown = Shown(message, (n,))
        seen.append(Item(shown, counted(message), shown, n))
        kept.see(shown, counted(message))
        beside = Counter(kept.lasting(rules, remembering))
        beside.update({i: tokens for i, (tokens, _) in kept.passing(rules, {}, remembering, n).items()})
        beside.update(kept.declarations(rules, remembering))
        anew = with_added(seen, rules, {}, gauge())
        assert {i: item.beside for i, item in enumerate(anew) if item.beside} == {i: t for i, t in beside.items() if t}
        assert sum(beside.values()) == kept.total(rules, {}, remembering, n)


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@given(history=damaged_histories())
def test_nothing_is_added_to_what_is_repaired(aim: Target, history: History) -> None:
    """Else a budget would pay for what nobody sends: repairing twice changes nothing more."""
    rules = msgspec.structs.replace(plan(Configuration(), aim).rules, results_apart=False)  # that is rendering
    view = repair([Shown(message, (n,)) for n, message in enumerate(history.messages, start=1)], rules).view
    items = [Item(shown, counted(shown.message), shown, i) for i, shown in enumerate(view)]
    made = with_added(items, rules, {}, Gauge(counted))
    # Free text of calls is put into JSON when it is rendered, after repair.
    assert {item.beside for item in made if not in_free_text(item.shown)} <= {0}


def in_free_text(shown: Shown) -> bool:
    return any(isinstance(part, ToolCall) and part.kind == "custom" for part in shown.message.parts)


def test_a_tool_is_declared_as_long_as_a_call_of_it_is_shown() -> None:
    """What declares a tool has to count with the newest of its calls: counted with an older one, a view would be cut
    and still not fit."""
    calls = [Message("assistant", (ToolCall(f"c{n}", name, {}),)) for n, name in enumerate(("a", "b", "a"), start=1)]
    added = Added()
    for n, message in enumerate(calls, start=1):
        added.see(Shown(message, (n,)), 1)
    sizes = Gauge(counted, None, lambda tools: 100 + 10 * len(tools))
    assert added.declarations(plan(Configuration(), AIMS[2]).rules, sizes) == {2: 110, 1: 10}
    assert added.tools(plan(Configuration(), AIMS[2]).rules, sizes) == 120


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
    assert (use.shared, use.why) == (0, "no tools are given, and others are declared from the calls")


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


def test_declared_tools_stand_in_the_order_of_their_first_calls() -> None:
    """Once the oldest call has gone, others may come first: the same tools in another order are no common beginning."""
    added = Added()
    for n, name in enumerate(("b", "a", "b"), start=1):
        added.see(Shown(Message("assistant", (ToolCall(f"c{n}", name, {}),)), (n,)), 1)
    assert added.declared(plan(Configuration(), AIMS[2]).rules) == ("b", "a")


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.provider)
@given(history=damaged_histories())
def test_what_is_plain_is_as_large_as_it_is_sent(aim: Target, history: History) -> None:
    """Told at once and wrongly, a message would count as something else than what is sent."""
    rules, counter = plan(Configuration(), aim).rules, counter_for(aim.provider, aim.model)
    for message in history.messages:
        if is_plain(message, rules):
            sent = as_sent(Shown(message, (1,)), rules, leading=False)
            assert sent is not None and count_message(sent, counter) == count_message(message, counter)
